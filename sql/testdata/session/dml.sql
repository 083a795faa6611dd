create table t (id int primary key, a int, b text default 'x')
insert into t values (1, 10, 'one'), (2, 20, 'two')
insert into t (id, a) values (3, 30) returning *
select * from t order by id
select a from t where id = 2
select * from t where id in (1, 3) order by a desc
select * from t where a > 10 and id < 3
insert into t values (1, 5, 'dup')
update t set a = a + 1 where id = 1
update t set a = a * 2, b = b || '!' where id >= 2 returning id, a, b
delete from t where id = 3
select count(*), sum(a), avg(a), min(b), max(b) from t
select a % 2 as m, count(*) from t group by a % 2 order by 1
begin
insert into t values (7, 70, 'seven')
savepoint s
delete from t
select count(*) from t
rollback to s
select count(*) from t
rollback
select count(*) from t
begin
select 1/0
select 1
commit
select id from t order by id
create table s (k serial primary key, v numeric(10,2), ts timestamp, c char(5), ok bool not null default true)
insert into s (v, c) values (1.5, 'ab'), (2.255, 'cd') returning k, v, c, ok
insert into s (ok) values (null)
select nextval('s_k_seq'), currval('s_k_seq')
create index on t (a)
select id from t where a = 42
select t.id, s.k from t join s on t.id = s.k order by 1
select t.id, s.k from t left join s on s.k = t.a order by 1
select id, (select max(k) from s where k <= t.id) from t order by id
select id from t where exists (select 1 from s where s.k = t.id) order by id
select id from t where id in (select k from s) order by id
select * from generate_series(1, 3) g
select distinct ok from s
select k, v from s order by v desc nulls last limit 1 offset 1
insert into t values (1, 1, 'c') on conflict (id) do update set a = t.a + excluded.a returning *
insert into t values (1, 1, 'c'), (9, 9, 'n') on conflict do nothing
select * from t order by id
create view vw as select id, a * 2 as d from t where id < 5
select * from vw order by id
update t set id = id + 100 where id = 9
select id from t order by id
create table p (id int primary key)
create table c (id int primary key, p int references p on delete cascade, q int references p)
insert into c values (1, 1, null)
insert into p values (1), (2)
insert into c values (1, 1, null), (2, null, 2)
delete from p where id = 2
delete from p where id = 1
select * from c order by id
drop table p
drop table c, p
truncate t
select count(*) from t
copy t from stdin <<< 1\t5\tx\n2\t\N\ty\n
copy t to stdout
alter table t add column z int default 7
select * from t order by id
drop view vw
alter table t drop column a
select * from t order by id
create table pk (a int, b int)
insert into pk values (3, 1), (1, 2), (2, 3)
alter table pk add primary key (a)
select * from pk order by a
insert into pk values (1, 1)
show search_path
set datestyle = 'nonsense'
select * from nosuch
select nosuch from t
lock table t
select sum(id) from t having count(*) > 5
select case when id = 1 then 'a' else 'b' end from t order by id
select id from t union select 99 order by 1
values (1, 'a'), (2, 'b')
prepare q (int) as select id from t where id = $1
execute q(2)
create materialized view mv as select count(*) as n from t
select * from mv
refresh materialized view mv
select relname, relkind from pg_class where relname in ('t', 't_pkey', 'vw') order by 1
select indexname from pg_indexes where tablename = 't' order by 1
select pg_try_advisory_lock(1), pg_advisory_unlock(1)
drop table t
drop materialized view mv
drop table t
create table dc (a int, b int, c int)
create view dc_count as select count(*) from dc
create view dc_twice as select a * 2 as x from dc
create view dc_star as select * from dc
alter table dc add column younger int
alter table dc drop column younger
alter table dc drop column c
drop view dc_star
alter table dc drop column c
create view dc_natural as select a from dc natural join (select 1 as b) x
alter table dc drop column b
select * from dc_count
