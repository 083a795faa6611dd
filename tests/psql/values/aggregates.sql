-- Aggregates and grouping sets; every result has one order.
CREATE TABLE sale (id int PRIMARY KEY, shop text, item text, n int, price numeric, w float8, ok bool, d date);
INSERT INTO sale VALUES (1,'a','x',3,1.50,1.5,true,'2020-01-01'),(2,'a','y',5,2.25,2.5,false,'2020-02-01'),(3,'b','x',2,3,NULL,true,NULL),
 (4,'b','y',NULL,4.125,4,NULL,'2020-01-15'),(5,'b','x',7,NULL,-1,true,'2019-12-31'),(6,'c',NULL,3,0.1,0.25,false,'2021-01-01'),(7,NULL,'x',1,10,8,true,'2020-01-01');
SELECT count(*), count(n), count(DISTINCT n), sum(n), sum(DISTINCT n), avg(n), min(n), max(n), sum(price), avg(price), sum(w), avg(w), min(d), max(item) FROM sale;
SELECT count(*) FILTER (WHERE ok), sum(n) FILTER (WHERE shop = 'b'), string_agg(item, ',' ORDER BY id DESC), string_agg(DISTINCT item, '-' ORDER BY item DESC),
 array_agg(n ORDER BY n NULLS FIRST), array_agg(DISTINCT shop), bool_and(ok), bool_or(ok), every(ok) FROM sale;
SELECT variance(n), var_samp(n), var_pop(n), stddev(n), stddev_samp(n), stddev_pop(n) FROM sale;
SELECT variance(price), var_pop(price), stddev(price), stddev_pop(price) FROM sale;
SELECT variance(w), var_pop(w), stddev(w), stddev_pop(w) FROM sale;
SELECT variance(n), var_pop(n), stddev(price), stddev_pop(w) FROM sale WHERE id = 1;
SELECT corr(n, w), covar_pop(n, w), covar_samp(n, w), regr_avgx(n, w), regr_avgy(n, w), regr_count(n, w) FROM sale;
SELECT regr_intercept(n, w), regr_r2(n, w), regr_slope(n, w), regr_sxx(n, w), regr_sxy(n, w), regr_syy(n, w) FROM sale;
SELECT bit_and(n), bit_or(n), bit_xor(n), bit_or(n::int2), bit_xor(n::int8) FROM sale;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n), percentile_cont(0.25) WITHIN GROUP (ORDER BY price DESC), percentile_disc(0.5) WITHIN GROUP (ORDER BY item),
 percentile_disc(0) WITHIN GROUP (ORDER BY d), mode() WITHIN GROUP (ORDER BY n), mode() WITHIN GROUP (ORDER BY shop DESC) FROM sale;
SELECT percentile_cont(ARRAY[0, 0.1, NULL, 1]) WITHIN GROUP (ORDER BY w), percentile_disc('{0.2,0.9}'::float8[]) WITHIN GROUP (ORDER BY shop) FROM sale;
SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY n * '1 day'::interval) FROM sale;
SELECT rank(3) WITHIN GROUP (ORDER BY n), dense_rank(3) WITHIN GROUP (ORDER BY n), percent_rank(3) WITHIN GROUP (ORDER BY n), cume_dist(3) WITHIN GROUP (ORDER BY n),
 rank('b', 4) WITHIN GROUP (ORDER BY shop DESC, n) FROM sale;
SELECT shop, percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FILTER (WHERE n > 1), mode() WITHIN GROUP (ORDER BY item) FROM sale GROUP BY shop ORDER BY shop;
SELECT array_agg(a ORDER BY a) FROM (VALUES (ARRAY[1,2]), (ARRAY[3,4])) t(a);
SELECT max(a), min(a) FROM (VALUES (ARRAY[1,2]), (ARRAY[3,4])) t(a);
SELECT sum(n), avg(w), max(item), string_agg(item, ','), array_agg(n), bool_and(ok), stddev(n), percentile_cont(0.5) WITHIN GROUP (ORDER BY n), rank(1) WITHIN GROUP (ORDER BY n) FROM sale WHERE false;
SELECT shop, item, sum(n), grouping(shop), grouping(item), grouping(shop, item) FROM sale GROUP BY ROLLUP (shop, item) ORDER BY grouping(shop, item), shop, item;
SELECT shop, item, sum(n), count(*), grouping(shop, item) FROM sale GROUP BY CUBE (shop, item) ORDER BY 5, 1, 2;
SELECT shop, item, sum(n) FROM sale GROUP BY GROUPING SETS ((shop), (item), ()) ORDER BY grouping(shop, item), 1, 2;
SELECT shop, item, ok, count(*) FROM sale GROUP BY shop, GROUPING SETS ((item), ROLLUP (ok)) ORDER BY grouping(item, ok), 1, 2, 3;
SELECT shop, count(*) FROM sale GROUP BY DISTINCT ROLLUP (shop), ROLLUP (shop) ORDER BY grouping(shop), shop;
SELECT shop, count(*) FROM sale GROUP BY ROLLUP (shop), ROLLUP (shop) ORDER BY grouping(shop), shop;
SELECT n % 2 AS odd, n % 2 + 1, sum(n) FROM sale GROUP BY ROLLUP (n % 2) ORDER BY 1, 3;
SELECT coalesce(shop, 'all'), sum(n) FROM sale GROUP BY ROLLUP (shop) HAVING sum(n) > 3 ORDER BY 1, 2;
SELECT count(*), sum(n) FROM sale WHERE false GROUP BY GROUPING SETS ((), (shop), ());
SELECT count(*) FROM sale GROUP BY ();
SELECT 1 FROM sale HAVING count(*) > 1;
SELECT id, shop, count(*) FROM sale GROUP BY id ORDER BY id LIMIT 2;
SELECT (SELECT max(o.x)) FROM (VALUES (1), (2)) o(x);
SELECT o.g, (SELECT sum(o.x) FROM (VALUES (1)) i(y)), (SELECT count(*) FROM (VALUES (1), (2)) i(y) WHERE i.y < max(o.x)) FROM (VALUES (1, 1), (1, 2), (2, 3)) o(g, x) GROUP BY o.g ORDER BY 1;
SELECT shop, count(*) FROM sale o GROUP BY shop HAVING EXISTS (SELECT 1 FROM sale i WHERE i.n < count(o.id)) ORDER BY 1;
SELECT g, count(*) FROM (SELECT n % 2 + random() * 0 AS g FROM sale WHERE n IS NOT NULL) t GROUP BY 1 ORDER BY 1;
SELECT count(*), pg_blocking_pids(0) FROM sale GROUP BY 2;
SELECT count(*), pg_blocking_pids(0) FROM sale GROUP BY pg_blocking_pids(0);
SELECT DISTINCT count(*), shop FROM sale GROUP BY shop ORDER BY count(*), shop;
-- Errors.
SELECT o.a, (SELECT sum(o.a) FROM sale) FROM (VALUES (1)) o(a);
SELECT shop, sum(n) FROM sale;
SELECT sum(sum(n)) FROM sale;
SELECT 1 FROM sale WHERE sum(n) > 1;
SELECT percentile_cont(0.5) FROM sale;
SELECT sum(n) WITHIN GROUP (ORDER BY n) FROM sale;
SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY n) FROM sale;
SELECT percentile_cont(n) WITHIN GROUP (ORDER BY n) FROM sale;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) OVER () FROM sale;
SELECT lower('x') WITHIN GROUP (ORDER BY n) FROM sale;
SELECT grouping(n) FROM sale GROUP BY shop;
SELECT shop, item FROM sale GROUP BY GROUPING SETS ((shop));
SELECT id, shop FROM sale GROUP BY ROLLUP (id);
SELECT array_agg(a) FROM (VALUES (ARRAY[1,2]), (ARRAY[3])) t(a);
DROP TABLE sale;
