-- What roles see of each other's sessions, and how they may end them.

== statements, parameters and keys of others
create user a_user; create user a_other; create user a_watcher in role pg_monitor; create user a_stats in role pg_read_all_stats;
create table t (id int primary key, s text); insert into t values (1, 'x'); grant all on t to a_user;
@user a_user
set application_name = 'secret app';
begin;
update t set s = 'hidden value' where id = 1;
@other a_other
select usename, query, state, application_name, client_addr, xact_start is null, wait_event is null from pg_stat_activity where usename = 'a_user';
select pg_cancel_backend(pid) from pg_stat_activity where usename = 'a_user';
select pg_terminate_backend(pid) from pg_stat_activity where usename = 'a_user';
select pg_cancel_backend(pid) from pg_stat_activity where usename = 'postgres' limit 1;
select count(*) from pg_stat_activity where usename = 'a_other' and query like 'select count%';
@watcher a_watcher
select usename, state from pg_stat_activity where usename = 'a_user';
select count(*) from pg_stat_activity where query like 'update t set%';
select pg_cancel_backend(pid) from pg_stat_activity where usename = 'a_user';
select count(*) from pg_hba_file_rules;
@stats a_stats
select count(*) from pg_stat_activity where query like 'update t set%';
@postgres
grant pg_signal_backend to a_other; grant a_user to a_stats;
@other
select pg_terminate_backend(pid) from pg_stat_activity where usename = 'postgres' and pid <> pg_backend_pid() limit 1;
select pg_cancel_backend(pid) from pg_stat_activity where usename = 'a_user';
@stats
select pg_cancel_backend(pid) from pg_stat_activity where usename = 'a_user';
@user
commit;

== LISTEN and NOTIFY, advisory locks
create user a_user; create user a_other;
@user a_user
listen c;
select pg_advisory_lock(1);
@other a_other
notify c, 'x';
select pg_try_advisory_lock(1);
select pg_advisory_unlock(1);
select pg_advisory_unlock_all();
select pg_try_advisory_lock(1);
@user
select 1;
unlisten *;
discard all;
select pg_advisory_unlock(1);

== what the catalogs show
create user a_user; create user a_other; create table t (id int primary key, s text default 'x' check (s <> 'y')); create view v as select s from t;
insert into t select i, 'value' || i from generate_series(1, 100) i; analyze t;
@user a_user
select count(*) from information_schema.tables where table_name in ('t', 'v');
select count(*) from information_schema.columns where table_name = 't';
select view_definition from information_schema.views where table_name = 'v';
select count(*) from information_schema.table_constraints where table_name = 't';
select count(*) from information_schema.role_table_grants where grantee = 'a_other';
select count(*) from information_schema.enabled_roles;
select count(*) from information_schema.applicable_roles;
select pg_get_viewdef('v'::regclass) is not null;
select count(*) from pg_locks where relation = 't'::regclass;
select pg_relation_size('t') > 0;
@postgres
grant select (id) on t to a_user;
@user
select count(*) from information_schema.tables where table_name in ('t', 'v');
select column_name, column_default from information_schema.columns where table_name = 't' order by 1;
@postgres
alter role a_other password 'secret';
alter role a_other encrypted password 'secret';
create user a_third login password 'secret';
select count(*) from pg_stat_activity where query like '%secret%' and pid <> pg_backend_pid();
