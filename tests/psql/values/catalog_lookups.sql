-- Rows of system tables that are found by a key: equal to what the whole table gives, whatever the key is, and behind which slots they stand.
CREATE SCHEMA lookups;
CREATE TABLE lookups.a (id bigint PRIMARY KEY, x text, y text, z int, w text[], UNIQUE (x));
CREATE TABLE lookups.b (id int, "long name" varchar(10));
-- The same look-up for several rows of the left side, and two in turns.
SELECT a.attname, a.attnum, t.typname, t.typname, a.attname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = 'lookups.a'::regclass AND a.attnum > 0 ORDER BY a.attnum DESC;
SELECT c.relname, a.attname, (t).typname, t.tableoid::regclass FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
    WHERE c.relname IN ('a', 'b', NULL) AND c.relnamespace = 'lookups'::regnamespace AND a.attnum > 0 ORDER BY c.relname, a.attnum;
SELECT a.attname, t.typname FROM pg_attribute a LEFT JOIN pg_type t ON t.oid = a.atttypid AND t.typname <> 'text'
    WHERE a.attrelid = ANY (ARRAY['lookups.a'::regclass, NULL, 'lookups.b'::regclass]) AND a.attnum > 0 ORDER BY a.attrelid::regclass::text, a.attnum;
SELECT i.indisunique, c.relname, c.tableoid::regclass FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = 'lookups.a'::regclass ORDER BY 2;
-- More types are built than are asked for.
CREATE TYPE lookups.light AS ENUM ('red', 'green');
CREATE TYPE lookups.pair AS (one int, two int);
SELECT typname, typtype FROM pg_type WHERE typname = 'light';
SELECT typname, typtype FROM pg_type WHERE typname IN ('pair', 'light') AND typtype <> 'e';
DROP TYPE lookups.light, lookups.pair;
-- Semi joins, anti joins, and conditions beside the key.
SELECT a.attname FROM pg_attribute a WHERE a.attrelid = 'lookups.a'::regclass AND a.attnum > 0
    AND NOT EXISTS (SELECT FROM pg_type t WHERE t.oid = a.atttypid AND t.typlen = -1) ORDER BY a.attnum;
SELECT a.attname FROM pg_attribute a WHERE a.attrelid = 'lookups.a'::regclass AND a.attnum > 0
    AND EXISTS (SELECT FROM pg_type t WHERE t.oid = a.atttypid AND t.typlen = -1 AND t.typcategory = 'S') ORDER BY a.attname;
SELECT a.attname FROM pg_attribute a WHERE a.attrelid = 'lookups.b'::regclass AND a.attname LIKE 'long%' AND a.attnum > 0;
-- Schemas by number and by name.
SELECT nspname FROM pg_namespace WHERE oid = 11;
SELECT nspname FROM pg_namespace WHERE nspname = 'lookups';
SELECT nspname FROM pg_namespace WHERE nspname IN ('pg_catalog', 'public', 'lookups', 'none') ORDER BY nspname;
SELECT nspname FROM pg_namespace WHERE oid = 'lookups'::regnamespace AND nspname = 'public';
SELECT nspname FROM pg_namespace WHERE oid = 'lookups.a'::regclass;
SELECT count(*) FROM pg_namespace WHERE oid = NULL;
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = 'a' AND n.nspname = 'lookups';
SELECT n.nspname, c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'public' WHERE c.oid = 'lookups.b'::regclass;
-- What comes after an order: slots that are given twice, ties, whole rows, expressions.
SELECT x, id, x FROM (VALUES (1, 'b'), (2, 'a'), (3, 'a'), (4, NULL)) v (id, x) ORDER BY x, id DESC;
SELECT x FROM (VALUES (1, 'b'), (2, 'a'), (3, 'a')) v (id, x) ORDER BY x FETCH FIRST 1 ROW WITH TIES;
SELECT x FROM (VALUES (1, 'b'), (2, 'a'), (3, 'a')) v (id, x) ORDER BY id DESC OFFSET 1 LIMIT 1;
SELECT v FROM (VALUES (1, 'b'), (2, 'a')) v (id, x) ORDER BY x;
SELECT DISTINCT x FROM (VALUES (1, 'b'), (2, 'a'), (3, 'a')) v (id, x) ORDER BY x;
SELECT o.id, (SELECT string_agg(x, '') FROM (SELECT i.x FROM (VALUES (1, 'b'), (2, 'a')) i (id, x) WHERE i.id <= o.id ORDER BY i.x) s)
    FROM (VALUES (1), (2)) o (id) ORDER BY o.id DESC;
SELECT o.id, s.x, s.id FROM (VALUES (1), (2)) o (id), LATERAL (SELECT o.id, i.x FROM (VALUES (1, 'b'), (2, 'a')) i (id, x) ORDER BY i.id) s ORDER BY 1, 2;
DROP TABLE lookups.a, lookups.b;
DROP SCHEMA lookups;
