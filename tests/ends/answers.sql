with recursive x(id) as (values (1) union all select id + 1 from x where id < 5), y(id) as (select id from x union all select id from x) select count(*) from y --> 10;
select pg_sleep('NaN') --> 22023;
select count(*) from generate_series(1::numeric, 'NaN') --> 22023;
with recursive x(id) as (values (1) union all select id + 1 from x where id < 5), y(id) as (select id from x where id < 3 union all select y.id + 1 from y where y.id < 4) select sum(id) from y --> 19;
