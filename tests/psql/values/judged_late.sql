-- What was taken without an error, or with another one.
\set VERBOSITY sqlstate
create table jl_check (a int check (a > (select 1)));
create table jl (a int unique deferrable, b int unique, constraint jl_c unique (a, b) deferrable initially deferred);
alter table jl add check (b > (select max(b) from jl));
\set VERBOSITY default
insert into jl values (1, 1);
insert into jl values (1, 2) on conflict do nothing;
insert into jl values (3, 1) on conflict on constraint jl_c do nothing;
insert into jl values (3, 1) on conflict (b) do nothing;
select * from jl;
with recursive r(n) as (select 1 union all select a.n from r a, r b) select * from r;
with recursive r(n) as (select 1 union all select e from generate_series(1, 3) e left join r on r.n = e) select * from r;
with recursive r(n) as (select 1 union all select r.n + 1 from r left join generate_series(1, 3) e on r.n = e where r.n < 3) select * from r;
\set VERBOSITY sqlstate
with recursive r(n) as (select 1 union all select max(n) + 1 from r where n < 5) select * from r;
\set VERBOSITY default
-- A name for an error is its message, too.
do $$ begin raise exception using errcode = 'foreign_key_violation'; end $$;
do $$ begin raise exception using errcode = '22012', detail = 'd'; end $$;
-- Values at their bounds.
select 'abc' like 'abc\', 'abc' like 'abcd\', '' like '\', 'ab' like 'a%\';
select 'abcd' like 'abc\';
select 1e400::float8;
select (1e-400)::float8;
select 1e39::float4;
select 1e38::float4, 0e-400::float8, 'Infinity'::numeric::float4, 1e300::float8, (-1e308)::float8;
select 'a\x'::bytea;
select '"s"'::jsonb -> 0, '5'::jsonb -> -1, 'true'::jsonb ->> 0, '5'::jsonb -> 1, '5'::json -> 0, '5'::jsonb #> '{0}';
-- An extension does not go where temporary objects are.
create temp table jl_temp (a int);
create extension "uuid-ossp";
select nspname from pg_extension join pg_namespace n on n.oid = extnamespace where extname = 'uuid-ossp';
drop extension "uuid-ossp";
drop table jl_temp;
