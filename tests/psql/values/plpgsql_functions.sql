-- functions and procedures in PL/pgSQL
CREATE TABLE plf_t (id int PRIMARY KEY, v text);
INSERT INTO plf_t VALUES (1, 'a'), (2, 'b'), (3, 'c');
CREATE FUNCTION plf_add(a int, b int DEFAULT 10) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
  RETURN a + b;
END $$;
SELECT plf_add(1, 2), plf_add(1), plf_add(b => 1, a => 3), plf_add(NULL, 1);
SELECT id, plf_add(id) FROM plf_t WHERE plf_add(id, 1) > 2 ORDER BY 1;
CREATE FUNCTION plf_fact(n int) RETURNS numeric LANGUAGE plpgsql AS $$
BEGIN IF n <= 1 THEN RETURN 1; END IF; RETURN n * plf_fact(n - 1); END $$;
SELECT plf_fact(20);
CREATE FUNCTION plf_rows(n int) RETURNS SETOF int LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..n LOOP RETURN NEXT i; END LOOP;
  RETURN QUERY SELECT 100 + g FROM generate_series(1, 2) g;
  RETURN QUERY EXECUTE 'SELECT $1' USING n;
END $$;
SELECT * FROM plf_rows(2);
SELECT plf_rows(1);
SELECT sum(x) FROM plf_rows(3) x;
CREATE FUNCTION plf_table(low int) RETURNS TABLE (k int, w text) LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN QUERY SELECT t.id, t.v || '!' FROM plf_t t WHERE t.id >= low ORDER BY t.id;
  k := 77; w := 'last';
  RETURN NEXT;
END $$;
SELECT * FROM plf_table(2);
SELECT w FROM plf_table(3) WHERE k > 3;
SELECT t.id, f.w FROM plf_t t, plf_table(t.id) f ORDER BY 1, 2;
CREATE FUNCTION plf_out(IN a int, OUT double int, INOUT c text) LANGUAGE plpgsql AS $$
BEGIN double := a * 2; c := c || c; END $$;
SELECT plf_out(4, 'x'), (plf_out(5, 'y')).double;
SELECT * FROM plf_out(4, 'x');
CREATE FUNCTION plf_row(i int) RETURNS plf_t LANGUAGE plpgsql AS $$
DECLARE r plf_t; BEGIN SELECT * INTO r FROM plf_t WHERE id = i; RETURN r; END $$;
SELECT * FROM plf_row(2);
SELECT plf_row(2), (plf_row(3)).v, plf_row(99) IS NULL;
CREATE FUNCTION plf_setof_row() RETURNS SETOF plf_t LANGUAGE plpgsql AS $$
DECLARE r record; BEGIN FOR r IN SELECT * FROM plf_t ORDER BY id DESC LOOP RETURN NEXT r; END LOOP; RETURN; END $$;
SELECT * FROM plf_setof_row();
CREATE FUNCTION plf_record() RETURNS record LANGUAGE plpgsql AS $$ BEGIN RETURN ROW(1, 'one'::text); END $$;
SELECT * FROM plf_record() AS r (a int, b text);
SELECT plf_record();
SELECT * FROM plf_record() AS r (a int, b int);
CREATE FUNCTION plf_poly(a anyelement, b anyarray) RETURNS anyarray LANGUAGE plpgsql AS $$
DECLARE x a%TYPE; BEGIN x := a; RETURN b || x; END $$;
SELECT plf_poly(1, ARRAY[2]), plf_poly('z'::text, ARRAY['y'::text]);
CREATE FUNCTION plf_variadic(VARIADIC list int[]) RETURNS int LANGUAGE plpgsql AS $$
DECLARE s int := 0; x int; BEGIN FOREACH x IN ARRAY list LOOP s := s + x; END LOOP; RETURN s; END $$;
SELECT plf_variadic(1, 2, 3), plf_variadic(VARIADIC ARRAY[4, 5]);
CREATE FUNCTION plf_void() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'void'; END $$;
SELECT plf_void();
-- effects: a volatile function sees what has happened, and an error undoes all
CREATE FUNCTION plf_insert(i int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO plf_t VALUES (i, 'new');
  RETURN (SELECT count(*) FROM plf_t);
END $$;
SELECT plf_insert(10), plf_insert(11);
SELECT count(*) FROM plf_t;
SELECT plf_insert(12), plf_insert(1);
SELECT count(*) FROM plf_t;
CREATE FUNCTION plf_try(i int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO plf_t VALUES (i, 'tried');
  RETURN 'inserted';
EXCEPTION WHEN unique_violation THEN RETURN SQLERRM;
END $$;
SELECT plf_try(20), plf_try(1), plf_try(20);
CREATE TABLE plf_log (id int, what text);
INSERT INTO plf_log SELECT g, plf_try(g) FROM generate_series(19, 22) g;
SELECT * FROM plf_log ORDER BY id;
UPDATE plf_log SET what = plf_try(id + 10) WHERE id > 20;
SELECT * FROM plf_log ORDER BY id;
CREATE FUNCTION plf_stable() RETURNS bigint LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT count(*) FROM plf_log); END $$;
INSERT INTO plf_log SELECT plf_stable(), 'stable' FROM generate_series(1, 2);
SELECT * FROM plf_log WHERE what = 'stable';
CREATE FUNCTION plf_writes() RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN DELETE FROM plf_log; RETURN 1; END $$;
SELECT plf_writes();
-- what goes wrong
CREATE FUNCTION plf_none() RETURNS int LANGUAGE plpgsql AS $$ BEGIN END $$;
SELECT plf_none();
CREATE FUNCTION plf_deep(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF n = 0 THEN RAISE EXCEPTION 'bottom'; END IF;
  RETURN plf_deep(n - 1);
END $$;
SELECT plf_deep(0);
CREATE FUNCTION plf_bad() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  RETURN 1 +;
END $$;
CREATE FUNCTION plf_bad() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
CREATE FUNCTION plf_bad() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT 1; END $$;
CREATE FUNCTION plf_bad() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT 1; END $$;
CREATE FUNCTION plf_bad(OUT a int) LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
CREATE FUNCTION plf_bad() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN; END $$;
CREATE FUNCTION plf_cast() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 'abc'; END $$;
SELECT plf_cast();
CREATE FUNCTION plf_mismatch() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT 'a'::text; END $$;
SELECT plf_mismatch();
CREATE FUNCTION plf_commit() RETURNS int LANGUAGE plpgsql AS $$ BEGIN COMMIT; RETURN 1; END $$;
SELECT plf_commit();
-- procedures
CREATE PROCEDURE plf_proc(IN a int, INOUT b int, OUT c text) LANGUAGE plpgsql AS $$
BEGIN b := a + b; c := 'c' || b; END $$;
CALL plf_proc(1, 2, NULL);
DO $$ DECLARE x int := 5; y text; BEGIN CALL plf_proc(1, x, y); RAISE NOTICE '% %', x, y; CALL plf_proc(1, 2, y); END $$;
CREATE PROCEDURE plf_batches() LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 50..53 LOOP
    INSERT INTO plf_log VALUES (i, 'batch');
    IF i % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF;
  END LOOP;
END $$;
CALL plf_batches();
SELECT id FROM plf_log WHERE what = 'batch' ORDER BY id;
BEGIN;
CALL plf_batches();
ROLLBACK;
-- rights and settings
CREATE FUNCTION plf_setting() RETURNS text LANGUAGE plpgsql SET work_mem = '7MB' AS $$ BEGIN RETURN current_setting('work_mem'); END $$;
SELECT plf_setting(), current_setting('work_mem') = '7MB';
CREATE ROLE plf_role;
CREATE FUNCTION plf_definer() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN (SELECT count(*) FROM plf_log WHERE what = 'batch'); END $$;
SET ROLE plf_role;
SELECT plf_definer();
SELECT plf_stable();
RESET ROLE;
-- catalogs
SELECT proname, prokind, l.lanname, prosrc FROM pg_proc p JOIN pg_language l ON l.oid = prolang WHERE proname IN ('plf_void', 'plf_batches') AND prokind = 'f';
SELECT pg_get_functiondef('plf_add'::regproc);
\sf plf_void
\df plf_out
CREATE OR REPLACE FUNCTION plf_void() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'another'; END $$;
SELECT plf_void();
CREATE FUNCTION plf_trigger() RETURNS int LANGUAGE plpgsql AS $$ DECLARE x nothing%ROWTYPE; BEGIN END $$;
DROP FUNCTION plf_deep, plf_void;
DROP FUNCTION plf_row, plf_setof_row;
DROP TABLE plf_t;
DROP TABLE plf_log;
DROP FUNCTION plf_definer;
DROP ROLE plf_role;
