-- Rows put into a table that the same transaction has created, emptied or rewritten.
create table loads (id int, t text);
begin;
truncate loads;
insert into loads select i, repeat('x', i % 90) from generate_series(1, 3000) i;
select count(*), sum(id), sum(length(t)) from loads;
insert into loads select id + 3000, t from loads;
select count(*), sum(id), sum(length(t)) from loads;
savepoint a;
insert into loads select id + 6000, t from loads;
select count(*) from loads;
rollback to a;
select count(*), max(id) from loads;
update loads set t = t || 'y' where id % 10 = 0;
delete from loads where id % 10 = 1;
select count(*), sum(length(t)) from loads;
commit;
select count(*), sum(id), sum(length(t)) from loads;
begin;
truncate loads;
insert into loads select i, 'z' from generate_series(1, 2000) i;
rollback;
select count(*), sum(id), sum(length(t)) from loads;
-- Rows of two statements and of a COPY.
begin;
truncate loads;
insert into loads values (0, 'first');
insert into loads select i, 'z' from generate_series(1, 2000) i;
select count(*) from loads;
copy loads from stdin;
5001	a
5002	\N
5003	c
\.
select count(*), max(id) from loads;
commit;
-- By a key: ascending, descending, mixed, and a duplicate in each.
begin;
create table loads_key (id int primary key, t text unique);
insert into loads_key select i, 'u' || i from generate_series(1, 1000) i;
insert into loads_key select i, 'u' || i from generate_series(2000, 1001, -1) i;
insert into loads_key select 3000 + i * 7919 % 1009, 'v' || i from generate_series(0, 1008) i;
select count(*), count(distinct id), min(id), max(id) from loads_key;
savepoint s;
insert into loads_key select i, 'w' || i from generate_series(9000, 9100) i union all select 5, 'five';
rollback to s;
release s;
insert into loads_key select i, 'w' || i from generate_series(9000, 9100) i;
select count(*) from loads_key;
commit;
select count(*), sum(id) from loads_key where t like 'u%';
begin;
truncate loads_key;
insert into loads_key select i % 500, 'q' || i from generate_series(1, 501) i;
rollback;
begin;
truncate loads_key;
insert into loads_key select i, 'q' || i % 500 from generate_series(1, 501) i;
rollback;
select count(*), sum(id) from loads_key;
create table loads_as as select i as a, i * 7919 % 4001 as b, case when i % 1000 = 0 then repeat('long', 3000) else 'short' end as t from generate_series(1, 4000) i;
select count(*), sum(a), sum(b), sum(length(t)) from loads_as;
create index on loads_as (a);
-- In the order of the rows, and not.
alter table loads_as add constraint by_a primary key (a);
select count(*), sum(length(t)), (array_agg(b))[3999] from loads_as where a > 0;
insert into loads_as values (17, 0, '');
alter table loads_as drop constraint by_a;
insert into loads_as values (17, 0, '');
\set VERBOSITY terse
alter table loads_as add constraint by_a primary key (a);
\set VERBOSITY default
alter table loads_as add constraint by_b primary key (b);
select count(*), sum(a), sum(b), sum(length(t)) from loads_as;
insert into loads_as values (9999, 17, '');
select a, b, length(t) from loads_as where a in (17, 3000) order by a, b;
alter table loads_as drop constraint by_b;
insert into loads_as values (null, null, '');
alter table loads_as add constraint by_b primary key (b);
drop table loads, loads_key, loads_as;
