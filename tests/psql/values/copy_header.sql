-- COPY with a header, out and in.
CREATE TEMP TABLE t (a int, "b c" text, d text);
INSERT INTO t VALUES (1, 'x', NULL), (2, 'y,z', '"');
COPY t TO STDOUT (HEADER);
COPY t TO STDOUT (FORMAT csv, HEADER);
COPY t (d, "b c") TO STDOUT (FORMAT csv, HEADER true, DELIMITER ';', FORCE_QUOTE *);
COPY t TO STDOUT (FORMAT csv, HEADER false);
COPY t TO STDOUT CSV HEADER;
COPY (SELECT 1 AS "x,y", 2 AS z WHERE false) TO STDOUT (FORMAT csv, HEADER on);
COPY t TO STDOUT (FORMAT csv, HEADER match);
COPY t TO STDOUT (FORMAT binary, HEADER);
COPY t TO STDOUT (HEADER 2);
COPY t TO STDOUT (HEADER yes);
COPY t TO STDOUT (HEADER, HEADER);
COPY t FROM STDIN (HEADER);
anything	at all
3	three	\N
\.
COPY t FROM STDIN (FORMAT csv, HEADER match);
a,b c,d
4,four,
\.
COPY t (d, a) FROM STDIN (FORMAT csv, HEADER match);
d,a
e,5
\.
COPY t FROM STDIN (HEADER match);
a	b c	e
6	six	\N
\.
COPY t FROM STDIN (HEADER match);
a	b c
6	six	\N
\.
COPY t FROM STDIN (HEADER match);
a	\N	d
6	six	\N
\.
COPY t FROM STDIN (FORMAT csv, HEADER match);
a,b c,d,e
6,six,
\.
COPY t FROM STDIN (FORMAT csv, HEADER 1);
"a header
in two lines"
7,seven,
\.
COPY t FROM STDIN (FORMAT csv, HEADER);
\.
SELECT * FROM t ORDER BY a;
DROP TABLE t;
