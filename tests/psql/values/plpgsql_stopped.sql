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
RESET statement_timeout;
-- PostgreSQL's stack ends later and with other words in the hint
CREATE FUNCTION pls_endless(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN pls_endless(n + 1); END $$;
SELECT pls_endless(1);
DROP FUNCTION pls_endless;
DROP TABLE pls_t;
