-- What pgjdbc's own tests ask.
create schema driver_queries; set search_path = driver_queries;
-- A name with a quote in it.
create schema "schema ""4"; create table "schema ""4".named (x int);
set search_path to 'schema "4'; show search_path;
select current_schema(), 'named'::regclass;
set search_path to "schema ""4", 'driver_queries'; show search_path;
select current_schemas(false);
set search_path to '"schema ""4"'; show search_path;
select current_schema();
drop table "schema ""4".named; drop schema "schema ""4";
set search_path = driver_queries;
-- Words of DateStyle with any end.
set datestyle = 'PostgreSQL, European'; show datestyle; select date '2024-02-01', timestamp '2024-02-01 10:11:12';
set datestyle = 'noneuro'; show datestyle;
set datestyle = 'POSTGRES, eurox'; show datestyle;
set datestyle = 'isolated';
set datestyle = 'euro, noneuro';
reset datestyle;
-- The modes of a transaction.
begin; set local transaction isolation level repeatable read read only; show transaction_isolation; show transaction_read_only; commit;
begin; set session transaction read only; show transaction_read_only; rollback;
set local transaction read only; show transaction_read_only;
-- The columns of a key, as DatabaseMetaData asks for them.
create table keys (a int, b int, c int, primary key (c, a));
select (information_schema._pg_expandarray(conkey)).n, (information_schema._pg_expandarray(conkey)).x from pg_constraint
 where conrelid = 'keys'::regclass and contype = 'p';
select * from information_schema._pg_expandarray('{a,b}'::name[]);
select * from information_schema._pg_expandarray(array[1.5, null]) as e(value, place);
select information_schema._pg_expandarray(array[2, 3]::bigint[]), pg_typeof((information_schema._pg_expandarray(array[2]::bigint[])).x);
select information_schema._pg_expandarray(null::int[]);
select information_schema._pg_expandarray(1);
-- Arrays whose names others have taken.
create type mood as enum ('a'); create type _mood as enum ('b');
create type _pair as (x int); create type pair as (y int); create table pairs (p pair[], q _pair[], m mood[], n _mood[], own _mood);
create table rowed (x int); create table _rowed (x int);
select t.typname, format_type(t.typarray, null), a.typname from pg_type t join pg_type a on a.oid = t.typarray
 where t.typnamespace = 'driver_queries'::regnamespace order by 1;
select attname, atttypid::regtype from pg_attribute where attrelid = 'pairs'::regclass and attnum > 0 order by attnum;
select typname from pg_type where typname in ('__mood', '___mood', '__rowed', '___rowed') order by 1;
select '{a}'::__mood, '{b}'::___mood, '{"(1)"}'::___pair;
drop table pairs, rowed, _rowed; drop type mood, _mood, pair, _pair;
drop table keys; drop schema driver_queries;
reset search_path;
