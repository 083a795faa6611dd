select 1 + 2, 1 + 2::bigint, 3::smallint * 2::smallint, 7 / 2, -7 / 2, 7 % -3, -7 % 3
select 2147483647 + 1
select 9223372036854775807 + 1
select 32767::smallint + 1::smallint
select 1 / 0
select 1.0 / 0
select 1.5 + 1, 1.50 * 2.0, 10.0 / 3, 1 / 3.0, 2::numeric / 3, 1e10 / 7, 0.001 / 7000, 7.5 % 2
select 100000000000000000000 / 3, 1.0 / 10000, 12345.678 / 0.0001
select 'NaN'::numeric = 'NaN'::numeric, 'Infinity'::numeric - 'Infinity'::numeric
select 123.456::numeric(5,2), 0.005::numeric(2,2), -1.5::numeric(10,0), 2.5::numeric::int, -2.5::numeric::int
select 1234.5::numeric(3,2)
select round(2.5), round(-2.567, 2), round(1234.5, -2), trunc(2.567, 1), floor(-1.5), ceil(-1.5), abs(-3), abs(-2.5)
select round(2.5::float8), floor(1.5::float8), 1e15::float8, 1e14::float8, 1.1::float4, 1e-5::float8, 0.1::float8 + 0.2::float8
select 1.0::float8 / 0
select 1e308::float8 * 10
select '1'::int, ' 42 '::int, '-5'::bigint
select 'x'::int
select '99999999999'::int
select '1.5'::int
select ''::int
select 'abc'::numeric
select 'abc'::float8
select 'maybe'::boolean
select 't'::boolean, 'off'::bool, 'yes'::bool, true and null, false and null, true or null, not null::bool
select 1 = 1, 1 <> 2, 1 < 2.5, 'a' < 'b', 'a' = 'a ', 'a'::char(3) = 'a', 'B' < 'a'
select 1 = 'x'
select 1 = '1', '2' > 1, 1.5 = '1.5'
select null = 1, null is null, 1 is not null, null is distinct from null, 1 is distinct from null, 1 is not distinct from 1
select true is true, null::bool is unknown, false is not true
select 2 between 1 and 3, 2 not between 1 and 3, 2 between symmetric 3 and 1
select 1 in (1, 2), 3 in (1, null), 3 not in (1, 2), 1 in (1.0, 2), 'a' in ('a', 'b')
select 'abc' like 'a%', 'abc' like '_b_', 'abc' ilike 'A%', 'a%c' like 'a\%c', 'abc' not like 'x%', 'a_c' like 'a!_c' escape '!'
select 'abc' ~ 'b', 'abc' ~* 'B', 'abc' !~ '^b', 'abc' ~ '^a.c$'
select 'a' || 'b', 'a' || 1, 1 || 'a', 'a' || null, 'x' || 1.5 || true
select 1 || 2
select 1 + true
select 'a' + 'b'
select 'a' + 1
select -'x'
select @ -5, |/ 4.0, ~ 5, 5 & 3, 5 | 3, 5 # 3, 1 << 3, -8 >> 1, 2 ^ 10
select case 1 when 1 then 'a' else 'b' end, case when false then 1 end, case when true then 1 else 2.5 end
select case when 1 then 2 end
select case when true then 1 else 'x' end
select case when true then 1 else true end
select coalesce(null, 1, 2), coalesce(null, 'a'), nullif(1, 1), nullif(1, 2), greatest(1, 3, 2), least(1, null, 2.5)
select nullif('a'::varchar, 'b'), nullif('a'::varchar(3), 'a'::varchar), nullif('a'::char(3), 'b'), nullif('a'::char(3), 'b'::text), nullif('a'::name, 'b'::text)
select nullif(1, 2.5), nullif(1::smallint, 1), nullif(1::smallint, 2::bigint), nullif(1.5::real, 1::float8), nullif(1.50::numeric(4,2), 1), nullif(2, 1.5::real)
select nullif(date '2020-01-01', timestamptz '2020-01-02 00:00+00'), nullif(timestamp '2020-01-01', date '2020-01-02'), nullif('x', 'y'), nullif(null, 1), nullif(array[1], '{2}')
select coalesce(1, 'x')
select coalesce(1, true)
select 1::text, 1.50::text, true::text, '2020-01-01'::date::text, 'abc'::varchar(2), 'abc'::char(2), 'abc'::char(5)
select 1::boolean, 0::bool, true::int
select 1.5::boolean
select 1.5::int8, 1.4999::int2, 1.5::float8::int, 2.5::float8::int
select 40000::smallint
select 3000000000::int
select 1e20::bigint
select length('abc'), length('äöü'), octet_length('ä'), lower('ABC'), upper('abc'), initcap('hello wORLD')
select substring('hello' from 2 for 3), substring('hello', 2), substring('hello' from -1 for 3), substr('abc', 2, 5), left('hello', 2), right('hello', -2), left('abc', -1)
select substring('abc' from 1 for -1)
select trim('  x '), trim(both 'x' from 'xxaxx'), ltrim('xxa', 'x'), rtrim('axx', 'x'), btrim('  a ')
select position('l' in 'hello'), strpos('hello', 'z'), repeat('ab', 3), reverse('abc'), replace('aXbX', 'X', '-'), translate('abc', 'ab', 'x')
select lpad('5', 3, '0'), rpad('a', 3), lpad('hello', 2), split_part('a,b,c', ',', 2), split_part('a,b', ',', -1), starts_with('abc', 'ab')
select md5('abc'), ascii('a'), chr(97), to_hex(255), quote_ident('Ab'), quote_literal('it''s')
select concat('a', 1, null, true), concat_ws(',', 'a', null, 'b'), format('%s %I %L %%', 'a', 'B c', 'd''e')
select length(5)
select nosuch(1, 'a')
select lower(1)
select array[1, 2, 3], array[1, 2.5], array['a', null, 'b c'], array[[1, 2], [3, 4]], '{}'::int[], '{1,2}'::int[]
select (array[10, 20])[2], ('{a,b}'::text[])[1], (array[1])[5], array[1, 2] || 3, 0 || array[1], array[1] || array[2, 3]
select 1 = any (array[1, 2]), 3 = any ('{1,2}'), 1 < all (array[2, 3]), 'a' = any ('{a,b}'::text[]), 1 = any (null::int[])
select array[1, 2] = array[1, 2], array[1, 2] @> array[1], array_length(array[1, 2], 1), cardinality(array[1, 2, 3]), array[1, 3] < array[1, 4]
select array[]
select '{1,x}'::int[]
select '{1,2'::int[]
select 1 = any (5)
select '2020-02-29'::date, '2021-02-28'::date + 1, '2020-03-01'::date - '2020-02-01'::date, date '2020-01-31' + interval '1 month'
select '2021-02-29'::date
select 'foo'::date
select '2020-13-01'::date
select '2020-01-02 03:04:05.678'::timestamp, '2020-01-02T03:04:05'::timestamp, '2020-01-02 03:04:05+02'::timestamptz, 'infinity'::timestamp, 'Jan 5 2020'::date, '1/2/2020'::date, '20200102'::date
select timestamp '2020-01-31 10:00' + interval '1 month 2 days 3 hours', timestamp '2020-03-01' - timestamp '2020-02-28 12:00'
select interval '1 year 2 months 3 days 04:05:06.7', interval '90 minutes', interval '-1 day', interval '1 day' * 1.5, interval '1 week', -interval '1 mon'
select interval 'foo'
select extract(year from timestamp '2020-05-06 07:08:09.5'), extract(second from timestamp '2020-05-06 07:08:09.5'), extract(epoch from timestamp '2000-01-01'), extract(dow from date '2020-05-06'), date_part('hour', timestamp '2020-05-06 07:08:09')
select date_trunc('month', timestamp '2020-05-06 07:08:09'), date_trunc('week', timestamp '2020-05-06'), timestamp '2020-01-01 12:00' at time zone 'PST8PDT', timestamptz '2020-07-01 12:00+00' at time zone 'PST8PDT'
select timestamp '2020-01-01' < date '2020-01-02', date '2020-01-01' = timestamp '2020-01-01', timestamptz '2020-01-01 00:00+00' = timestamp '2020-01-01 00:00'
select timestamp(0) '2020-01-01 00:00:00.5', '2020-01-01 00:00:00.123456'::timestamp(3)
select '\x0aff'::bytea, 'a\\b'::bytea, '\x01'::bytea || '\x02'::bytea, length('\x0102'::bytea)
select pg_typeof(1), pg_typeof('a'), pg_typeof(1.5), pg_typeof(array[1]), pg_typeof(null), pg_typeof(1::"char"), pg_typeof('a'::varchar(3))
select 'int4'::regtype, 'character varying'::regtype::oid, 'timestamp with time zone'::regtype
select 'nosuch'::regtype
select format_type(1043, 14), format_type(1700, 655366), format_type(23, -1)
select 1::oid, -1::oid, '5'::xid, 5::oid = 5
select x
select x.y
select 1::nosuchtype
select '1'::numeric(2000)
select 'a'::varchar(0)
select sum(1)
select (1, 2) = (1, 2), (1, 2) <> (1, 3), row(1, 'a', null)
select (1, 2) = (1, 2, 3)
select current_setting('nosuch')
select 'abc' collate "C" < 'abd', 'a' collate "C"
select 5 % 0
select mod(7, 3), mod(7.5, 2), sign(-5), sqrt(16::float8), power(2::float8, 3), pi()
select 1::money
select 'abc'::name, 'x'::"char", 'abcdef'::"char"
select '1e400'::float8
select '  true '::bool, 'TRUE'::bool
select 0.1 + 0.2, 1.10, -0.0, .5, 1e3, 1.5e-3, 123456789012345678901234567890
select 99999999999999999999 * 99999999999999999999, 1.23456789 * 9.87654321
select -32768::smallint
select (-32768)::smallint, (-9223372036854775808), -2147483648
select abs((-2147483648)::int)
select -(-2147483648)::int
select overlay('abc' placing 'x' from 2147483647)
select overlay('abc' placing 'x' from 2147483647 for 0), overlay('abc' placing 'x' from 1 for -2147483648)
select overlay('abc'::bytea placing 'x' from 2147483647)
select overlay(B'101' placing B'1' from 2147483647)
select 1.6::real in (1.6), 1.6::real in ((16 / 10.0)), 1.6::real in (1.6, 2.5), 1.6::real in (1.6, 2.5::real), 1.6::real not in ((16 / 10.0)), 2 in (2.0)
