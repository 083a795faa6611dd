-- pg_export_snapshot and SET TRANSACTION SNAPSHOT: what an importer sees, and what is refused. The importer is a psql of its own.
\set QUIET on
create table es (id int primary key, t text);
insert into es values (1, 'before');

-- Under read committed: the snapshot of the statement that exports it.
begin;
insert into es values (2, 'of the exporter');
select pg_export_snapshot() as id \gset
\setenv ID :id
\! echo "insert into es values (3, 'of another one'); update es set t = 'changed' where id = 1;" | psql -X -q -At -d psql_describe 2>&1
select id, t from es order by id;
\! echo "begin isolation level repeatable read; set transaction snapshot '$ID'; select * from es order by 1; commit; select count(*) from es" | psql -X -q -At -d psql_describe 2>&1
-- The importer can't change what has changed since.
\! echo "begin isolation level repeatable read; set transaction snapshot '$ID'; update es set t = 'x' where id = 1" | psql -X -q -At -d psql_describe 2>&1
\! echo "begin isolation level repeatable read read only; set transaction snapshot '$ID'; select t from es; insert into es values (4, 'x')" | psql -X -q -At -d psql_describe 2>&1
-- A later export shows more; the first one stays as it is.
select pg_export_snapshot() as second \gset
\setenv SECOND :second
\! for id in $ID $SECOND; do echo "begin isolation level repeatable read; set transaction snapshot '$id'; select count(*), min(t) from es" | psql -X -q -At -d psql_describe 2>&1; done
select :'id' ~ '^[0-9A-F]{8}-[0-9A-F]{8}-1$' as first, :'second' = regexp_replace(:'id', '1$', '2') as second;
select count(distinct pg_export_snapshot()), min(regexp_replace(pg_export_snapshot(), '.*-', '')) from generate_series(1, 3);

-- Modes after the import: as after a query.
\! echo "begin isolation level repeatable read read only; set transaction snapshot '$ID'; set transaction read write" | psql -X -q -At -d psql_describe 2>&1
\! echo "begin isolation level repeatable read; set transaction snapshot '$ID'; set transaction isolation level read committed" | psql -X -q -At -d psql_describe 2>&1
\! echo "begin isolation level repeatable read; set transaction snapshot '$ID'; set transaction snapshot '$ID'" | psql -X -q -At -d psql_describe 2>&1
-- Before it: a lock is no query, the setting's name is as good as the statement.
\! echo "begin; set transaction isolation level repeatable read; lock table es in access share mode; set local work_mem = '1MB'; show work_mem; set session transaction snapshot '$ID'; select count(*) from es" | psql -X -q -At -d psql_describe 2>&1
\! echo "begin; set transaction_isolation = 'repeatable read'; set transaction snapshot '$ID'; select count(*) from es" | psql -X -q -At -d psql_describe 2>&1
-- Refused.
\! echo "begin; set transaction snapshot '$ID'" | psql -X -q -At -d psql_describe 2>&1
\! echo "begin; set transaction snapshot 'no'" | psql -X -q -At -d psql_describe 2>&1
\! echo "begin isolation level repeatable read; select 1; set transaction snapshot '$ID'" | psql -X -q -At -d psql_describe 2>&1
\! echo "begin isolation level repeatable read; create temporary table x (a int); set transaction snapshot '$ID'" | psql -X -q -At -d psql_describe 2>&1
\! echo "begin isolation level repeatable read; savepoint a; set transaction snapshot '$ID'" | psql -X -q -At -d psql_describe 2>&1
\! echo "begin isolation level repeatable read; set local transaction snapshot '$ID'" | psql -X -q -At -d psql_describe 2>&1
\! echo "begin isolation level repeatable read; set transaction snapshot '$ID'" | psql -X -q -At -d postgres 2>&1
\! echo "begin isolation level repeatable read; set transaction snapshot $ID" | psql -X -q -At -d psql_describe 2>&1 | head -n 1 | cut -c1-34
\! for id in ' ' no 00000000-00000000-1 ../x $(echo $ID | sed 's/1$/9/') "$ID " 0$ID; do echo "begin isolation level repeatable read; set transaction snapshot '$id'" | psql -X -q -At -d psql_describe 2>&1 | sed 's/"[0-9A-F]*-[0-9A-F]*-/"X-X-/'; done
-- Outside a block it is judged, with a warning.
\! echo "set transaction snapshot '$ID'" | psql -X -q -At -d psql_describe 2>&1
\! echo "set default_transaction_isolation = 'repeatable read'; set transaction snapshot 'no'; set transaction snapshot '$ID'; select count(*) from es" | psql -X -q -At -d psql_describe 2>&1
-- Several statements in one message are a transaction.
\! psql -X -q -At -d psql_describe -c "set transaction isolation level repeatable read; set transaction snapshot '$ID'; select count(*) from es" 2>&1
commit;
-- It has ended.
\! echo "begin isolation level repeatable read; set transaction snapshot '$ID'" | psql -X -q -At -d psql_describe 2>&1 | sed 's/"[0-9A-F-]*"/"X"/'

-- An export ends when its transaction fails, not when it goes back to a savepoint.
begin;
select pg_export_snapshot() as id \gset
\setenv ID :id
savepoint a;
select pg_export_snapshot();
rollback to a;
\! echo "begin isolation level repeatable read; set transaction snapshot '$ID'; select count(*) from es" | psql -X -q -At -d psql_describe 2>&1
release a;
select pg_export_snapshot() ~ '-2$' as "of the same transaction";
select 1/0;
\! echo "begin isolation level repeatable read; set transaction snapshot '$ID'" | psql -X -q -At -d psql_describe 2>&1 | head -n 1 | cut -c1-6
rollback;
begin;
do $$ begin perform pg_export_snapshot(); exception when division_by_zero then null; end $$;
rollback;
begin;
do $$ declare id text := pg_export_snapshot(); begin raise notice '%', regexp_replace(id, '.*-', ''); perform pg_export_snapshot(); end $$;
select pg_export_snapshot() ~ '-3$' as third;
commit and chain;
select pg_export_snapshot() ~ '-1$' as first;
rollback;

-- Under repeatable read: the snapshot of the transaction, which is the first statement's.
begin isolation level repeatable read, read only;
select count(*) from es;
\! echo "insert into es values (5, 'later')" | psql -X -q -At -d psql_describe 2>&1
select pg_export_snapshot() as id \gset
\setenv ID :id
\! echo "begin isolation level repeatable read; set transaction snapshot '$ID'; select count(*) from es" | psql -X -q -At -d psql_describe 2>&1
-- An importer exports what it has imported.
\! echo "begin isolation level repeatable read; set transaction snapshot '$ID'; select count(pg_export_snapshot()), count(*) from es" | psql -X -q -At -d psql_describe 2>&1
commit;

-- Serializable: the exporter is too. Clearway has that level by a setting of its own.
select set_config('serializable', 'snapshot', false) from pg_settings where name = 'serializable' \g /dev/null
begin isolation level repeatable read;
select pg_export_snapshot() as id \gset
\setenv ID :id
\! printf "select set_config('serializable', 'snapshot', false) from pg_settings where name = 'serializable' \\\\g /dev/null\nbegin isolation level serializable;\nset transaction snapshot '%s';" $ID | psql -X -q -At -d psql_describe 2>&1
commit;
begin isolation level serializable, read only;
select pg_export_snapshot() as id \gset
\setenv ID :id
\! for mode in 'serializable' 'serializable, read only' 'repeatable read'; do printf "select set_config('serializable', 'snapshot', false) from pg_settings where name = 'serializable' \\\\g /dev/null\nbegin isolation level $mode;\nset transaction snapshot '%s'; select count(*) from es;" $ID | psql -X -q -At -d psql_describe 2>&1; done
commit;
drop table es;
