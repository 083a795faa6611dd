"""What PostgreSQL 15 documents: functions by section of chapter 9, and one statement for each SQL command."""

# Section: names of functions, and forms that are written otherwise (between backquotes, as they are asked).
SECTIONS = {
    "9.1 Logical operators": "`true and null` `false or null` `not true`",
    "9.2 Comparison": "num_nonnulls num_nulls `2 between 1 and 3` `2 not between 1 and 3` `2 between symmetric 3 and 1` `1 is distinct from null` `1 is not distinct from null` "
    "`null is null` `1 isnull` `1 notnull` `true is unknown` `true is not false`",
    "9.3 Mathematics": "abs cbrt ceil ceiling degrees div exp factorial floor gcd lcm ln log log10 min_scale mod pi power radians round scale sign sqrt trim_scale trunc "
    "width_bucket random setseed acos acosd asin asind atan atand atan2 atan2d cos cosd cot cotd sin sind tan tand sinh cosh tanh asinh acosh atanh `(7::int4) % 2` `7::int4 % 2`",
    "9.4 Strings": "ascii bit_length btrim char_length character_length chr concat concat_ws format initcap left length lower lpad ltrim md5 normalize octet_length parse_ident "
    "pg_client_encoding quote_ident quote_literal quote_nullable regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array "
    "regexp_split_to_table regexp_substr repeat replace reverse right rpad rtrim split_part starts_with string_to_array string_to_table strpos substr to_ascii to_hex "
    "translate unistr upper `overlay('abcdef' placing 'zz' from 2 for 3)` `position('b' in 'abc')` `substring('abc' from 2 for 1)` `substring('abc' from 'b.')` "
    "`substring('abc' similar 'a#\"b#\"c' escape '#')` `trim(both 'x' from 'xax')` `'a' is normalized` `'a' || 1` `U&'\\0061'`",
    "9.5 Binary strings": "get_bit get_byte set_bit set_byte sha224 sha256 sha384 sha512 bit_count convert convert_from convert_to encode decode "
    "`overlay('\\x1234'::bytea placing '\\x99'::bytea from 1)` `position('\\x34'::bytea in '\\x1234'::bytea)` `substring('\\x1234'::bytea from 2)` `trim('\\x00'::bytea from '\\x0001'::bytea)`",
    "9.6 Bit strings": "`B'101' & B'110'` `B'101' || B'1'` `B'101' << 1` `~B'101'` `5::bit(4)` `B'101'::int`",
    "9.7 Patterns": "`'abc' like 'a%'` `'abc' ilike 'A%'` `'abc' not like 'b%'` `'a%' like 'a#%' escape '#'` `'abc' similar to 'a(b|c)*'` `'abc' ~ 'b.'` `'abc' ~* 'B.'` `'abc' !~ 'x'` "
    "`'abcabc' ~ '(abc)\\1'` `'ab' ~ 'a(?=b)'` `'ab' ~ '(?<=a)b'` `'abc' ^@ 'a'` `'a' ~~ 'a'`",
    "9.8 Formatting": "to_char to_date to_number to_timestamp",
    "9.9 Dates and times": "age clock_timestamp date_bin date_part date_trunc isfinite justify_days justify_hours justify_interval make_date make_interval make_time make_timestamp "
    "make_timestamptz now statement_timestamp timeofday transaction_timestamp pg_sleep pg_sleep_for pg_sleep_until `extract(year from date '2024-02-03')` `interval 'P1Y2M3DT4H5M6S'` `interval '1-2' year to month` `interval '1 2:03' day to minute` `interval '1.5' second(1)` "
    "`current_date is null` `current_time is null` `current_timestamp(0) is null` `localtime is null` `localtimestamp is null` `timestamptz '2024-01-01 00:00+00' at time zone 'UTC'` "
    "`(date '2024-01-01', date '2024-02-01') overlaps (date '2024-01-15', date '2024-03-01')`",
    "9.10 Enumerations": "enum_first enum_last enum_range",
    "9.11 Geometry": "area center diagonal diameter height isclosed isopen npoints pclose popen radius slope width box bound_box circle line lseg path point polygon",
    "9.12 Network addresses": "abbrev broadcast family host hostmask inet_merge inet_same_family masklen netmask network set_masklen trunc macaddr8_set7bit",
    "9.13 Text search": "array_to_tsvector get_current_ts_config numnode plainto_tsquery phraseto_tsquery websearch_to_tsquery querytree setweight strip to_tsquery to_tsvector "
    "json_to_tsvector jsonb_to_tsvector ts_delete ts_filter ts_headline ts_rank ts_rank_cd ts_rewrite tsquery_phrase tsvector_to_array ts_debug ts_lexize ts_parse ts_token_type ts_stat",
    "9.14 UUID": "gen_random_uuid",
    "9.15 XML": "xmlcomment xmlexists xml_is_well_formed xml_is_well_formed_content xml_is_well_formed_document xpath xpath_exists cursor_to_xml query_to_xml "
    "schema_to_xml table_to_xml database_to_xml xmlagg `xmlelement(name a)` `xmlconcat('<a/>')` `xmlforest(1 as a)` `xmlpi(name a)` `xmlparse(content 'a')` `xmlserialize(content '<a/>' as text)`",
    "9.16 JSON": "to_json to_jsonb array_to_json row_to_json json_build_array jsonb_build_array json_build_object jsonb_build_object json_object jsonb_object json_array_elements "
    "jsonb_array_elements json_array_elements_text jsonb_array_elements_text json_array_length jsonb_array_length json_each jsonb_each json_each_text jsonb_each_text "
    "json_extract_path jsonb_extract_path json_extract_path_text jsonb_extract_path_text json_object_keys jsonb_object_keys json_populate_record jsonb_populate_record "
    "json_populate_recordset jsonb_populate_recordset json_to_record jsonb_to_record json_to_recordset jsonb_to_recordset json_strip_nulls jsonb_strip_nulls jsonb_set "
    "jsonb_set_lax jsonb_insert jsonb_path_exists jsonb_path_match jsonb_path_query jsonb_path_query_array jsonb_path_query_first jsonb_path_exists_tz jsonb_path_match_tz "
    "jsonb_path_query_tz jsonb_path_query_array_tz jsonb_path_query_first_tz jsonb_pretty json_typeof jsonb_typeof "
    "`jsonb_path_query('\"2024-02-03\"', '$.datetime()')` `jsonb_path_query('\"12:34\"', '$.datetime(\"HH24:MI\").type()')` "
    "`jsonb_path_query('[\"2024-02-03\", \"2024-02-04 05:06:07\"]', '$[*].datetime() ? (@ > \"2024-02-03\".datetime())')` "
    "`jsonb_path_query_tz('\"2024-02-03 04:05:06+02\"', '$.datetime() ? (@ < \"2024-02-04\".datetime())')`",
    "9.17 Sequences": "nextval setval currval lastval",
    "9.18 Conditions": "`case when true then 1 else 2 end` `case 1 when 1 then 2 end` `coalesce(null, 1)` `nullif(1, 1)` `greatest(1, 2)` `least(1, 2)`",
    "9.19 Arrays": "array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position array_positions array_prepend array_remove array_replace "
    "array_to_string array_upper cardinality trim_array unnest `array[1,2] @> array[1]` `array[1] <@ array[1,2]` `array[1] && array[1]` `array[1] || 2` `array[[1,2],[3,4]]` "
    "`(array[1,2,3])[1:2]` `'[2:3]={1,2}'::int[]`",
    "9.20 Ranges": "isempty lower_inc upper_inc lower_inf upper_inf range_merge multirange int4range int8range numrange daterange tsrange tstzrange int4multirange nummultirange range_agg range_intersect_agg",
    "9.21 Aggregates": "array_agg avg bit_and bit_or bit_xor bool_and bool_or count every json_agg jsonb_agg json_object_agg jsonb_object_agg max min string_agg sum corr covar_pop "
    "covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop stddev_samp variance var_pop var_samp "
    "`mode() within group (order by 1)` `percentile_cont(0.5) within group (order by 1)` `percentile_disc(0.5) within group (order by 1)` `rank(1) within group (order by 1)` "
    "`count(distinct 1)` `count(*) filter (where false)` `array_agg(1 order by 1)` `grouping(x) from (values (1)) v(x) group by grouping sets ((x), ())` `1 from (values (1)) v(x) group by rollup (x)` "
    "`1 from (values (1)) v(x) group by cube (x)`",
    "9.22 Window functions": "`row_number() over ()` `rank() over (order by 1)` `dense_rank() over (order by 1)` `percent_rank() over (order by 1)` `cume_dist() over (order by 1)` `ntile(2) over ()` `lag(1) over ()` "
    "`lead(1) over ()` `first_value(1) over ()` `last_value(1) over ()` `nth_value(1, 1) over ()` `sum(1) over ()` `sum(1) over w from (values (1)) v(x) window w as (partition by x)`",
    "9.23 Subqueries": "`exists (select 1)` `1 in (select 1)` `1 not in (select 2)` `1 = any (select 1)` `1 = some (select 1)` `1 < all (select 2)` `(1, 2) = (select 1, 2)` `(1, 2) in (select 1, 2)` `row(1, 2) = any (select 1, 2)`",
    "9.24 Rows and arrays": "`1 in (1, 2)` `1 not in (2, 3)` `1 = any (array[1])` `1 = some (array[1])` `1 < all (array[2])` `row(1, 2) = row(1, 2)` `(1, 2) < (1, 3)` `row(1, null) is null` `row(1, 2) is distinct from row(1, 3)` "
    "`row(1, 2) *= row(1, 2)`",
    "9.25 Functions that return sets": "generate_series generate_subscripts",
    "9.26 System information": "current_database current_query current_schema current_schemas inet_client_addr inet_client_port inet_server_addr inet_server_port pg_backend_pid pg_blocking_pids "
    "pg_conf_load_time pg_current_logfile pg_my_temp_schema pg_is_other_temp_schema pg_jit_available pg_listening_channels pg_notification_queue_usage pg_postmaster_start_time "
    "pg_safe_snapshot_blocking_pids pg_trigger_depth version has_any_column_privilege has_column_privilege has_database_privilege has_foreign_data_wrapper_privilege has_function_privilege "
    "has_language_privilege has_parameter_privilege has_schema_privilege has_sequence_privilege has_server_privilege has_table_privilege has_tablespace_privilege has_type_privilege pg_has_role "
    "row_security_active acldefault aclexplode makeaclitem pg_collation_is_visible pg_conversion_is_visible pg_function_is_visible pg_opclass_is_visible pg_operator_is_visible pg_opfamily_is_visible "
    "pg_statistics_obj_is_visible pg_table_is_visible pg_ts_config_is_visible pg_ts_dict_is_visible pg_ts_parser_is_visible pg_ts_template_is_visible pg_type_is_visible format_type "
    "pg_get_catalog_foreign_keys pg_get_constraintdef pg_get_expr pg_get_functiondef pg_get_function_arguments pg_get_function_identity_arguments pg_get_function_result pg_get_indexdef "
    "pg_get_keywords pg_get_ruledef pg_get_serial_sequence pg_get_statisticsobjdef pg_get_triggerdef pg_get_userbyid pg_get_viewdef pg_index_column_has_property pg_index_has_property "
    "pg_indexam_has_property pg_options_to_table pg_settings_get_flags pg_tablespace_databases pg_tablespace_location pg_typeof to_regclass to_regcollation to_regnamespace to_regoper "
    "to_regoperator to_regproc to_regprocedure to_regrole to_regtype pg_describe_object pg_identify_object pg_identify_object_as_address pg_get_object_address col_description obj_description "
    "shobj_description pg_current_xact_id pg_current_xact_id_if_assigned pg_xact_status pg_current_snapshot pg_snapshot_xip pg_snapshot_xmax pg_snapshot_xmin pg_visible_in_snapshot "
    "txid_current txid_current_if_assigned txid_current_snapshot txid_snapshot_xip txid_snapshot_xmax txid_snapshot_xmin txid_visible_in_snapshot txid_status pg_xact_commit_timestamp "
    "pg_xact_commit_timestamp_origin pg_last_committed_xact pg_control_checkpoint pg_control_system pg_control_init pg_control_recovery `current_catalog is null` `current_user is null` "
    "`current_role is null` `session_user is null` `user is null`",
    "9.27 Administration": "current_setting set_config pg_cancel_backend pg_log_backend_memory_contexts pg_reload_conf pg_rotate_logfile pg_terminate_backend pg_create_restore_point "
    "pg_current_wal_flush_lsn pg_current_wal_insert_lsn pg_current_wal_lsn pg_backup_start pg_backup_stop pg_switch_wal pg_walfile_name pg_walfile_name_offset pg_wal_lsn_diff pg_is_in_recovery "
    "pg_last_wal_receive_lsn pg_last_wal_replay_lsn pg_last_xact_replay_timestamp pg_is_wal_replay_paused pg_get_wal_replay_pause_state pg_promote pg_wal_replay_pause pg_wal_replay_resume "
    "pg_export_snapshot pg_create_physical_replication_slot pg_drop_replication_slot pg_create_logical_replication_slot pg_copy_physical_replication_slot pg_copy_logical_replication_slot "
    "pg_logical_slot_get_changes pg_logical_slot_peek_changes pg_replication_slot_advance pg_replication_origin_create pg_replication_origin_drop pg_logical_emit_message pg_column_size "
    "pg_column_compression pg_database_size pg_indexes_size pg_relation_size pg_size_bytes pg_size_pretty pg_table_size pg_tablespace_size pg_total_relation_size pg_relation_filenode "
    "pg_relation_filepath pg_filenode_relation pg_collation_actual_version pg_database_collation_actual_version pg_import_system_collations pg_partition_tree pg_partition_ancestors "
    "pg_partition_root brin_summarize_new_values brin_summarize_range brin_desummarize_range gin_clean_pending_list pg_ls_dir pg_ls_logdir pg_ls_waldir pg_ls_tmpdir pg_read_file "
    "pg_read_binary_file pg_stat_file pg_advisory_lock pg_advisory_lock_shared pg_advisory_unlock pg_advisory_unlock_all pg_advisory_unlock_shared pg_advisory_xact_lock "
    "pg_advisory_xact_lock_shared pg_try_advisory_lock pg_try_advisory_lock_shared pg_try_advisory_xact_lock pg_try_advisory_xact_lock_shared pg_stat_reset pg_notify pg_stat_get_activity "
    "lo_create lo_creat lo_from_bytea lo_get lo_put lo_unlink loread lowrite",
    "9.28 Triggers": "suppress_redundant_updates_trigger tsvector_update_trigger tsvector_update_trigger_column",
}

# Asked in a database that has the objects of OBJECTS; rolled back, but for those that begin with "!", which stand outside a transaction.
OBJECTS = """
create table t (id int primary key, a int, b text);
insert into t values (1, 2, 'x');
create table other (id int primary key, t_id int references t);
create index t_a on t (a);
create view v as select id, a from t;
create materialized view mv as select id, a from t;
create sequence s;
create schema sc;
create role compat_role;
"""
COMMANDS = """
begin isolation level repeatable read read only
commit|rollback|savepoint x; rollback to x; release x|set transaction isolation level read committed
set transaction isolation level serializable; select 1
set transaction isolation level repeatable read; set transaction snapshot '00000003-0000001B-1'|prepare transaction 'x'|!commit prepared 'x'|!rollback prepared 'x'|commit and chain
select 1 from t|select from t|table t|values (1), (2)|select * into n from t|select distinct on (a) a from t order by a
select a from t group by distinct a, a|select a from t union select 1 intersect select 2 except select 3|select 1 from t order by id fetch first 1 row with ties
select 1 from t order by 1 fetch first 1 row only
select 1 from t limit 1 offset 1|with w as (select 1) select * from w|with w as materialized (select 1) select * from w
with recursive w(n) as (select 1 union all select n + 1 from w where n < 3) select * from w
with recursive w(n) as (select 1 union all select n + 1 from w where n < 3) search depth first by n set o select * from w
with recursive w(n) as (select 1 union all select n + 1 from w where n < 3) cycle n set c using p select * from w
with w as (delete from other returning *) select * from w
select * from t, lateral (select t.a) x|select * from t natural join other|select * from t full join other using (id)
select * from rows from (generate_series(1, 2), generate_series(1, 3)) x|select * from generate_series(1, 2) with ordinality|select * from unnest(array[1], array[2])
select * from t tablesample system (10)|select t from t|select (t).a from t|select 1 from only t
select * from t for update|select * from t for share skip locked|select * from t for no key update nowait|select * from t for key share of t
select * from v for update
select ctid, xmin, xmax, tableoid from t|select generate_series(1, 2), generate_series(1, 3)
insert into t values (5, 1, 'x') returning id|create table d (a int default 1); insert into d default values|insert into t (id) overriding system value values (7)|insert into t select 9, 1, 'x'
insert into t values (1) on conflict do nothing|insert into t values (1) on conflict (id) do update set a = excluded.a where t.a > 1
insert into t values (1) on conflict on constraint t_pkey do nothing
insert into v values (9, 1)|update v set a = 1|delete from v
update t set a = 1 where id = 1 returning *|update t set a = x.id from other x where x.id = t.id|update t set (a, b) = (1, 'x')|update t set (a, b) = (select 1, 'x')
update t set a = 1 where current of c
delete from t using other where t.id = other.t_id|truncate t, other|truncate t restart identity cascade
merge into t using other on t.id = other.id when matched then delete
copy t to stdout|copy (select 1) to stdout (format csv)|copy t to stdout (format binary)|copy t to '/dev/null'|copy t from '/dev/null'|copy t from '/tmp/compat_none'|copy t to 'relative'|copy t to program 'cat'|copy t to stdout (encoding 'latin1')
explain select * from t|explain (analyze, costs off, timing off, summary off) select * from t|explain (format json) select 1
declare c cursor for select * from t; fetch 1 from c; move 1 in c; close c|close all
prepare p as select $1::int; execute p (1); deallocate p|deallocate all|discard plans|!discard all
do $$ begin end $$|call p()|listen x|notify x|unlisten *|load 'x'
lock table t in share mode|lock t in access exclusive mode nowait
set statement_timeout = 100|set local statement_timeout = 100|reset all|show all|set time zone 'UTC'|set role compat_role|set session authorization compat_role|set constraints all deferred|set names 'utf8'
create table n (a int primary key, b varchar(10) default 'x' not null check (b <> ''), unique (b))|create table if not exists t (a int)
create table n (a serial, b bigint generated always as identity, c smallserial)|create table n (a int, b int generated always as (a * 2) stored)
create table n (like t including all)|create table n as select * from t|create table n as select 1 with no data
create temporary table n (a int)|create temporary table n (a int) on commit drop|create unlogged table n (a int)|create table n () inherits (t)
create table n (a int) partition by range (a)|create table n (a int) with (fillfactor = 70)|create table n (a int) tablespace pg_default|create table n of point
create table n (a int references t on delete cascade on update set null)|create table n (a int references t deferrable initially deferred)
create table n (a int, b int, foreign key (a) references t match full)
create table n (a int, exclude using btree (a with =))|create table n (a int unique nulls not distinct)|create table n (a text collate "C")|create table n (a text collate "en_US")
create index on t (a desc nulls last)|create unique index on t (a, b)|create index on t (a) include (b)|create index on t (lower(b))|create index on t (a) where a > 1
create index on t using hash (a)|create index on t using gin (b)|create index on t using brin (a)|!create index concurrently n on t (a); drop index n
create view n as select 1|create or replace view v as select id, a from t|create temporary view n as select 1|create view n with (security_barrier) as select 1|create recursive view n (a) as select 1|create view n as select * from t where a > 1 with check option
create materialized view n as select 1|refresh materialized view mv|create sequence n increment 2 start 5 cache 3 cycle|create schema n|create schema n create table nn (a int)
create role n login password 'x'|create user n|create group n|!create database compat_n; drop database compat_n|create tablespace n location '/tmp'
create type n as (a int)|create type n as enum ('a')|create type n as range (subtype = int)|create domain n as int check (value > 0)
create function n() returns int language sql as 'select 1'|create procedure n() language sql as 'select 1'|create aggregate n (int) (sfunc = int4pl, stype = int)
create operator === (leftarg = int, rightarg = int, function = int4eq)|create operator class n for type int using btree as operator 1 <|create operator family n using btree
create cast (int as point) with inout|create collation n (locale = 'C')|create conversion n for 'UTF8' to 'LATIN1' from utf8_to_iso8859_1|create extension plpgsql|create language n
create trigger n before insert on t for each row execute function f()|create event trigger n on ddl_command_start execute function f()|create rule n as on insert to t do also insert into other values (1)|create rule n as on insert to t do instead nothing; drop rule n on t
create policy n on t|create statistics n on a, id from t|create publication n|!create subscription n connection '' publication n|create server n foreign data wrapper n|create foreign data wrapper n
create foreign table n (a int) server n|create user mapping for postgres server n|import foreign schema n from server n into sc|create access method n type table handler heap_tableam_handler
create text search configuration n (copy = simple)|create text search dictionary n (template = simple)|create transform for int language sql (from sql with function f(internal))
alter table t add column c int default 1 not null|alter table t add column if not exists a int|alter table t drop column b|alter table t alter column b type varchar(20)
alter table t alter column a set default 1|alter table t alter column a drop default|alter table t alter column a set not null|alter table t alter column a drop not null
alter table t alter column id add generated always as identity|alter table t alter column a set statistics 10|alter table t alter column b set storage external|alter table t alter column b set compression pglz
alter table t add constraint n check (a > 0)|alter table t add constraint n check (a > 0) not valid; alter table t validate constraint n|alter table t add constraint n unique (a)|alter table t add constraint n unique using index t_a
alter table other add constraint n foreign key (t_id) references t not valid|alter table other drop constraint other_t_id_fkey|alter table other alter constraint other_t_id_fkey deferrable|alter table t rename constraint t_pkey to n
alter table t rename to n|alter table t rename column a to n|alter table t set schema sc|alter table t owner to compat_role|alter table t set (fillfactor = 50)|alter table t set unlogged|alter table t set tablespace pg_default
alter table t cluster on t_a|alter table t enable row level security|alter table t replica identity full|alter table t disable trigger all|alter table t inherit other|alter table t attach partition other default
alter index t_a rename to n|alter view v rename to n|alter view v alter column a set default 1|alter materialized view mv rename to n|alter sequence s restart|alter sequence s owned by t.id|alter schema sc rename to n|alter schema sc owner to compat_role
alter role compat_role createdb|alter role compat_role rename to n|alter role compat_role set statement_timeout = 1|!alter database postgres set statement_timeout = 0|alter database postgres connection limit 100
alter default privileges grant select on tables to compat_role|alter system set work_mem = '4MB'|alter type n rename to m|alter domain n drop not null|alter function f() rename to n|alter extension plpgsql update
alter statistics n rename to m|alter large object 1 owner to postgres|alter trigger n on t rename to m|alter policy n on t rename to m|alter publication n rename to m|alter tablespace pg_default rename to n
comment on table t is 'x'|comment on column t.a is 'x'|security label on table t is 'x'
drop table other|drop table t cascade|drop table if exists nn|drop view v|drop materialized view mv|drop index t_a|drop sequence s|drop schema sc|drop schema if exists nn cascade|drop role if exists nn|drop owned by compat_role|reassign owned by compat_role to postgres
drop function if exists nn()|drop type if exists nn|drop domain if exists nn|drop trigger if exists nn on t|drop extension if exists nn|drop policy if exists nn on t|drop rule if exists nn on t|drop aggregate if exists nn(int)
grant select on t to compat_role|grant select (a) on t to compat_role|grant usage on schema sc to compat_role|grant connect on database postgres to compat_role|grant usage on sequence s to compat_role
grant execute on function abs(int) to compat_role|grant usage on type int to compat_role|grant select on all tables in schema public to compat_role|grant pg_monitor to compat_role with admin option|grant set on parameter work_mem to compat_role|revoke select on t from compat_role cascade
analyze t|!vacuum t|!vacuum full t|!cluster t using t_pkey|checkpoint|reindex table t|reindex index t_a|!reindex table concurrently t|!reindex database compat_rows|!reindex database postgres
"""
