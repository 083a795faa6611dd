-- COLLATION FOR, the operator of starts_with, zones, statistics by function, and rights that are asked for by wrong words.
select collation for ('a'::text), collation for ('a' collate "C"), collation for (null::varchar), collation for ('a'::name), collation for (array['a']);
select collation for (1);
select collation for ('a' || 'b'), pg_collation_for('x'::text);
select 'abc' ^@ 'ab', 'abc' ^@ 'b', null ^@ 'a', 'abc' ^@ '';
select * from (values ('alpha'), ('beta'), ('alphabet')) v(w) where w ^@ 'alpha' order by w;
select count(*) > 400 from pg_timezone_names;
select name, utc_offset, is_dst from pg_timezone_names where name in ('UTC', 'Asia/Kolkata', 'Asia/Tokyo', 'Etc/GMT+5') order by name;
select abbrev, utc_offset, is_dst from pg_timezone_abbrevs where abbrev in ('CEST', 'CET', 'EST', 'EDT', 'MSK', 'Z', 'IST', 'VET') order by abbrev;
select count(*) from pg_timezone_abbrevs;
select * from pg_listening_channels();
listen a;
listen "B c";
select pg_listening_channels() as channel order by 1;
begin;
listen d;
select count(*) from pg_listening_channels();
rollback;
unlisten a;
select * from pg_listening_channels();
unlisten *;
-- Rights: what is asked is read before it is looked for.
select has_table_privilege(16::oid, 'b');
select has_table_privilege('no_table', 'select');
select has_table_privilege('pg_class', 'b');
select has_table_privilege(16::oid, 'select'), has_schema_privilege(16::oid, 'usage'), has_function_privilege(99999::oid, 'execute');
select has_schema_privilege(16::oid, 'b');
select has_database_privilege(16::oid, 'b', 'connect');
select has_sequence_privilege('no_sequence', 'b');
select has_column_privilege(16::oid, 'c', 'b');
select pg_has_role(16::oid, 'b');
select pg_has_role(16::oid, 'no_role'::name, 'usage');
select has_parameter_privilege('work_mem', 'set'), has_parameter_privilege('postgres', 'work_mem', 'alter system');
select has_parameter_privilege('work_mem', 'b');
select makeaclitem(16::oid, 23::oid, 'abc', false);
-- What a number that nothing has is called, and whether a name leads to it.
select pg_table_is_visible(99999), pg_type_is_visible(99999), pg_function_is_visible(99999), pg_operator_is_visible(99999), pg_opclass_is_visible(99999), pg_opfamily_is_visible(99999), pg_collation_is_visible(99999), pg_conversion_is_visible(99999), pg_statistics_obj_is_visible(99999), pg_ts_config_is_visible(99999), pg_ts_dict_is_visible(99999), pg_ts_parser_is_visible(99999), pg_ts_template_is_visible(99999);
select pg_type_is_visible('int4'::regtype), pg_operator_is_visible('+(int4,int4)'::regoperator), pg_collation_is_visible(100), pg_opclass_is_visible(1978);
-- Statistics by function.
create table counted (id int primary key, v int);
select pg_stat_get_live_tuples('counted'::regclass), pg_stat_get_analyze_count('counted'::regclass), pg_stat_get_last_vacuum_time('counted'::regclass), pg_stat_get_mod_since_analyze(99999::oid), pg_stat_get_blocks_hit(99999::oid);
select pg_stat_get_db_numbackends(oid) > 0, pg_stat_get_db_xact_commit(oid) >= 0, pg_stat_get_db_conflict_all(oid), pg_stat_get_db_temp_files(oid) >= 0 from pg_database where datname = current_database();
select pg_stat_get_db_numbackends(99999::oid), pg_stat_get_db_xact_commit(99999::oid), pg_stat_get_db_stat_reset_time(99999::oid);
select pg_stat_get_bgwriter_timed_checkpoints() >= 0, pg_stat_get_buf_alloc() >= 0, pg_stat_get_snapshot_timestamp();
select count(*) > 0 from (select pg_stat_get_backend_idset() as id) s where pg_stat_get_backend_pid(id) = pg_backend_pid() and pg_stat_get_backend_activity(id) like '%backend_activity%';
select pg_stat_get_function_calls('abs(int4)'::regprocedure), pg_stat_get_backend_pid(-1);
drop table counted;
-- Types of catalogs' references as columns.
create table referred (a regrole, b regnamespace, c regprocedure, d regoperator, e regcollation, f regproc, g regclass, h regtype, i regoper);
insert into referred values ('postgres', 'pg_catalog', 'abs(int4)', '+(int4,int4)', '"C"', 'now', 'pg_class', 'int4', 'pg_catalog.^@'), (0, 0, 0, 0, 0, 0, 0, 0, 0);
select * from referred order by a desc;
select * from referred where a = 'postgres'::regrole;
drop table referred;
-- A recursive view.
create recursive view counted_up (n, "Twice") as values (1, 2) union all select n + 1, "Twice" + 2 from counted_up where n < 4;
select * from counted_up;
\d counted_up
drop view counted_up;
create recursive view public.downwards (n) as values (3) union all select n - 1 from downwards where n > 1;
create or replace recursive view downwards (n) as select 2 union all select n - 1 from downwards where n > 0;
select * from downwards;
create recursive view no_columns as select 1;
create recursive view checked (n) as select 1 with check option;
drop view downwards;
