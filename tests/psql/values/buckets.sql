-- width_bucket by thresholds, pg_size_pretty of numerics, DISTINCT with ORDER BY in aggregates.
select width_bucket(5, array[1, 3, 5, 10]), width_bucket(0.5, array[1, 3]), width_bucket(99, array[1, 3]), width_bucket(now(), array['yesterday', 'today', 'tomorrow']::timestamptz[]);
select width_bucket('b'::text, array['a', 'b', 'c']), width_bucket(5, '{}'::int[]), width_bucket(2.5, array[1, 2, 3]::numeric[]), width_bucket(null, array[1]), width_bucket(3, null::int[]);
select width_bucket(5, array[1, null]);
select width_bucket(5, array[[1, 2]]);
select width_bucket(unit, array[1, 10, 80]::numeric[]) b, count(*) from (values (0.25), (12.5), (79.99), (100)) v(unit) group by b order by b;
select pg_size_pretty(1.5), pg_size_pretty(10239.9), pg_size_pretty(10240::numeric), pg_size_pretty(1e15::numeric), pg_size_pretty(-123456789.7), pg_size_pretty(1e25::numeric), pg_size_pretty(0.0);
select pg_size_pretty(x) from unnest('{0,10239,10240,10751,10752,20479,10485247,10485248,-10485248,1073741823,10737418239,9223372036854775807,-9223372036854775808}'::int8[]) x;
select string_agg(distinct x, ',' order by x desc) from (values ('a'), ('b'), ('a')) v(x);
select string_agg(distinct x, ',' order by y) from (values ('a', 1), ('b', 2)) v(x, y);
select array_agg(distinct x order by x desc nulls last), array_agg(distinct x + 1 order by x + 1) from (values (1), (2), (null)) v(x);
select array_agg(distinct x order by -x) from (values (1), (2)) v(x);
select string_agg(distinct x, ',' order by x) from (values ('a'::varchar), ('b')) v(x);
select string_agg(distinct x::text, ',' order by x::text) from (values (1), (2)) v(x);
select count(distinct x order by y) from (values (1, 2)) v(x, y);
