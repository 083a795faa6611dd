-- Parameters of a set operation have the types of the other side.
prepare open_1 as select $1 union select 1;
prepare open_2 as select 1.5, 'x'::text union all select $1, $2;
prepare open_3 as select $1 intersect select $2;
prepare open_4 as select $1 union select 1 union select $2;
prepare open_6 as select $1 union select null;
select name, parameter_types from pg_prepared_statements where name like 'open%' order by 1;
execute open_1(1);
execute open_2(2, 'y');
execute open_4(1, 3);
prepare open_7 as select $1 union select 'a' union select 5;
-- A literal that is cast to a domain is cut as by the cast to its type.
create domain open_d as varchar(3) check (value <> 'bad');
create domain open_e as open_d;
create domain open_n as numeric(4,1);
select 'abcd'::open_d, 'abcd'::open_e, cast('abcd' as open_d), 'abcd'::text::open_d, '12.345'::open_n, 'ab '::open_d;
select 'badly'::open_d;
create table open_t (d open_d);
insert into open_t values ('abcd'::open_d), ('abc  ') returning d;
\set VERBOSITY sqlstate
insert into open_t values ('abcd');
\set VERBOSITY default
drop table open_t;
drop domain open_e, open_d, open_n;
deallocate all;
-- A place that takes any type gives none.
\set VERBOSITY terse
prepare open_8 as select $1 is null;
prepare open_9 (int) as select $1 is null, $2 is not null;
prepare open_10 as select $1 is null or 1 = $1;
prepare open_11 as select 1 = $1 or $1 is null;
prepare open_12 (unknown) as select $1 is null;
prepare open_13 as select $1::int where $1 is null;
select name, parameter_types from pg_prepared_statements where name like 'open%' order by 1;
deallocate all;
\set VERBOSITY default
