-- What ANALYZE finds out. The samples hold all rows, so that both find the same.
create table st (id int primary key, a int, b text, c numeric(8,2), d date, e bool, f float8, w text);
insert into st select i, i % 10, case when i % 4 = 0 then null else 'v' || (i % 50) end, (i % 7) * 1.25, date '2024-01-01' + i % 20, i % 3 = 0,
  (1000 - i) / 8.0, repeat('x', 100 + i % 3) from generate_series(1, 1000) i;
analyze st;
\x on
select attname, inherited, null_frac, avg_width, n_distinct, most_common_vals, most_common_freqs, round(correlation::numeric, 4) as correlation
  from pg_stats where tablename = 'st' and attname <> 'w' order by attname;
select attname, histogram_bounds from pg_stats where tablename = 'st' and attname in ('id', 'f') order by 1;
\x off
select attname, null_frac, avg_width, n_distinct, array_length(most_common_freqs, 1) from pg_stats where tablename = 'st' and attname = 'w';
select staattnum, stakind1, staop1, stacoll1, stakind2, staop2, stakind3, staop3, stanumbers2 from pg_statistic
  where starelid = 'st'::regclass order by 1;
-- Targets.
alter table st alter column a set statistics 3, alter column f set statistics 5, alter b set statistics 0;
select attname, attstattarget from pg_attribute where attrelid = 'st'::regclass and attnum > 0 order by attnum;
analyze st;
select attname, most_common_vals, histogram_bounds from pg_stats where tablename = 'st' and attname in ('a', 'f') order by 1;
alter table st alter a set statistics -1;
alter table st alter a set statistics 20000;
alter table st alter a set statistics -2;
alter table st alter nothing set statistics 2;
select attstattarget from pg_attribute where attrelid = 'st'::regclass and attname = 'a';
set default_statistics_target = 4;
analyze st (c);
select attname, most_common_vals, array_length(most_common_freqs, 1) from pg_stats where tablename = 'st' and attname in ('c', 'd') order by 1;
reset default_statistics_target;
analyze st (c, c);
analyze st (c, nothing);
-- Expressions of indexes.
create table ste (id int primary key, name text);
insert into ste select i, case when i % 2 = 0 then 'Ann' else 'ann' || i % 4 end from generate_series(1, 400) i;
create index ste_lower on ste (lower(name), id);
analyze ste;
select tablename, attname, null_frac, n_distinct, most_common_vals, most_common_freqs from pg_stats where tablename like 'ste%' and attname <> 'id'
  order by 1, 2;
-- A role sees what is known of columns that it may read.
create role values_stats_reader;
grant select (a, c) on st to values_stats_reader;
set role values_stats_reader;
select tablename, attname from pg_stats where tablename like 'st%' and schemaname = 'public' order by 1, 2;
select has_table_privilege('pg_statistic', 'select');
reset role;
drop owned by values_stats_reader;
drop role values_stats_reader;
-- Nulls alone, nothing at all, one value.
create table stn (id int primary key, n text, o int);
analyze stn;
select count(*) from pg_stats where tablename = 'stn';
insert into stn select i, null, 7 from generate_series(1, 100) i;
analyze stn;
select attname, null_frac, avg_width, n_distinct, most_common_vals, most_common_freqs, correlation from pg_stats where tablename = 'stn' and attname <> 'id'
  order by 1;
alter table stn drop column n;
select attname from pg_stats where tablename = 'stn' order by 1;
drop table st, ste, stn;
select count(*) from pg_stats where tablename like 'st%' and schemaname = 'public';
