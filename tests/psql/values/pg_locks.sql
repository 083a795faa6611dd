-- What one session's pg_locks shows after a statement. Locks on objects that are no relations are left out.
\set QUIET on
create schema lk;
set search_path = lk;
set client_min_messages = warning;
create table p (id int primary key, u int unique, g int, v int not null default 0);
insert into p (id, u, g) values (1, 10, 1), (2, 20, 0);
create table c (id int primary key, pid int references p on delete cascade, u int, v int not null default 0);
insert into c values (1, 1, 10, 0);
create index c_pid on c (pid);
create index p_g on p (g);
create sequence sq;
create view vw as select id, v from p where v < 50;
create table nk (a int, b int);
\set held 'select string_agg(what, \'; \' order by what) from (select locktype || coalesce(\' \' || relname, \'\') || \' \' || mode as what from pg_locks l left join pg_class k on k.oid = l.relation where pid = pg_backend_pid() and locktype in (\'relation\', \'transactionid\', \'tuple\', \'advisory\') and (l.relation is null or k.relnamespace = \'lk\'::regnamespace)) s;'
\echo select count(*) from p
begin;
select count(*) from p;
:held
rollback;
\echo select count(*) from vw
begin;
select count(*) from vw;
:held
rollback;
\echo select * from p for update
begin;
select * from p for update;
:held
rollback;
\echo select * from p where id = 99 for update
begin;
select * from p where id = 99 for update;
:held
rollback;
\echo select p.id from p join c on c.pid = p.id for update of p
begin;
select p.id from p join c on c.pid = p.id for update of p;
:held
rollback;
\echo update p set v = 1 where id = 99
begin;
update p set v = 1 where id = 99;
:held
rollback;
\echo update p set v = 3 where id = 1
begin;
update p set v = 3 where id = 1;
:held
rollback;
\echo update vw set v = 1
begin;
update vw set v = 1;
:held
rollback;
\echo delete from p where id = 2
begin;
delete from p where id = 2;
:held
rollback;
\echo update c set pid = 2 where id = 1
begin;
update c set pid = 2 where id = 1;
:held
rollback;
\echo insert into c values (9, null, 1, 1)
begin;
insert into c values (9, null, 1, 1);
:held
rollback;
\echo insert into c values (9, 1, 1, 1)
begin;
insert into c values (9, 1, 1, 1);
:held
rollback;
\echo insert into p select * from p where false
begin;
insert into p select * from p where false;
:held
rollback;
\echo insert into p (id) values (1) on conflict (id) do update set v = 3
begin;
insert into p (id) values (1) on conflict (id) do update set v = 3;
:held
rollback;
\echo savepoint a; update p set v = 1; savepoint b; update p set v = 2
begin;
savepoint a; update p set v = 1; savepoint b; update p set v = 2;
:held
rollback;
\echo select pg_advisory_xact_lock(1)
begin;
select pg_advisory_xact_lock(1);
:held
rollback;
\echo lock table p in share mode
begin;
lock table p in share mode;
:held
rollback;
\echo lock table vw in share mode
begin;
lock table vw in share mode;
:held
rollback;
\echo explain select 1 from p where false
begin;
\o /dev/null
explain select 1 from p where false;
\o
:held
rollback;
\echo create index i1 on p (g)
begin;
create index i1 on p (g);
:held
rollback;
\echo create unique index i1 on p (u)
begin;
create unique index i1 on p (u);
:held
rollback;
\echo drop index p_g
begin;
drop index p_g;
:held
rollback;
\echo reindex table p
begin;
reindex table p;
:held
rollback;
\echo reindex index p_g
begin;
reindex index p_g;
:held
rollback;
\echo analyze p
begin;
analyze p;
:held
rollback;
\echo truncate c
begin;
truncate c;
:held
rollback;
\echo truncate p cascade
begin;
truncate p cascade;
:held
rollback;
\echo create table z (id int)
begin;
create table z (id int);
:held
rollback;
\echo create table z (like p)
begin;
create table z (like p);
:held
rollback;
\echo create view v2 as select id from p
begin;
create view v2 as select id from p;
:held
rollback;
\echo create sequence s2
begin;
create sequence s2;
:held
rollback;
\echo select last_value from sq
begin;
select last_value from sq;
:held
rollback;
\echo alter sequence sq restart
begin;
alter sequence sq restart;
:held
rollback;
\echo alter table p add constraint k1 unique (g)
begin;
alter table p add constraint k1 unique (g);
:held
rollback;
\echo alter table nk add primary key (a)
begin;
alter table nk add primary key (a);
:held
rollback;
\echo alter table nk add unique (a)
begin;
alter table nk add unique (a);
:held
rollback;
\echo alter table p add column x int
begin;
alter table p add column x int;
:held
rollback;
\echo alter table p drop column g
begin;
alter table p drop column g;
:held
rollback;
\echo alter table p drop constraint p_u_key
begin;
alter table p drop constraint p_u_key;
:held
rollback;
\echo alter table p rename column g to y
begin;
alter table p rename column g to y;
:held
rollback;
\echo alter table p rename to y
begin;
alter table p rename to y;
:held
rollback;
\echo alter table p alter column g set default 3
begin;
alter table p alter column g set default 3;
:held
rollback;
\echo alter table p alter column g type bigint
begin;
alter table p alter column g type bigint;
:held
rollback;
\echo alter table c drop constraint c_pid_fkey
begin;
alter table c drop constraint c_pid_fkey;
:held
rollback;
\echo alter table c validate constraint c_pid_fkey
begin;
alter table c validate constraint c_pid_fkey;
:held
rollback;
\echo alter table p set (fillfactor = 50)
begin;
alter table p set (fillfactor = 50);
:held
rollback;
\echo alter index p_g rename to zz
begin;
alter index p_g rename to zz;
:held
rollback;
\echo alter table p owner to current_user
begin;
alter table p owner to current_user;
:held
rollback;
\echo comment on table p is x
begin;
comment on table p is 'x';
:held
rollback;
\echo grant select on p to public
begin;
grant select on p to public;
:held
rollback;
\echo drop view vw
begin;
drop view vw;
:held
rollback;
\echo drop sequence sq
begin;
drop sequence sq;
:held
rollback;
\echo drop table c
begin;
drop table c;
:held
rollback;
\echo drop table p cascade
begin;
drop table p cascade;
:held
rollback;
drop schema lk cascade;
