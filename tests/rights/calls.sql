-- EXECUTE of functions and USAGE of schemas in what is defined once and evaluated later: indexes, defaults, checks, generated columns,
-- policies, domains, ALTER TYPE ... USING. Who defines needs the schema; who evaluates needs the function.

== an index: who makes it
create user a_user; create schema lib; create schema mine authorization a_user;
create function lib.open(int) returns int language sql immutable as 'select $1 + 1';
create function public.shut(int) returns int language sql immutable as 'select $1 + 1'; revoke execute on function shut(int) from public;
create function public.even(int) returns boolean language sql immutable as 'select $1 % 2 = 0'; revoke execute on function even(int) from public;
@user a_user
set search_path = mine, public;
create table t (a int, b int);
create table filled (a int, b int); insert into filled values (1, 1), (2, 2);
create index on t (lib.open(a));
create index on filled (lib.open(a));
create index on filled (a) where lib.open(a) > 1;
create index on filled (shut(a));
create index on filled (a) where even(a);
create index on filled (a) where a > 1;
@postgres
grant usage on schema lib to a_user; grant execute on function shut(int), even(int) to a_user;
@user
create index i_open on filled (lib.open(a));
create index i_shut on filled (shut(a));
create index i_even on filled (a) where even(a);
insert into filled values (3, 3);
@postgres
revoke usage on schema lib from a_user;
@user
insert into filled values (4, 4);
update filled set a = a + 10 where a = 4;
select count(*) from filled where a > 0;
analyze filled;
reindex table filled;
reindex index i_open;
truncate filled;
insert into filled values (5, 5);

== an index: EXECUTE is revoked from its owner
create user a_user; create schema mine authorization a_user;
create function public.shut(int) returns int language sql immutable as 'select $1 + 1';
create function public.even(int) returns boolean language sql immutable as 'select $1 % 2 = 0';
@user a_user
set search_path = mine, public;
create table t (a int, b int); insert into t values (1, 1), (2, 2);
create index i_shut on t (shut(a));
create table p (a int, b int); insert into p values (1, 1), (2, 2);
create index i_even on p (b) where even(a);
@postgres
revoke execute on function public.shut(int), public.even(int) from public;
@user
insert into t values (3, 3);
insert into p values (3, 3);
insert into p values (4, 4);
update t set b = 5 where a = 1;
update t set a = 6 where a = 1;
delete from t where a = 2;
select a from t order by a;
reindex table t;
reindex table p;
-- No statistics of an index's expressions are kept: ANALYZE calls no function.
-- here: ANALYZE
analyze t;
@postgres
reindex table mine.t;
-- here: ANALYZE
analyze mine.t;
insert into mine.t values (9, 9);
insert into mine.p values (8, 8);

== an index: another role inserts
create user a_owner; create user a_user; create schema mine authorization a_owner; grant usage on schema mine to a_user;
create function public.shut(int) returns int language sql immutable as 'select $1 + 1'; revoke execute on function shut(int) from public;
grant execute on function shut(int) to a_owner;
@owner a_owner
set search_path = mine, public;
create table t (a int); create index on t (shut(a)); grant all on t to a_user;
create table empty (a int); grant all on empty to a_user;
create index on empty (a) where shut(a) > 1;
insert into t values (1);
@user a_user
set search_path = mine, public;
insert into t values (2);
insert into empty values (2);
update t set a = 3;
select * from t;
select shut(1);

== a default
create user a_owner; create user a_user; create schema lib; create schema mine authorization a_owner; grant usage on schema mine to a_user;
create function lib.n() returns int language sql as 'select 7';
create function public.shut() returns int language sql volatile as 'select 8'; revoke execute on function shut() from public;
create sequence lib.q; grant usage on lib.q to a_owner, a_user;
@owner a_owner
set search_path = mine, public;
create table t (a int default lib.n());
create table t (a int, b int default shut());
create table u (a int default nextval('lib.q'));
alter table t alter column a set default lib.n();
alter table t alter column a set default shut();
alter table t alter column a drop default;
insert into t values (1);
insert into t (a, b) values (1, 2);
alter table t add column c int default lib.n();
alter table t add column d int default shut();
grant all on t to a_user;
@postgres
grant usage on schema lib to a_owner; grant execute on function shut() to a_owner;
@owner
alter table t add column c int default lib.n();
insert into t (a) values (2);
alter table t add column d int default shut();
select * from t order by a, b;
@user a_user
set search_path = mine, public;
insert into t (a) values (3);
insert into t (a, b) values (3, 3);
insert into t (a, b, d) values (3, 3, 3);
insert into t (a, b, c, d) values (4, 4, default, 4);
insert into t default values;
update t set d = default;
update t set c = default;
@postgres
revoke usage on schema lib from a_owner;
@owner
insert into t (a) values (5);
create table like_t (like t including defaults);
insert into like_t (a) values (5);

== a check
create user a_owner; create user a_user; create schema lib; create schema mine authorization a_owner; grant usage on schema mine to a_user;
create function lib.ok(int) returns boolean language sql immutable as 'select $1 > 0';
create function public.fine(int) returns boolean language sql immutable as 'select $1 > 0'; revoke execute on function fine(int) from public;
@owner a_owner
set search_path = mine, public;
create table t (a int check (lib.ok(a)));
create table t (a int check (fine(a)));
insert into t values (1);
create table u (a int); insert into u values (1);
alter table u add check (lib.ok(a));
alter table u add check (fine(a));
alter table u add check (fine(a)) not valid;
create table e (a int);
-- Of an empty table nothing is computed.
-- here: ALTER TABLE
alter table e add check (fine(a));
drop table t;
@postgres
grant usage on schema lib to a_owner; grant execute on function fine(int) to a_owner;
@owner
create table t (a int check (fine(a)), b int check (lib.ok(b)));
insert into t values (1, 1);
insert into t values (-1, 1);
alter table u add constraint c check (fine(a)) not valid;
alter table u validate constraint c;
grant all on t, u to a_user;
@user a_user
set search_path = mine, public;
insert into t values (2, 2);
insert into t (b) values (2);
update t set b = 3;
update t set a = 4;
insert into u values (5);
delete from t;
@postgres
revoke execute on function fine(int) from a_owner;
@owner
insert into t values (6, 6);
update t set b = 7;
alter table t alter column a type bigint;
alter table t add column x int;
alter table u validate constraint c;

== a generated column
create user a_owner; create user a_user; create schema lib; create schema mine authorization a_owner; grant usage on schema mine to a_user;
create function lib.twice(int) returns int language sql immutable as 'select $1 * 2';
create function public.shut(int) returns int language sql immutable as 'select $1 * 3'; revoke execute on function shut(int) from public;
@owner a_owner
set search_path = mine, public;
create table t (a int, b int generated always as (lib.twice(a)) stored);
create table t (a int, b int generated always as (shut(a)) stored);
insert into t values (1);
drop table t;
@postgres
grant usage on schema lib to a_owner; grant execute on function shut(int) to a_owner;
@owner
create table t (a int, b int generated always as (lib.twice(a)) stored, c int generated always as (shut(a)) stored, d int);
insert into t (a) values (1);
grant all on t to a_user;
alter table t add column e int generated always as (shut(d)) stored;
@user a_user
set search_path = mine, public;
insert into t (a) values (2);
update t set a = 5;
update t set d = 5;
select * from t;
@postgres
revoke execute on function shut(int) from a_owner;
@owner
insert into t (a) values (2);
update t set d = 6;
alter table t add column f int generated always as (shut(d)) stored;

== a policy
create user a_owner; create user a_user; create schema lib; create schema mine authorization a_owner; grant usage on schema mine to a_user;
create function lib.mine(int) returns boolean language sql stable as 'select $1 > 0';
create function public.seen(int) returns boolean language sql stable as 'select $1 > 1'; revoke execute on function seen(int) from public;
@owner a_owner
set search_path = mine, public;
create table t (a int); insert into t values (1), (2), (3); alter table t enable row level security; grant all on t to a_user;
create policy p on t using (lib.mine(a));
create policy p on t using (seen(a));
@user a_user
set search_path = mine, public;
select * from t;
insert into t values (4);
@postgres
grant execute on function seen(int) to a_user; grant usage on schema lib to a_owner;
@user
select * from t;
insert into t values (5);
insert into t values (0);
@owner
create policy q on t using (lib.mine(a));
alter policy q on t using (lib.mine(a + 1));
alter policy q on t with check (lib.mine(a));
select count(*) from t;
@user
select * from t;
insert into t values (6);
@postgres
revoke usage on schema lib from a_owner; revoke execute on function seen(int) from a_user;
@owner
alter policy q on t using (lib.mine(a + 2));
alter policy p on t using (seen(a + 2));
@user
select * from t;
delete from t;
update t set a = 9;

== ALTER TYPE ... USING
create user a_owner; create schema lib; create schema mine authorization a_owner;
create function lib.txt(int) returns text language sql immutable as 'select $1::text';
create function public.shut(int) returns text language sql immutable as 'select $1::text'; revoke execute on function shut(int) from public;
@owner a_owner
set search_path = mine, public;
create table t (a int, b int); insert into t values (1, 1);
create table e (a int);
alter table t alter column a type text using lib.txt(a);
alter table t alter column a type text using shut(a);
alter table e alter column a type text using shut(a);
alter table t alter column a type text using a::text;
@postgres
grant usage on schema lib to a_owner; grant execute on function shut(int) to a_owner;
@owner
alter table t alter column b type text using lib.txt(b);
select * from t;

== a domain
create user a_owner; create user a_user; create schema lib; create schema mine authorization a_owner; grant usage on schema mine to a_user;
create function lib.ok(int) returns boolean language sql immutable as 'select $1 > 0';
create function public.fine(int) returns boolean language sql immutable as 'select $1 > 0'; revoke execute on function fine(int) from public;
create function public.n() returns int language sql volatile as 'select 3'; revoke execute on function n() from public;
@owner a_owner
set search_path = mine, public;
create domain d as int check (lib.ok(value));
create domain d as int check (fine(value));
select 1::d;
create domain dn as int default n();
create table tn (a dn, b int);
insert into tn (b) values (1);
@postgres
grant execute on function fine(int), n() to a_owner;
@owner
select 1::d;
create table t (a d, b dn);
insert into t (a) values (1);
grant all on t to a_user;
@user a_user
set search_path = mine, public;
select 1::d;
insert into t values (1, 1);
insert into t (a) values (null);
insert into t (b) values (1);
select * from t;

== functions of the system are everybody's
create user a_user;
-- GRANT and REVOKE find the functions that users have made.
-- here: 42883
revoke execute on function pg_catalog.lower(text) from public;
@user a_user
-- here: SELECT 1 [a]
select lower('A');
@postgres
-- here: 42883
grant execute on function pg_catalog.lower(text) to public;

== a view's functions are called with the right of who looks
create user a_owner; create user a_user; create schema lib; create schema mine authorization a_owner; grant usage on schema mine to a_user;
create function lib.f() returns int language sql as 'select 1'; create function public.g() returns int language sql as 'select 2';
revoke execute on function g() from public; grant usage on schema lib to a_owner; grant execute on function g() to a_owner;
@owner a_owner
set search_path = mine, public;
create view v as select lib.f() as f; create view w as select g() as g; grant select on v, w to a_user;
create materialized view m as select g() as g; grant select on m to a_user;
@user a_user
set search_path = mine, public;
select * from v;
select * from w;
select * from m;
@postgres
revoke usage on schema lib from a_owner; revoke execute on function g() from a_owner;
refresh materialized view mine.m;
@owner
select * from v;
select * from w;
refresh materialized view m;

== MERGE: the functions of the indexes that get entries
create user a_user; create schema mine authorization a_user;
create function public.shut(int) returns int language sql immutable as 'select $1 + 1';
@user a_user
set search_path = mine, public;
create table t (a int primary key, b int, c int); insert into t values (1, 1, 1), (2, 2, 2), (3, 3, 3);
create index i_shut on t (shut(b));
@postgres
revoke execute on function public.shut(int) from public;
@user
merge into t using (values (1)) s(x) on t.a = s.x when matched then update set c = 9;
merge into t using (values (1)) s(x) on t.a = s.x when matched then update set b = 9;
merge into t using (values (2)) s(x) on t.a = s.x when matched then delete;
merge into t using (values (3)) s(x) on t.a = s.x when matched and t.b = 3 then delete when matched then update set c = 7;
merge into t using (values (1)) s(x) on t.a = s.x when matched then do nothing;
merge into t using (values (4)) s(x) on t.a = s.x when not matched then insert values (4, 4, 4);
select * from t order by a;
