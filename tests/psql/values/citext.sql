-- citext.
\pset footer off
create extension citext;
create type citext as enum ('a');
create extension citext;
create extension if not exists citext;
select 'a'::citext = 'A'::citext, 'a'::citext = 'b'::citext, 'Straße'::citext = 'STRAßE', 'É'::citext = 'é', 'a'::citext <> 'A', 'a'::citext < 'B', 'B'::citext > 'a', 'a'::citext <= 'A', 'a'::citext >= 'b';
select 'a'::citext = 'A'::text, 'a'::text = 'A'::citext, 'a'::citext = 'A'::varchar, 'B'::citext < 'a'::text;
select pg_typeof('a'::citext || 'b'), pg_typeof('a'::citext || 'b'::citext), pg_typeof(coalesce('a'::citext, 'b'::text)), pg_typeof(coalesce('a'::citext, 'b')), pg_typeof(array['a'::citext, 'B']);
select citext_cmp('B', 'b'), citext_cmp('B', 'c'), citext_cmp('C', 'b'), citext_eq('a', 'A'), citext_larger('a', 'B'), citext_smaller('A', 'b'), citext_larger('aA', 'Aa');
select 'a'::citext ~<~ 'B', 'a'::citext ~>=~ 'B', citext_pattern_cmp('A', 'a');
select 'Aardvark'::citext ~~ 'aA%', 'Aardvark'::citext like 'aA%'::text, 'Aardvark'::citext not like 'AA%', 'Aardvark'::citext ilike '%VARK', 'Aardvark'::citext ~ '^a{2}', 'Aardvark'::citext !~ 'VARK$', 'Aardvark'::citext ~* 'r.v'::text, 'a%b'::citext like 'A!%B' escape '!';
select 'abc'::citext similar to 'A%', regexp_match('foobarBAZ'::citext, 'BAR(.)'), regexp_match('foobar'::citext, 'BAR', 'c');
select regexp_matches('fooBARbar'::citext, 'bar', 'g');
select regexp_replace('Thomas'::citext, '.[MN]a.', 'M'), regexp_replace('FOOfoo'::citext, 'foo', 'X', 'g'), regexp_replace('FOOfoo'::citext, 'foo', 'X', 'gc');
select regexp_split_to_array('hello WORLD'::citext, 'O'), regexp_split_to_array('hello WORLD'::citext, 'O', 'c');
select regexp_split_to_table('aXbxc'::citext, 'x');
select replace('abcdefabcdef'::citext, 'CD', 'XX'), replace('a.b'::citext, '.', '-'), split_part('abcTdefTghi'::citext, 't', 2), split_part('a.b'::citext, '.', 9), strpos('abcdef'::citext, 'CD'), strpos('high'::citext, 'x'), translate('abcdefabcdef'::citext, 'CD', 'xx');
select lower('ABC'::citext), upper('abc'::citext), length('abc'::citext), initcap('hi THOMAS'::citext), left('abc'::citext, 2), 'abc'::citext || 1, concat('A'::citext, 'b'), format('%s %L', 'A'::citext, 'b'::citext), md5('a'::citext), to_json('A'::citext), quote_literal('a''B'::citext);
select true::citext, '192.168.0.1/24'::inet::citext, 'a  '::char(5)::citext || '|', 4::citext, '4'::citext::int, '2020-01-02'::citext::date, 1.5::numeric::citext, citext('x'), citext('ab '::char(3)) || '.', 'a'::citext::char(3) || '|', 'abc'::citext::varchar(2);
select 'a'::citext in ('A', 'B'), 'b'::citext = any(array['A', 'B']::citext[]), 'b'::citext = any('{A,B}'), array['a', 'B']::citext[] = array['A', 'b']::citext[], array['a']::citext[] @> array['A']::citext[], greatest('a'::citext, 'B'), least('C'::citext, 'd', 'B'), nullif('a'::citext, 'A');
select min(x), max(x), count(distinct x), array_agg(x order by x) from (values ('b'::citext), ('A'), ('B'), ('c')) v(x);
select x, count(*) from (values ('b'::citext), ('A'), ('c')) v(x) group by x order by x;
create table ci (name citext primary key, other citext unique, note citext[], n int);
insert into ci values ('Foo', 'One', '{A,b}', 1), ('bar', 'TWO', null, 2), ('Baz', null, '{}', 3), ('ÄRGER', 'three', null, 4);
insert into ci values ('fOO', 'x', null, 9);
insert into ci values ('y', 'two', null, 9);
insert into ci values ('FOO', 'x', null, 10) on conflict (name) do update set n = excluded.n;
insert into ci values ('z', 'one', null, 10) on conflict do nothing;
select * from ci order by name;
select name from ci where name = 'FOO';
select name from ci where name = 'ärger';
select name from ci where name = 'FOO'::text;
select name, other from ci where other = 'ONE';
select other from ci where other > 'p' order by other;
select name from ci where name >= 'BAR' and name < 'C' order by name desc;
select name from ci where name in ('BAR', 'BAZ', 'no') order by 1;
select min(name), max(other) from ci;
update ci set name = 'FOO' where name = 'foo';
update ci set other = 'two' where n = 2;
select name, other from ci where n in (1, 2, 10) order by n;
update ci set other = 'oNe' where n = 2;
delete from ci where name = 'BAZ';
select count(*) from ci;
create index ci_n on ci (other, n);
select other, n from ci where other = 'ONE';
set enable_seqscan = off;
select other from ci where other is not null order by other;
reset enable_seqscan;
select a.name, b.name from ci a join ci b on a.name = b.name order by 1;
select a.name from ci a where exists (select from ci b where b.name = upper(a.name)::citext) order by 1;
create table ci_of (name citext references ci on update cascade, k int primary key);
insert into ci_of values ('foo', 1), ('BAR', 2);
insert into ci_of values ('none', 3);
update ci set name = 'Food' where name = 'FOO';
select name, k from ci_of order by k;
delete from ci where name = 'bar';
update ci set name = 'FOOD' where name = 'food';
select name, k from ci_of order by k;
create view ci_view as select name, name::text as plain from ci where name like 'F%';
select * from ci_view;
\d ci
\d ci_view
create index ci_expression on ci (lower(name));
create index ci_replaced on ci (public.replace(name, 'a', 'b'));
create unique index ci_partial on ci (n) where name <> 'FOO';
alter table ci add column extra text;
update ci set extra = 'Xy' where n = 2;
alter table ci alter column extra type citext;
select name from ci where extra = 'XY';
alter table ci alter column extra type text;
select count(*) from ci where extra = 'XY';
create table ci_changed (a text primary key, b int);
insert into ci_changed values ('B', 1), ('a', 2), ('C', 3);
alter table ci_changed alter column a type citext;
select a from ci_changed order by a;
select a from ci_changed where a = 'A';
insert into ci_changed values ('c', 4);
alter table ci_changed alter column a type text;
insert into ci_changed values ('c', 4);
select a from ci_changed where a = 'c' or a = 'C' order by a;
\set VERBOSITY terse
alter table ci_changed alter column a type citext;
\set VERBOSITY default
drop table ci_changed;
select attname, attcollation, atttypid::regtype from pg_attribute where attrelid = 'ci'::regclass and attnum in (1, 3);
select data_type, udt_schema, udt_name from information_schema.columns where table_name = 'ci' and column_name in ('name', 'note') order by column_name;
create domain ci_domain as citext check (value <> 'BAD');
select 'bad'::ci_domain;
select 'Good'::ci_domain = 'gOOD';
prepare find_ci as select name from ci where name = $1;
execute find_ci('FOOD');
prepare of_type(citext, text) as select $1 = 'ABC', $1 ~ $2;
execute of_type('abc', 'B');
copy (select name, other, n from ci order by name) to stdout;
copy ci (name, n) from stdin;
Copied	7
\.
select name from ci where name = 'copied';
select typname, typcategory, typtype, typlen, typdelim, typispreferred, typcollation, typinput, typoutput, typreceive, typsend, typnamespace::regnamespace, typelem::regtype, typarray::regtype from pg_type where typname in ('citext', '_citext') order by 1;
select oprname, oprleft::regtype, oprright::regtype, oprresult::regtype, oprcode, oprcanhash from pg_operator where oprleft = 'citext'::regtype order by 1, 3;
select castsource::regtype, casttarget::regtype, castcontext, castmethod from pg_cast where 'citext'::regtype in (castsource, casttarget) order by 1, 2;
select opcname, opcintype::regtype, opcdefault from pg_opclass where opcintype = 'citext'::regtype and opcmethod = 403 order by 1;
select p.opcname, count(*) from pg_index i join pg_opclass p on p.oid = any(i.indclass) where indrelid = 'ci'::regclass group by 1 order by 1;
\dT citext
set search_path = pg_catalog;
select 'a'::public.citext, pg_typeof('a'::public.citext), 'a'::citext;
select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'public.ci'::regclass and attnum > 0 and not attisdropped order by attnum;
select pg_get_indexdef('public.ci_replaced'::regclass), pg_get_indexdef('public.ci_partial'::regclass);
select pg_type_is_visible('public.citext'::regtype), pg_function_is_visible(oid), pg_get_function_arguments(oid), pg_get_function_result(oid) from pg_proc where proname = 'citext_cmp';
select name from public.ci where name operator(public.=) 'FOOD' or name operator(public.~) '^foo' order by 1;
select 1 operator(public.+) 2;
reset search_path;
\set VERBOSITY terse
drop extension citext;
drop type citext;
drop domain ci_domain;
drop view ci_view;
drop table ci_of;
begin;
set local client_min_messages = warning;
drop extension citext cascade;
\d ci
rollback;
drop table ci;
drop extension citext;
select 'a'::citext;
create schema ext_ci;
create extension citext schema ext_ci;
select 'a'::ext_ci.citext;
select 'a'::citext;
create table ci_in (a ext_ci.citext, b int);
\d ci_in
set client_min_messages = warning;
drop schema ext_ci cascade;
\d ci_in
drop table ci_in;
