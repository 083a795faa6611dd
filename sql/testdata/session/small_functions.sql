-- Functions that need no table: seeds, sizes, sleeps, transaction numbers, PostgreSQL's own names of numeric functions.
select setseed(0.5)
select random(), random(), trunc(random() * 1000000000)
select setseed(-1)
select random()
select setseed(0)
select random()
select setseed(1.5)
select setseed('NaN')
select setseed(null)
select pg_typeof(setseed(0.25))
select random() from (select setseed(0.125)) x
select pg_size_bytes(x) from (values ('1'), ('1kB'), ('12.5 MB'), ('  -0.5gB  '), ('1e3'), ('1e-1 kb'), ('+7 bytes'), ('.5 TB'), ('3. PB'), ('0x')) v(x) where x <> '0x'
select pg_size_bytes('0x')
select pg_size_bytes('')
select pg_size_bytes('1 EB')
select pg_size_bytes('1 kB x')
select pg_size_bytes('-.kb')
select pg_size_bytes('1e')
select pg_size_bytes('9223372036854775807.9')
select pg_size_bytes('1e100 PB')
select pg_size_bytes(null)
select pg_size_pretty(pg_size_bytes('10 GB'))
select pg_sleep_for('1 millisecond')
select pg_sleep_for('-1 hour')
select pg_sleep_until(now() - interval '1 day')
select pg_sleep_until('-infinity')
select pg_sleep_for(null), pg_sleep_until(null)
select pg_current_xact_id_if_assigned() is null
begin
select pg_current_xact_id() = pg_current_xact_id_if_assigned(), pg_typeof(pg_current_xact_id())
select pg_current_xact_id()::text = txid_current()::text
commit
select pg_partition_root('pg_class'::regclass) is null
select pg_relation_filepath('pg_stats'::regclass) is null, pg_relation_filepath(0) is null
create table filed (id int primary key)
select pg_relation_filepath('filed') = 'base/' || d.oid || '/' || pg_relation_filenode('filed'), pg_relation_filepath('filed_pkey') like 'base/%' from pg_database d where datname = current_database()
drop table filed
select numeric_exp(1.0), numeric_ln(2.0), numeric_log(10, 100), numeric_sqrt(2.0), numeric_inc(1.5), numeric_div_trunc(-7.5, 2)
select numeric_ln(0)
select int4inc(41), int4inc(-1)
select int4inc(2147483647)
select dexp(1), dlog1(2), dlog10(100), dround(2.5), dtrunc(-2.7), textlen('häß')
select dlog1(-1)
select oid, relfilenode, relisshared, reltablespace, pg_relation_filenode(oid), pg_relation_filepath(oid) ~ '^(global/\d+|base/\d+/1259)$' from pg_class where relname in ('pg_class', 'pg_database', 'pg_authid') order by oid
select relname, relfilenode, relisshared, pg_relation_filenode(oid), pg_relation_filepath(oid) from pg_class where relname in ('pg_stats', 'tables')
select count(*) from pg_class where relisshared and relkind = 'r'
select pg_get_viewdef('pg_stats', true) is not null
select sign('nan'::numeric), sign('inf'::numeric), sign('-inf'::numeric), sign('nan'::float8), numeric_inc('nan'), abs('nan'::numeric)
