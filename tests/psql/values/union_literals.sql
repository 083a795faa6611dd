-- The literals of a set operation's sides take the type of the other side.
select pg_typeof(x), x from (select null::int union all select null) s(x);
select pg_typeof(x), x from (select null union all select 1) s(x) order by x;
select pg_typeof(x), x from (select 1 union select '2') s(x) order by x;
select pg_typeof(x), x from (select '3' except select 2) s(x);
select pg_typeof(x), x from (select '2020-01-01' union all select date '2020-01-02') s(x) order by x;
select pg_typeof(x), x from (select 'a' union all select null) s(x) order by x;
select pg_typeof(x), x from (select null union all select null) s(x);
select 1 union select 'a';
select pg_typeof(x), x from (select 1.5 union all (select '2' limit 1)) s(x) order by x;
select null union all select null union all select 3;
select pg_typeof(x), x from (select 1 union all (select 2 union all select null)) s(x) order by x;
select pg_typeof(x), pg_typeof(y), count(*) from (select 'x', 1 union all select 'y', null union all select null, 3) s(x, y) group by 1, 2;
create table ul as select null as a, 1 as b union all select 'z', null;
select * from ul order by b;
