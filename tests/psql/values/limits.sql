-- How many columns there may be, a zero byte in a text, and what ALTER SYSTEM refuses.
select 'create table limits_1600(' || string_agg('c' || g || ' int', ',') || ')' from generate_series(1, 1600) g \gexec
select 'create table limits_1601(' || string_agg('c' || g || ' int', ',') || ')' from generate_series(1, 1601) g \gexec
alter table limits_1600 add column more int;
select 'create view limits_view as select ' || string_agg('1 as c' || g, ',') from generate_series(1, 1601) g \gexec
select 'select ' || string_agg('1', ',') from generate_series(1, 1665) g \gexec
select count(*) from pg_attribute where attrelid = 'limits_1600'::regclass and attnum > 0;
drop table limits_1600;
select convert_from('\x610062', 'UTF8');
alter system set limits_nothing = 1;
alter system reset limits_nothing;
alter system set server_version = 'x';
alter system set role = 'x';
alter system set session_authorization = 'x';
alter system set transaction_isolation = 'serializable';
alter system set max_connections = 'many';
begin;
alter system set lock_timeout = '1s';
rollback;
set max_connections = 7;
create role limits_role;
set role limits_role;
alter system set lock_timeout = '1s';
alter system reset lock_timeout;
alter system reset all;
select pg_reload_conf();
reset role;
drop role limits_role;
alter system set lock_timeout = '77s';
select name, setting, applied, error from pg_file_settings where name = 'lock_timeout';
alter system reset lock_timeout;
select name, setting, applied, error from pg_file_settings where name = 'lock_timeout';
