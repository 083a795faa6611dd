-- A name means the nearest relation that bears it, and a column before any whole row.
create table nearest_t (a int, b int);
create table nearest_u (a int, c int);
insert into nearest_t values (1, 2), (1, 3);
insert into nearest_u values (1, 5), (2, 6);
select (select nearest_t from nearest_t limit 1) from (values (7)) x(nearest_t);
select (select (select nearest_t from nearest_t limit 1)) from (values (7)) x(nearest_t);
select (select nearest_t from nearest_t limit 1) from (values (7)) x(y);
select (select u.a from nearest_u u limit 1) from (values (9, 2)) u(a, e);
\set VERBOSITY sqlstate
select (select u.e from nearest_u u) from (values (1, 2)) u(a, e);
select * from nearest_t t where exists (select 1 from nearest_u t where t.b = 1);
\set VERBOSITY default
select * from nearest_t join nearest_u using (a, a);
select * from (nearest_t x cross join nearest_t y) join nearest_u using (a);
select * from nearest_u join (nearest_t x cross join nearest_t y) using (a);
select * from (nearest_t x join nearest_t y using (a)) join nearest_u using (a) order by 1, 2, 3, 4;
-- A subquery that is a key of groups is that key wherever its level says it.
select (select c from nearest_u u where u.a = t.a limit 1), count(*) from nearest_t t
    group by (select c from nearest_u u where u.a = t.a limit 1) order by (select c from nearest_u u where u.a = t.a limit 1);
select t.*, (select c from nearest_u u where u.a = t.a limit 1) from nearest_t t
    group by t.a, t.b, (select c from nearest_u u where u.a = t.a limit 1) order by 2;
select (select c from nearest_u u where u.a = t.a limit 1) + 1, upper((select c from nearest_u u where u.a = t.a limit 1)::text) from nearest_t t
    group by (select c from nearest_u u where u.a = t.a limit 1) having (select c from nearest_u u where u.a = t.a limit 1) > 1;
select b in (select c from nearest_u), count(*) from nearest_t group by b in (select c from nearest_u);
select exists (select 1 from nearest_u u where u.a = b), count(*) from nearest_t group by exists (select 1 from nearest_u u where u.a = b) order by 1;
select distinct (select c from nearest_u u where u.a = t.a limit 1) from nearest_t t order by (select c from nearest_u u where u.a = t.a limit 1);
-- Constants that are no positions.
select a from nearest_t order by true;
select a from nearest_t group by false;
drop table nearest_t, nearest_u;
-- What columns are called.
select (select 1)::text, case when true then 2 else (select 1) end, (select 1 as x)::text, case when true then 2 else 1::int end,
    case when true then 2 else (select 1 as x union select 2) end, (select 1 as y union select 1), (select 2 as z)::int::text, case when true then 1 end;
