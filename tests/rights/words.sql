-- Roles whose names are words of the language: in quotes a word is a name, whatever it says, but for "public" and "none".

== roles with such names are made, and are not the session's
create user "current_user"; create user "session_user"; create user "current_role"; create user "user"; create user "all"; create user "default";
select rolname, rolcanlogin, rolsuper from pg_roles where rolname in ('current_user', 'session_user', 'current_role', 'user', 'all', 'default');
create role current_user;
create role current_role;
create role session_user;
create role user;
create role all;
create role public;
create role "public";
create role none;
create role "none";
create role "Public";
drop role "Public";
create group "select";
drop group "select";
create user "current_user";

== the words that stand for roles are refused where a role gets a name
create user a_user;
alter role a_user rename to "current_user";
alter role "current_user" rename to a_user;
alter role a_user rename to current_user;
alter role a_user rename to session_user;
alter role a_user rename to "none";
alter role a_user rename to none;
alter role a_user rename to "public";
alter role a_user rename to public;
alter role current_user rename to a_other;
alter role session_user rename to a_other;
alter role public rename to a_other;
alter role "public" rename to a_other;
alter role "session_user" rename to a_other;
alter role none rename to a_other;

== ALTER ROLE
create user a_user; create user "current_user"; create user "session_user"; create user "current_role"; create user "all";
alter user "current_user" createdb;
alter role "session_user" createdb;
alter role "current_role" connection limit 3;
alter role "all" connection limit 4;
select rolname, rolcreatedb, rolconnlimit from pg_roles where rolname in ('a_user', 'current_user', 'session_user', 'current_role', 'all');
@user a_user
alter role current_user createdb;
alter role "current_user" createdb;
alter role "current_user" password 'x';
alter role current_user password 'x';
alter role session_user password null;
@postgres
alter role "user" createdb;
alter role "none" createdb;
alter role none createdb;
alter role "public" createdb;
alter role public createdb;
alter role all createdb;
alter user "current_user" set work_mem = '1MB';
alter role "all" set work_mem = '2MB';
alter role "session_user" in database $db set work_mem = '3MB';
select rolname, rolconfig from pg_roles where rolname in ('current_user', 'all', 'session_user', 'postgres');
alter role "all" reset "all";
alter role "all" reset all;
alter role "public" set work_mem = '2MB';
alter role "none" set work_mem = '2MB';
alter role "user" set work_mem = '2MB';
select rolname, rolconfig from pg_roles where rolname in ('current_user', 'all', 'session_user', 'postgres');
@cu current_user
select current_user, session_user, current_setting('work_mem');
reset "all";
show "all.x";
set "all" = 1;
@postgres
set role "current_user";
alter role current_user set work_mem = '5MB';
alter role "all" set work_mem = '5MB';
reset role;
select rolname, rolconfig from pg_roles where rolname in ('current_user', 'all', 'session_user', 'postgres');

== SET ROLE, SET SESSION AUTHORIZATION
create user "current_user"; create user "session_user"; create user "default"; create user a_user; grant "current_user" to a_user;
@user a_user
set role "current_user";
select current_user;
set role "session_user";
select current_user;
set role "none";
select current_user;
set role 'current_user';
select current_user;
set role 'none';
set role current_user;
set role session_user;
set role user;
set role default;
set role to "none";
set role = current_user;
set role to default;
select current_user;
@postgres
set session authorization "default";
select current_user, session_user;
set session authorization default;
select current_user, session_user;
set session authorization "session_user";
select current_user, session_user;
set session authorization "current_user";
set session authorization current_user;
set session authorization session_user;
select current_user, session_user;
reset session authorization;
set session authorization "none";
set session authorization "public";
set session authorization 'public';
set local role "default";

== GRANT and REVOKE of privileges
create user "current_user"; create user "session_user"; create user "user"; create user a_user; create table t (a int, b int);
grant select on t to "current_user";
grant insert on t to "session_user", "user";
select relacl from pg_class where relname = 't';
grant update on t to "public";
select relacl from pg_class where relname = 't';
revoke update on t from "public";
revoke select on t from "current_user";
select relacl from pg_class where relname = 't';
grant select on t to current_user;
grant select on t to group "current_user";
grant select on t to group "public";
revoke select on t from group public;
grant select on t to "none";
grant select on t to none;
grant select on t to user;
grant select on t to "all";
grant select on t to all;
grant "all" on t to a_user;
grant "all" (a) on t to a_user;
grant all (a) on t to a_user;
grant "select" on t to a_user;
grant "select" (b) on t to a_user;
select attname, attacl from pg_attribute where attrelid = 't'::regclass and attacl is not null;
grant select on t to a_user granted by "current_user";
grant select on t to a_user granted by "public";
grant select on t to a_user granted by current_user;
select relacl from pg_class where relname = 't';
alter default privileges for role "current_user" grant select on tables to "session_user";
alter default privileges for role "public" grant select on tables to "session_user";
alter default privileges for role "all" grant select on tables to "session_user";
alter default privileges grant select on tables to "all";
alter default privileges grant select on tables to "public";
select defaclrole::regrole::text, defaclacl from pg_default_acl where defaclrole <> 10;
select defaclacl::text like '%=r/postgres%' from pg_default_acl where defaclrole = 10;
alter default privileges revoke select on tables from "public";
select has_table_privilege('current_user', 't', 'select'), has_table_privilege('session_user', 't', 'insert'), has_table_privilege('public', 't', 'insert');
select has_table_privilege('all', 't', 'select');
@cu current_user
select * from t;
select has_table_privilege('t', 'select');

== GRANT and REVOKE of roles
create user "current_user"; create role "session_user"; create role "public_"; create user a_user; create role a_boss; create role "select";
grant "session_user" to "current_user";
grant a_boss to current_user;
grant a_boss to "current_user", a_user;
select r.rolname, m.rolname from pg_auth_members a join pg_roles r on r.oid = a.roleid join pg_roles m on m.oid = a.member where m.rolname !~ '^pg_';
grant current_user to a_user;
grant current_role to a_user;
grant session_user to a_user;
grant user to a_user;
grant "user" to a_user;
grant "public" to a_user;
grant public to a_user;
grant a_boss to public;
grant a_boss to "public";
grant a_boss to "none";
grant a_boss to none;
grant select to a_user;
grant all to a_user;
grant all privileges to a_user;
revoke all from a_user;
grant "all" to a_user;
grant a_boss (x) to a_user;
grant "current_user" (x) to a_user;
revoke a_boss from "current_user";
revoke a_boss from current_user;
revoke a_boss from a_user granted by "current_user";
revoke "session_user" from "current_user";
select r.rolname, m.rolname from pg_auth_members a join pg_roles r on r.oid = a.roleid join pg_roles m on m.oid = a.member where m.rolname !~ '^pg_';
alter group a_boss add user "current_user";
alter group "current_user" add user "session_user";
alter group "current_user" drop user "session_user";
alter group "public" add user "session_user";
alter group a_boss add user "public";
alter group "none" add user a_user;
select r.rolname, m.rolname from pg_auth_members a join pg_roles r on r.oid = a.roleid join pg_roles m on m.oid = a.member where m.rolname !~ '^pg_';
create role a_new role "current_user" in role "session_user" admin a_user;
create role a_newer role "public";
create role a_newer role public;
create role a_newer in role "none";
create role a_newer in role "all";
select r.rolname, m.rolname, a.admin_option from pg_auth_members a join pg_roles r on r.oid = a.roleid join pg_roles m on m.oid = a.member where m.rolname !~ '^pg_';
drop role public_;

== owners
create user "current_user"; create user "session_user"; create user a_user; create table t (a int); create view v as select 1 as a; create sequence q;
create type e as enum ('x'); create type c as (a int); create domain d as int; create schema s; create function f() returns int language sql as 'select 1';
create index on t (a); create materialized view m as select 1 as a;
alter table t owner to "current_user";
alter view v owner to "current_user";
alter materialized view m owner to "session_user";
alter sequence q owner to "current_user";
alter type e owner to "current_user";
alter type c owner to "session_user";
alter domain d owner to "current_user";
alter schema s owner to "session_user";
alter function f() owner to "session_user";
select relname, relowner::regrole from pg_class where relname in ('t', 'v', 'm', 'q') union all select typname, typowner::regrole from pg_type where typname in ('e', 'c', 'd')
union all select nspname, nspowner::regrole from pg_namespace where nspname = 's' union all select proname, proowner::regrole from pg_proc where proname = 'f';
alter type e owner to current_user;
alter domain d owner to session_user;
alter type c owner to current_role;
alter table t owner to current_role;
alter view v owner to session_user;
alter function f() owner to current_user;
alter schema s owner to current_user;
select relname, relowner::regrole from pg_class where relname in ('t', 'v', 'm', 'q') union all select typname, typowner::regrole from pg_type where typname in ('e', 'c', 'd')
union all select nspname, nspowner::regrole from pg_namespace where nspname = 's' union all select proname, proowner::regrole from pg_proc where proname = 'f';
alter table t owner to "public";
alter table t owner to public;
alter table t owner to "none";
alter type e owner to "public";
alter type e owner to "all";
alter type e owner to none;
alter schema s owner to "public";
alter function f() owner to "public";
alter database $db owner to "public";
alter database $db owner to "session_user";
alter database $db owner to session_user;
create schema authorization "current_user";
create schema authorization "public";
create schema authorization public;
create schema authorization "none";
create schema mine authorization current_user;
create schema mine2 authorization "session_user";
select nspname, nspowner::regrole from pg_namespace where nspname in ('current_user', 'mine', 'mine2');

== policies
create user "current_user"; create user "session_user"; create user a_user; create table t (a int, who text); insert into t values (1, 'current_user'), (2, 'a_user');
alter table t enable row level security; grant select on t to "public";
create policy p on t to "current_user" using (a = 1);
create policy q on t to "public" using (a = 2);
create policy bad on t to "none" using (true);
create policy bad on t to none using (true);
create policy bad on t to "all" using (true);
create policy bad on t to all using (true);
create policy r on t to current_user, "session_user" using (false);
select polname, polroles::regrole[]::text from pg_policy where polname <> 'q';
select policyname, roles from pg_policies;
alter policy q on t to "session_user";
alter policy q on t to "public", a_user;
select policyname, roles from pg_policies;
@cu current_user
select * from t;
@user a_user
select * from t;

== DROP ROLE, REASSIGN OWNED and DROP OWNED
create user "current_user"; create user "session_user"; create user a_user; create table t (a int); create table u (a int);
alter table t owner to "current_user"; alter table u owner to a_user; grant select on u to "public";
drop role current_user;
drop role session_user;
drop role if exists current_role;
drop role public;
drop role "public";
drop role if exists "public";
drop role none;
drop role "none";
drop role "current_user";
reassign owned by "current_user" to "session_user";
select relname, relowner::regrole from pg_class where relname in ('t', 'u');
reassign owned by "public" to a_user;
reassign owned by public to a_user;
reassign owned by "session_user" to "public";
reassign owned by "session_user" to "none";
drop owned by "public";
drop owned by public;
drop owned by "none";
select relname, relacl from pg_class where relname in ('t', 'u');
drop owned by "session_user";
select relname, relowner::regrole from pg_class where relname in ('t', 'u');
drop role "current_user", "session_user";
drop role if exists "current_user", "session_user", a_user;
drop owned by a_user;
drop role a_user;

== expressions and comments
create user "current_user"; create table t ("current_user" text, "user" int); insert into t values ('column', 1);
select "current_user", current_user, "user", user from t;
select "session_user" from t;
comment on role "current_user" is 'a role';
comment on role current_user is 'a role';
comment on role "public" is 'a role';
comment on role "none" is 'a role';
select rolname, shobj_description(oid, 'pg_authid') from pg_roles where rolname = 'current_user';
select pg_has_role('current_user', 'current_user', 'member'), 'current_user'::regrole::text, '"current_user"'::regrole::text, quote_ident('current_user');
