-- Definitions: what they may name, who owns what they make, what others' definitions they change.

== a sequence belongs to a column of a table of the same owner and schema
create user a_user; create user a_victim; grant create on schema public to a_user, a_victim; create schema a_s; grant all on schema a_s to a_user, a_victim;
@victim a_victim
create table v (id int primary key, secret text); create view w as select 1 as one; create table a_s.vs (id int);
@user a_user
create sequence q1 owned by v.id;
create sequence q1 owned by v.nothing;
create sequence q1;
alter sequence q1 owned by v.id;
alter sequence q1 owned by w.one;
create table t (id int, n int);
create sequence a_s.q2 owned by t.id;
create sequence q3 owned by t.id;
create sequence q4 owned by w.one;
create sequence q5 owned by t_missing.id;
alter sequence q3 owned by none;
create temporary sequence q6 owned by t.id;
create sequence q7 owned by t.n;
alter sequence q7 owned by a_s.vs.id;
@victim
select pg_get_serial_sequence('v', 'id');
truncate v restart identity;
begin; lock table v; commit;
drop table v;
@user
select relname from pg_class where relkind = 'S' order by 1;
alter table t drop column n;
select relname from pg_class where relkind = 'S' order by 1;

== types: what they are made of, and in which schema they are
create user a_user; create user a_owner; grant create on schema public to a_user, a_owner; create schema a_closed; create type a_closed.mood as enum ('x'); create type a_closed.pair as (a int, b text);
create type tint as enum ('red'); revoke usage on type tint from public; create domain dom as int; revoke usage on domain dom from public;
@user a_user
select 'x'::a_closed.mood;
select null::a_closed.pair;
create table t (m a_closed.mood);
create type c1 as (m tint);
create type c1 as (a int);
alter type c1 add attribute m tint;
alter type c1 add attribute d dom;
alter type c1 alter attribute a type tint;
alter type c1 add attribute l tint[];
create domain d1 as tint;
create domain d1 as dom;
create table t (m tint);
create table t (a int);
alter table t add m tint;
alter table t alter a type tint using null;
alter type tint add value 'blue';
alter type tint rename to mine;
alter type tint rename value 'red' to 'x';
alter type a_closed.pair add attribute c int;
drop type tint;
drop domain dom;
alter type tint owner to a_user;
alter type tint set schema public;
@owner a_owner
create type own as (a int); create domain owned as int;
@user
alter type own add attribute b int;
alter type own rename attribute a to b;
alter type own drop attribute a;
drop type own;
alter domain owned set default 5;
alter domain owned add check (value > 0);
alter domain owned drop constraint x;
alter domain owned rename to x;
alter domain owned set not null;
create table uses (o own, d owned);
@owner
drop type own;

== SELECT INTO, CREATE TABLE AS, views: need what CREATE TABLE and the query need
create user a_user; create user a_maker; grant create on schema public to a_maker; create schema a_s; create table t (a int, b int); grant select (a) on t to a_user, a_maker;
@user a_user
select a into x from t;
select a into temp x from t;
select b into temp y from t;
select a into a_s.x from t;
create table x as select a from t;
create temporary table z as select b from t;
create view w as select a from t;
create temporary view w as select a from t;
create temporary view wb as select b from t;
select * from wb;
create temporary materialized view mm as select 1;
@maker a_maker
select a into x from t;
select b into y from t;
create view w as select b from t;
select * from w;
create materialized view m as select b from t;
create materialized view m as select a from t;
grant select on w, m to a_user;
@user
select * from w;
select * from m;
alter view w rename to w2;
alter view w rename column b to c;
alter table w rename to w2;
alter table w rename column b to c;
alter materialized view m rename to m2;
alter index m rename to m2;
drop table m;
drop view m;
drop materialized view m;
refresh materialized view m;
@postgres
alter table t rename column a to z;
alter table t drop column b cascade;
@maker
select * from x;
refresh materialized view m;
@postgres
alter table t add column b int default 7;
@user
select b from t;
select z from t;

== the owner of a schema that somebody makes for another, and its first rights
create user a_boss createdb; create user a_other; create user a_third; grant a_other to a_boss; grant create on database $db to a_boss; alter default privileges for role a_other grant usage on schemas to a_third;
alter default privileges for role a_boss grant create on schemas to a_third;
@boss a_boss
create schema a_mine;
create schema a_his authorization a_other;
create schema a_not authorization a_third;
create schema authorization a_other;
select nspname, nspowner::regrole, nspacl from pg_namespace where nspname like 'a\_%' order by 1;
create schema information_schema;
create schema pg_catalog;
create schema pg_toast;
create schema pg_temp_1;
alter schema a_mine owner to a_third;
alter schema a_mine owner to a_other;
alter schema a_mine rename to pg_mine;
drop schema public;
-- The system's schemas are no objects of the catalog here.
-- here: 3F000
drop schema information_schema cascade;
alter schema public rename to x;
alter schema public owner to a_boss;
grant create on schema public to a_third;
comment on schema public is 'x';
comment on database $db is 'x';
alter database $db owner to a_boss;
alter database $db rename to x;
alter database $db set search_path = 'a_evil';
alter database $db connection limit 1;
drop database $db;
create database a_scenario_x owner a_third;

== foreign keys over rows that may not be read
create user a_user; grant create on schema public to a_user; create table parent (id int primary key, who name); insert into parent values (1, 'a_user'), (2, 'x'); grant references on parent to a_user;
@user a_user
create table child (id int primary key, p int); insert into child values (1, 1), (2, 2);
alter table child add foreign key (p) references parent;
insert into child values (3, 2);
insert into child values (4, 3);
alter table child drop constraint child_p_fkey;
insert into child values (5, 77);
alter table child add foreign key (p) references parent;
alter table child add foreign key (p) references parent not valid;
alter table child validate constraint child_p_fkey;
delete from child where p = 77;
alter table child validate constraint child_p_fkey;
alter table child drop constraint child_p_fkey;
@postgres
grant select on parent to a_user; alter table parent enable row level security; create policy p on parent using (who = current_user);
@user
select * from parent;
alter table child add foreign key (p) references parent;
alter table child drop constraint child_p_fkey;
alter table child enable row level security; alter table child force row level security; create policy p on child using (id < 2);
@postgres
insert into child values (9, 999);
@user
alter table child add foreign key (p) references parent;
alter table child no force row level security;
alter table child add foreign key (p) references parent;

== rules, constraints, clustering, statistics of others' tables
create user a_user; create table t (id int primary key, n int check (n > 0)); create view v as select * from t; create index i on t (n); create sequence q; create materialized view m as select 1 as a;
@user a_user
create rule r as on insert to t do instead nothing;
create rule r as on insert to v do instead nothing;
alter table t rename constraint t_pkey to x;
alter table t validate constraint t_n_check;
alter table t cluster on t_pkey;
alter table t set without cluster;
alter table t alter n set statistics 5;
alter table t alter n set storage plain;
alter table t replica identity full;
alter table t alter id add generated always as identity;
alter table t alter constraint x deferrable;
alter table t no force row level security;
alter index i set (fillfactor = 50);
alter index i rename to j;
alter table i rename to j;
alter sequence q increment 5;
alter sequence q restart;
alter sequence q rename to p;
alter sequence q set schema public;
alter sequence q owned by none;
alter table q owner to a_user;
alter table m rename to n;
alter materialized view m rename column a to b;
alter materialized view m set (fillfactor = 50);
alter view v set (security_barrier);
alter view v alter n set default 5;
alter view v alter n drop default;
drop rule "_RETURN" on v;
drop index i;
drop index concurrently i;
drop sequence q cascade;
notify a, 'b';
select pg_reload_conf();
select pg_create_restore_point('x');
select pg_stat_reset();
select * from pg_hba_file_rules();
select * from pg_show_all_file_settings();
select * from pg_ls_tmpdir();
alter system set work_mem = '1MB';
alter system reset all;
set log_statement = 'all';
set session_preload_libraries = 'x';
set zero_damaged_pages = on;
reset log_statement;
reset all;
alter role a_user set log_statement = 'all';
alter role a_user set role = 'postgres';
alter role a_user set search_path = 'x';
alter role all set search_path = 'x';
alter role current_user in database $db set work_mem = '1MB';

== default privileges in a schema go with the schema
create user a_user; create user a_other; create schema a_s authorization a_user; alter default privileges for role a_user in schema a_s grant select on tables to a_other;
select count(*) from pg_default_acl where defaclrole = 'a_user'::regrole;
drop role a_other;
drop schema a_s;
select count(*) from pg_default_acl where defaclrole = 'a_user'::regrole;
drop role a_other;
drop role a_user;
