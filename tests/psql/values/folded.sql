-- Constants that are computed when a statement is planned mean what the session's settings and the catalog say.
create temp table one as select 1 as a;
set timezone = 'America/New_York';
set datestyle = 'German';
set intervalstyle = 'iso_8601';
select date '2000-01-01' = timestamptz '2000-01-01 00:00', date '2000-01-01' < timestamptz '2000-01-01 03:00+00', timestamp '2000-01-01' = timestamptz '2000-01-01 00:00' from one;
select date '2000-01-02' || 'x', timestamptz '2000-01-01 00:00+00' || '', interval '1 day' || 'y', array[date '2000-01-02'] || date '2000-01-03', (date '2000-01-02')::text, row(date '2000-01-02')::text from one;
select timestamptz '2000-01-01 00:00+00' + interval '1 day', timestamptz '2000-04-01 00:00+00' + interval '2 day', timestamptz '2000-04-03' - interval '1 day', date '2000-04-01' + time '03:00', date '2000-04-01' + timetz '03:00+01' from one;
select timestamptz '2000-01-01 00:00+00' - timestamp '2000-01-01', timestamp '2000-01-01' - timestamptz '2000-01-01 00:00+00' from one;
select 'postgres'::regrole::text, 'pg_class'::regclass::text, 'int4'::regtype::text, 'pg_catalog'::regnamespace::text, 'now'::regproc::text, 'now()'::regprocedure::text from one;
select greatest(date '2000-01-01', timestamptz '2000-01-01 00:00'), least('2000-01-01'::timestamp, '2000-01-01 03:00+00'::timestamptz), coalesce(null, date '2000-01-01')::text, case when date '2000-01-01' = timestamptz '2000-01-01 00:00' then 1 else 2 end from one;
select date '2000-01-01' in (timestamptz '2000-01-01 00:00'), date '2000-01-01' between timestamp '2000-01-01' and timestamptz '2000-01-02', nullif(date '2000-01-01', timestamptz '2000-01-01 00:00') from one;
select '1,5'::money::text, 12.5::money, 1.0/3, 2^0.5, -5 % 3, 5::bit(4), 7/2, '{1,2}'::int[] || 3, '[1,2]'::jsonb || '3', '1 day'::interval * 2 from one;
select a from one where timestamp '2000-01-01' = timestamptz '2000-01-01 00:00';
select extract(day from timestamptz '2000-01-01 00:00+00'), length(timestamptz '2000-01-01 00:00+00'::text) from one;
select md5(date '2000-01-01'::text), left(timestamptz '2000-01-01 00:00+00'::text, 5) from one;
reset timezone; reset datestyle; reset intervalstyle; drop table one;
