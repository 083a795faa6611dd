-- Partial indexes and indexes over expressions.
CREATE TABLE people (id int PRIMARY KEY, name text, mail varchar(40), state text, n int, gone timestamp, active bool);
CREATE INDEX ON people (lower(name));
CREATE UNIQUE INDEX people_mail ON people (lower(mail)) WHERE gone IS NULL;
CREATE INDEX people_n ON people ((n + 1), name DESC) WHERE active;
CREATE INDEX people_state ON people (name) WHERE state = 'x' AND n > 3;
CREATE INDEX people_or ON people (n) WHERE state IN ('a', 'b') OR NOT active;
CREATE INDEX people_many ON people ((n % 10), (n % 10), lower(name), (name || 'x'), (CASE WHEN n > 1 THEN 1 ELSE 2 END), coalesce(n, 0), (n::text));
CREATE INDEX people_not ON people (name) WHERE state <> 'x' AND name LIKE 'a%' AND active IS NOT TRUE;
\d people
SELECT indexrelid::regclass, indkey, indnatts, pg_get_expr(indexprs, indrelid), pg_get_expr(indpred, indrelid), pg_get_indexdef(indexrelid),
  pg_get_indexdef(indexrelid, 0, true) FROM pg_index WHERE indrelid = 'people'::regclass ORDER BY 1;
SELECT attrelid::regclass, attnum, attname, format_type(atttypid, atttypmod), pg_get_indexdef(attrelid, attnum, true), pg_get_indexdef(attrelid, attnum, false)
  FROM pg_attribute WHERE attrelid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'people'::regclass) ORDER BY 1, 2;
CREATE TABLE people_too (LIKE people INCLUDING INDEXES);
\d people_too
-- Refused.
CREATE INDEX ON people ((gone::timestamptz));
CREATE INDEX ON people (n) WHERE gone < now();
CREATE INDEX ON people ((sum(n)));
CREATE INDEX ON people (n) WHERE n;
CREATE INDEX ON people (n) WHERE zz = 1;
CREATE TABLE refers (a text REFERENCES people (mail));
-- Uniqueness of the rows that meet the condition.
INSERT INTO people (id, mail) VALUES (1, 'A');
INSERT INTO people (id, mail) VALUES (2, 'a');
INSERT INTO people (id, mail, gone) VALUES (2, 'a', '2020-01-01');
UPDATE people SET gone = NULL WHERE id = 2;
UPDATE people SET gone = '2020-01-01' WHERE id = 1;
UPDATE people SET gone = NULL WHERE id = 2;
UPDATE people SET gone = NULL WHERE id = 1;
INSERT INTO people (id, mail) VALUES (3, 'a') ON CONFLICT (lower(mail)) WHERE gone IS NULL DO NOTHING;
INSERT INTO people (id, mail) VALUES (3, 'a') ON CONFLICT (lower(mail)) DO NOTHING;
INSERT INTO people (id, mail) VALUES (3, 'a') ON CONFLICT (lower(mail)) WHERE gone IS NULL DO UPDATE SET n = 5 RETURNING id, n;
INSERT INTO people (id, mail) VALUES (3, 'a') ON CONFLICT (lower(mail)) WHERE gone IS NULL AND n > 3 DO NOTHING;
INSERT INTO people (id, mail) VALUES (3, 'a') ON CONFLICT (lower(mail)) WHERE n > 3 DO NOTHING;
INSERT INTO people (id, mail) VALUES (3, 'a') ON CONFLICT (mail) WHERE gone IS NULL DO NOTHING;
SELECT id, mail, n, gone FROM people ORDER BY id;
-- The rows are found, whatever changes them.
INSERT INTO people (id, name, mail, state, n, active) SELECT i, 'Name' || i % 7, 'm' || i, CASE i % 3 WHEN 0 THEN 'x' WHEN 1 THEN 'a' END, i % 20, i % 2 = 0
  FROM generate_series(10, 400) i;
SELECT count(*), min(id), max(id) FROM people WHERE lower(name) = 'name3';
SELECT count(*), min(id), max(id) FROM people WHERE active AND n + 1 = 5;
SELECT count(*), min(id), max(id) FROM people WHERE active AND n + 1 > 15 AND n + 1 <= 18;
SELECT count(*), min(id), max(id) FROM people WHERE state = 'x' AND n > 5 AND name = 'Name2';
SELECT count(*) FROM people WHERE state IN ('a', 'b') AND n = 4;
UPDATE people SET state = 'x' WHERE state = 'a' AND n > 10;
UPDATE people SET active = NOT active, name = upper(name) WHERE n < 3;
UPDATE people SET id = id + 1000 WHERE n = 7;
DELETE FROM people WHERE n = 8;
SELECT count(*), min(id), max(id) FROM people WHERE lower(name) = 'name3';
SELECT count(*), min(id), max(id) FROM people WHERE active AND n + 1 = 3;
SELECT count(*), min(id), max(id) FROM people WHERE state = 'x' AND n > 5 AND name = 'Name2';
SELECT name, id FROM people WHERE lower(name) >= 'name5' AND id < 30 ORDER BY lower(name), id;
BEGIN;
UPDATE people SET active = true, n = 4 WHERE id BETWEEN 100 AND 120;
SELECT count(*) FROM people WHERE active AND n + 1 = 5;
ROLLBACK;
SELECT count(*) FROM people WHERE active AND n + 1 = 5;
REINDEX TABLE people;
SELECT count(*) FROM people WHERE active AND n + 1 = 5;
-- An expression without a value.
CREATE TABLE parts (a int, b int);
CREATE INDEX parts_ratio ON parts ((a / b));
INSERT INTO parts VALUES (1, 0);
INSERT INTO parts VALUES (4, 2), (9, 3), (10, 2);
UPDATE parts SET b = 0;
SELECT * FROM parts WHERE a / b = 3;
\set VERBOSITY terse
CREATE UNIQUE INDEX ON parts ((a % 3));
\set VERBOSITY default
CREATE UNIQUE INDEX ON parts ((a % 5)) WHERE b < 3;
CREATE UNIQUE INDEX CONCURRENTLY parts_c ON parts ((a * 2)) WHERE b > 0;
INSERT INTO parts VALUES (4, 7);
-- What becomes of them when columns change.
ALTER TABLE people RENAME COLUMN gone TO left_at;
\d people_mail
ALTER TABLE people ALTER COLUMN n TYPE bigint;
\d people_n
SELECT count(*) FROM people WHERE active AND n + 1 = 5;
ALTER TABLE people DROP COLUMN left_at;
ALTER TABLE people DROP COLUMN name;
\d people
CREATE TYPE mood AS ENUM ('low', 'high');
CREATE TABLE moods (id int PRIMARY KEY, m mood);
CREATE UNIQUE INDEX moods_one ON moods (m) WHERE m = 'low';
INSERT INTO moods VALUES (1, 'low'), (2, 'high'), (3, 'high');
INSERT INTO moods VALUES (4, 'low');
UPDATE moods SET m = 'low' WHERE id = 2;
DELETE FROM moods WHERE m = 'low' RETURNING *;
UPDATE moods SET m = 'low' WHERE id = 2;
SELECT * FROM moods ORDER BY id;
DROP TABLE people_too, people, parts, moods;
DROP TYPE mood;
