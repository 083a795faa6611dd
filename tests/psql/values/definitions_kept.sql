-- What pg_dump writes of columns and indexes: defaults, how long values are kept, operator classes, names that are keywords or too long.
CREATE SCHEMA kept;
SET search_path = kept;
CREATE SEQUENCE numbers;
CREATE DOMAIN big AS bigint;
CREATE TYPE humour AS ENUM ('sad', 'happy');
CREATE DOMAIN good AS humour DEFAULT 'happy' CHECK (VALUE <> 'sad');
CREATE DOMAIN since AS timestamptz DEFAULT now();
CREATE TABLE defaults(a int DEFAULT nextval('numbers'), b int DEFAULT nextval('kept.numbers'::regclass), c big DEFAULT nextval('numbers'), d big DEFAULT NULL,
    e varchar(10) DEFAULT NULL, f varchar DEFAULT NULL, g int DEFAULT NULL::int, h numeric(4,1) DEFAULT NULL, i text DEFAULT (NULL), j int[] DEFAULT NULL,
    k text DEFAULT 'n'::text || nextval('numbers'::regclass), l good);
ALTER TABLE defaults ADD COLUMN m int DEFAULT NULL;
ALTER TABLE defaults ADD COLUMN n int DEFAULT 3;
ALTER TABLE defaults ALTER COLUMN n SET DEFAULT NULL;
\d defaults
INSERT INTO defaults DEFAULT VALUES RETURNING a, b, c, k, l, n;
SELECT adnum, (SELECT string_agg(refobjid::regclass::text, ',') FROM pg_depend WHERE objid = d.oid AND classid = 'pg_attrdef'::regclass AND deptype = 'n'
    AND refclassid = 'pg_class'::regclass) FROM pg_attrdef d WHERE adrelid = 'defaults'::regclass ORDER BY 1;
SET search_path = pg_catalog;
SELECT adnum, pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'kept.defaults'::regclass AND adnum <= 3 ORDER BY 1;
SET search_path = kept;
ALTER SEQUENCE numbers RENAME TO other_numbers;
INSERT INTO defaults (k) VALUES ('x') RETURNING a, b, c;
SELECT typname, typstorage, typbyval, typalign, typlen, typdefault, pg_get_expr(typdefaultbin, 0) FROM pg_type WHERE typname IN ('big', 'humour', 'good', 'since') AND typnamespace = 'kept'::regnamespace ORDER BY 1;

CREATE TABLE long_values(a text, b char(3), c int, d text, e good);
ALTER TABLE long_values ALTER a SET STORAGE EXTERNAL, ALTER b SET STORAGE MAIN, ALTER d SET STORAGE EXTENDED;
ALTER TABLE long_values ALTER c SET STORAGE MAIN;
ALTER TABLE long_values ALTER e SET STORAGE EXTENDED;
ALTER TABLE long_values ALTER c SET STORAGE PLAIN;
ALTER TABLE long_values ALTER c SET STORAGE other;
CREATE TABLE like_all(LIKE long_values INCLUDING ALL);
CREATE TABLE like_plain(LIKE long_values);
ALTER TABLE long_values ALTER a TYPE varchar(20);
SELECT attrelid::regclass, attname, attstorage FROM pg_attribute WHERE attrelid IN ('long_values'::regclass, 'like_all'::regclass, 'like_plain'::regclass) AND attnum > 0
    ORDER BY attrelid::regclass::text, attnum;

CREATE INDEX ON defaults(e varchar_pattern_ops, f, a int4_ops);
CREATE INDEX ON defaults(e text_ops, f varchar_ops);
CREATE INDEX ON like_all(b bpchar_pattern_ops DESC, lower(a) text_pattern_ops NULLS FIRST);
CREATE INDEX ON like_all(a foo_ops);
CREATE INDEX ON like_all(a int4_ops);
CREATE UNIQUE INDEX ON like_all(d text_pattern_ops);
SELECT indexrelid::regclass, indclass FROM pg_index WHERE indrelid IN ('defaults'::regclass, 'like_all'::regclass) ORDER BY 1;
\d like_all
INSERT INTO like_all(a, d) VALUES ('b', 'x'), ('a', 'y'), ('B', 'z'), ('é', 'aa');
SELECT a FROM like_all WHERE a ~>~ 'B' ORDER BY a USING ~<~;
SELECT max(d) FROM like_all WHERE d ~<=~ $$y$$;
SELECT d FROM like_all WHERE d ~>=~ 'x' ORDER BY 1 USING ~>~;
SELECT 'a' ~<~ 'b', 'a'::varchar ~>=~ 'b'::text, 'a'::char(3) ~>~ 'b', 'a'::text ~<~ 'b'::varchar;
SELECT 1 ~<~ 2;

CREATE TABLE words(a int, "time" text, "timestamp" int, "select" int, "between" int, "a$b" int, plain int, "authorization" int);
INSERT INTO words VALUES (1, 'x', 2, 3, 4, 5, 6, 7);
COPY words ("time", "timestamp", "select", "between", "a$b", "authorization") TO STDOUT;
CREATE INDEX ON words ("time", "timestamp", plain);
\d words
CREATE TABLE a_table_that_has_a_name_of_nearly_sixty_bytes_in_all(with_a_column_of_a_long_name serial, another int CHECK (another > 0), "Short" int UNIQUE);
CREATE INDEX ON a_table_that_has_a_name_of_nearly_sixty_bytes_in_all(with_a_column_of_a_long_name, another);
\d a_table_that_has_a_name_of_nearly_sixty_bytes_in_all
SET client_min_messages = warning;
DROP SCHEMA kept CASCADE;
