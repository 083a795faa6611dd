-- Functions and procedures in SQL.

\set SHOW_CONTEXT always
\set VERBOSITY default
create schema fn;
set search_path = fn, public;
create table fn.item (id int primary key, name text, price numeric(8,2));
insert into fn.item values (1, 'one', 1.50), (2, 'two', 2.25), (3, 'three', 30);
create type fn.pair as (a int, b text);

-- scalars: by number, by name, by the function's name; inlined or not
create function add(int, int) returns int language sql immutable as 'select $1 + $2';
create function add(a text, b text) returns text language sql immutable as 'select add.a || b';
select add(1, 2), add('x', 'y'), add('1'::text, 'z');
create function price_of(item_id int) returns numeric language sql stable as $$ select price from fn.item where id = item_id $$;
select price_of(1), price_of(7), (select sum(price_of(id)) from fn.item);
select name from item where price_of(id) > 2 order by id;
create function id(id int) returns text language sql as 'select name from fn.item where item.id = $1 and name is not null';
select id(2), id(9);
create function last_of() returns int language sql as 'select 1; select 2; select 3';
select last_of();
create function nothing() returns void language sql as '';
select nothing() is null as is_null, pg_typeof(nothing());
create function widened() returns bigint language sql as 'select 7';
select widened(), pg_typeof(widened());
create function strict_add(a int, b int) returns int strict language sql as 'select coalesce(a, 10) + coalesce(b, 10)';
select strict_add(1, null), strict_add(1, 2);
create function lax_add(a int, b int) returns int called on null input language sql as 'select coalesce(a, 10) + coalesce(b, 10)';
select lax_add(1, null), lax_add(null, null);

-- defaults, names, VARIADIC
create function made(a int, b int default 10, c text default 'c') returns text language sql as $$ select format('%s %s %s', a, b, c) $$;
select made(1), made(1, 2), made(1, c => 'z'), made(c => 'q', a => 5), made(a := 1, b := 3);
select made();
select made(1, d => 2);
select made(a => 1, 2);
create function total(variadic list int[]) returns bigint language sql as 'select sum(x) from unnest(list) x';
select total(1), total(1, 2, 3), total(variadic array[4, 5]);
select total();

-- results of several columns
create function split(a int, out half int, out double int) language sql as 'select a / 2, a * 2';
select split(10), (split(10)).half, (split(10)).*;
select * from split(7);
select s.double from split(7) s;
create function inout_one(inout a int) language sql as 'select a + 1';
select inout_one(4);
select * from inout_one(4);
create function a_pair(n int) returns pair language sql as $$ select n, 'p' || n $$;
select a_pair(1), (a_pair(2)).b;
select * from a_pair(3);
create function an_item(n int) returns fn.item language sql as 'select * from fn.item where id = n';
select an_item(2), (an_item(2)).name;
select * from an_item(2);
select * from an_item(99);
create function names(low int) returns setof text language sql as 'select name from fn.item where id >= low order by id';
select names(2);
select * from names(1);
select * from names(1) as n;
select * from names(1) with ordinality as n(name, at);
select i.id, n from fn.item i, names(i.id) n order by 1, 2;
create function items() returns table (number int, label text) language sql as 'select id, name from fn.item order by id';
select * from items();
select items();
select number from items() where label like 't%' order by number;
create function all_items() returns setof fn.item language sql as 'select * from fn.item order by id';
select * from all_items();
select all_items();
select (all_items()).name;
create function rec() returns record language sql as $$ select 1, 'a'::text $$;
select rec();
select * from rec() as (a int, b text);
select * from rec();
select * from rec() as (a int);
create function recs() returns setof record language sql as $$ select id, name from fn.item order by id $$;
select * from recs() as (a int, b text);

-- functions that change something
create table fn.log (at serial, what text);
create function note(what text) returns int language sql as 'insert into fn.log (what) values (what) returning at';
select note('first'), note('second');
create function renamed(n int, new text) returns setof fn.item language sql as 'update fn.item set name = new where id <= n returning *';
select * from renamed(2, 'changed') order by id;
select * from fn.item order by id;
create function counted() returns bigint language sql as 'insert into fn.log (what) values (''c''); select count(*) from fn.log';
select counted(), counted();
create function count_stable() returns bigint stable language sql as 'select count(*) from fn.log';
create function count_volatile() returns bigint volatile language sql as 'select count(*) from fn.log';
select note('x') > 0 as noted, count_stable() - count_volatile() as behind;
create function bad_stable() returns int stable language sql as 'insert into fn.log (what) values (1) returning at';

-- bodies of the standard
create function std_add(a int, b int) returns int immutable return a + b;
select std_add(3, 4);
create function std_two(n int) returns text begin atomic
  select 'ignored';
  select name from fn.item where id = n;
end;
select std_two(3);
create function std_case(n int) returns text return case when n > 0 then 'plus' else 'not' end;
select std_case(1), std_case(-1);

-- in views, defaults, checks, indexes
create view fn.v as select id, add(id, 100) as more from fn.item;
select * from v order by id;
create table fn.uses (a int default add(1, 1), b text check (length(b) < add(2, 3)));
insert into uses (b) values ('abc');
insert into uses (b) values ('abcdef');
select * from uses;
create function lower_one(t text) returns text immutable strict language sql as 'select lower(t)';
create table fn.names (n text);
insert into fn.names values ('Abc'), ('DEF'), (null);
create index on fn.names (lower_one(n));
create unique index on fn.names (lower_one(n), n);
select n from fn.names where lower_one(n) = 'def';
insert into fn.names values ('DEF');
drop function lower_one(text);
drop function add(int, int);

-- errors
select nope(1);
select add(1, 2, 3);
create function add(x int, y int) returns int language sql as 'select 1';
create or replace function add(int, int) returns text language sql as $$ select 'x' $$;
create or replace function made(z int, b int default 10, c text default 'c') returns text language sql as 'select 1::text';
create function wrong1() returns int language sql as $$ select 'a'::text $$;
create function wrong2() returns int language sql as $$ select 1, 2 $$;
create function wrong4() language sql as 'select 1';
create function wrong5(out a int) returns text language sql as 'select 1';
create function wrong6(a int, a int) returns int language sql as 'select 1';
create function wrong7(a int default 1, b int) returns int language sql as 'select 1';
create function wrong8(a int) returns int language nope as 'select 1';
create function wrong9(a int) returns int as 'select 1';
create function wrong10() returns pair language sql as 'select 1';
create function wrong11() returns pair language sql as $$ select 'x'::text, 'y'::text $$;
create function wrong12() returns int language sql stable volatile as 'select 1';
create function wrong13() returns int language sql as 'commit';
create function wrong14() returns int language sql rows 5 as 'select 1';
create function wrong15(variadic a int) returns int language sql as 'select 1';
create function divided(a int) returns int language sql as 'select 1; select 10 / a';
select divided(0);
create function outer_one(a int) returns int language sql as 'select 1; select divided(a)';
select outer_one(0);
create function ambiguous(a int, b int default 1) returns int language sql as 'select 1';
create function ambiguous(a int, b text default 'x') returns int language sql as 'select 2';
select ambiguous(1);
drop function ambiguous;
drop function nope;
drop function if exists nope;
drop function if exists nope(int, text);
drop function split(text);
alter function split(int) rename to add;
alter function ambiguous(int, int) rename to other;
select ambiguous(1), other(1);

-- recursion, settings, roles
create function factorial(n int) returns numeric language sql as 'select case when n < 2 then 1 else n * fn.factorial(n - 1) end';
select factorial(1), factorial(10);
create function shown() returns text language sql set work_mem = '7MB' as $$ select current_setting('work_mem') $$;
set work_mem = '5MB';
select shown(), current_setting('work_mem');
reset work_mem;
create function path_of() returns text language sql set search_path = pg_catalog as $$ select current_setting('search_path') $$;
select path_of(), current_setting('search_path');

-- procedures
create procedure add_item(n int, what text default 'new') language sql as 'insert into fn.item values (n, what, 0)';
call add_item(50);
call add_item(51, what => 'named');
select id, name from item where id >= 50 order by id;
create procedure doubled(inout n int) language sql as 'select n * 2';
call doubled(21);
call nope(1);
call add(1, 2);
select add_item(1);
drop procedure doubled(int);

-- what the catalogs say
\df fn.*
\sf add(text, text)
\sf shown
select proname, prokind, provolatile, proisstrict, proretset, pronargs, pronargdefaults, prorettype::regtype, proargtypes, proallargtypes, proargmodes, proargnames, procost, prorows from pg_proc where pronamespace = 'fn'::regnamespace order by proname, pronargs, proargtypes::text collate "C";
select 'fn.split'::regproc, 'fn.split(int)'::regprocedure, to_regprocedure('split(text)'), to_regproc('fn.nope');
select oid::regprocedure, pg_get_function_arguments(oid), pg_get_function_identity_arguments(oid), pg_get_function_result(oid) from pg_proc where pronamespace = 'fn'::regnamespace order by oid::regprocedure::text collate "C";
select pg_get_functiondef('made'::regproc), pg_get_functiondef('items'::regproc);
alter function price_of(int) immutable strict cost 7 security definer set work_mem to '3MB';
select pg_get_functiondef('price_of'::regproc);
alter function price_of(int) reset all;
comment on function price_of(int) is 'the price';
select obj_description('price_of'::regproc, 'pg_proc');
select routine_name, routine_type, data_type, security_type from information_schema.routines where routine_schema = 'fn' order by 1, specific_name limit 5;
set client_min_messages = warning;
drop schema fn cascade;
-- What a statement has changed so far is seen by a volatile function that it calls, not by a stable one.
create table changed_so_far (a int);
insert into changed_so_far values (1), (2), (3);
create function greatest_now() returns int language sql volatile as 'select max(a) from changed_so_far';
create function greatest_before() returns int language sql stable as 'select max(a) from changed_so_far';
update changed_so_far set a = greatest_now() + 10;
select a from changed_so_far order by a;
update changed_so_far set a = greatest_before() + 10;
select a from changed_so_far order by a;
update changed_so_far set a = 1 where greatest_now() > 1;
select a from changed_so_far order by a;
delete from changed_so_far where (select count(*) from changed_so_far) > 0 and greatest_now() = 1;
select count(*) from changed_so_far;
drop function greatest_now(), greatest_before();
drop table changed_so_far;
