-- Columns of the type of a table's rows.
create table a (x int, y text)
create table b (id int primary key, v a, w a[])
insert into b values (1, row(1, 'p'), array[row(2, 'q')::a, null]), (2, null, null), (3, '(5,)', '{}')
select * from b order by id
select id, (v).x, (w[1]).y, v is null from b order by id
update b set v.x = 7 where id = 1 returning v
select attname, atttypid::regtype from pg_attribute where attrelid = 'b'::regclass and attnum > 0 order by attnum
alter table a add column z int
select * from b order by id
insert into b values (4, row(1, 'n', 3), array[row(4, 'm', 5)::a])
select id, (v).z, (w[1]).z from b order by id
update b set v.z = 9 where id = 1 returning v
select v from b where v = row(7, 'p', 9)::a
alter table a add column d int default 3
alter table a add column e int not null
alter table a alter column x type bigint
alter table a alter column y type varchar
alter table a rename column x to xx
select (v).xx from b order by id
alter table a rename to aa
select pg_typeof(v), pg_typeof(w) from b where id = 1
alter table aa rename to a
alter table a add column bb b
alter table a add column aa a
alter table a add column aa a[]
create table self (x self)
create table c (n b, m int)
insert into c select b, id from b where id = 1
select n, (n).v, ((n).w)[1] from c
alter table a add column k int default 7
alter table b add column k int default 7
alter table b add column l text
select n from c
drop table a
drop table b
begin
drop table b cascade
select * from c
rollback
begin
drop table c
set local client_min_messages = warning
drop table a cascade
select id from b order by id
rollback
begin
drop table a, b, c
rollback
create table copied as select id, v from b
select (v).xx from copied order by id
create view seen as select v from b
drop table copied
drop view seen
create schema s
create table s.t (x int)
create table pub (v s.t, i int)
set client_min_messages = warning
drop schema s cascade
reset client_min_messages
select * from pub
create type ct as (p a)
drop table a
drop type ct
insert into b values (5, row(1))
insert into b values (5, '(1)')
drop table c
drop table b
alter table a alter column xx type bigint
drop table a
