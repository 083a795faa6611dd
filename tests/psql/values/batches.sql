-- Rows that a statement changes in batches: which row an error is about, and what stands afterwards.
create table bt (id int primary key, a int not null, t text, check (a < 100000));
create index bt_a on bt (a);
create index bt_t on bt (t);
insert into bt select g, (g * 7919) % 1009, 't' || g % 37 from generate_series(1, 2000) g;
select count(*), sum(a), count(distinct t) from bt;
-- Duplicates: the first one in the order of the rows, whatever comes behind it.
insert into bt select case when g = 700 then 5 when g = 300 then 6 else 10000 + g end, g, 'x' from generate_series(1, 900) g;
insert into bt select case when g = 300 then 6 else 10000 + g end, 10 / (305 - g), 'x' from generate_series(1, 900) g;
insert into bt select case when g = 308 then 6 else 10000 + g end, 10 / (305 - g), 'x' from generate_series(1, 900) g;
insert into bt select 10000 + g, case when g = 298 then null else g end, 'x' from generate_series(1, 900) g;
insert into bt select case when g = 290 then 6 else 10000 + g end, case when g = 298 then 100000 else g end, 'x' from generate_series(1, 900) g;
insert into bt select 20000 + g % 800, g, 'x' from generate_series(1, 900) g;
select count(*), sum(a) from bt;
copy bt from stdin;
30001	1	x
30002	1	x
30003	1	x
7	1	x
30005	1	x
30006	1	x
\.
copy bt from stdin;
30001	1	x
30002	1	x
30002	1	x
30004	abc	x
\.
copy bt from stdin where id <> 30002;
30001	1	x
30002	1	x
8	1	x
30004	1	x
\.
select count(*) from bt;
-- Random order, descending order.
insert into bt select 100000 - g, g, 'down' from generate_series(1, 1000) g;
insert into bt select 200000 + (g * 7919) % 1009, g, 'mixed' from generate_series(1, 1000) g;
select t, count(*), min(id), max(id) from bt where t in ('down', 'mixed') group by t order by t;
-- Updates.
update bt set a = a + 1;
update bt set a = a + 99000 where t <> 'mixed';
update bt set a = case when id = 900 then null else a end;
update bt set a = 100 / (id - 1500) where id < 1990;
select count(*), sum(a), count(*) filter (where a is null) from bt;
update bt set t = case when id % 3 = 0 then repeat('long', 50) when id % 3 = 1 then null else t end;
set enable_seqscan = off;
select count(*) from bt where t = repeat('long', 50);
select count(*) from bt where t is null;
select count(*), sum(id) from bt where a between 100 and 300;
set enable_seqscan = on;
select count(*), sum(id) from bt where a + 0 between 100 and 300;
-- A row twice in the source.
create table bs (id int, v int);
insert into bs select g % 500 + 1, 7 from generate_series(1, 1500) g;
update bt set a = bs.v from bs where bs.id = bt.id;
select count(*) from bt where a = 7 and id <= 500;
-- A unique index is checked row by row.
create table bu (id int primary key, u int);
insert into bu select g, g from generate_series(1, 1000) g;
create unique index bu_u on bu (u);
update bu set u = u - 1;
select min(u), max(u) from bu;
update bu set u = u + 1;
update bu set u = 5000 - u;
insert into bu select 2000 + g, case when g = 77 then 4500 else 10000 + g end from generate_series(1, 400) g;
insert into bu select case when g = 60 then 1 else 2000 + g end, case when g = 77 then 4500 else 10000 + g end from generate_series(1, 400) g;
-- In a transaction, with savepoints; a statement over its own rows.
begin;
insert into bt select 300000 + g, g, 'own' from generate_series(1, 700) g;
savepoint s;
update bt set a = a * 2 where t = 'own';
delete from bt where t = 'own' and a % 4 = 0;
select count(*), sum(a) from bt where t = 'own';
insert into bt select id, 1, 'again' from generate_series(300001, 300700) id where id not in (select id from bt);
select t, count(*), sum(a) from bt where t in ('own', 'again') group by t order by t;
rollback to s;
select count(*), sum(a) from bt where t = 'own';
delete from bt where id % 2 = 0;
select count(*), sum(a) from bt;
commit;
insert into bt select id + 1, a, t from bt where id % 2 = 1 and id < 300000;
select count(*), count(distinct id), sum(a) from bt;
-- Foreign keys, both ways.
create table bp (id int primary key);
create table bc (id int primary key, p int references bp on delete cascade);
insert into bp select g from generate_series(1, 600) g;
insert into bc select g, g % 600 + 1 from generate_series(1, 1200) g;
insert into bc select 2000 + g, g from generate_series(580, 620) g;
update bc set p = p + 1;
update bc set p = 600 where p > 300;
delete from bp where id % 2 = 0;
select count(*), count(distinct p) from bc;
-- A change that meets the rows of its own table.
insert into bc select id + 5000, p from bc;
with gone as (delete from bc where id >= 5000 returning id), more as (insert into bc select 9000 + g, 1 from generate_series(1, 300) g returning id)
select (select count(*) from gone), (select count(*) from more), (select count(*) from bc);
select count(*) from bc;
-- Sizes come from pages: a table with long values, its indexes, all of it.
insert into bu select 20000 + g, 20000 + g from generate_series(1, 5000) g;
select pg_relation_size('bu') between 100000 and 400000, pg_indexes_size('bu') >= pg_relation_size('bu_u'),
       pg_total_relation_size('bu') = pg_table_size('bu') + pg_indexes_size('bu'), pg_table_size('bu') >= pg_relation_size('bu'),
       pg_relation_size(1::oid) is null, pg_table_size(1::oid) is null, pg_indexes_size(1::oid) is null;
create table bl (t text);
insert into bl select string_agg(md5(g::text), '') from generate_series(1, 20000) g;
select pg_relation_size('bl') < 100000, pg_table_size('bl') > 600000;
drop table bc, bp, bu, bs, bt, bl;
-- RETURNING of many rows, and conditions of views for each of them
create table given(id int primary key, v int, u int unique);
insert into given select i, i % 10, i from generate_series(1, 600) i;
with changed as (update given set v = v + 1, u = u + 1000 where id % 2 = 0 returning id, v, u) select count(*), sum(id), sum(v), sum(u) from changed;
with gone as (delete from given where id % 3 = 0 returning *) select count(*), sum(id), sum(v), sum(u) from gone;
with gone as (delete from given using generate_series(1, 100) g where id = g returning id, g * 2 x) select count(*), sum(id), sum(x) from gone;
select count(*), sum(v), sum(u) from given;
-- the error of the first row comes first, also where a later one has another
update given set u = case when id = 400 then 1 else u end, v = 0 where id > 300 returning 1 / (id - 301);
update given set u = case when id = 305 then 101 else u end where id > 300 returning 1 / (id - 598);
delete from given where id > 500 returning 1 / (id - 599);
select count(*), sum(v), sum(u) from given;
create view given_low as select * from given where v < 100 with check option;
update given_low set v = case when id = 500 then 200 else 5 end;
update given_low set v = 6;
select count(*), sum(v) from given;
drop table given cascade;
