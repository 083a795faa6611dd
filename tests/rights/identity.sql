-- Who a session is: SET ROLE, SET SESSION AUTHORIZATION, transactions, savepoints, plans and cursors across them.

== SET ROLE and its ends
create user a_boss; create user a_user login; grant a_boss to a_user; create table t (a int); insert into t values (1); grant select on t to a_boss;
alter role a_user noinherit;
@user a_user
select current_user, session_user;
select * from t;
set role a_boss;
select current_user, session_user, current_setting('role');
select * from t;
begin;
reset role;
select * from t;
rollback;
select current_user;
begin;
savepoint s;
set role none;
select current_user;
rollback to s;
select current_user;
set local role none;
select current_user;
commit;
select current_user;
begin;
set local role none;
savepoint a;
set role a_boss;
release a;
select current_user;
rollback;
select current_user;
reset all;
select current_user;
discard all;
select current_user;
set role postgres;
set role 'a_boss';
set session authorization postgres;
set session authorization a_user;
select current_user, session_user;
set session authorization default;
select set_config('role', 'postgres', false);
select set_config('session_authorization', 'postgres', false);
set session characteristics as transaction read only;
set role to default;
set role to none;
select current_user;

== SET SESSION AUTHORIZATION, and what the login may still do
create user a_user; create user a_super superuser; create user a_third; create table t (a int); grant select on t to a_user;
@super a_super
set session authorization a_user;
select current_user, session_user;
select * from t;
insert into t values (1);
set role a_third;
create user a_x;
set session authorization a_third;
select session_user;
set session authorization a_super;
select session_user;
begin;
set local session authorization a_user;
select session_user;
commit;
select session_user;
begin;
set session authorization a_user;
rollback;
select session_user;
set session authorization a_user;
@postgres
alter role a_super nosuperuser;
@super
select current_user;
-- PostgreSQL goes by what the login was when it came; here it is no superuser any more.
-- here: 42501
set session authorization a_third;
reset session authorization;
select session_user, current_user;
create user a_x;
select is_superuser from (select current_setting('is_superuser') is_superuser) q;

== plans and cursors hold the rights of whoever runs them
create user a_one; create user a_two; create table t (id int primary key, a int); insert into t values (1, 1), (2, 2), (3, 3);
grant select on t to a_one; create user a_user in role a_one, a_two noinherit;
@user a_user
set role a_one;
prepare p as select * from t where id = $1;
execute p (1);
set role a_two;
execute p (1);
reset role;
execute p (1);
set role a_one;
execute p (1);
begin;
declare c cursor for select * from t;
fetch 1 from c;
set local role a_two;
fetch 1 from c;
reset role;
fetch 1 from c;
close c;
commit;
set role a_one;
begin;
declare h cursor with hold for select id from t;
fetch 1 from h;
commit;
reset role;
fetch 1 from h;
close h;
@postgres
revoke select on t from a_one;
@user
set role a_one;
execute p (1);
@postgres
grant select on t to a_one;
@user
execute p (1);
begin;
declare c cursor for select id from t;
fetch 1 from c;
@postgres
revoke select on t from a_one;
@user
fetch 1 from c;
select * from t;
rollback;

== a role is dropped, renamed, made anew while its session lives
create user a_user login; create user a_boss; create table t (a int); insert into t values (1); grant select on t to a_boss; grant a_boss to a_user;
@user a_user
select * from t;
@postgres
alter role a_user rename to a_other;
@user
select * from t;
select session_user;
@postgres
drop role a_other; create user a_other; grant select on t to a_other;
@user
select * from t;
-- A role that is gone has no rights, PostgreSQL finds that it is gone.
-- here: 42501
create temporary table x (a int);
set role a_boss;
set session authorization a_other;
@postgres
create user a_user superuser;
@user
select * from t;
create user a_hacked;

== the grants of a dropped role do not come back
create user a_user; create table t (a int); grant all on t to a_user;
drop role a_user;
revoke all on t from a_user; drop role a_user;
create user a_user;
@user a_user
select * from t;
@postgres
grant a_user to postgres; drop role a_user; create user a_user; select pg_has_role('postgres', 'a_user', 'member');
create user a_g; grant a_g to a_user; drop role a_g; create user a_g;
select count(*) from pg_auth_members where member = 'a_user'::regrole;
create user a_owner; create schema a_s authorization a_owner; alter default privileges for role a_owner grant select on tables to a_user;
drop role a_user;
drop role a_owner;
drop owned by a_owner; drop role a_owner; drop role a_user;
create policy p on t to a_g;
drop role a_g;
drop owned by a_g; drop role a_g;

== membership: circles, ADMIN OPTION, who may grant
create user a_a; create user a_b; create user a_c; create user a_admin; create user a_creator createrole;
grant a_a to a_b; grant a_b to a_c;
grant a_c to a_a;
grant a_a to a_a;
grant a_a to a_admin with admin option;
@b a_b
grant a_a to a_admin;
grant a_b to a_a;
grant a_b to a_admin;
revoke a_a from a_admin;
@admin a_admin
grant a_a to a_creator;
grant a_a to a_c with admin option;
revoke admin option for a_a from a_c;
revoke a_a from a_c;
revoke a_b from a_c;
grant postgres to a_admin;
alter role a_a rename to a_q;
drop role a_a;
@creator a_creator
grant a_b to a_admin;
grant postgres to a_creator;
grant pg_read_all_data to a_creator;
grant pg_execute_server_program to a_creator;
create user a_new superuser;
create user a_new createdb;
create user a_new in role a_b;
alter role a_new createrole;
alter role a_creator superuser;
alter role postgres password 'x';
alter role postgres rename to q;
drop role postgres;
create user a_new2 admin a_creator;
create user a_new3 role a_creator;
create user a_new4 in role postgres;
create user a_new5 bypassrls;
create user a_new6 replication;
create role pg_mine;
create role public;
create role none;
drop role a_new;
alter role a_admin nologin;
alter role a_admin connection limit 0;
alter role a_admin valid until '2000-01-01';
comment on role a_admin is 'x';
comment on role postgres is 'x';
reassign owned by a_b to a_creator;
drop owned by a_b;
drop owned by postgres;
reassign owned by postgres to a_creator;
@a a_a
alter role a_a password 'x';
alter role a_a login;
alter role a_a createdb;
alter role a_a rename to b;
alter role a_b password 'x';
alter role a_a set work_mem = '1MB';
alter user a_a with superuser;
alter role current_user valid until 'infinity';

== the empty password is none, also in the form of a verifier
create user a_user password '';
select rolpassword is null from pg_authid where rolname = 'a_user';
alter user a_user password 'SCRAM-SHA-256$4096:hpFyHTUsSWcR7O9P$LgZFIt6Oqdo27ZFKbZ2nV+vtnYM995pDh9ca6WSi120=:qVV5NeluNfUPkwm7Vqat25RjSPLkGeoZBQs6wVv+um4=';
select rolpassword is null from pg_authid where rolname = 'a_user';
alter user a_user password 'x';
select rolpassword like 'SCRAM-SHA-256$4096:%' from pg_authid where rolname = 'a_user';
alter user a_user password null;
select rolpassword is null from pg_authid where rolname = 'a_user';
comment on role a_user is 'x';
set role a_user;
comment on role a_user is 'x';
