-- DO: variables, conditions, loops
DO $$ BEGIN RAISE NOTICE 'a % b %%', 1; RAISE WARNING 'w'; RAISE INFO 'i'; RAISE DEBUG 'd'; END $$;
DO $$
<<main>>
DECLARE
  x int := 7;
  y text DEFAULT 'seven';
  z CONSTANT numeric(6,2) = 3.14159;
  n int NOT NULL := 1;
  t varchar(3);
  other ALIAS FOR x;
  like_x x%TYPE := 8;
BEGIN
  RAISE NOTICE '% % % % % %', x, y, z, n, t, like_x;
  other := other + 1;
  DECLARE x int := 100;
  BEGIN
    RAISE NOTICE '% %', x, main.x;
    main.x := x + main.x;
  END;
  RAISE NOTICE '%', x;
  t := 'ab';
  RAISE NOTICE '%', t || y;
END $$;
DO $$
DECLARE i int; r record; s text := '';
BEGIN
  FOR i IN 1..3 LOOP s := s || i; END LOOP;
  FOR i IN REVERSE 3..1 LOOP s := s || i; END LOOP;
  FOR i IN 1..10 BY 4 LOOP s := s || '.' || i; END LOOP;
  RAISE NOTICE '% %', s, i;
  <<a>> LOOP
    i := coalesce(i, 0) + 1;
    CONTINUE a WHEN i = 2;
    WHILE true LOOP
      EXIT a WHEN i > 4;
      EXIT;
    END LOOP;
    RAISE NOTICE 'i %', i;
  END LOOP a;
  FOR r IN SELECT g, g * g AS square FROM generate_series(1, 3) g LOOP
    RAISE NOTICE '% % %', r.g, r.square, r;
  END LOOP;
  RAISE NOTICE '% %', FOUND, r;
  FOR r IN EXECUTE 'SELECT $1 + g AS h FROM generate_series(1, 2) g' USING 10 LOOP
    RAISE NOTICE '%', r.h;
  END LOOP;
  FOR i IN SELECT 1 WHERE false LOOP NULL; END LOOP;
  RAISE NOTICE '% %', FOUND, i;
END $$;
DO $$
DECLARE a int[] := ARRAY[[1,2],[3,4]]; x int; y int[]; b int[];
BEGIN
  FOREACH x IN ARRAY a LOOP RAISE NOTICE '%', x; END LOOP;
  FOREACH y SLICE 1 IN ARRAY a LOOP RAISE NOTICE '%', y; END LOOP;
  b[2] := 5; b[4] := 7;
  RAISE NOTICE '%', b;
  b[2:3] := ARRAY[8, 9];
  RAISE NOTICE '% %', b, b[3];
  a[1][2] := 20;
  RAISE NOTICE '%', a;
END $$;
DO $$
DECLARE v int := 2;
BEGIN
  IF v = 1 THEN RAISE NOTICE 'one';
  ELSIF v = 2 THEN RAISE NOTICE 'two';
  ELSE RAISE NOTICE 'many';
  END IF;
  CASE v WHEN 1, 3 THEN RAISE NOTICE 'odd'; WHEN 2, 4 THEN RAISE NOTICE 'even'; END CASE;
  CASE WHEN v > 5 THEN RAISE NOTICE 'large'; ELSE RAISE NOTICE 'small'; END CASE;
  IF NULL THEN RAISE NOTICE 'no'; END IF;
END $$;
-- statements of SQL
CREATE TABLE plpgsql_t (id int PRIMARY KEY, v text);
DO $$
DECLARE r plpgsql_t%ROWTYPE; k plpgsql_t.id%TYPE; n bigint; w text;
BEGIN
  INSERT INTO plpgsql_t VALUES (1, 'a'), (2, 'b');
  GET DIAGNOSTICS n = ROW_COUNT;
  RAISE NOTICE '% %', n, FOUND;
  SELECT * INTO r FROM plpgsql_t WHERE id = 2;
  RAISE NOTICE '% % %', r.id, r.v, r;
  SELECT id, v INTO k, w FROM plpgsql_t ORDER BY id;
  RAISE NOTICE '% %', k, w;
  UPDATE plpgsql_t SET v = v || w WHERE id = k RETURNING v INTO w;
  RAISE NOTICE '%', w;
  DELETE FROM plpgsql_t WHERE id > 5;
  GET DIAGNOSTICS n := ROW_COUNT;
  RAISE NOTICE '% %', n, FOUND;
  PERFORM 1 FROM plpgsql_t;
  RAISE NOTICE '%', FOUND;
  SELECT v FROM plpgsql_t WHERE id = 77 INTO w;
  RAISE NOTICE '% %', w, FOUND;
  EXECUTE 'SELECT count(*) FROM plpgsql_t WHERE id <= $1' INTO n USING 2;
  RAISE NOTICE '%', n;
  r.v := 'changed'; r.id := r.id + 1;
  INSERT INTO plpgsql_t VALUES (r.*);
  EXECUTE format('INSERT INTO %I VALUES ($1, $2)', 'plpgsql_t') USING 9, 'nine';
  CREATE TABLE plpgsql_u AS SELECT 1 AS one;
  DROP TABLE plpgsql_u;
END $$;
SELECT * FROM plpgsql_t ORDER BY id;
-- EXCEPTION
DO $$
DECLARE m text; d text; h text; s text; c text;
BEGIN
  BEGIN
    INSERT INTO plpgsql_t VALUES (20, 'undone');
    INSERT INTO plpgsql_t VALUES (1, 'again');
  EXCEPTION WHEN unique_violation THEN
    GET STACKED DIAGNOSTICS m = MESSAGE_TEXT, d = PG_EXCEPTION_DETAIL, s = RETURNED_SQLSTATE, c = CONSTRAINT_NAME;
    RAISE NOTICE '% | % | % | % | % %', m, d, s, c, SQLSTATE, SQLERRM;
  END;
  BEGIN
    RAISE EXCEPTION 'one %', 1 USING ERRCODE = '22012', HINT = 'a hint', DETAIL = 'a detail';
  EXCEPTION WHEN data_exception THEN
    GET STACKED DIAGNOSTICS h = PG_EXCEPTION_HINT, d = PG_EXCEPTION_DETAIL;
    RAISE NOTICE '% % % %', SQLSTATE, SQLERRM, h, d;
  END;
  BEGIN
    RAISE SQLSTATE 'AB123';
  EXCEPTION WHEN unique_violation OR SQLSTATE 'AB123' THEN RAISE NOTICE '% %', SQLSTATE, SQLERRM;
  END;
  BEGIN
    BEGIN
      PERFORM 1 / 0;
    EXCEPTION WHEN division_by_zero THEN
      RAISE NOTICE 'inner %', SQLERRM;
      RAISE;
    END;
  EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'outer %', SQLERRM;
  END;
END $$;
SELECT * FROM plpgsql_t ORDER BY id;
CREATE TYPE plpgsql_mood AS ENUM ('sad', 'ok');
DO 'BEGIN CREATE TYPE plpgsql_mood AS ENUM (''sad''); EXCEPTION WHEN duplicate_object THEN null; END';
SELECT enum_range(NULL::plpgsql_mood);
DROP TYPE plpgsql_mood;
-- in a transaction block the failed part alone is undone
BEGIN;
INSERT INTO plpgsql_t VALUES (30, 'kept');
DO $$ BEGIN
  INSERT INTO plpgsql_t VALUES (31, 'undone');
  RAISE EXCEPTION 'no';
EXCEPTION WHEN raise_exception THEN
  INSERT INTO plpgsql_t VALUES (32, 'kept, too');
END $$;
SAVEPOINT s;
DO $$ BEGIN INSERT INTO plpgsql_t VALUES (33, 'undone'); RAISE EXCEPTION 'no'; END $$;
ROLLBACK TO s;
COMMIT;
SELECT id FROM plpgsql_t WHERE id >= 20 ORDER BY id;
-- COMMIT and ROLLBACK
DO $$ BEGIN
  FOR i IN 40..45 LOOP
    INSERT INTO plpgsql_t VALUES (i, 'c');
    IF i % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF;
  END LOOP;
END $$;
SELECT id FROM plpgsql_t WHERE id >= 40 ORDER BY id;
BEGIN;
DO $$ BEGIN COMMIT; END $$;
ROLLBACK;
DO $$ BEGIN BEGIN COMMIT; EXCEPTION WHEN division_by_zero THEN NULL; END; END $$;
DO $$ BEGIN SAVEPOINT a; END $$;
DROP TABLE plpgsql_t;
