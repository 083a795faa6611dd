-- a body that is stopped in the middle of its blocks: what was undone goes back to the client's savepoint
\set VERBOSITY terse
CREATE TABLE pls_t (id int);
BEGIN;
INSERT INTO pls_t VALUES (1);
SAVEPOINT s;
INSERT INTO pls_t VALUES (2);
SET LOCAL statement_timeout = '200ms';
DO $$ BEGIN
  INSERT INTO pls_t VALUES (3);
  BEGIN
    INSERT INTO pls_t VALUES (4);
    LOOP NULL; END LOOP;
  EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'handled';
  END;
END $$;
SELECT 1;
ROLLBACK TO s;
SELECT * FROM pls_t;
INSERT INTO pls_t VALUES (5);
COMMIT;
SELECT * FROM pls_t ORDER BY id;
SET statement_timeout = '200ms';
DO $$ BEGIN FOR i IN 1..2000000000 LOOP NULL; END LOOP; END $$;
DO $$ BEGIN WHILE true LOOP BEGIN NULL; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$;
-- PLS-2: loops without a statement in them, too
DO $$ BEGIN LOOP END LOOP; END $$;
DO $$ BEGIN WHILE true LOOP END LOOP; END $$;
DO $$ BEGIN FOR i IN 1..2000000000 LOOP END LOOP; END $$;
DO $$ DECLARE c CURSOR FOR SELECT FROM generate_series(1, 2000000000); BEGIN FOR r IN c LOOP END LOOP; END $$;
CREATE FUNCTION pls_waits() RETURNS int LANGUAGE plpgsql AS $$ BEGIN LOOP BEGIN LOOP END LOOP; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$;
SELECT pls_waits();
DROP FUNCTION pls_waits;
RESET statement_timeout;
-- PLS-1: the savepoint of a block has gone with it, whether the block was undone or not
DO $$ BEGIN BEGIN INSERT INTO pls_t VALUES (6); EXCEPTION WHEN OTHERS THEN NULL; END; COMMIT; END $$;
DO $$ BEGIN BEGIN INSERT INTO pls_t VALUES (7); RAISE division_by_zero; EXCEPTION WHEN OTHERS THEN COMMIT; END; COMMIT; END $$;
DO $$ BEGIN BEGIN INSERT INTO pls_t VALUES (8); COMMIT; EXCEPTION WHEN invalid_transaction_termination THEN RAISE NOTICE '%', sqlerrm; END; END $$;
SELECT * FROM pls_t ORDER BY id;
-- PostgreSQL's stack ends later and with other words in the hint
CREATE FUNCTION pls_endless(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN pls_endless(n + 1); END $$;
SELECT pls_endless(1);
DROP FUNCTION pls_endless;
DROP TABLE pls_t;
