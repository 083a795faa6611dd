-- Queries in FROM of queries in FROM, with subqueries that look at them: what one level has taken in, another level may leave as it was.
create table x0(k int, b int); create table x2(id int, c int); create table x1(a int, c int); create table x3(id int primary key, d int, e int);
insert into x0 values (1,1),(2,1),(3,2),(4,2),(5,7); insert into x2 values (1,1),(2,2),(3,3); insert into x1 values (1,17),(2,27),(3,37); insert into x3 values (1,17,null),(2,17,2),(3,27,null);
with w1 as (select r1.c as c4 from x1 r1 join (select r3.c as c2 from x2 r3 where exists (select 1 from x0 r4 where r4.b = r3.id offset 1)) r2 on r2.c2 = r1.a) select * from x3 r6 where r6.d = (select min(c4) from w1 where r6.e is null) order by id;
select * from x3 left join (select r1.c, r1.a from x1 r1 join (select r3.c as c2 from x2 r3 where exists (select 1 from x0 r4 where r4.b = r3.id offset 1)) r2 on r2.c2 = r1.a) w1 on w1.a = x3.id order by id;
begin; update x3 set e = 100 + w1.a from (select r1.c, r1.a from x1 r1 join (select r3.c as c2 from x2 r3 where exists (select 1 from x0 r4 where r4.b = r3.id offset 1)) r2 on r2.c2 = r1.a) w1 where w1.a = x3.id; select * from x3 order by id; rollback;
begin; delete from x3 using (select r1.c, r1.a from x1 r1 join (select r3.c as c2 from x2 r3 where (select count(*) from x0 r4 where r4.b = r3.id) > 1) r2 on r2.c2 = r1.a) w1 where w1.a = x3.id; select * from x3 order by id; rollback;
with w1 as (select r1.c, r1.a from x1 r1 join (select r3.c as c2 from x2 r3 where (select count(*) from x0 r4 where r4.b = r3.id) > 1) r2 on r2.c2 = r1.a) select count(*) from (select x3.id from x3 join w1 on w1.a = x3.id) a, w1;
with w1 as (select r1.c, r1.a from x1 r1 join (select r3.c as c2 from x2 r3 where (select count(*) from x0 r4 where r4.b = r3.id) > 1) r2 on r2.c2 = r1.a) select count(*) from x3 left join w1 on w1.a = x3.id;
select count(*) from x3 full join (select r1.c, r1.a from x1 r1 join (select r3.c as c2 from x2 r3 where (select count(*) from x0 r4 where r4.b = r3.id) > 1) r2 on r2.c2 = r1.a) w1 on w1.a = x3.id;
select (select count(*) from x3 left join (select r1.c, r1.a from x1 r1 join (select r3.c as c2 from x2 r3 where (select count(*) from x0 r4 where r4.b = r3.id) > 1) r2 on r2.c2 = r1.a) w1 on w1.a = x3.id where w1.c > x0.k) from x0 order by k;
select id from x3 where exists (select 1 from (select r1.c, r1.a from x1 r1 join (select r3.c as c2 from x2 r3 where (select count(*) from x0 r4 where r4.b = r3.id) > 1) r2 on r2.c2 = r1.a) w1 where w1.a = x3.id) order by id;
drop table x1, x0, x2, x3;
