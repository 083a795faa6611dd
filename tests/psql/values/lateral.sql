-- A query in FROM of a lateral query, which can't be pulled up and names the level around that one.
create table lateral_a (id int primary key, n int);
create table lateral_b (id int primary key, a int);
insert into lateral_a select g, g % 3 from generate_series(1, 6) g;
insert into lateral_b select g, g % 4 from generate_series(1, 8) g;
select a.id, q.b from lateral_a a, lateral (select x.b from (select b.id b from lateral_b b where b.a = a.n order by b.id limit 1) x) q order by 1, 2;
select a.id, q.b from lateral_a a, lateral (select x.b from (select b.id b from lateral_b b where a.n > 0 order by b.id limit 2) x where a.id <> x.b) q order by 1, 2;
select a.id, q.m from lateral_a a, lateral (select max(y.b) m from (select x.b from (select b.id b from lateral_b b where b.a = a.n limit 3) x, lateral (select x.b + a.id s limit 1) z where z.s > 4) y) q order by 1;
select a.id, (select sum(q.b) from lateral (select x.b from (select b.id b from lateral_b b where b.a = a.n order by b.id limit 1) x) q) from lateral_a a order by 1;
select a.id, c.id, q.b from lateral_a a join lateral_a c on c.id = a.id + 1, lateral (select x.b from (select b.id b from lateral_b b where b.a = a.n and b.id > c.n order by b.id limit 1) x where x.b > a.n) q order by 1, 2, 3;
select a.id, q.b from lateral_a a left join lateral (select x.b from (select b.id b from lateral_b b where b.a = a.n order by b.id limit 1) x where x.b > 2) q on true order by 1, 2;
select a.id, q.b from lateral_a a, lateral (with x as materialized (select b.id b from lateral_b b where b.a = a.n order by b.id limit 1) select b from x) q order by 1, 2;
drop table lateral_a, lateral_b;
