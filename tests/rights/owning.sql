-- Ownership: who may give it away, what goes with it, what statements need it.

== OWNER TO, DROP OWNED, REASSIGN OWNED
create user a_a; create user a_b; create user a_c in role a_b; grant create on schema public to a_a;
@a a_a
create table t (id serial primary key); create view v as select * from t; create sequence q; create type e as enum ('x'); create domain d as int; create materialized view m as select 1 as x; create index i on t (id);
alter table t owner to a_b;
alter table t owner to postgres;
alter view v owner to postgres;
alter sequence q owner to postgres;
alter type e owner to postgres;
alter domain d owner to postgres;
alter materialized view m owner to postgres;
grant a_a to a_c;
@postgres
grant a_b to a_a;
@a
alter table t owner to a_b;
@postgres
grant create on schema public to a_b;
@a
alter table t owner to a_b;
alter sequence t_id_seq owner to a_a;
select relname, relowner::regrole from pg_class where relname in ('t', 't_id_seq', 't_pkey', 'i') order by 1;
drop table t cascade;
@postgres
drop role a_a;
revoke a_b from a_a;
@a
drop owned by a_b;
reassign owned by a_b to a_a;
reassign owned by a_a to a_b;
-- A privilege that somebody else granted is taken away, too, where PostgreSQL only warns.
-- here: DROP OWNED
drop owned by a_a;
@postgres
select relname from pg_class where relname in ('t', 'v', 'q', 'm') order by 1;
create schema a_s authorization a_a; create table a_s.x (a int); create table a_s.y (a int references a_s.x); alter table a_s.x add primary key (a);
drop owned by a_a;
reassign owned by a_a to a_b;
select nspowner::regrole from pg_namespace where nspname = 'a_s';
drop owned by a_b;
drop owned by a_b cascade;
drop role a_a, a_b;
reassign owned by postgres to a_c;
drop owned by postgres;

== statements of owners
create user a_a; create user a_b; grant create on schema public to a_a; create table other (id int primary key);
@a a_a
create table t (id int primary key, n int); create view v as select * from t; insert into t values (1, 1);
@b a_b
comment on table t is 'x';
comment on column t.id is 'x';
comment on view v is 'x';
comment on index t_pkey is 'x';
comment on constraint t_pkey on t is 'x';
create index on t (n);
drop index t_pkey;
alter index t_pkey rename to x;
reindex index t_pkey;
reindex table t;
reindex schema public;
cluster t using t_pkey;
vacuum t;
analyze t;
truncate t;
alter table t enable row level security;
create policy p on t;
alter table t rename to z;
alter table t rename n to z;
alter table t add check (n > 0);
alter table t drop constraint t_pkey;
alter table t set (fillfactor = 50);
alter table t set unlogged;
alter view v alter column n set default 5;
create or replace view v as select 1;
create or replace view v as select * from t;
drop view if exists v;
lock table t in access exclusive mode;
lock table t in access share mode;
alter table if exists t add x int;
create table c (like t);
@postgres
grant select, insert on t to a_b;
@b
lock table t in row exclusive mode;
lock table t in share mode;
lock table t in access share mode;
begin; lock table t in row exclusive mode; commit;
begin; lock table t in access exclusive mode; commit;
begin; lock table t in share update exclusive mode; commit;
create temporary table c (like t including all);
@a
alter table t alter id set default 5;
comment on table t is 'mine';
create policy p on t using (true);
comment on policy p on t is 'mine';
comment on policy nothing on t is 'x';
select obj_description(oid, 'pg_policy') from pg_policy where polname = 'p';
@b
comment on policy p on t is 'x';
select obj_description(oid, 'pg_policy') from pg_policy where polname = 'p';
@a
comment on policy p on t is null;
select obj_description(oid, 'pg_policy') from pg_policy where polname = 'p';
comment on policy p on t is 'again';
drop policy p on t;
select count(*) from pg_description where classoid = 'pg_policy'::regclass;

== NOWAIT and the order of checks: a right is checked before a lock is waited for
create user a_a; create table t (id int primary key);
begin; lock table t in access exclusive mode;
@a a_a
set lock_timeout = 200;
drop table t;
alter table t add x int;
truncate t;
lock table t;
create index on t (id);
grant select on t to public;
reindex table t;
create policy p on t;
alter table t rename to y;
alter table t owner to a_a;
alter table t set schema pg_temp;
-- PostgreSQL waits for the lock first, here the right is judged first.
-- here: 42501
select * from t;
-- here: 42501
insert into t values (1);
-- here: 42501
create temporary table f (x int references t);
-- here: 42501
comment on table t is 'x';
-- here: 42501
copy t from stdin;

== an index is an object of its table's schema
create user a_i; create user a_j; create group a_k; create schema s; create table s.t (a int, b int); alter table s.t owner to a_i; grant usage on schema s to a_i;
create table s.u (a int); create index ui on s.u (a); alter table s.u owner to a_i;
@i a_i
create index on s.t (a);
create unique index concurrently on s.t (b);
alter table s.t add unique (a);
alter table s.t add primary key (b);
alter table s.t add check (a > 0);
reindex table s.u;
create temp table tt (a int); create index on tt (a);
@postgres
grant create on schema s to a_i;
@i
create index on s.t (a);
alter table s.t add primary key (b);
@postgres
alter group a_k add user a_i, a_j;
select pg_has_role('a_i', 'a_k', 'member'), pg_has_role('a_j', 'a_k', 'usage');
alter group a_k drop user a_i;
select pg_has_role('a_i', 'a_k', 'member');
alter group a_k drop user a_i;
alter group a_k add user missing;
alter role a_k add user a_i;
