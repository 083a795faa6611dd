-- What runs with the rights of another role: REFRESH, ANALYZE, defaults, conditions. It leaves nothing behind in the session.

== what a materialized view's query sets ends with the REFRESH
create user a_mallory; grant create on schema public to a_mallory; create schema a_evil; create table secret (a int); insert into secret values (42); create sequence hidden;
@mallory a_mallory
create materialized view m1 as select set_config('search_path', 'a_evil', false) as a with no data;
create materialized view m2 as select set_config('role', 'a_mallory', false) as a with no data;
create materialized view m3 as select set_config('session_authorization', 'a_mallory', false) as a with no data;
create materialized view m4 as select set_config('a.kept', 'evil', false) as a with no data;
create materialized view m5 as select set_config('row_security', 'off', false) as a with no data;
create materialized view m6 as select set_config('statement_timeout', '1', true) as a with no data;
create materialized view m7 as select set_config('role', 'postgres', false) as a with no data;
create materialized view m8 as select current_user::text as a, session_user::text as b with no data;
create materialized view m9 as select nextval('hidden') as a with no data;
create materialized view m10 as select ('hid' || 'den')::regclass::oid is null as a, setval(('hid' || 'den')::regclass, 5) as b with no data;
create materialized view m11 as select a from secret with no data;
create materialized view m12 as select count(*) from pg_stat_activity where pid <> pg_backend_pid() and query <> '<insufficient privilege>' and usename = 'postgres' with no data;
create materialized view m13 as select set_config('log_statement', 'all', false) as a with no data;
create materialized view m14 as select has_table_privilege('secret', 'select') as a, has_table_privilege('postgres', 'secret', 'select') as b with no data;
grant select on m8, m12, m14 to public;
@postgres
set search_path = public;
refresh materialized view m1;
show search_path;
refresh materialized view m2;
select current_user;
refresh materialized view m3;
select session_user;
refresh materialized view m4;
select coalesce(current_setting('a.kept', true), '');
refresh materialized view m5;
show row_security;
refresh materialized view m6;
show statement_timeout;
refresh materialized view m7;
refresh materialized view m8;
select * from m8;
refresh materialized view m9;
refresh materialized view m10;
refresh materialized view m11;
refresh materialized view m12;
select * from m12;
refresh materialized view m13;
refresh materialized view m14;
select * from m14;
begin;
refresh materialized view m1;
show search_path;
rollback;
show search_path;
select last_value from hidden;
select current_user, session_user;

== ANALYZE, VACUUM, CLUSTER, REINDEX of what belongs to others
create user a_user; create table t (id int primary key, n int); insert into t select i, i from generate_series(1, 100) i; create table closed (a int); insert into closed values (1);
@user a_user
analyze t;
vacuum t;
vacuum full t;
vacuum analyze t;
cluster t using t_pkey;
reindex table t;
reindex index t_pkey;
reindex (verbose) table t;
reindex table concurrently t;
@postgres
select relname, last_analyze is null from pg_stat_user_tables where relname in ('t', 'closed') order by 1;
@user
cluster;
checkpoint;
truncate pg_class;
lock table pg_class;
insert into pg_class (relname) values ('x');
update pg_class set relname = 'x';
delete from pg_class;
create index on pg_class (relname);

== a role that logs in for others: SET ROLE does not show it what the login runs for others
create user a_pool noinherit; create user a_one; create user a_two; grant a_one, a_two to a_pool; create table t (one_secret int); grant select on t to a_one;
@pool a_pool
set role a_one;
select one_secret as remarkable_name from t;
set role a_two;
select count(*) from pg_stat_activity where query like '%remarkable_name%' and pid <> pg_backend_pid();
select usename from pg_stat_activity where pid = pg_backend_pid();
@two a_two
select count(*) from pg_stat_activity where query like '%remarkable_name%' and pid <> pg_backend_pid();
select usename, query from pg_stat_activity where usename = 'a_pool';
select pg_cancel_backend(pid) from pg_stat_activity where usename = 'a_pool';
@one a_one
select query from pg_stat_activity where usename = 'a_pool';
@pool
set role a_two;
@two
select pg_terminate_backend(pid) from pg_stat_activity where usename = 'a_pool';

== a superuser that works as another role can't be stopped by that role
create user a_user; create user a_super superuser;
@super a_super
set role a_user;
@user a_user
select pg_cancel_backend(pid) from pg_stat_activity where usename = 'a_super';
select pg_terminate_backend(pid) from pg_stat_activity where usename = 'a_super';
@super
reset role;
set session authorization a_user;
@user
select pg_terminate_backend(pid) from pg_stat_activity where usename = 'a_super';
@super
select current_user;

== the name of an application is a line
create user a_user;
@user a_user
select length(set_config('application_name', repeat('x', 100), false));
set application_name = 'ärger
line'; show application_name;
select application_name from pg_stat_activity where pid = pg_backend_pid();
select length(set_config('application_name', repeat('ä', 100), false));
begin; set application_name = 'inside'; rollback;
select application_name from pg_stat_activity where pid = pg_backend_pid();
