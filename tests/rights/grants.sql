-- GRANT and REVOKE: chains, default privileges, columns, what of an object they cover.

== chains of GRANT OPTION
create user a_a; create user a_b; create user a_c; create table t (id int, x int, y int);
grant select on t to a_a with grant option;
@a a_a
grant select on t to a_b with grant option;
grant insert on t to a_b;
grant all on t to a_b;
grant select (x) on t to a_c;
grant select on t to a_a;
@b a_b
grant select on t to a_c;
grant select on t to a_a;
revoke select on t from a_a;
@postgres
select relacl from pg_class where relname = 't';
revoke grant option for select on t from a_a;
revoke select on t from a_a;
revoke grant option for select on t from a_a cascade;
select relacl from pg_class where relname = 't';
grant select on t to a_a with grant option;
@a
grant select on t to a_b with grant option;
@b
grant select on t to a_c;
@postgres
revoke select on t from a_a cascade;
select relacl from pg_class where relname = 't';
select has_table_privilege('a_c', 't', 'select');
alter table t owner to a_a;
@a
revoke all on t from a_a;
select * from t;
grant select on t to a_b;
grant select on t to a_a;
select * from t;
@postgres
grant select on t to a_c granted by a_a;
grant select on t to a_c granted by current_user;
grant insert on t to public;
grant select on t to a_b granted by a_b;
grant select on t to public with grant option;
select relacl from pg_class where relname = 't';

== columns
create user a_user; create table t (id int primary key, x int, secret text); insert into t values (1, 1, 's');
grant select (id, x), insert (id, x), update (x) on t to a_user;
@user a_user
select t from t;
select t.* from t;
select (t).x from t;
select row_to_json(t) from t;
select to_jsonb(t) from t;
select count(t) from t;
select q.x from t as q (id, x, secret);
select q.secret from t as q (id, x, secret);
select * from t natural join (values (1)) v (id);
select x from t natural join (values ('s')) v (secret);
select x from t join (values (1)) v (id) using (id);
select x from t group by x having max(secret) is not null;
select x from t order by secret;
select x from t where secret = 's';
select x, row_number() over (order by secret) from t;
select distinct on (secret) x from t;
select x from t limit (select length(secret) from t);
insert into t (id, x) values (2, 2) returning secret;
insert into t (id, x) values (2, 2) returning *;
insert into t (id, x) values (2, 2) returning id, x;
insert into t (id, x) values (2, 2) on conflict (id) do update set x = length(t.secret);
insert into t (id, x) values (2, 2) on conflict (id) do update set x = excluded.x;
insert into t (id, x) values (2, 2) on conflict (id) do update set x = 3 where t.secret = 's';
insert into t (id, x) values (2, 2) on conflict (id) do update set id = 9;
insert into t (id, x) values (2, 2) on conflict do nothing;
insert into t values (5, 5);
insert into t values (5, 5, 'x');
insert into t default values;
insert into t (id, secret) select id, 'x' from t;
update t set x = length(secret);
update t set x = 1 where secret = 's';
update t set x = 1 from t u where u.id = t.id and u.secret = 's';
update t set x = 1 returning secret;
update t set secret = default;
delete from t;
copy t to stdout;
copy t (id, x) to stdout;
copy t (secret) to stdout;
create temporary table y as select * from t;
create temporary table y (like t);
create view pg_temp.vv as select secret from t;
select * from pg_temp.vv;
select attname from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum;
select has_column_privilege('t', 'secret', 'select'), has_column_privilege('t', 'x', 'update'), has_any_column_privilege('t', 'insert'), has_table_privilege('t', 'select');
@postgres
revoke select on t from a_user;
@user
select x from t;
select 1 from t;
@postgres
grant select on t to a_user; revoke select (secret) on t from a_user;
@user
select secret from t;
@postgres
revoke select on t from a_user; grant select (x) on t to a_user;
alter table t rename x to z;
@user
select z from t;
@postgres
alter table t drop z; alter table t add z int;
@user
select z from t;
select 1 from t;
@postgres
grant select (id) on t to a_user with grant option;
@user
grant select (id) on t to public;
grant select (secret) on t to public;
grant select on t to public;
select count(*) from t;
select 1 from t;

== sequences: through defaults, serial and identity
create user a_user; create table s (id serial, a int); create table i (id int generated always as identity, a int); create sequence q; create table d (id int default nextval('q'), a int);
grant insert, select on s, i, d to a_user;
@user a_user
insert into s (a) values (1);
insert into i (a) values (1);
insert into d (a) values (1);
insert into s values (7, 1);
select nextval('s_id_seq');
select nextval('i_id_seq');
select currval('i_id_seq');
select lastval();
select last_value from i_id_seq;
select * from q;
select setval('i_id_seq', 100);
select pg_sequence_last_value('q'::regclass);
select last_value from pg_sequences where sequencename = 'q';
select has_sequence_privilege('q', 'usage'), has_sequence_privilege('s_id_seq', 'usage');
select has_sequence_privilege('s', 'usage');
select has_sequence_privilege('s', 'select');
select has_sequence_privilege('a_user', 's', 'select');
select has_sequence_privilege('s'::regclass, 'select');
select has_sequence_privilege('nothing', 'select');
select has_table_privilege('q', 'select');
@postgres
grant usage on sequence q to a_user;
@user
insert into d (a) values (1);
select nextval('q');
select currval('q');
select setval('q', 5);
select last_value from q;
@postgres
revoke usage on sequence q from a_user; grant select on sequence q to a_user;
@user
select nextval('q');
select currval('q');
select last_value from q;
@postgres
revoke select on sequence q from a_user; grant update on sequence q to a_user;
@user
select nextval('q');
select setval('q', 5);
select currval('q');
alter sequence q restart;
drop sequence q;
alter sequence q owned by s.id;
@postgres
grant all on table s to a_user;
@user
insert into s (a) values (1);
truncate s restart identity;
truncate s;

== default privileges
create user a_owner; create user a_user; create user a_other; grant create on schema public to a_owner, a_other;
alter default privileges for role a_owner grant select on tables to a_user;
alter default privileges for role a_owner in schema public grant insert on tables to a_user;
alter default privileges for role a_owner grant usage on sequences to a_user;
alter default privileges for role a_owner grant usage on schemas to a_user;
@owner a_owner
create table t (a serial); create view v as select 1 as x; create materialized view m as select 1 as x; create temporary table tt (a int);
create table ta as select 1 as a;
@other a_other
create table o (a int);
@user a_user
select * from t;
insert into t default values;
select * from v;
select * from m;
select * from o;
select * from ta;
delete from t;
alter default privileges for role a_owner grant all on tables to a_user;
alter default privileges for role a_user grant all on tables to public;
alter default privileges in schema public grant all on tables to public;
alter default privileges grant all on databases to public;
@owner
alter default privileges revoke select on tables from a_user;
create table t2 (a int);
@user
select * from t2;
insert into t2 values (1);
@postgres
select defaclrole::regrole, defaclnamespace = 0, defaclobjtype from pg_default_acl order by 1, 2, 3;

== databases, schemas, types, languages, settings
create user a_user; create user a_owner; create type e as enum ('a'); create domain d as int;
@user a_user
create database a_scenario_x;
alter database $db rename to a_scenario_y;
drop database $db;
create schema x;
grant usage on schema public to a_owner;
grant create on database $db to a_user;
comment on database $db is 'x';
comment on schema public is 'x';
drop type e;
alter type e add value 'b';
alter type e rename to f;
alter domain d set not null;
set log_min_duration_statement = 0;
set log_statement = 'all';
select set_config('log_statement', 'all', true);
alter system set work_mem = '1MB';
alter system reset all;
select pg_reload_conf();
checkpoint;
select count(*) from pg_hba_file_rules;
select count(*) from pg_file_settings;
select sourcefile from pg_settings where sourcefile is not null;
select rolpassword from pg_authid;
select passwd from pg_shadow;
select passwd from pg_user where usename = 'a_user';
select rolpassword from pg_roles where rolname = 'a_user';
select count(*) from pg_user_mapping;
select umoptions from pg_user_mappings;
copy pg_class to '/tmp/x';
copy (select 1) to program 'id';
copy (select 1) to '/tmp/a_scenario_copied';
create temporary table z (a text);
copy z from '/etc/passwd';
copy z from program 'id';
select pg_create_restore_point('x');
select pg_stat_reset();
select pg_stat_reset_shared('bgwriter');
insert into pg_class (relname) values ('x');
update pg_authid set rolsuper = true;
delete from pg_class;
truncate pg_class;
lock table pg_class;
lock table pg_authid in access share mode;
lock pg_class in access share mode;
create index on pg_class (relname);
reindex system $db;
reindex database $db;
reindex table pg_class;
cluster;
@postgres
revoke create, temporary on database $db from public; grant create on database $db to a_user;
@user
create schema a_x;
create table pg_temp.zz (a int);
create type te as enum ('x');
alter type e owner to a_user;
alter domain d owner to a_user;
@postgres
create schema a_closed; create type own as enum ('a'); create domain owndom as int check (value > 0);
alter type own owner to a_user; alter domain owndom owner to a_user; alter type e owner to a_owner;
@user
alter type own owner to postgres;
alter domain owndom owner to a_owner;
alter type own set schema a_closed;
alter domain owndom set schema a_closed;
alter type own rename to own2;
drop type e;
drop domain owndom;

== CONNECT
create user a_user; create user a_member; grant a_user to a_member;
revoke connect on database $db from public;
@refused a_user
@postgres
grant connect on database $db to a_user;
@user a_user
select 1;
@member a_member
select 1;
@postgres
alter role a_user nologin;
@nologin a_user
@postgres
alter role a_user login connection limit 1;
@one a_user
@postgres
alter role a_user connection limit 0;
@none a_user
@postgres
alter role a_user connection limit -1; alter database $db connection limit 0;
@nodb a_user
@superdb postgres
