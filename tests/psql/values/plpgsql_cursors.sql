-- cursor variables of PL/pgSQL, and the type refcursor
\pset null '~'
\set VERBOSITY default
CREATE TABLE plc_t (id int PRIMARY KEY, name text);
INSERT INTO plc_t SELECT i, 'name ' || i FROM generate_series(1, 6) i;

-- the type
SELECT 'abc'::refcursor, 'a'::text::refcursor, 'abc'::refcursor::text || 'd', pg_typeof('x'::refcursor), ARRAY['a', NULL, 'b c']::refcursor[];
SELECT 'a'::refcursor = 'a';
SELECT DISTINCT 'a'::refcursor;
SELECT x FROM (VALUES ('a'::refcursor)) v (x) ORDER BY x;
CREATE TABLE plc_of (c refcursor, d refcursor[]);
INSERT INTO plc_of VALUES ('one', '{two,"thr ee"}'), (NULL, NULL);
SELECT * FROM plc_of;
CREATE INDEX ON plc_of (c);
\d plc_of
DROP TABLE plc_of;
SELECT typname, typlen, typtype, typcategory, typarray::regtype, typinput, typsend FROM pg_type WHERE oid = 1790;
PREPARE plc_p (refcursor) AS SELECT $1;
EXECUTE plc_p ('x');
DEALLOCATE plc_p;

-- a function that gives a cursor, which SQL reads
CREATE FUNCTION plc_open(p refcursor) RETURNS refcursor LANGUAGE plpgsql AS $$ BEGIN OPEN p FOR SELECT * FROM plc_t ORDER BY id; RETURN p; END $$;
BEGIN;
SELECT plc_open('mine');
FETCH 2 FROM mine;
SELECT plc_open('mine');
ROLLBACK;
BEGIN;
SELECT plc_open(NULL);
SELECT name, statement, is_holdable, is_binary FROM pg_cursors ORDER BY name;
FETCH ALL IN "<unnamed portal 2>";
SELECT plc_open(NULL);
FETCH ABSOLUTE 3 FROM "<unnamed portal 3>";
CLOSE "<unnamed portal 3>";
DO $$ BEGIN FOR i IN 1..1 LOOP NULL; END LOOP; PERFORM plc_open(NULL); END $$;
DO $$ DECLARE r record; BEGIN FOR r IN SELECT 1 LOOP PERFORM plc_open(NULL); END LOOP; END $$;
SELECT name FROM pg_cursors ORDER BY name;
FETCH NEXT FROM "<unnamed portal 3>";
COMMIT;
SELECT plc_open('');
SELECT plc_open('gone');
FETCH gone;
-- several
CREATE FUNCTION plc_two(a refcursor, b refcursor) RETURNS SETOF refcursor LANGUAGE plpgsql AS $$
BEGIN
  OPEN a FOR SELECT id FROM plc_t ORDER BY id;
  RETURN NEXT a;
  OPEN b FOR EXECUTE 'SELECT name FROM plc_t WHERE id > $1 ORDER BY id' USING 4;
  RETURN NEXT b;
END $$;
BEGIN;
SELECT * FROM plc_two('p', 'q');
FETCH 1 FROM p;
FETCH ALL FROM q;
MOVE BACKWARD ALL IN q;
FETCH 1 FROM q;
COMMIT;
-- a cursor keeps the snapshot with which it was opened
BEGIN;
SELECT plc_open('before');
INSERT INTO plc_t VALUES (7, 'seven');
FETCH ALL FROM before;
ROLLBACK;
CREATE FUNCTION plc_stable() RETURNS refcursor LANGUAGE plpgsql STABLE AS $$ DECLARE c refcursor := 'stable'; BEGIN OPEN c FOR SELECT count(*) FROM plc_t; RETURN c; END $$;
BEGIN;
SELECT plc_stable();
DELETE FROM plc_t;
FETCH ALL FROM stable;
ROLLBACK;

-- bound cursors, arguments, directions
DO $$
DECLARE
  c CURSOR FOR SELECT id FROM plc_t ORDER BY id;
  d SCROLL CURSOR (low int, high int) IS SELECT id, name FROM plc_t WHERE id BETWEEN low AND high ORDER BY id;
  n NO SCROLL CURSOR (x text) FOR SELECT x || name FROM plc_t ORDER BY id;
  i int; t text; r record; e plc_t;
BEGIN
  RAISE NOTICE '% % %', c, d, n;
  OPEN c;
  FETCH c INTO i; RAISE NOTICE 'next % %', i, found;
  FETCH LAST FROM c INTO i; RAISE NOTICE 'last % %', i, found;
  FETCH NEXT FROM c INTO i; RAISE NOTICE 'behind % %', i, found;
  FETCH PRIOR FROM c INTO i; RAISE NOTICE 'prior % %', i, found;
  FETCH FIRST FROM c INTO i; RAISE NOTICE 'first % %', i, found;
  FETCH RELATIVE 2 FROM c INTO i; RAISE NOTICE 'relative % %', i, found;
  FETCH ABSOLUTE i + 1 IN c INTO i; RAISE NOTICE 'absolute % %', i, found;
  FETCH ABSOLUTE -2 IN c INTO i; RAISE NOTICE 'absolute % %', i, found;
  FETCH FORWARD FROM c INTO i; RAISE NOTICE 'forward % %', i, found;
  FETCH BACKWARD FROM c INTO i; RAISE NOTICE 'backward % %', i, found;
  MOVE c; GET DIAGNOSTICS i = ROW_COUNT; RAISE NOTICE 'move % %', i, found;
  MOVE BACKWARD ALL FROM c; GET DIAGNOSTICS i = ROW_COUNT; RAISE NOTICE 'move % %', i, found;
  MOVE FORWARD 2 FROM c; GET DIAGNOSTICS i = ROW_COUNT; RAISE NOTICE 'move % %', i, found;
  MOVE 3 IN c; GET DIAGNOSTICS i = ROW_COUNT; RAISE NOTICE 'move % %', i, found;
  MOVE ALL IN c; GET DIAGNOSTICS i = ROW_COUNT; RAISE NOTICE 'move % %', i, found;
  MOVE c; GET DIAGNOSTICS i = ROW_COUNT; RAISE NOTICE 'move % %', i, found;
  MOVE RELATIVE -1 FROM c; FETCH RELATIVE 0 FROM c INTO i; RAISE NOTICE 'again % %', i, found;
  CLOSE c;
  OPEN d (3, 5);
  FETCH d INTO r; RAISE NOTICE '%', r;
  FETCH d INTO i, t; RAISE NOTICE '% %', i, t;
  FETCH d INTO e; RAISE NOTICE '%', e;
  FETCH d INTO r; RAISE NOTICE '% %', r, found;
  CLOSE d;
  OPEN d (high := 2, low := 1);
  FETCH LAST FROM d INTO r; RAISE NOTICE '%', r;
  CLOSE d;
  OPEN d (high := 6, low := 5); FETCH d INTO r; RAISE NOTICE '%', r; CLOSE d;
  OPEN n ('the ');
  FETCH n INTO t; RAISE NOTICE '%', t;
  FETCH PRIOR FROM n INTO t;
END $$;
DO $$
DECLARE c refcursor; d refcursor = 'd'; e CONSTANT refcursor := NULL; i int;
BEGIN
  OPEN c SCROLL FOR SELECT id FROM plc_t ORDER BY id DESC;
  OPEN d NO SCROLL FOR EXECUTE 'SELECT $1 + id FROM plc_t ORDER BY id' USING 100;
  FETCH d INTO i; RAISE NOTICE '% %', d, i;
  FETCH LAST FROM c INTO i; RAISE NOTICE '%', i;
  CLOSE c; OPEN c FOR VALUES (1), (2); FETCH c INTO i; RAISE NOTICE '%', i;
  OPEN e FOR SELECT 1;
END $$;
-- loops
CREATE FUNCTION plc_loop(n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE c CURSOR (low int) FOR SELECT id, name FROM plc_t WHERE id >= low ORDER BY id; out text := ''; r int := 0;
BEGIN
  FOR r IN c (n) LOOP
    CONTINUE WHEN r.id = 3;
    EXIT WHEN r.id > 4;
    out := out || r.name || ',';
  END LOOP;
  out := out || found || r;
  FOR x IN c (low := 6) LOOP out := out || x; END LOOP;
  FOR x IN c (100) LOOP out := out || 'never'; END LOOP;
  RETURN out || found || coalesce(c::text, 'null');
END $$;
SELECT plc_loop(1);
SELECT plc_loop(id) FROM plc_t WHERE id > 3 ORDER BY id;
CREATE FUNCTION plc_null() RETURNS text LANGUAGE plpgsql AS $$
DECLARE c CURSOR FOR SELECT 1 AS one; r record;
BEGIN
  c := NULL;
  FOR r IN c LOOP IF c IS NULL THEN RETURN 'no name'; END IF; END LOOP;
  RETURN coalesce(c::text, 'null again');
END $$;
SELECT plc_null();
-- what a loop reads is closed by its end alone
DO $$ DECLARE c CURSOR FOR SELECT id FROM plc_t; BEGIN FOR r IN c LOOP CLOSE c; END LOOP; END $$;
DO $$ DECLARE c CURSOR FOR SELECT id FROM plc_t; BEGIN FOR r IN c LOOP FETCH c INTO r; RAISE NOTICE '%', r.id; END LOOP; END $$;
DO $$ DECLARE c CURSOR FOR SELECT id FROM plc_t; BEGIN FOR r IN c LOOP OPEN c; END LOOP; END $$;

-- errors
DO $$ DECLARE c refcursor; i int; BEGIN FETCH c INTO i; END $$;
DO $$ DECLARE c refcursor; BEGIN CLOSE c; END $$;
DO $$ DECLARE c refcursor := 'nowhere'; i int; BEGIN FETCH c INTO i; END $$;
DO $$ DECLARE c refcursor := 'nowhere'; i int; BEGIN MOVE c; END $$;
DO $$ DECLARE c refcursor := 'nowhere'; BEGIN CLOSE c; END $$;
DO $$ DECLARE c CURSOR FOR SELECT 1; BEGIN OPEN c; OPEN c; END $$;
DO $$ DECLARE c CURSOR FOR SELECT 1; i int; BEGIN OPEN c; FETCH ABSOLUTE NULL FROM c INTO i; END $$;
DO $$ DECLARE c CURSOR FOR SELECT 1 / (id - 1) FROM plc_t ORDER BY id; i int; BEGIN OPEN c; FETCH c INTO i; END $$;
DO $$ DECLARE c CURSOR (a int) FOR SELECT a; BEGIN OPEN c (1 / 0); END $$;
DO $$ DECLARE c CURSOR (a int) FOR SELECT a; BEGIN OPEN c ('x'); END $$;
DO $$ DECLARE c CURSOR FOR SELECT nothing FROM plc_t; BEGIN OPEN c; END $$;
DO $$ DECLARE c refcursor; BEGIN OPEN c FOR EXECUTE 'SELECT nothing'; END $$;
DO $$ DECLARE c refcursor; BEGIN OPEN c FOR EXECUTE NULL; END $$;
DO $$ DECLARE c refcursor; BEGIN OPEN c FOR EXECUTE 'SELECT 1; SELECT 2'; END $$;
DO $$ DECLARE c refcursor; BEGIN OPEN c FOR INSERT INTO plc_t VALUES (100, 'x'); END $$;
DO $$ DECLARE c refcursor; BEGIN OPEN c SCROLL FOR SELECT * FROM plc_t FOR UPDATE; END $$;
DO $$ DECLARE c refcursor; r record; BEGIN OPEN c FOR INSERT INTO plc_t VALUES (100, 'x') RETURNING *; FETCH c INTO r; RAISE NOTICE '%', r; FETCH PRIOR FROM c INTO r; END $$;
DO $$ DECLARE c int; BEGIN OPEN c FOR SELECT 1; END $$;
DO $$ DECLARE c record; BEGIN OPEN c FOR SELECT 1; END $$;
DO $$ BEGIN OPEN c FOR SELECT 1; END $$;
DO $$ DECLARE c refcursor; BEGIN OPEN c; END $$;
DO $$ DECLARE c refcursor; BEGIN FOR r IN c LOOP NULL; END LOOP; END $$;
DO $$ DECLARE c CURSOR FOR SELECT 1; a int; b int; BEGIN FOR a, b IN c LOOP NULL; END LOOP; END $$;
DO $$ DECLARE c CURSOR FOR SELECT 1; BEGIN OPEN c (1); END $$;
DO $$ DECLARE c CURSOR FOR SELECT 1; BEGIN OPEN c FOR SELECT 2; END $$;
DO $$ DECLARE c CURSOR (a int, b int) FOR SELECT 1; BEGIN OPEN c; END $$;
DO $$ DECLARE c CURSOR (a int, b int) FOR SELECT 1; BEGIN OPEN c (1); END $$;
DO $$ DECLARE c CURSOR (a int, b int) FOR SELECT 1; BEGIN OPEN c (1, 2, 3); END $$;
DO $$ DECLARE c CURSOR (a int, b int) FOR SELECT 1; BEGIN OPEN c (1, a := 3); END $$;
DO $$ DECLARE c CURSOR (a int, b int) FOR SELECT 1; BEGIN OPEN c (1, d := 3); END $$;
DO $$ DECLARE c CURSOR (a int, b int) FOR SELECT 1; BEGIN OPEN c (1, 2 +); END $$;
DO $$ DECLARE c CURSOR FOR SELECT 1; i int; BEGIN OPEN c; FETCH ALL FROM c INTO i; END $$;
DO $$ DECLARE c CURSOR FOR SELECT 1; i int; BEGIN OPEN c; FETCH FORWARD 2 FROM c INTO i; END $$;
DO $$ DECLARE c CURSOR FOR SELECT 1; i int; BEGIN OPEN c; FETCH NEXT c INTO i; END $$;
DO $$ DECLARE c CURSOR FOR SELECT 1; i int; BEGIN OPEN c; FETCH c; END $$;
DO $$ DECLARE c CURSOR SELECT 1; BEGIN NULL; END $$;
DO $$ DECLARE c CURSOR (a) FOR SELECT 1; BEGIN NULL; END $$;
\set VERBOSITY sqlstate
DO $$ DECLARE c refcursor; i int; BEGIN FETCH c INTO i; END $$;
DO $$ DECLARE c refcursor := 'nowhere'; BEGIN CLOSE c; END $$;
DO $$ DECLARE c CURSOR FOR SELECT 1; BEGIN OPEN c; OPEN c; END $$;
DO $$ DECLARE c CURSOR FOR SELECT id FROM plc_t; BEGIN FOR r IN c LOOP CLOSE c; END LOOP; END $$;
DO $$ DECLARE c NO SCROLL CURSOR FOR SELECT id FROM plc_t; i int; BEGIN OPEN c; FETCH LAST FROM c INTO i; FETCH PRIOR FROM c INTO i; END $$;
DO $$ DECLARE c refcursor; BEGIN OPEN c FOR DELETE FROM plc_t; END $$;
DO $$ DECLARE c int; BEGIN CLOSE c; END $$;
\set VERBOSITY default

-- when a portal ends: a rollback of a block, of a savepoint, of the transaction
DO $$
DECLARE c refcursor := 'outer'; d refcursor := 'inner'; i int;
BEGIN
  OPEN c FOR SELECT id FROM plc_t ORDER BY id;
  FETCH c INTO i;
  BEGIN
    FETCH c INTO i; RAISE NOTICE '%', i;
    OPEN d FOR SELECT 1;
    RAISE division_by_zero;
  EXCEPTION WHEN division_by_zero THEN
    FETCH c INTO i; RAISE NOTICE '%', i;
    BEGIN
      FETCH d INTO i;
    EXCEPTION WHEN invalid_cursor_name THEN RAISE NOTICE '%', sqlerrm;
    END;
    OPEN d FOR SELECT 2;
  END;
  FETCH d INTO i; RAISE NOTICE '%', i;
  BEGIN CLOSE d; OPEN d FOR SELECT 3; EXCEPTION WHEN OTHERS THEN NULL; END;
  FETCH d INTO i; RAISE NOTICE '%', i;
END $$;
SELECT count(*) FROM pg_cursors;
CREATE FUNCTION plc_fails(p refcursor) RETURNS int LANGUAGE plpgsql AS $$
DECLARE q refcursor := 'deep'; i int;
BEGIN
  BEGIN
    OPEN q FOR SELECT 1;
    RAISE division_by_zero;
  EXCEPTION WHEN division_by_zero THEN NULL;
  END;
  FETCH p INTO i;
  RETURN i;
END $$;
BEGIN;
SELECT plc_open('kept');
SELECT plc_fails('kept'), plc_fails('kept');
SAVEPOINT s;
SELECT plc_open('later');
SELECT plc_fails('later'), plc_fails('kept');
SELECT name FROM pg_cursors ORDER BY 1;
ROLLBACK TO s;
SELECT name FROM pg_cursors ORDER BY 1;
SELECT plc_fails('kept');
SELECT plc_fails('later');
ROLLBACK TO s;
FETCH kept;
COMMIT;
SELECT count(*) FROM pg_cursors;
-- the same for a descriptor of a large object, when a block of a function is undone
SELECT lo_create(774411);
BEGIN;
SAVEPOINT s;
SELECT lo_open(774411, 131072);
DO $$ DECLARE c refcursor; BEGIN PERFORM plc_open(c); PERFORM plc_open('x'); PERFORM plc_fails('x'); END $$;
SELECT lo_lseek(0, 0, 1);
COMMIT;
SELECT lo_unlink(774411);
-- cursors of SQL in a body, and those of a body in SQL
CREATE FUNCTION plc_sql() RETURNS int LANGUAGE plpgsql AS $$
DECLARE c refcursor := 'by_sql'; i int; j int;
BEGIN
  EXECUTE 'DECLARE by_sql CURSOR FOR SELECT id * 10 FROM plc_t ORDER BY id';
  FETCH c INTO i;
  EXECUTE 'FETCH 1 FROM by_sql' INTO j;
  RETURN i + j;
END $$;
BEGIN;
SELECT plc_sql();
FETCH by_sql;
COMMIT;
SELECT plc_sql();
BEGIN;
DECLARE mine CURSOR FOR SELECT id FROM plc_t ORDER BY id;
DO $$ DECLARE c refcursor := 'mine'; i int; BEGIN FETCH c INTO i; FETCH c INTO i; RAISE NOTICE '%', i; END $$;
FETCH mine;
COMMIT;
-- a cursor whose query moves it
CREATE FUNCTION plc_moves() RETURNS int LANGUAGE plpgsql AS $$ DECLARE c refcursor := 'itself'; i int; BEGIN FETCH c INTO i; RETURN i; END $$;
BEGIN;
DECLARE itself CURSOR FOR SELECT plc_moves();
FETCH itself;
ROLLBACK;
CREATE FUNCTION plc_closes() RETURNS int LANGUAGE plpgsql AS $$ DECLARE c refcursor := 'itself'; BEGIN CLOSE c; RETURN 1; END $$;
BEGIN;
DECLARE itself CURSOR FOR SELECT plc_closes();
FETCH itself;
ROLLBACK;
-- a failed cursor
BEGIN;
DECLARE half CURSOR FOR SELECT 10 / (3 - id) FROM plc_t ORDER BY id;
DO $$ DECLARE c refcursor := 'half'; i int;
BEGIN
  BEGIN FETCH c INTO i; FETCH c INTO i; FETCH c INTO i; EXCEPTION WHEN division_by_zero THEN RAISE NOTICE 'at %', i; END;
  FETCH c INTO i;
END $$;
ROLLBACK;

-- COMMIT and ROLLBACK in a loop over a cursor
CREATE TABLE plc_done (id int);
CREATE PROCEDURE plc_commits() LANGUAGE plpgsql AS $$
DECLARE c CURSOR FOR SELECT id FROM plc_t ORDER BY id; d refcursor := 'd'; i int;
BEGIN
  OPEN d FOR SELECT 1;
  FOR r IN c LOOP
    INSERT INTO plc_done VALUES (r.id);
    IF r.id % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF;
    IF r.id = 3 THEN FETCH PRIOR FROM c INTO i; RAISE NOTICE 'prior %', i; FETCH c INTO i; END IF;
  END LOOP;
  FETCH d INTO i;
END $$;
CALL plc_commits();
SELECT * FROM plc_done ORDER BY id;
SELECT count(*) FROM pg_cursors;
CREATE PROCEDURE plc_locks() LANGUAGE plpgsql AS $$
DECLARE c CURSOR FOR SELECT id FROM plc_t ORDER BY id FOR UPDATE; n int := 0;
BEGIN
  FOR r IN c LOOP n := n + r.id; COMMIT; END LOOP;
  RAISE NOTICE '%', n;
END $$;
CALL plc_locks();
CREATE PROCEDURE plc_changes() LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN FOR r IN UPDATE plc_t SET name = name RETURNING id LOOP COMMIT; END LOOP; END $$;
CALL plc_changes();
CREATE PROCEDURE plc_breaks() LANGUAGE plpgsql AS $$
DECLARE c CURSOR FOR SELECT id FROM plc_t ORDER BY id;
BEGIN FOR r IN c LOOP COMMIT; RAISE EXCEPTION 'at %', r.id; END LOOP; END $$;
CALL plc_breaks();
SELECT count(*) FROM pg_cursors;
DROP PROCEDURE plc_commits, plc_locks, plc_changes, plc_breaks;
DROP FUNCTION plc_open, plc_two, plc_stable, plc_loop, plc_null, plc_fails, plc_sql, plc_moves, plc_closes;
DROP TABLE plc_t, plc_done;
