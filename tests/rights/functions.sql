-- Functions and procedures in SQL: with whose rights and under whose policies a body runs, what stored texts call, and who may define and change
-- them.

== definer and invoker functions inside views of another owner
create user a_owner; create user a_mal; create user a_user; grant create on schema public to a_owner, a_mal;
create table secret (id int primary key, v text); insert into secret values (1, 'hidden');
@mal a_mal
create function reads() returns setof text language sql stable as 'select v from public.secret';
create function reads1() returns text language sql stable as 'select v from public.secret where id = 1';
create function readsv() returns setof text language sql volatile as 'select v from public.secret';
select * from reads();
@postgres
create view v1 as select * from reads();
create view v2 as select reads1() as r;
create view v3 as select * from readsv();
create view v4 as select reads() as r;
create view v5 as select * from secret where v = reads1();
grant select on v1, v2, v3, v4, v5 to a_mal, a_user;
select * from v1; 
@mal
select * from v1;
select * from v2;
select * from v3;
select * from v4;
select * from v5;
@user a_user
select * from v1;
select * from v2;
select * from v3;
select * from v4;
prepare p as select * from v1;
execute p;
@mal
create function t_owned() returns setof text language sql stable security definer as 'select v from public.mine';
create table mine (v text); insert into mine values ('m');
create function mine_inv() returns setof text language sql stable as 'select v from public.mine';
create view w1 as select * from t_owned();
create view w2 as select * from mine_inv();
create view w3 as select * from mine;
grant select on w1, w2, w3 to a_user;
@user
select * from w1;
select * from w2;
select * from w3;
select * from t_owned();
select * from mine_inv();
explain (costs off) select * from t_owned();

== row level security: policies are those of whom the body runs as
create user a_owner; create user a_user; grant create on schema public to a_owner, a_user;
@owner a_owner
create table t (id int primary key, who name); insert into t values (1, 'a_owner'), (2, 'a_user'), (3, 'x');
alter table t enable row level security; create policy p on t using (who = current_user); grant all on t to a_user;
create function inv() returns setof int language sql stable as 'select id from t';
create function def() returns setof int language sql stable security definer as 'select id from t';
create function invp() returns setof int language sql stable set row_security = off as 'select id from t';
create view vi as select * from inv(); create view vd as select * from def(); create view vt as select * from t; grant select on vi, vd, vt to a_user;
@user a_user
select * from inv();
select * from def();
select * from vi;
select * from vd;
select * from vt;
select * from invp();
prepare pi as select * from inv();
execute pi; execute pi; execute pi;
@owner
alter function inv() security definer;
@user
execute pi;
@owner
alter function inv() security invoker;
@user
execute pi;
@owner
alter table t force row level security;
@user
select * from def();
@owner
select * from def();

== EXECUTE is judged at each call, in kept plans too
create user a_owner; create user a_user; grant create on schema public to a_owner;
@owner a_owner
create function f(int) returns int language sql immutable as 'select $1 + 1';
create function g() returns setof int language sql stable as 'values (1), (2)';
create function h() returns int language sql volatile security definer as 'select 7';
create view v as select f(1) as f, h() as h from g(); grant select on v to a_user;
create procedure pr(int) language sql as 'select $1';
@user a_user
prepare pf as select f(1); prepare pg as select * from g(); prepare ph as select h(); prepare pv as select * from v; prepare pn as select f(n) from generate_series(1, 2) n;
execute pf; execute pg; execute ph; execute pv; execute pn; call pr(1);
begin; declare c cursor for select f(n) from generate_series(1, 3) n; fetch 1 from c;
@owner
revoke execute on function f, g, h from public; revoke execute on procedure pr from public;
@user
fetch 1 from c;
rollback;
execute pf;
execute pg;
execute ph;
execute pv;
execute pn;
select * from v;
call pr(1);
@owner
grant execute on function f to a_user; grant execute on function g, h to a_user;
@user
execute pv;
execute pf;
@owner
select * from v;
select has_function_privilege('a_user', 'f(int)', 'execute'), has_function_privilege('a_user', 'pr(int)', 'execute'), has_function_privilege('a_user', 'h()', 'execute with grant option');
select has_function_privilege('a_user', 'nix()', 'execute');
select has_function_privilege('a_user', 99999999, 'execute');
select has_function_privilege('a_user', 'f(int)', 'select');
@user
grant execute on function f to public;
revoke execute on function f from a_user;
@postgres
alter default privileges for role a_owner revoke execute on functions from public;
alter default privileges for role a_owner in schema public grant execute on functions to a_user;
@owner
create function d1() returns int language sql as 'select 1';
create procedure d2() language sql as 'select 1';
select proname, proacl from pg_proc where proname in ('d1', 'd2') order by 1;
create or replace function d1() returns int language sql as 'select 2';
select proname, proacl from pg_proc where proname = 'd1';
alter function d1() owner to a_user;
@postgres
alter function d1() owner to a_user;
select proname, proacl from pg_proc where proname = 'd1';

== what a function of a role that is set may do in a function of its owner
create user a_super superuser; create user a_user; create user a_own; grant create on schema public to a_own, a_user;
@super a_super
create function d_role() returns text language sql security definer as $$select set_config('role', 'a_user', false)$$;
create function d_auth() returns text language sql security definer as $$select set_config('session_authorization', 'a_user', false)$$;
create function d_none() returns text language sql security definer as $$select set_config('role', 'none', true)$$;
create function who() returns text language sql security definer as $$select session_user || ' ' || current_user$$;
create function d_path() returns text language sql security definer as $$select set_config('search_path', 'nix', false)$$;
create function s_path() returns text language sql security definer set search_path = pg_catalog as $$select set_config('search_path', 'nix', false)$$;
create function s_loc() returns text language sql security definer set search_path = pg_catalog as $$select set_config('search_path', 'nix', true)$$;
@user a_user
select d_role();
select current_user, session_user;
select d_auth();
select current_user, session_user;
select d_none();
select who(), current_user;
select current_setting('role');
select d_path(); select current_setting('search_path');
reset search_path; select s_path();
select current_setting('search_path');
reset search_path; select s_loc(); select current_setting('search_path');
create function u2() returns int language sql set log_statement = 'all' as 'select 1';
create function u3() returns int language sql set session_replication_role = 'replica' as 'select 1';
create function u5() returns int language sql set max_connections = 3 as 'select 1';
create function u7() returns int language sql set nonesuch = 3 as 'select 1';
begin transaction read only;
create function x() returns int language sql as 'select 1';
rollback;

== who may define, change and drop
create user a_owner; create user a_other; create user a_member in role a_owner; create schema s; grant create, usage on schema s to a_owner; create schema closed; create function closed.f() returns int language sql as 'select 1';
grant create on database $db to a_owner;
@owner a_owner
create function s.f(int) returns int language sql as 'select 1';
create function public.f(int) returns int language sql as 'select 1';
create function s.l() returns int language sql leakproof as 'select 1';
alter function s.f(int) leakproof;
alter function s.f(int) not leakproof;
alter function s.f(int) owner to a_other;
alter function s.f(int) set schema closed;
alter function s.f(int) owner to a_member;
@other a_other
select s.f(1);
create or replace function s.f(int) returns int language sql as 'select 2';
alter function s.f(int) security definer;
alter function s.f(int) rename to g;
alter function s.f(int) reset all;
comment on function s.f(int) is 'x';
drop function s.f(int);
drop function if exists s.f(int);
drop function if exists closed.f();
drop function closed.f();
select closed.f();
select 'closed.f'::regproc;
select 'closed.f()'::regprocedure;
select has_function_privilege('closed.f()', 'execute');
select * from closed.f();
alter function closed.f() cost 3;
alter function closed.nix() cost 3;
alter function nix.nix() cost 3;
grant execute on function closed.f() to a_other;
create function closed.g() returns int language sql as 'select 1';
@postgres
grant usage on schema s to a_other;
@other
select s.f(1);
create or replace function s.f(int) returns int language sql as 'select 2';
alter function s.f(int) security definer;
alter function s.f(int) rename to g;
alter function s.f(int) reset all;
alter routine s.f(int) strict;
comment on function s.f(int) is 'x';
drop function s.f(int);
drop routine if exists s.f(int);
grant execute on function s.f(int) to a_other;
revoke execute on function s.f(int) from public;
drop owned by a_owner;
reassign owned by a_owner to a_other;
@member a_member
create or replace function s.f(int) returns int language sql security definer as 'select 3';
alter function s.f(int) cost 3;
@postgres
select proname, proowner::regrole, prosecdef, proleakproof from pg_proc where proname = 'f' order by pronamespace;
create function s.sl() returns int language sql leakproof as 'select 1'; alter function s.sl() owner to a_owner;
@owner
create or replace function s.sl() returns int language sql as 'select 2';
select proleakproof from pg_proc where proname = 'sl';
create or replace function s.sl() returns int language sql leakproof as 'select 2';
@postgres
drop role a_owner;
reassign owned by a_owner to a_other;
select proname, proowner::regrole from pg_proc where proname in ('f', 'sl') and proowner = 'a_other'::regrole order by 1;
create user a_third; grant execute on function s.f(int) to a_third;
drop role a_third;
drop owned by a_third;
drop role a_third;
drop owned by a_other;
select count(*) from pg_proc where proname in ('sl');
select count(*) from pg_proc p join pg_namespace n on n.oid = pronamespace where proname = 'f' and nspname = 's';

== a table, a type and a domain in the arguments, without rights to them
create user a_user; grant create on schema public to a_user; create schema closed; create table closed.t (a int); create type ty as (a int); revoke usage on type ty from public; create domain dm as int; revoke usage on type dm from public;
create table t (a int, b int); grant select (a) on t to a_user; insert into t values (1, 2);
@user a_user
create function f1(closed.t) returns int language sql as 'select 1';
create function f2(ty) returns int language sql as 'select 1';
create function f3(dm) returns int language sql as 'select 1';
create function f4() returns dm language sql as 'select 1';
create function f5() returns setof ty language sql as 'select 1';
create function f6(a dm[]) returns int language sql as 'select 1';
create function f7() returns table (a dm) language sql as 'select 1';
create function w(t) returns int language sql immutable as 'select $1.b';
create function w2(t) returns int language sql volatile as 'select $1.b';
create function w3(anyelement) returns text language sql volatile as 'select $1::text';
select w(t) from t;
select w2(t) from t;
select w3(t) from t;
create function atom() returns int language sql begin atomic select b from t; end;
create function text1() returns int language sql as 'select b from t';
create function text2() returns int language sql as 'select a from closed.t';
select text1();

== functions in the texts of others: a better match that comes later is not theirs
create user a_owner; create user a_mal; grant create, usage on schema public to a_owner, a_mal; create schema front; grant create, usage on schema front to a_mal; grant usage on schema front to public;
@owner a_owner
set search_path = front, public;
create function public.ok(bigint) returns bool language sql immutable as 'select $1 > 2';
create function public.num(numeric) returns int language sql immutable as 'select 5';
create table public.t (id int primary key, n int, c varchar(10), d int default num(1), check (ok(n)), constraint up check (upper(c) = 'X' or c is null));
insert into t values (1, 3, 'x'), (2, 4, 'x');
insert into t values (3, 1);
alter table t enable row level security;
create policy p on t using (ok(id));
create view public.v as select id, ok(id) as k, upper(c) as u, num(id) as n from t;
create function public.atom(int) returns bool language sql begin atomic select ok($1); end;
create function public.dflt(a int default num(3)) returns int language sql as 'select $1';
create materialized view public.mv as select ok(id) as k, upper(c) as u from t;
create domain public.dom as int check (ok(value));
grant all on t, v, mv to a_mal;
@mal a_mal
select * from t;
select * from v;
create function public.ok(int) returns bool language sql immutable as 'select true';
create function front.ok(bigint) returns bool language sql immutable as 'select true';
create function front.ok(int) returns bool language sql immutable as 'select true';
create function public.upper(varchar) returns text language sql immutable as $$select 'bad'$$;
create function public.num(int) returns int language sql immutable as 'select 666';
create function front.num(numeric) returns int language sql immutable as 'select 667';
create function front.current_user() returns name language sql immutable as $$select 'bad'::name$$;
select * from t;
select id from v;
insert into t values (4, 1, 'x');
insert into t values (5, 5, 'y');
insert into t values (6, 5, 'x');
@owner
select * from v;
select * from t;
select atom(1);
select dflt();
select 1::dom;
refresh materialized view mv;
select * from mv;
drop function front.ok(bigint);
@postgres
set search_path = front, public;
select * from v;
select atom(1), dflt();
select 1::dom;
create function front.zz(int) returns bool language sql immutable as 'select true'; alter function front.zz(int) rename to zok;

== functions of the table's owner, run by the maintenance of a superuser
create user a_mal; grant create on schema public to a_mal; create table log (who name, what text);
grant all on log to a_mal;
@mal a_mal
create function note(text) returns text language sql volatile as 'insert into public.log values (current_user, $1) returning who::text';
create function k(int) returns bool language sql immutable as $$select $1 > 0 from public.note('check')$$;
create table t (a int); insert into t values (1), (2);
alter table t add check (k(a));
create materialized view mv as select a, note('mv') from t;
delete from log;
@postgres
reindex table t;
analyze t;
vacuum t;
refresh materialized view mv;
select distinct * from log;
delete from log;
select distinct * from log;
delete from log;
@mal
alter table t add constraint later check (k(a + 1)) not valid;
@postgres
delete from log; alter table t validate constraint later;
select distinct * from log;
delete from log;
insert into t values (3);
select distinct * from log where what <> 'index';

== a domain and an index on the path of the caller
create user a_mal; create schema own; grant all on schema own to a_mal; grant create on schema public to a_mal;
@mal a_mal
create function own.ok(bigint) returns bool language sql immutable as 'select true';
create function own.k(int) returns int language sql immutable as 'select 0';
@postgres
create function public.ok(bigint) returns bool language sql immutable as 'select $1 > 2';
create function public.k(int) returns int language sql immutable as 'select $1';
create domain public.dom as int check (ok(value)) default k(7);
create table public.t (a int, b dom, g int generated always as (k(a)) stored); create unique index i on t (k(a)) where ok(a); grant all on t to a_mal;
insert into t values (5, 5);
@mal
set search_path = own, public;
select 1::dom;
insert into t values (6, 1);
insert into t values (5, 5);
insert into t values (7, 7);
insert into t (a) values (8);
@postgres
set enable_seqscan = off;
select * from t where k(a) = 7 and ok(a);
select * from t;
set search_path = own, public;
select 1::dom;
insert into t values (9, 9);
select * from t;
reindex table t;
set search_path = public;
select * from t where k(a) = 9 and ok(a);
== recursion
create function f(a int default 1) returns int language sql immutable as 'select $1';
create or replace function f(a int default f()) returns int language sql immutable as 'select $1';
select f();
create function g1(int) returns int language sql immutable as 'select $1';
create function g2(int) returns int language sql immutable as 'select g1($1)';
create or replace function g1(int) returns int language sql immutable as 'select g2($1)';
select g1(1);
create function r1() returns setof int language sql stable as 'values (1)';
create view rv as select * from r1();
create or replace function r1() returns setof int language sql stable as 'select * from rv';
select * from rv;
create table rt (id int primary key); create function nx() returns int language sql volatile as 'select 1';
alter table rt alter id set default nx();
create or replace function nx() returns int language sql volatile as 'insert into rt default values returning id';
insert into rt default values;
create function pol(int) returns bool language sql stable as 'select true';
alter table rt enable row level security; alter table rt force row level security; create policy p on rt using (pol(id)); create user a_u; grant select on rt to a_u;
insert into rt values (1);
create or replace function pol(int) returns bool language sql stable as 'select exists (select from rt where id = $1)';
@u a_u
select * from rt;
@postgres
create function chk(int) returns bool language sql stable as 'select count(*) < 2 from rt';
alter table rt add check (chk(id));
insert into rt values (2);
insert into rt values (3);
insert into rt values (4);
create function d1(int) returns int language sql immutable as 'select $1 + $1';
create function dd(text) returns text language sql immutable as 'select $1 || $1';
== atomic and temp
create user a_mal; create schema own; grant all on schema own to a_mal; create table public.lst (a int); insert into lst values (1); grant temp on database $db to a_mal;
create function def1() returns bigint language sql security definer as 'select count(*) from lst';
create function def2() returns bigint language sql security definer set search_path = public, pg_temp as 'select count(*) from lst';
create function def3() returns bigint language sql security definer begin atomic select count(*) from lst; end;
create function def4() returns bigint language sql security definer set search_path = public as 'select count(*) from lst';
create function inv() returns bigint language sql stable as 'select count(*) from lst';
@mal a_mal
select def1(), def2(), def3(), def4();
select inv();
create temp table lst (a int);
grant select on lst to public;
select def1(); select def2(); select def3(); select def4(); select inv();
set search_path = own, public;
create table own.lst (a int); insert into own.lst values (1), (2); grant select on own.lst to public; grant usage on schema own to public;
select def1(); select def2(); select def3(); select def4(); select inv();
drop table pg_temp.lst;
select def1(); select def2(); select def3(); select def4(); select inv();
create function pg_temp.length(int) returns int language sql as 'select 1';
select length(1);
select pg_temp.length(1);

== read only, and what a function may change
create table t (a int); create function w() returns int language sql volatile as 'insert into t values (1) returning a';
create function ro() returns int language sql volatile set transaction_read_only = off as 'insert into t values (1) returning a';
begin read only; select w(); rollback;
begin read only; select ro();
rollback;
select count(*) from t;
create procedure tx() language sql as 'commit';
call tx();

== leaky functions of users under policies and barriers
create user a_user; create table t (id int primary key, s text, who name); insert into t values (1, 'mine', 'a_user'), (2, 'theirs', 'x'); create table seen (s text); grant insert on seen to a_user; grant create on schema public to a_user;
alter table t enable row level security; create policy p on t using (who = current_user); grant select on t to a_user;
create view b with (security_barrier) as select id, s from t where who = 'a_user'; grant select on b to a_user;
create index on t (s);
@user a_user
create function leak(text) returns bool language sql volatile cost 0.0000001 as $$insert into seen values ($1) returning true$$;
create function leak2(text) returns bool language sql immutable cost 0.0000001 as $$select set_config('a.b', $1 || current_setting('a.b', true), false) is not null$$;
create function leak3(text) returns int language sql stable as $$select 1 / (length($1) - 6)$$;
select id from t where leak(s);
select id from b where leak(s);
select id from t where leak2(s);
select id from b where leak2(s);
select current_setting('a.b');
select id from t where leak3(s) > 0;
select id from b where leak3(s) > 0;
select id from t order by leak3(s);
select leak3(s) from t;
select t.id from t join b on leak3(t.s) > 0 and leak3(b.s) > 0;
select count(*) from t group by leak3(s);
select id from t, lateral (select leak3(s)) x;
select id from t where exists (select 1 where leak3(t.s) > 0);
@postgres
select * from seen;
alter function leak3(text) leakproof;
@user
select id from b where leak3(s) > 0;
create or replace function leak3(text) returns int language sql stable as $$select 1 / (length($1) - 6)$$;
select id from b where leak3(s) > 0;

== two sessions change a function
create user a_owner; create user a_user; grant create on schema public to a_owner;
@owner a_owner
create function f() returns int language sql as 'select 1';
@postgres
begin; revoke execute on function f() from public;
@owner
-- begins
alter function f() cost 7;
@postgres
commit;
@owner
-- PostgreSQL has no DETAIL.
-- here: XX000 (Another transaction has changed function "f" since this statement read its definition.)
-- ends
@postgres
select proacl, procost from pg_proc where proname = 'f';
begin; alter function f() owner to postgres; alter function f() security definer;
@owner
-- begins
create or replace function f() returns int language sql as 'select 666';
@postgres
commit;
@owner
-- PostgreSQL looks at the owner again; nothing is changed here either.
-- here: XX000 (Another transaction has changed function "f" since this statement read its definition.)
-- ends
@postgres
select proowner::regrole, prosecdef, prosrc from pg_proc where proname = 'f';
grant create on schema public to a_user;
alter function f() owner to a_owner;
begin; drop function f();
@owner
-- begins
alter function f() cost 8;
@postgres
commit;
@owner
-- PostgreSQL has no DETAIL.
-- here: XX000 (Another transaction has dropped function "f" since this statement read its definition.)
-- ends
@postgres
select count(*) from pg_proc where proname = 'f';
@owner
create function f() returns int language sql as 'select 1';
@postgres
begin; alter function f() owner to a_user;
@owner
-- begins
drop function f();
@postgres
commit;
@owner
-- ends
@postgres
select count(*) from pg_proc where proname = 'f';
alter function f() owner to a_owner;
begin; alter function f() owner to a_user;
@owner
-- begins
grant all on function f() to public;
@postgres
commit;
@owner
-- XX000, tuple concurrently updated, in PostgreSQL; here it is judged by the rights after the wait.
-- here: WARNING 01007 GRANT
-- ends
@postgres
begin; alter function f() owner to a_owner;
@owner
-- begins
alter function f() rename to g;
@postgres
rollback;
@owner
-- ends
@postgres
select proname, proowner::regrole from pg_proc where proname in ('f', 'g');

== functions each of which calls another twice
create function d(int) returns int language sql immutable as 'select $1 + $1';
select d(d(d(d(d(d(d(d(d(d(d(d(d(d(d(d(d(d(d(d(d(d(d(d(d(d(d(d(d(d(1))))))))))))))))))))))))))))));
create function e0(int) returns int language sql immutable as 'select $1'; create function s0() returns setof int language sql stable as 'select 1';
create function e1(int) returns int language sql immutable as 'select e0($1) + e0($1)'; create function s1() returns setof int language sql stable as 'select a from s0() a, s0() b';
create function e2(int) returns int language sql immutable as 'select e1($1) + e1($1)'; create function s2() returns setof int language sql stable as 'select a from s1() a, s1() b';
create function e3(int) returns int language sql immutable as 'select e2($1) + e2($1)'; create function s3() returns setof int language sql stable as 'select a from s2() a, s2() b';
create function e4(int) returns int language sql immutable as 'select e3($1) + e3($1)'; create function s4() returns setof int language sql stable as 'select a from s3() a, s3() b';
create function e5(int) returns int language sql immutable as 'select e4($1) + e4($1)'; create function s5() returns setof int language sql stable as 'select a from s4() a, s4() b';
create function e6(int) returns int language sql immutable as 'select e5($1) + e5($1)'; create function s6() returns setof int language sql stable as 'select a from s5() a, s5() b';
create function e7(int) returns int language sql immutable as 'select e6($1) + e6($1)'; create function s7() returns setof int language sql stable as 'select a from s6() a, s6() b';
create function e8(int) returns int language sql immutable as 'select e7($1) + e7($1)'; create function s8() returns setof int language sql stable as 'select a from s7() a, s7() b';
create function e9(int) returns int language sql immutable as 'select e8($1) + e8($1)'; create function s9() returns setof int language sql stable as 'select a from s8() a, s8() b';
create function e10(int) returns int language sql immutable as 'select e9($1) + e9($1)'; create function s10() returns setof int language sql stable as 'select a from s9() a, s9() b';
create function e11(int) returns int language sql immutable as 'select e10($1) + e10($1)'; create function s11() returns setof int language sql stable as 'select a from s10() a, s10() b';
select e11(1);
select count(*) from s11();
