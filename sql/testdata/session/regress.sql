select * from (values (1)) a(x) full join lateral generate_series(1, a.x) g on true
select * from (values (1)) a(x) right join lateral generate_series(1, a.x) g on true
select * from (values (1)) a(x) right join lateral (select a.x) s on true
select * from (values (1)) a(x) left join lateral generate_series(1, a.x) g on true
select * from generate_series(1, a.x) g right join (values (1)) a(x) on true
select * from (values (1)) a(x) full join (select a.x) s on true
select int4pl(1, 2), booleq(true, false), float8mi(1.5, 1), texteq('a', 'b'), numeric_add(1, 2.5)
select float8(12::bigint), int4(2.6::float8), int4(2.6), int8('7'::text), text(5), date(timestamptz '2024-02-03 04:05:06+00'), inet(text '1.2.3.4')
select timestamptz(date '1994-01-01', time '11:00'), "timestamp"(date '1994-01-01', time '11:00')
select range_minus(numrange(10.1, 12.2), numrange(11, 20)), range_adjacent(int4range(1, 3), int4range(3, 5))
select float4send(1.5), float8send(-2), int2send(3::int2), int4send(-1), int8send(255), textsend('ab'), boolsend(true), uuid_send('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')
select date_eq('2024-01-01', '2024-01-01'), timestamp_lt('2024-01-01', '2024-01-02'), array_eq(array[1], array[1])
select int4pl(1, 'x')
select '010'::xid, '0xff'::xid, '-1'::xid, '42'::xid8
select 'a_c'::bytea like 'a$__'::bytea escape '$'::bytea, '\x6162'::bytea like '_b'::bytea, '\xff00'::bytea not like '\x2500'::bytea
select 'xyz' ~ 'x(\w)(?=\1)'
select 'xyz' ~ 'x(\w)(?=(\1))'
select 'xx' ~ '(x)\1'
create table c1 (u unknown)
create type c2 as (u unknown)
create table c3 (a int, check (ctid is not null))
create table c4 (id int default (id))
create table c4 (id int default (bar.id))
create table c4 (id int default (nothere))
create table c5 (a int) with (oids)
create table c5 (a int) with (oids = false)
create index on c5 (ctid)
create index on c5 ((ctid >= '(0,0)'))
create index on c5 (a) where ctid >= '(0,0)'
create schema c6 create temp view v as select 1
insert into c5 values (generate_series(1, 3))
insert into c5 (a) values (generate_series(4, 5) * 10) returning a
insert into c5 values (generate_series(1, 3)), (7)
select * from c5 order by 1
prepare c7 (int) as select a, a + $1 as b from c5
create table c8 as execute c7(100)
create temp table c9 (x) as execute c7(5) with no data
select * from c8 order by 1
select * from c9
prepare c10 as insert into c5 values (1)
create table c11 as execute c10
create table c11 as execute nothere
call random()
call sum(1)
call nothere(1)
create function ex(q text) returns setof text language plpgsql as $$ declare l text; begin for l in execute 'explain (costs off) ' || q loop return next l; end loop; end $$
select * from ex('select 1')
create function ex2(q text) returns json language plpgsql as $$ declare l json; begin execute 'explain (costs off, format json) ' || q into l; return l; end $$
select ex2('select 1')->0->'Plan'->>'Node Type'
create function ex3(q text) returns setof text language plpgsql as $$ begin return query execute 'explain (costs off) ' || q; end $$
select * from ex3('select 1')
create function ex4(a int) returns setof text language plpgsql as $$ declare l text; begin for l in execute 'explain (costs off) select $1 + 1' using a loop return next l; end loop; end $$
select * from ex4(3)
select a, interval from (values (1, 'x')) t(a, interval)
select interval, time, a from (values ('y', 2, 1)) t(interval, time, a)
select interval '1 day', interval(0) '1.5 s', time with time zone '11:00+00', char 'x', timestamp '2024-01-01'
create table c12 (a int)
select * from (c12 t join c12 u using (a)) as j for update of j
select 1 from c12 t join c12 u using (a) as j for update of j
select ng.foo(1)
drop table ng.t
drop table if exists ng.t
drop view ng.v
drop index ng.i
drop sequence public.nothere
alter table ng.t add a int
alter table public.nothere add a int
comment on table ng.t is 'x'
grant select on ng.t to public
select float4send('7038531e-32'::float4), float4send('82381273e-35'::float4), float4send(7038531e-32::float4), '-inf'::float4
select '1e39'::float4
select '1e-46'::float4
