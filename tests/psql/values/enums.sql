-- enums and domains
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE mood AS ENUM ('x');
CREATE TABLE person (name text, m mood NOT NULL DEFAULT 'ok', past mood[]);
INSERT INTO person VALUES ('a', 'happy', '{sad,ok}'), ('b', 'sad', NULL), ('c', DEFAULT, array['happy']::mood[]);
INSERT INTO person VALUES ('d', 'angry');
SELECT * FROM person ORDER BY m;
SELECT name FROM person WHERE m > 'sad' ORDER BY m DESC, name;
SELECT name FROM person WHERE m IN ('ok', 'happy') AND m <> 'ok';
SELECT 'ok'::mood < 'happy', 'ok'::text::mood, m::text || '!' FROM person WHERE name = 'a';
SELECT enum_range(NULL::mood), enum_first(NULL::mood), enum_last('sad'::mood), enum_range('ok'::mood, NULL);
ALTER TYPE mood ADD VALUE 'angry' BEFORE 'ok';
ALTER TYPE mood ADD VALUE IF NOT EXISTS 'angry';
ALTER TYPE mood ADD VALUE 'angry';
ALTER TYPE mood ADD VALUE 'glad' AFTER 'nothing';
SELECT enum_range(NULL::mood);
INSERT INTO person VALUES ('e', 'angry');
CREATE INDEX ON person (m);
SELECT name, m FROM person WHERE m <= 'angry' ORDER BY m;
SELECT name FROM person WHERE m = 'angry';
SELECT m, count(*) FROM person GROUP BY m ORDER BY m;
SELECT enumlabel, enumsortorder FROM pg_enum WHERE enumtypid = 'mood'::regtype AND enumlabel <> 'angry' ORDER BY enumsortorder DESC LIMIT 1;
SELECT typname, typtype, typcategory, typarray::regtype FROM pg_type WHERE typname = 'mood' AND typnamespace = 'public'::regnamespace;
SELECT pg_typeof('ok'::mood), pg_typeof(array['ok'::mood]);
\set VERBOSITY terse
DROP TYPE mood;
\set VERBOSITY default
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN email AS varchar(20) NOT NULL CONSTRAINT at CHECK (VALUE LIKE '%@%');
CREATE TABLE users (id positive PRIMARY KEY, mail email, opt positive);
INSERT INTO users VALUES (1, 'a@b', NULL), (2, 'c@d', 7);
INSERT INTO users VALUES (0, 'a@b');
INSERT INTO users VALUES (3, 'ab');
INSERT INTO users VALUES (3, NULL);
INSERT INTO users (id) VALUES (3);
UPDATE users SET opt = -1 WHERE id = 1;
SELECT id + opt, mail || '!', pg_typeof(5::positive + 1) FROM users WHERE opt IS NOT NULL;
SELECT (-5)::positive;
SELECT 'a'::email;
SELECT NULL::email;
SELECT '5'::positive, 5::positive * 2, '{1,2}'::positive[];
CREATE DOMAIN small AS positive CHECK (VALUE < 10);
SELECT 5::small;
SELECT 50::small;
SELECT (-1)::small;
SELECT * FROM users ORDER BY id;
ALTER DOMAIN email DROP CONSTRAINT at;
INSERT INTO users VALUES (4, 'none');
SELECT typname, typtype, typbasetype::regtype, typnotnull FROM pg_type WHERE typname IN ('positive', 'email') ORDER BY 1;
\set VERBOSITY terse
DROP DOMAIN positive;
\set VERBOSITY default
DROP TABLE person, users;
DROP TYPE mood;
DROP DOMAIN small, positive, email;
DROP TYPE IF EXISTS mood;
SELECT 'ok'::mood;
