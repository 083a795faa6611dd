-- Composite types: text form, fields, whole rows, comparisons, assignment, arrays of them, rows of JSON, catalogs.
\set VERBOSITY terse
CREATE SCHEMA composites;
SET search_path = composites;
CREATE TYPE feeling AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (a int, b text);
CREATE TYPE deep AS (p pair, m feeling, list int[], n numeric(6,2));
CREATE TYPE nothing AS ();
CREATE TYPE pair AS (x int);
CREATE TYPE twice AS (a int, a text);
CREATE TYPE bad AS (a record);
CREATE TABLE pair (a int);
-- Text in and out.
SELECT '(1,one)'::pair, '(,)'::pair, '(1,"a ""quoted"" \\, b")'::pair, ' ( 2,x y ) '::pair, '(,"")'::pair;
SELECT '(1)'::pair;
SELECT '(1,2,3)'::pair;
SELECT '1,2'::pair;
SELECT '(1,2) x'::pair;
SELECT '(1,"2'::pair;
SELECT '(x,2)'::pair;
SELECT row(1,2)::record::text, '(1,2)'::record;
SELECT '("(1,one)",ok,"{1,2}",3.456)'::deep;
SELECT row(row(1, 'x y'), 'sad', array[3], 1)::deep;
SELECT row(1)::pair;
SELECT row(1,2,3)::pair;
SELECT row('a','b')::pair;
SELECT row(1.6, 5)::pair;
SELECT NULL::pair IS NULL, row(NULL,NULL)::pair IS NULL, row(1,NULL)::pair IS NULL, row(1,NULL)::pair IS NOT NULL;
SELECT pg_typeof('(1,2)'::pair), '(1,2)'::pair::text, 'pair'::regtype, to_regtype('composites.pair[]');
-- Columns.
CREATE TABLE whole (id int PRIMARY KEY, c pair, d deep, ds deep[]);
INSERT INTO whole VALUES (1, '(1,one)', NULL, NULL), (2, row(2,'two'), row(row(3,'three'),'happy','{4,5}',6.789), NULL);
INSERT INTO whole SELECT 3, row(id, 'x')::pair, d, array[d, NULL] FROM whole WHERE id = 2;
SELECT * FROM whole ORDER BY id;
SELECT id, (c).a, (whole.c).b, ((d).p).b, (d).list[2], ((ds)[1]).m FROM whole ORDER BY id;
SELECT id, (c).*, (d).p.* FROM whole ORDER BY id;
SELECT (c).nosuch FROM whole;
SELECT c.a FROM whole;
SELECT (id).a FROM whole;
SELECT (whole).c FROM whole WHERE id = 1;
SELECT (whole).* FROM whole WHERE id = 1;
SELECT row(whole.*) FROM whole WHERE id = 1;
SELECT row((c).*, 7) FROM whole WHERE id = 1;
SELECT id FROM whole WHERE c = row(2,'two');
SELECT id FROM whole WHERE c = row(2,'two'::text);
SELECT id FROM whole WHERE c = '(1,one)'::pair OR c > '(2,two)'::pair ORDER BY id;
SELECT id FROM whole WHERE c IN ('(1,one)'::pair, row(3,'q')::pair) ORDER BY id;
SELECT * FROM unnest(NULL::pair[]);
SELECT unnest(array['(1,x)','(2,y)']::pair[]);
SELECT row(1,2) < row(1,3), (SELECT r FROM (SELECT row(1,2)) x(r)) = row(1,2);
SELECT c, count(*) FROM whole GROUP BY c ORDER BY c DESC;
SELECT DISTINCT (d).p FROM whole ORDER BY 1;
SELECT row(1,'x')::pair IS DISTINCT FROM row(1,'y')::pair, row(1,2) IS DISTINCT FROM row(1,3), row(1,NULL) IS NOT DISTINCT FROM row(1,NULL);
SELECT array_agg(c ORDER BY id) FROM whole;
SELECT (array_agg(c ORDER BY id))[2].b FROM whole;
SELECT * FROM unnest(array['(1,x)','(2,y)']::pair[]);
-- Assignment to fields.
UPDATE whole SET c.b = 'ONE', c.a = (c).a + 10 WHERE id = 1;
UPDATE whole SET d.p.a = 33, d.list[3] = 9 WHERE id = 2;
UPDATE whole SET d.n = 5 WHERE id = 1;
UPDATE whole SET ds[2].m = 'ok', ds[2].p.b = 'new' WHERE id = 3;
SELECT * FROM whole ORDER BY id;
UPDATE whole SET c.nosuch = 1;
UPDATE whole SET id.a = 1;
UPDATE whole SET c.a = 'x';
UPDATE whole SET c.a = 1, c = NULL;
UPDATE whole SET c.a = DEFAULT;
UPDATE whole SET d.n = 123456789;
-- Documents.
SELECT row_to_json(c), to_jsonb(d), row_to_json(row(1,'x')), row_to_json(whole) FROM whole WHERE id = 2;
SELECT json_populate_record(NULL::pair, '{"a": "5", "b": [1, 2], "c": 3}');
SELECT * FROM json_populate_record(row(1,'old')::pair, '{"b": null}');
SELECT * FROM jsonb_populate_record(NULL::deep, '{"p": {"a": 1, "b": "x"}, "m": "sad", "list": [1, "2", null], "n": 1.005}');
SELECT * FROM jsonb_populate_record(NULL::deep, '{"p": "(7,seven)", "list": "{8,9}"}');
SELECT * FROM json_populate_record(NULL::deep, '{"list": 3}');
SELECT * FROM json_populate_record(NULL::deep, '{"m": "none"}');
SELECT json_populate_record(NULL::pair, '[1]');
SELECT json_populate_record(1, '{}');
SELECT * FROM json_populate_recordset(NULL::pair, '[{"a":1,"b":"x"},{"a":2},{}]');
SELECT * FROM jsonb_populate_recordset(row(9,'base')::pair, '[{"a":1},{"b":"y"}]') WITH ORDINALITY;
SELECT * FROM json_populate_recordset(NULL::pair, '{"a":1}');
SELECT json_populate_recordset(NULL::pair, '[{"a":1,"b":"x"}]');
SELECT (json_populate_recordset(NULL::pair, '[{"a":1,"b":"x"},{"a":2}]')).*;
SELECT * FROM json_to_record('{"a":1,"b":"x","c":[1,2],"d":{"a":5}}') AS x(a int, b text, c int[], d pair, e numeric);
SELECT x.a, y FROM jsonb_to_record('{"a":1,"y":true}') AS x(a bigint, y bool);
SELECT * FROM json_to_recordset('[{"a":1,"b":"foo"},{"a":"2","c":"bar"}]') AS x(a int, b text);
SELECT * FROM jsonb_to_recordset('[{"a":1}]') AS (a int, whole timestamp);
SELECT * FROM json_to_record('{}');
SELECT * FROM json_to_record('{}') AS x(a nosuch);
SELECT count(*), sum(a) FROM whole, jsonb_to_recordset(jsonb_build_array(to_jsonb(whole.c), to_jsonb(whole.c))) AS r(a int);
-- The types of tables' rows.
SELECT NULL::whole IS NULL, '(1,"(2,x)",,)'::whole, ('(1,"(2,x)",,)'::whole).c.b;
SELECT json_populate_record(NULL::whole, '{"id": 5, "c": {"a": 6}}');
SELECT pg_typeof(NULL::whole), 'whole'::regtype, 'whole[]'::regtype;
-- Changes.
CREATE TYPE free AS (x int, y int);
ALTER TYPE free ADD ATTRIBUTE z text, DROP ATTRIBUTE y;
ALTER TYPE free RENAME ATTRIBUTE x TO first;
ALTER TYPE free ALTER ATTRIBUTE first SET DATA TYPE bigint;
ALTER TYPE free ADD ATTRIBUTE z int;
ALTER TYPE free DROP ATTRIBUTE none;
ALTER TYPE free ADD ATTRIBUTE me free[];
SELECT '(12345678901,x)'::free;
\d free
\dT composites.*
ALTER TYPE free RENAME TO freed;
CREATE INDEX ON whole (((c).a));
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute a JOIN pg_type whole ON a.attrelid = whole.typrelid WHERE typname = 'deep' ORDER BY attnum;
SELECT relkind, reltype::regtype FROM pg_class WHERE relname IN ('whole', 'pair') AND relnamespace = 'composites'::regnamespace ORDER BY 1;
SELECT typname, typtype, typcategory FROM pg_type WHERE typname IN ('pair', '_pair', 'whole', '_t') AND typnamespace = 'composites'::regnamespace ORDER BY 1;
COPY (SELECT id, c FROM whole ORDER BY id) TO STDOUT;
COPY whole (id, c) FROM STDIN;
7	(1,"a b")
\.
SELECT c FROM whole WHERE id = 7;
PREPARE q(pair) AS SELECT ($1).a, $1;
EXECUTE q('(4,four)');
DROP TYPE pair;
DROP TYPE nothing;
DROP TYPE feeling;
