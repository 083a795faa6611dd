-- A key of GROUP BY that names an item of the target list which is computed of the groups.
select sum(x) s from (values (1), (2)) v(x) group by s;
select stddev(1), variance(x) from (values (1), (2)) v(x) group by 1;
select x + count(*) from (values (1), (2)) v(x) group by 1;
select row_number() over () r from (values (1), (2)) v(x) group by r;
select sum(x) s from (values (1), (2)) v(x) group by rollup (1);
select grouping(x), x from (values (1)) v(x) group by 1, 2;
select generate_series(1, 2) g, count(*) from (values (1), (2)) v(x) group by g order by g;
select x as s, sum(x) from (values (1), (2)) v(x) group by s order by s;
\set VERBOSITY sqlstate
select (select sum(x)) s from (values (1)) v(x) group by 1;
\set VERBOSITY default
-- A number of rows is a bigint by assignment.
select x from generate_series(1, 5) x limit 1.5 offset 0.6;
select x from generate_series(1, 5) x limit 2::float8;
select x from generate_series(1, 5) x limit 1 + 0.2;
select x from generate_series(1, 5) x limit '2';
select x from generate_series(1, 5) x limit '2'::text;
select x from generate_series(1, 5) x limit true;
select x from generate_series(1, 5) x limit 'NaN'::numeric;
