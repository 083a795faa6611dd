-- ALTER ROLE ... SET, ALTER DATABASE ... SET: who may, what is kept, and what sessions begin with.
create role psql_a login; create role psql_b; create role psql_maker createrole; create role psql_super superuser;
create role psql_copier replication bypassrls;
grant psql_b to psql_a;
set role psql_maker;
-- who may
\set VERBOSITY sqlstate
create role psql_x replication;
create role psql_x bypassrls;
alter role psql_a replication;
alter role psql_copier nologin;
alter role psql_super set lock_timeout = '1s';
alter role all set lock_timeout = '1s';
alter role psql_a set log_statement = 'all';
alter role psql_a set lock_timeout = '1s';
alter role psql_a set nosuch = '1s';
alter role psql_a set server_version = '1';
alter role psql_a in database psql_describe set lock_timeout = '2s';
alter role all in database psql_describe set lock_timeout = '2s';
alter database psql_describe set lock_timeout = '2s';
alter role psql_a reset log_statement;
alter role psql_a reset nosuch;
alter role nosuch set lock_timeout = '3s';
alter role pg_monitor set lock_timeout = '3s';
alter role psql_a in database nosuch set lock_timeout = '3s';
set role psql_a;
alter role psql_b set lock_timeout = '3s';
alter role psql_a set statement_timeout = 5000;
\set VERBOSITY default
reset role;
-- what is kept
alter role psql_a set search_path = '$user', "A b", public;
alter role psql_a set datestyle = 'iso, dmy';
alter role psql_a set timezone = 'Europe/Berlin';
alter role psql_a set lock_timeout = 'x';
alter role psql_a set log_statement = ddl;
alter role psql_a set role = psql_nosuch;
alter role psql_a set role = psql_b;
select rolconfig from pg_roles where rolname = 'psql_a';
select rolreplication, rolbypassrls from pg_roles where rolname in ('psql_copier', 'psql_a') order by rolname;
alter database psql_describe set lock_timeout = '7s';
alter database psql_describe set idle_session_timeout = '8min';
alter database psql_describe set idle_in_transaction_session_timeout = '9min';
alter role all in database psql_describe set application_name = 'of all here';
\drds psql_*
select datname, setconfig from pg_db_role_setting s join pg_database d on d.oid = setdatabase where setrole = 0;
-- what a session begins with: the role in the database before the role before the database
\c psql_describe psql_a
show lock_timeout;
show statement_timeout;
show idle_session_timeout;
show search_path;
show datestyle;
show timezone;
show log_statement;
select current_user, session_user;
set lock_timeout = '5s';
reset lock_timeout;
show lock_timeout;
reset role;
select current_user;
set role none;
-- RESET ALL by a role leaves what only superusers may set
alter role psql_a reset all;
\c psql_describe postgres
select rolconfig from pg_roles where rolname = 'psql_a';
\drds psql_a
alter role psql_a in database psql_describe reset lock_timeout;
alter role psql_a reset all;
alter database psql_describe reset all;
\drds psql_*
-- what is given at the start of the connection comes last
alter role psql_a set lock_timeout = '11s';
\c "dbname=psql_describe user=psql_a options='-c lock_timeout=12s'"
show lock_timeout;
\c psql_describe postgres
drop role psql_a, psql_b, psql_maker, psql_super, psql_copier;
