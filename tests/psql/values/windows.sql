-- Window functions and frames; every result has one order.
CREATE TABLE pay (dep text, id int PRIMARY KEY, amount int, since date, part numeric(6,2), share float8);
INSERT INTO pay VALUES ('dev', 1, 5200, '2007-08-01', 1.50, 0.5), ('ops', 2, 5000, '2006-10-01', 2.25, 1.5), ('hr', 3, 3500, '2007-12-10', 3, -1),
 ('ops', 4, 4800, '2007-08-08', NULL, 2), ('hr', 5, 3900, '2006-12-23', 0.75, NULL), ('dev', 6, 4200, '2008-01-01', 9.99, 'NaN'),
 ('dev', 7, 4500, '2008-01-01', 1, 3), ('ops', 8, 4800, '2007-08-01', 2.5, 4), ('dev', 9, 6000, '2006-10-01', 4, 'Infinity'), ('dev', 10, 5200, '2007-08-15', -2, 0);
SELECT dep, id, amount, row_number() OVER v, rank() OVER w, dense_rank() OVER w, percent_rank() OVER w, cume_dist() OVER w, ntile(3) OVER v
 FROM pay WINDOW w AS (PARTITION BY dep ORDER BY amount), v AS (PARTITION BY dep ORDER BY amount, id) ORDER BY dep, amount, id;
SELECT id, lag(amount) OVER w, lag(amount, 2) OVER w, lag(amount, 2, -1) OVER w, lead(amount) OVER w, lead(amount, NULL) OVER w, lead(amount, 1, 0.5) OVER w,
 first_value(id) OVER w, last_value(id) OVER w, nth_value(id, 2) OVER w FROM pay WINDOW w AS (ORDER BY id) ORDER BY id;
SELECT id, sum(amount) OVER (), count(*) OVER (PARTITION BY dep), avg(amount) OVER (PARTITION BY dep ORDER BY id), max(part) OVER (ORDER BY id DESC)
 FROM pay ORDER BY id;
SELECT id, sum(amount) OVER (ORDER BY id ROWS 2 PRECEDING), sum(amount) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING),
 sum(amount) OVER (ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING), sum(amount) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING),
 sum(amount) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM pay ORDER BY id;
SELECT id, amount, sum(id) OVER (ORDER BY amount RANGE BETWEEN 300 PRECEDING AND 300 FOLLOWING) AS near,
 sum(id) OVER (ORDER BY amount DESC RANGE BETWEEN 300 PRECEDING AND CURRENT ROW) AS above,
 sum(id) OVER (ORDER BY amount RANGE BETWEEN 100 FOLLOWING AND 1000 FOLLOWING) AS later FROM pay ORDER BY amount, id;
SELECT id, since, count(*) OVER (ORDER BY since RANGE BETWEEN '1 year' PRECEDING AND '1 month' FOLLOWING) FROM pay ORDER BY since, id;
SELECT id, part, count(*) OVER (ORDER BY part RANGE BETWEEN 1.5 PRECEDING AND 0.5 FOLLOWING),
 count(*) OVER (ORDER BY part NULLS FIRST RANGE BETWEEN 1.5 PRECEDING AND 0.5 FOLLOWING) FROM pay ORDER BY part, id;
SELECT id, share, count(*) OVER (ORDER BY share RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING),
 count(*) OVER (ORDER BY share DESC RANGE BETWEEN 'inf' PRECEDING AND 1 FOLLOWING) FROM pay ORDER BY share, id;
SELECT v, array_agg(v) OVER (ORDER BY v RANGE BETWEEN 'inf' PRECEDING AND 'inf' FOLLOWING), array_agg(v) OVER (ORDER BY v RANGE BETWEEN 'inf' FOLLOWING AND 'inf' FOLLOWING)
 FROM (VALUES (float8 '-inf'), (-1), (3), ('inf'), ('nan')) t(v) ORDER BY v;
SELECT id, amount, sum(id) OVER (ORDER BY amount GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING), sum(id) OVER (ORDER BY amount GROUPS 2 PRECEDING),
 sum(id) OVER (ORDER BY amount GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM pay ORDER BY amount, id;
SELECT id, amount, array_agg(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) AS others,
 sum(id) OVER (ORDER BY amount RANGE UNBOUNDED PRECEDING EXCLUDE CURRENT ROW) AS a, sum(id) OVER (ORDER BY amount RANGE UNBOUNDED PRECEDING EXCLUDE GROUP) AS b,
 sum(id) OVER (ORDER BY amount RANGE UNBOUNDED PRECEDING EXCLUDE TIES) AS c, sum(id) OVER (ORDER BY amount RANGE UNBOUNDED PRECEDING EXCLUDE NO OTHERS) AS d
 FROM pay ORDER BY amount, id;
SELECT id, first_value(id) OVER w, last_value(id) OVER w, nth_value(id, 2) OVER w, nth_value(id, 3) OVER w
 FROM pay WINDOW w AS (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW) ORDER BY id;
SELECT id, sum(part) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), avg(part) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW),
 stddev(amount) OVER (ORDER BY id ROWS 2 PRECEDING), var_pop(part) OVER (ORDER BY id ROWS 2 PRECEDING), min(amount) OVER (ORDER BY id ROWS 2 PRECEDING) FROM pay ORDER BY id;
SELECT id, sum(amount) FILTER (WHERE dep = 'dev') OVER (ORDER BY id), count(part) FILTER (WHERE part > 2) OVER (ORDER BY id ROWS 3 PRECEDING) FROM pay ORDER BY id;
SELECT dep, sum(amount), rank() OVER (ORDER BY sum(amount) DESC), sum(sum(amount)) OVER (ORDER BY dep), count(*) OVER () FROM pay GROUP BY dep ORDER BY dep;
SELECT dep, sum(amount), sum(sum(amount)) OVER (PARTITION BY grouping(dep)) FROM pay GROUP BY ROLLUP (dep) ORDER BY dep;
SELECT id FROM (SELECT id, rank() OVER (PARTITION BY dep ORDER BY amount DESC, id) AS r FROM pay) t WHERE r = 1 ORDER BY id;
SELECT DISTINCT dep, first_value(amount) OVER (PARTITION BY dep ORDER BY amount DESC) FROM pay ORDER BY 1;
SELECT id, row_number() OVER (ORDER BY id DESC) + 1 AS n FROM pay ORDER BY row_number() OVER (ORDER BY id DESC) LIMIT 3;
SELECT sum(id) OVER w1, sum(id) OVER (w2 ROWS 1 PRECEDING), count(*) OVER (w1) FROM pay WINDOW w1 AS (PARTITION BY dep), w2 AS (w1 ORDER BY id) ORDER BY id;
SELECT count(*) OVER (), lag(1) OVER () FROM pay WHERE false;
SELECT id, (SELECT max(x) FROM (SELECT sum(v) OVER (ORDER BY v) AS x FROM (VALUES (1), (pay.id)) t(v)) u) FROM pay ORDER BY id LIMIT 3;
-- Errors.
SELECT id FROM pay WHERE row_number() OVER (ORDER BY id) < 3;
SELECT id FROM pay GROUP BY row_number() OVER ();
SELECT count(*) FROM pay HAVING rank() OVER () > 1;
SELECT sum(rank() OVER ()) FROM pay;
SELECT rank() OVER (ORDER BY rank() OVER ()) FROM pay;
SELECT sum(rank() OVER ()) OVER () FROM pay;
SELECT row_number() FROM pay;
SELECT lower(dep) OVER () FROM pay;
SELECT count(DISTINCT id) OVER () FROM pay;
SELECT array_agg(id ORDER BY id) OVER () FROM pay;
SELECT lag(id) FILTER (WHERE true) OVER () FROM pay;
SELECT sum(id) OVER nosuch FROM pay;
SELECT sum(id) OVER (w PARTITION BY dep) FROM pay WINDOW w AS (PARTITION BY dep);
SELECT sum(id) OVER (w ORDER BY dep) FROM pay WINDOW w AS (ORDER BY dep);
SELECT sum(id) OVER (w) FROM pay WINDOW w AS (ORDER BY dep ROWS 1 PRECEDING);
SELECT 1 FROM pay WINDOW w AS (), w AS ();
SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) FROM pay;
SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM pay;
SELECT sum(id) OVER (ORDER BY id ROWS 1 FOLLOWING) FROM pay;
SELECT sum(id) OVER (ORDER BY id ROWS -1 PRECEDING) FROM pay;
SELECT sum(id) OVER (ORDER BY id ROWS NULL PRECEDING) FROM pay;
SELECT sum(id) OVER (ORDER BY id ROWS id PRECEDING) FROM pay;
SELECT sum(id) OVER (ORDER BY dep RANGE 1 PRECEDING) FROM pay;
SELECT sum(id) OVER (ORDER BY id, dep RANGE 1 PRECEDING) FROM pay;
SELECT sum(id) OVER (ORDER BY id RANGE -1 PRECEDING) FROM pay;
SELECT sum(id) OVER (ORDER BY since RANGE 1 PRECEDING) FROM pay;
SELECT sum(id) OVER (GROUPS 1 PRECEDING) FROM pay;
SELECT ntile(0) OVER () FROM pay;
SELECT nth_value(id, 0) OVER () FROM pay;
SELECT id, rank() OVER (ORDER BY amount) FROM pay FOR UPDATE;
SELECT dep, rank() OVER (ORDER BY amount) FROM pay GROUP BY dep;
DROP TABLE pay;
