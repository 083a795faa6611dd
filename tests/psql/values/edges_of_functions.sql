-- Functions and casts at the edges of their arguments.
\set VERBOSITY terse
select abs(0.1::float4), pg_typeof(abs(0.1::float4)), abs('-0'::float4), abs('-Infinity'::float4), @ 0.1::float4;
select sinh(1000), cosh(1000), sinh(-1000), asinh(1.7e308), acosh(1.7e308), asinh(-123456.789), acosh(3), acosh(1), asinh(0.5), asinh(1e-10);
select asind(0.1), acosd(0.1), atand(0.5), atan2d(0.5, 1.25), asind(1), acosd(-0.5), atand(1), atanh(-0.6190476190476191::float8);
select chr(-3);
select chr(1114112);
select chr(55555);
select chr(0);
select '5874897-12-31'::date + interval '1 day';
select '5874897-12-31'::date - interval '1 day';
select '5874897-12-31'::date + time '00:00';
select timetz '00:00+00' + '5874897-12-31'::date;
select 'infinity'::date + time '01:00', '-infinity'::date - interval '1 day', date '2024-01-01' + timetz '12:00+00';
select timezone('1 day'::interval, 'infinity'::timestamp), timezone('1 mon'::interval, '-infinity'::timestamptz);
select timezone('1 day'::interval, '2024-01-01'::timestamp);
select timezone('15:00'::interval, '294276-12-31 23:59:59+00'::timestamptz);
select true::name, false::name, true::text, '1.2.3.4'::inet::name, '1.2.3.4'::inet::text, '::1'::inet::name;
select 4294967295::oid::int4, (-1)::oid, (-1)::int2::oid, 4294967295::oid::int8;
select (-1)::int8::oid;
select '::1'::inet & '1.2.3.4'::inet;
select '::1'::inet | '1.2.3.4'::inet;
-- range_agg and range_intersect_agg over windows.
select range_agg(r) over (order by lower(r)), range_intersect_agg(r) over (order by lower(r) rows 1 preceding),
    range_agg(r) filter (where lower(r) > 1) over () from (values (int4range(1, 5)), (int4range(3, 8)), (int4range(20, 30))) v(r);
select range_agg(m) over (order by m::text), range_intersect_agg(m) over () from (values ('{[1,5)}'::int4multirange), ('{[3,9)}')) v(m);
-- int2vector and oidvector are counted from 0.
select ('1 2'::oidvector)[0], array_dims('1 2'::oidvector), ('3 4'::int2vector)[1], array_upper('3 4'::int2vector, 1), ('1 2'::oidvector)::oid[];
select proargtypes[0]::regtype, proargtypes[1]::regtype from pg_proc where proname = 'substr' order by oid;
-- Polymorphic functions of users.
create function edge_one(anyelement, anyelement) returns anyelement language sql as 'select $1';
create function edge_common(anycompatible, anycompatible) returns anycompatible language sql as 'select greatest($1, $2)';
select edge_one(1, 2), edge_one('a'::text, 'b'), edge_common(1, 2.5), edge_common('a', 'b'), edge_common(1, '5');
select edge_one(1.5, 2);
select edge_one('a', 'b');
drop function edge_one, edge_common;
-- An INSERT from a query gives no value to a column GENERATED ALWAYS AS IDENTITY.
create table edge_t (i int generated always as identity, x text);
insert into edge_t select 5, 'x';
insert into edge_t (i) select 5 where false;
insert into edge_t (i, x) overriding user value select 5, 'u' returning *;
insert into edge_t overriding system value select 5, 's' returning *;
insert into edge_t (x) select 'k' returning *;
insert into edge_t table edge_t;
drop table edge_t;
