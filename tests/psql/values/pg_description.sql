-- What COMMENT says stands in pg_description, by object, class and column.
CREATE SCHEMA remarks;
COMMENT ON SCHEMA remarks IS 'of the schema';
CREATE TABLE remarks.told (id int PRIMARY KEY, note text CONSTRAINT told_note CHECK (note <> ''), parent int CONSTRAINT told_parent REFERENCES remarks.told);
CREATE INDEX told_by_note ON remarks.told (note);
CREATE VIEW remarks.seen AS SELECT id FROM remarks.told;
CREATE SEQUENCE remarks.counted;
COMMENT ON TABLE remarks.told IS 'of the table';
COMMENT ON COLUMN remarks.told.note IS 'of the column';
COMMENT ON INDEX remarks.told_by_note IS 'of the index';
COMMENT ON VIEW remarks.seen IS 'of the view';
COMMENT ON SEQUENCE remarks.counted IS 'of the sequence';
COMMENT ON CONSTRAINT told_pkey ON remarks.told IS 'of the key';
COMMENT ON CONSTRAINT told_note ON remarks.told IS 'of the check';
COMMENT ON CONSTRAINT told_parent ON remarks.told IS 'of the foreign key';
SELECT d.classoid::regclass, coalesce(c.relname, k.conname, n.nspname) AS name, d.objsubid, d.description
FROM pg_description d
LEFT JOIN pg_class c ON c.oid = d.objoid AND d.classoid = 'pg_class'::regclass
LEFT JOIN pg_constraint k ON k.oid = d.objoid AND d.classoid = 'pg_constraint'::regclass
LEFT JOIN pg_namespace n ON n.oid = d.objoid AND d.classoid = 'pg_namespace'::regclass
WHERE d.description LIKE 'of the %' AND (c.relnamespace = 'remarks'::regnamespace OR k.connamespace = 'remarks'::regnamespace OR n.nspname = 'remarks')
ORDER BY 1, 2, 3;
SELECT objsubid, description FROM pg_description WHERE objoid = 'remarks.told'::regclass ORDER BY 1;
COMMENT ON COLUMN remarks.told.note IS NULL;
SELECT objsubid, description FROM pg_description WHERE objoid = 'remarks.told'::regclass ORDER BY 1;
DROP VIEW remarks.seen;
DROP TABLE remarks.told;
SELECT count(*) FROM pg_description WHERE description IN ('of the table', 'of the key', 'of the check');
