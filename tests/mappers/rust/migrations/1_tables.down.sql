DROP VIEW dear;
DROP TABLE book;
DROP TABLE author;
DROP TYPE level;
