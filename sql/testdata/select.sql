CREATE TABLE t (id int PRIMARY KEY, a int, b text, c numeric(10,2), d timestamp)
CREATE TABLE u (x int, y int, z text, PRIMARY KEY (x, y))
CREATE TABLE e (v int)
CREATE INDEX t_a ON t (a)
CREATE INDEX u_z ON u (z, y)
INSERT INTO t VALUES (1, 10, 'one', 1.50, '2024-01-01'), (2, 20, 'two', 2.25, '2024-01-02'), (3, 20, 'three', NULL, NULL), (4, NULL, 'four', 4, '2024-02-01'), (5, 50, NULL, 5, '2023-12-31')
INSERT INTO u SELECT x, y, 'z' || (x * y % 3) FROM generate_series(1, 4) x, generate_series(1, 3) y
SELECT * FROM t WHERE id = 3
SELECT * FROM t WHERE id = 99
SELECT * FROM t WHERE id = NULL
SELECT id FROM t WHERE id = 2.0
SELECT id FROM t WHERE id = 2.5
SELECT id FROM t WHERE id = 5000000000
SELECT id FROM t WHERE id < 5000000000 ORDER BY id
SELECT id FROM t WHERE id > -5000000000 ORDER BY id DESC
SELECT id FROM t WHERE id IN (5, 1, 5, NULL, 77) ORDER BY id
SELECT id FROM t WHERE id = ANY ('{2,4}') ORDER BY id
SELECT id FROM t WHERE id = ANY (ARRAY[2,4]::bigint[]) ORDER BY id
SELECT id FROM t WHERE id BETWEEN 2 AND 4 ORDER BY id
SELECT id FROM t WHERE id > 2 AND id <= 4 ORDER BY 1
SELECT id FROM t WHERE id > 2 AND id > 3 AND id < 100 ORDER BY 1
SELECT id, a FROM t WHERE a = 20 ORDER BY id
SELECT id, a FROM t WHERE a >= 20 ORDER BY id
SELECT id, a FROM t WHERE a < 20 ORDER BY id
SELECT id FROM t WHERE a IS NULL
SELECT id FROM t WHERE a IS NOT NULL ORDER BY id
SELECT id, a FROM t ORDER BY a, id
SELECT id, a FROM t ORDER BY a DESC, id
SELECT id, a FROM t ORDER BY a NULLS FIRST, id DESC
SELECT id, a FROM t ORDER BY a DESC NULLS LAST, id
SELECT id FROM t ORDER BY id LIMIT 2
SELECT id FROM t ORDER BY id DESC LIMIT 2
SELECT id FROM t ORDER BY id OFFSET 3
SELECT id FROM t ORDER BY id LIMIT 2 OFFSET 1
SELECT id FROM t ORDER BY id LIMIT NULL
SELECT id FROM t LIMIT 0
SELECT id FROM t LIMIT -1
SELECT id FROM t OFFSET -1
SELECT id FROM t ORDER BY id FETCH FIRST 2 ROWS ONLY
SELECT x, y FROM u WHERE x = 2 ORDER BY y DESC
SELECT x, y FROM u WHERE x = 2 AND y > 1 ORDER BY y
SELECT x, y FROM u WHERE x = 2 AND y = 3
SELECT x, y FROM u WHERE x > 2 ORDER BY x DESC, y DESC
SELECT x, y FROM u WHERE x > 2 ORDER BY x DESC, y
SELECT x, y, z FROM u WHERE z = 'z0' ORDER BY x, y
SELECT x, y, z FROM u WHERE z = 'z0' AND y >= 2 ORDER BY x, y
SELECT x, y, z FROM u WHERE z LIKE 'z%' AND x = 1 ORDER BY y
SELECT x FROM u WHERE x = 3 ORDER BY y DESC LIMIT 1
SELECT max(x), min(x), max(y), min(z) FROM u
SELECT max(y) FROM u WHERE x = 2
SELECT min(id), max(id) FROM t
SELECT max(a), min(a) FROM t
SELECT max(id) FROM t WHERE id < 0
SELECT count(*), count(a), sum(a), avg(a), max(b), min(c), sum(c) FROM t
SELECT count(*) FROM e
SELECT sum(v), max(v), count(v) FROM e
SELECT count(*) FROM e GROUP BY v
SELECT a, count(*) FROM t GROUP BY a ORDER BY a
SELECT a, count(*) AS n FROM t GROUP BY a HAVING count(*) > 1
SELECT a + 1, count(*) FROM t GROUP BY a + 1 ORDER BY 1
SELECT z, sum(x * y) FROM u GROUP BY z ORDER BY 2 DESC, 1
SELECT z, x, count(*) FROM u GROUP BY 1, x ORDER BY z, x
SELECT id, b, count(*) FROM t GROUP BY id ORDER BY id
SELECT count(DISTINCT a), sum(DISTINCT a) FROM t
SELECT string_agg(b, ',' ORDER BY id DESC) FROM t
SELECT array_agg(id ORDER BY b) FROM t
SELECT count(*) FILTER (WHERE a = 20) FROM t
SELECT bool_and(id > 0), bool_or(id > 4), every(id < 3) FROM t
SELECT 1 FROM t HAVING count(*) > 100
SELECT 1 HAVING true
SELECT sum(a) FROM t HAVING sum(a) > 10 ORDER BY sum(a)
SELECT b FROM t GROUP BY a
SELECT a FROM t GROUP BY b
SELECT count(*) FROM t WHERE count(*) > 1
SELECT a, sum(sum(a)) FROM t GROUP BY a
SELECT a AS b2 FROM t GROUP BY b2 ORDER BY b2
SELECT DISTINCT a FROM t ORDER BY a
SELECT DISTINCT a FROM t ORDER BY a DESC NULLS LAST LIMIT 2
SELECT DISTINCT ON (a) a, id FROM t ORDER BY a, id DESC
SELECT DISTINCT a FROM t ORDER BY id
SELECT DISTINCT ON (a) a, id FROM t ORDER BY id
SELECT t.id, u.y FROM t JOIN u ON u.x = t.id ORDER BY 1, 2
SELECT t.id, u.y FROM t LEFT JOIN u ON u.x = t.id AND u.y = 2 ORDER BY 1, 2
SELECT t.id, u.y FROM u RIGHT JOIN t ON u.x = t.id AND u.y = 2 ORDER BY 1, 2
SELECT t.id, u.x FROM t FULL JOIN u ON u.x = t.id + 2 AND u.y = 1 ORDER BY 1, 2
SELECT t.id, u.x, u.y FROM t, u WHERE t.id = u.x AND t.a = 20 ORDER BY 1, 3
SELECT count(*) FROM t CROSS JOIN u
SELECT count(*) FROM t a, t b WHERE a.a = b.a
SELECT a.id, b.id FROM t a JOIN t b ON a.a = b.a AND a.id < b.id
SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.id = b.id - 1 ORDER BY a.id
SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.id = b.id - 1 WHERE b.id IS NULL
SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.id = b.id AND b.a = 20 WHERE a.id < 4 ORDER BY 1
SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.id = b.id AND a.a = 20 ORDER BY 1
SELECT id, x, y FROM t JOIN u ON t.id > u.x AND u.y = 1 ORDER BY 1, 2
SELECT * FROM (SELECT id AS x, a FROM t) s JOIN u USING (x) WHERE y = 1 ORDER BY x
SELECT x, s.x, u.x FROM (SELECT id AS x, a FROM t) s LEFT JOIN u USING (x) WHERE u.y = 1 OR u.y IS NULL ORDER BY x
SELECT * FROM (SELECT id AS x FROM t) s NATURAL JOIN u WHERE y = 3 ORDER BY x
SELECT a.id, b.x, c.id FROM t a JOIN u b ON b.x = a.id LEFT JOIN t c ON c.id = b.y + 3 WHERE a.id = 1 ORDER BY 1, 2, 3
SELECT a.id, s.m FROM t a, LATERAL (SELECT max(y) AS m FROM u WHERE u.x = a.id) s ORDER BY 1
SELECT a.id, s.m FROM t a LEFT JOIN LATERAL (SELECT y AS m FROM u WHERE u.x = a.id AND y > 1) s ON true ORDER BY 1, 2
SELECT a.id, g FROM t a, generate_series(1, a.id) g WHERE a.id < 4 ORDER BY 1, 2
SELECT a.id, s.q FROM t a, LATERAL (SELECT (SELECT count(*) FROM u WHERE u.x = a.id) AS q) s ORDER BY 1
SELECT id FROM t WHERE id IN (SELECT x FROM u) ORDER BY id
SELECT id FROM t WHERE id NOT IN (SELECT x FROM u) ORDER BY id
SELECT id FROM t WHERE id NOT IN (SELECT a FROM t) ORDER BY id
SELECT id FROM t WHERE id IN (SELECT x::bigint FROM u WHERE y = 1) ORDER BY id
SELECT id FROM t WHERE id IN (SELECT c FROM t) ORDER BY id
SELECT id FROM t WHERE id > ALL (SELECT x FROM u) ORDER BY id
SELECT id FROM t WHERE id < ANY (SELECT x FROM u) ORDER BY id
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.x = t.id AND u.y = t.id) ORDER BY id
SELECT id FROM t WHERE NOT EXISTS (SELECT FROM u WHERE u.x = t.id) ORDER BY id
SELECT id, (SELECT sum(y) FROM u WHERE u.x = t.id) FROM t ORDER BY id
SELECT id FROM t WHERE id = (SELECT max(x) FROM u)
SELECT id FROM t WHERE a = (SELECT max(a) FROM t)
SELECT (SELECT x FROM u)
SELECT (SELECT x, y FROM u LIMIT 1)
SELECT id FROM t WHERE id IN (SELECT x, y FROM u)
SELECT ARRAY(SELECT id FROM t ORDER BY id DESC)
SELECT id, (SELECT b FROM t t2 WHERE t2.id = t.id + 1) FROM t ORDER BY id
SELECT (SELECT count(*) FROM u WHERE x IN (SELECT id FROM t t2 WHERE t2.a = t.a)) FROM t ORDER BY id
SELECT 1 UNION SELECT 2 UNION SELECT 1 ORDER BY 1
SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 1 ORDER BY 1 DESC
SELECT id FROM t INTERSECT SELECT x FROM u ORDER BY id
SELECT id FROM t EXCEPT SELECT x FROM u
SELECT x FROM u EXCEPT ALL SELECT id FROM t ORDER BY 1
SELECT x FROM u INTERSECT ALL SELECT 1 FROM u
SELECT 1 UNION SELECT 1.5 ORDER BY 1
SELECT NULL UNION ALL SELECT 1
SELECT 1 UNION SELECT 'x'
SELECT 1, 2 UNION SELECT 1
SELECT id FROM t UNION SELECT x FROM u ORDER BY id + 1
SELECT id AS q FROM t UNION SELECT 9 ORDER BY q DESC LIMIT 2
VALUES (1, 'a'), (2, 'b')
VALUES (1, 'a'), (2.5, NULL) ORDER BY 1 DESC
VALUES (1), (2, 3)
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) v (n, s) WHERE n = 2
WITH w AS (SELECT id, a FROM t WHERE a = 20) SELECT w.id, u.y FROM w JOIN u ON u.x = w.id ORDER BY 1, 2
WITH w (q) AS (SELECT id FROM t), v AS (SELECT q + 1 AS r FROM w) SELECT sum(q), sum(r) FROM w JOIN v ON r = q
WITH w AS (SELECT 1 AS n) SELECT (SELECT n FROM w), n FROM w
WITH t AS (SELECT 1 AS one) SELECT * FROM t
WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r
WITH RECURSIVE r (n) AS (SELECT 1 UNION SELECT (n + 1) % 3 FROM r) SELECT * FROM r ORDER BY n
WITH RECURSIVE w AS (SELECT 5 AS n) SELECT n FROM w
SELECT * FROM generate_series(1, 3)
SELECT g, g * 2 FROM generate_series(1, 10, 4) g
SELECT g.n FROM generate_series(3, 1, -1) AS g (n)
SELECT * FROM generate_series(1, 3) WITH ORDINALITY
SELECT * FROM generate_series(1, NULL)
SELECT * FROM generate_series(1, 2, 0)
SELECT generate_series(1, 3)
SELECT generate_series(1, 3) * 2 AS q
SELECT id, generate_series(1, 2) FROM t WHERE id < 3 ORDER BY 1, 2
SELECT t.*, generate_series(1, 2) AS g FROM t WHERE id = 1
SELECT * FROM generate_series(1.5, 3.5) g
SELECT * FROM generate_series('2024-01-01'::timestamp, '2024-01-03', '1 day') g
SELECT count(*) FROM generate_series(1, 100000) g WHERE g % 7 = 0
SELECT * FROM unnest(ARRAY[1, 2, NULL]) q
SELECT unnest('{a,b}'::text[])
SELECT * FROM lower('ABC')
SELECT sum(g) FROM generate_series(1, 10) g
SELECT * FROM nosuch
SELECT * FROM public.nosuch
SELECT nosuch FROM t
SELECT t.nosuch FROM t
SELECT nosuch.id FROM t
SELECT id FROM t a, t b
SELECT t.id FROM t a
SELECT * FROM t, t
SELECT *
SELECT nosuch.* FROM t
SELECT * FROM (SELECT 1)
SELECT * FROM (SELECT 1 AS a, 2 AS b) s (x, y, z)
SELECT id FROM t ORDER BY 2
SELECT id FROM t GROUP BY 3
SELECT id FROM t ORDER BY 'x'
SELECT id FROM t WHERE a
SELECT id FROM t WHERE b = 1
SELECT id FROM t LIMIT 'x'
SELECT x FROM u JOIN t USING (x)
SELECT id FROM t WHERE id = 1 FOR UPDATE
SELECT t.id, u.y FROM t JOIN u ON u.x = t.id WHERE t.id = 2 ORDER BY 2 FOR UPDATE OF t
SELECT count(*) FROM t FOR UPDATE
SELECT DISTINCT a FROM t FOR SHARE
SELECT id FROM t FOR UPDATE OF nosuch
SELECT 1 UNION SELECT 2 FOR UPDATE
SELECT id FROM t WHERE id = 1 FOR NO KEY UPDATE NOWAIT
SELECT id FROM t ORDER BY id LIMIT 1 FOR SHARE SKIP LOCKED
SELECT id, CASE WHEN a = 20 THEN 'x' ELSE b END FROM t ORDER BY id
SELECT coalesce(b, '?'), upper(b) FROM t ORDER BY id DESC
SELECT id FROM t WHERE a = 20 OR id = 5 ORDER BY id
SELECT id FROM t WHERE (id, a) = (2, 20)
SELECT id FROM t WHERE d >= '2024-01-01' AND d < '2024-02-01' ORDER BY d DESC
SELECT id FROM t WHERE c > 2 ORDER BY c DESC
SELECT b FROM t WHERE b > 'o' ORDER BY b
SELECT a AS id, id AS k FROM t ORDER BY id, k
SELECT id + 1 AS a FROM t ORDER BY a DESC LIMIT 2
SELECT id FROM t ORDER BY -id LIMIT 2
SELECT t FROM t WHERE id = 1
SELECT count(t) FROM t
SELECT id, row_number() OVER (ORDER BY id) FROM t
SELECT a, count(*) FROM t GROUP BY ROLLUP (a) ORDER BY a, count(*)
SELECT 1 AS one, 'x' AS two WHERE false
SELECT 1 WHERE true
SELECT now() = now(), 1 = 1
SELECT id FROM t WHERE id = (SELECT min(x) + 1 FROM u) AND a > (SELECT 5)
SELECT id FROM t WHERE id > (SELECT 2) AND id < (SELECT max(x) FROM u WHERE y = (SELECT 1))
SELECT id FROM t WHERE id = (SELECT x FROM u)
SELECT id FROM t WHERE id = (SELECT x FROM u WHERE x > 100)
SELECT t.id, u.y FROM t JOIN u ON u.x = t.id AND u.y = (SELECT 2) ORDER BY 1
SELECT t.id, u.y FROM t LEFT JOIN u ON u.x = t.id AND u.y = (SELECT 2) AND t.id < (SELECT 3) ORDER BY 1
SELECT id FROM t WHERE id = (SELECT id FROM t ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
SELECT id FROM t WHERE id IN (SELECT id FROM t ORDER BY id LIMIT 2 FOR UPDATE) AND a IN (SELECT 10)
SELECT a.id FROM t a WHERE a.id = (SELECT max(b.id) FROM t b WHERE b.a = a.a) ORDER BY 1
SELECT (SELECT a FROM t WHERE id = u.x AND a = (SELECT 20)) FROM u WHERE y = 1 ORDER BY x
select x in (1.6), x in (y), x in (y, 1.6), x in (y, 1.6, 2.5), x not in (y, 1.7), x in (null), x not in (1.6::real, null) from (values (1.6::real, 1.6::numeric)) t(x, y)
select x in ('1.6'), x in ('2', '1.6'), x in (select 1.6), y in (x) from (values (1.6::real, 1.6::numeric)) t(x, y)
