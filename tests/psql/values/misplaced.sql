-- What may not stand where it stands.
create table misplaced (a int primary key, b text, d int[]);
insert into misplaced values (1, 'x', '{1,2}'), (2, null, null);
create function misplaced_rows() returns setof int language sql as 'values (1), (2)';
-- Functions that give rows, where not all is evaluated.
select coalesce(generate_series(1, 2), 0);
select case when true then generate_series(1, 2) end;
select case generate_series(1, 2) when 1 then 'a' else 'b' end;
select case when generate_series(1, 2) > 1 then 1 end;
select generate_series(1, 2) > 1 and true;
select not misplaced_rows() = 1;
select (unnest(d) = 1) is true from misplaced;
select greatest(generate_series(1, 2), 2), nullif(generate_series(1, 2), 1);
select a from misplaced order by coalesce(misplaced_rows(), 0);
insert into misplaced (a) select coalesce(generate_series(8, 9), 0);
insert into misplaced (a) values (case when true then generate_series(8, 9) end);
-- VALUES of one row, which is taken as a query.
\set VERBOSITY sqlstate
insert into misplaced (a) values (generate_series(1, count(*)));
insert into misplaced (a) values (generate_series(1, row_number() over ()));
\set VERBOSITY default
-- Constants as keys, and names given twice.
select 1 from misplaced group by null;
select a from misplaced order by null;
select distinct on (null) a from misplaced;
with w as (select 1), w as (select 2) select * from w;
-- Rows as targets.
select m.* is null, m.* = m.* from misplaced m order by a;
select m.* as no_name from misplaced m order by 1;
create view misplaced_v as select row(1, 2) as x;
create table misplaced_n as select row(1, 2) as x;
create view misplaced_v as select pg_sleep(0) as x;
-- The places of definitions.
create domain misplaced_d as int default count(*);
create domain misplaced_d as int default nosuch;
create domain misplaced_d as int default (select 1);
create domain misplaced_d as int default 'x';
create domain misplaced_d as int default row(1, 2);
create domain misplaced_d as int default generate_series(1, 2);
create domain misplaced_d as int default 5 null not null;
create domain misplaced_d as int default '5';
alter domain misplaced_d set default 'y';
alter domain misplaced_d set default b;
alter domain misplaced_d set default 7;
\set VERBOSITY sqlstate
create table misplaced_n (a int default (select 1));
create table misplaced_n (a int check (a > (select 1)));
\set VERBOSITY default
alter table misplaced add check (exists (select 1));
\set VERBOSITY sqlstate
create table misplaced_n (a int, b int generated always as ((select a)) stored);
\set VERBOSITY default
create table misplaced_n (a int generated always as (1) stored default 3);
create table misplaced_n (a int default 3 generated always as (1) stored);
create table misplaced_n (a serial[]);
create table misplaced_n (a int, unique (a, a));
create table misplaced_n (a int, primary key (a, a));
alter table misplaced add unique (a, b, a);
create index on misplaced ((excluded.a));
create index on misplaced ((misplaced.a));
create index on misplaced (('x'));
create index on misplaced ((null));
create index on misplaced ((a + (select 1)));
create index on misplaced (a) where exists (select 1);
alter table misplaced alter b type int using (select 1);
alter table misplaced alter b type int using exists (select 1 from misplaced);
insert into misplaced values (1) on conflict (a) where exists (select 1) do nothing;
insert into misplaced values (1) on conflict ((a + (select 1))) do nothing;
insert into misplaced values (1) on conflict ((excluded.a)) do nothing;
insert into misplaced values (1) on conflict ((misplaced.a)) do nothing;
insert into misplaced values (1) on conflict ((max(a))) do nothing;
-- Two names of one column in a view.
create view misplaced_v as select a, a as a2 from misplaced;
insert into misplaced_v values (7, 8);
insert into misplaced_v values (7);
drop view misplaced_v;
-- A parameter has its type from where it stands first.
prepare misplaced_p as select $1 between date '2020-01-01' and $2, $3 between $4 and 5, $5 between symmetric $6 and 2.5;
select parameter_types from pg_prepared_statements where name = 'misplaced_p';
execute misplaced_p('2020-06-01', '2021-01-01', 1, 2, 3, 4);
drop domain misplaced_d;
drop function misplaced_rows;
drop table misplaced;
