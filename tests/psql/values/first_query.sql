-- Which statements are a transaction's first query, after which neither its isolation nor read only can be changed.
\set VERBOSITY terse
set client_min_messages = error;
create table fq (id int primary key, v int);
insert into fq values (1, 1);
prepare known as select 1 from fq;
\echo prepare q1 as select * from fq
begin;
prepare q1 as select * from fq;
set transaction isolation level repeatable read;
rollback;
begin read only;
prepare q1 as select * from fq;
set transaction read write;
rollback;
begin read only;
prepare q1 as select * from fq;
begin read write;
rollback;
\echo explain (costs off) select 1
begin;
explain (costs off) select 1;
set transaction isolation level repeatable read;
rollback;
begin read only;
explain (costs off) select 1;
set transaction read write;
rollback;
begin read only;
explain (costs off) select 1;
begin read write;
rollback;
\echo execute known
begin;
execute known;
set transaction isolation level repeatable read;
rollback;
begin read only;
execute known;
set transaction read write;
rollback;
begin read only;
execute known;
begin read write;
rollback;
\echo deallocate all
begin;
deallocate all;
set transaction isolation level repeatable read;
rollback;
prepare known as select 1 from fq;
begin read only;
deallocate all;
set transaction read write;
rollback;
prepare known as select 1 from fq;
begin read only;
deallocate all;
begin read write;
rollback;
prepare known as select 1 from fq;
\echo declare cc cursor for select 1
begin;
declare cc cursor for select 1;
set transaction isolation level repeatable read;
rollback;
begin read only;
declare cc cursor for select 1;
set transaction read write;
rollback;
begin read only;
declare cc cursor for select 1;
begin read write;
rollback;
\echo analyze fq
begin;
analyze fq;
set transaction isolation level repeatable read;
rollback;
begin read only;
analyze fq;
set transaction read write;
rollback;
begin read only;
analyze fq;
begin read write;
rollback;
\echo discard sequences
begin;
discard sequences;
set transaction isolation level repeatable read;
rollback;
begin read only;
discard sequences;
set transaction read write;
rollback;
begin read only;
discard sequences;
begin read write;
rollback;
\echo copy fq to stdout
begin;
copy fq to stdout;
set transaction isolation level repeatable read;
rollback;
begin read only;
copy fq to stdout;
set transaction read write;
rollback;
begin read only;
copy fq to stdout;
begin read write;
rollback;
\echo reindex table fq
begin;
reindex table fq;
set transaction isolation level repeatable read;
rollback;
begin read only;
reindex table fq;
set transaction read write;
rollback;
begin read only;
reindex table fq;
begin read write;
rollback;
\echo close all
begin;
close all;
set transaction isolation level repeatable read;
rollback;
begin read only;
close all;
set transaction read write;
rollback;
begin read only;
close all;
begin read write;
rollback;
\echo select 1 where false
begin;
select 1 where false;
set transaction isolation level repeatable read;
rollback;
begin read only;
select 1 where false;
set transaction read write;
rollback;
begin read only;
select 1 where false;
begin read write;
rollback;
\echo values (1)
begin;
values (1);
set transaction isolation level repeatable read;
rollback;
begin read only;
values (1);
set transaction read write;
rollback;
begin read only;
values (1);
begin read write;
rollback;
\echo select id from fq where id = null
begin;
select id from fq where id = null;
set transaction isolation level repeatable read;
rollback;
begin read only;
select id from fq where id = null;
set transaction read write;
rollback;
begin read only;
select id from fq where id = null;
begin read write;
rollback;
\echo show lock_timeout
begin;
show lock_timeout;
set transaction isolation level repeatable read;
rollback;
begin read only;
show lock_timeout;
set transaction read write;
rollback;
begin read only;
show lock_timeout;
begin read write;
rollback;
\echo set work_mem = 1MB
begin;
set work_mem = '1MB';
set transaction isolation level repeatable read;
rollback;
begin read only;
set work_mem = '1MB';
set transaction read write;
rollback;
begin read only;
set work_mem = '1MB';
begin read write;
rollback;
\echo reset work_mem
begin;
reset work_mem;
set transaction isolation level repeatable read;
rollback;
begin read only;
reset work_mem;
set transaction read write;
rollback;
begin read only;
reset work_mem;
begin read write;
rollback;
\echo lock table fq in share mode
begin;
lock table fq in share mode;
set transaction isolation level repeatable read;
rollback;
begin read only;
lock table fq in access share mode;
set transaction read write;
rollback;
begin read only;
lock table fq in access share mode;
begin read write;
rollback;
\echo listen a
begin;
listen a;
set transaction isolation level repeatable read;
rollback;
begin read only;
listen a;
set transaction read write;
rollback;
begin read only;
listen a;
begin read write;
rollback;
\echo unlisten a
begin;
unlisten a;
set transaction isolation level repeatable read;
rollback;
begin read only;
unlisten a;
set transaction read write;
rollback;
begin read only;
unlisten a;
begin read write;
rollback;
\echo set constraints all immediate
begin;
set constraints all immediate;
set transaction isolation level repeatable read;
rollback;
begin read only;
set constraints all immediate;
set transaction read write;
rollback;
begin read only;
set constraints all immediate;
begin read write;
rollback;
\echo set transaction read only
begin;
set transaction read only;
set transaction isolation level repeatable read;
rollback;
begin read only;
set transaction read only;
set transaction read write;
rollback;
begin read only;
set transaction read only;
begin read write;
rollback;
\echo create table z (id int)
begin;
create table z (id int);
set transaction isolation level repeatable read;
rollback;
\echo create temp table zt (a int)
begin;
create temp table zt (a int);
set transaction isolation level repeatable read;
rollback;
\echo truncate fq
begin;
truncate fq;
set transaction isolation level repeatable read;
rollback;
\echo create index zi on fq (v)
begin;
create index zi on fq (v);
set transaction isolation level repeatable read;
rollback;
\echo create view zv as select 1 as a
begin;
create view zv as select 1 as a;
set transaction isolation level repeatable read;
rollback;
\echo comment on table fq is x
begin;
comment on table fq is 'x';
set transaction isolation level repeatable read;
rollback;
\echo grant select on fq to public
begin;
grant select on fq to public;
set transaction isolation level repeatable read;
rollback;
\echo drop table if exists nothere
begin;
drop table if exists nothere;
set transaction isolation level repeatable read;
rollback;
\echo insert into fq values (7, 7)
begin;
insert into fq values (7, 7);
set transaction isolation level repeatable read;
rollback;
\echo notify a
begin;
notify a;
set transaction isolation level repeatable read;
rollback;
begin;
begin isolation level repeatable read, read only;
show transaction_isolation;
show transaction_read_only;
rollback;
drop table fq;
