-- Names that stand for something else: temporary objects, schemas in front of others, views and defaults evaluated by others.

== a temporary table stands before public's for its session alone
create user a_alice; create user a_bob; create table public.accounts (id int, owner text); insert into accounts values (1, 'postgres');
grant select on accounts to a_alice; grant create on schema public to a_bob;
create view public.all_accounts as select * from accounts;
grant select on all_accounts to a_alice;
@alice a_alice
create temporary table accounts (id int, owner text);
insert into accounts values (9, 'alice');
select * from accounts;
select * from all_accounts;
select * from public.accounts;
select * from pg_temp.accounts;
@postgres
select * from accounts;
select * from all_accounts;
@alice
create temporary view pg_class as select 'mine'::text as relname;
select count(*) > 5 from pg_class;
create schema pg_mine;
create schema s;
create temporary table pg_temp.q (a int);
create table public.q (a int);

== the search path does not change what a view reads, but what a statement reads
create user a_alice; create schema a_first; create schema a_second; grant usage on schema a_first, a_second to a_alice;
create table a_second.t (x text); insert into a_second.t values ('second');
set search_path = a_first, a_second;
create view a_second.v as select x from t;
grant select on all tables in schema a_second to a_alice;
@alice a_alice
set search_path = a_first, a_second;
select * from t;
@postgres
create table a_first.t (x text); insert into a_first.t values ('first');
@alice
select * from t;
select * from v;
@postgres
grant select on a_first.t to a_alice;
@alice
select * from t;
@postgres
revoke usage on schema a_first from a_alice;
@alice
select * from t;
select * from a_first.t;
select 'a_first.t'::regclass::oid = 0;
select ('a_first.' || 't')::regclass::oid = 0;
select nextval('a_first.t');
select 'a_first.t'::regclass::text;
select to_regclass('a_first.t');
select has_table_privilege('a_first.t', 'select');
select current_schemas(true);

== schemas: CREATE and USAGE are separate
create user a_alice; create schema a_s; create table a_s.t (a int); grant all on a_s.t to a_alice; create sequence a_s.q; grant all on a_s.q to a_alice;
create view a_s.v as select 1; create index a_i on a_s.t (a); create type a_s.e as enum ('x'); grant select on a_s.v to a_alice;
@alice a_alice
select * from a_s.t;
select nextval('a_s.q');
select * from a_s.v;
insert into a_s.t values (1);
create table a_s.u (a int);
lock table a_s.t;
truncate a_s.t;
create view public.v as select * from a_s.t;
@postgres
grant create on schema a_s to a_alice;
@alice
create table a_s.u (a int);
create table a_s.u as select 1;
@postgres
grant usage on schema a_s to a_alice;
@alice
create table a_s.u (a int);
select * from a_s.t;
insert into a_s.t values (1);
create view a_s.w as select * from a_s.t;
select * from a_s.w;
@postgres
revoke select on a_s.t from a_alice;
select * from a_s.w;
@alice
select * from a_s.w;
drop schema a_s cascade;
alter schema a_s rename to a_r;
alter table a_s.u set schema public;
alter table a_s.t rename to z;
@postgres
revoke create on schema a_s from a_alice;
@alice
alter table a_s.u rename to z;
alter table a_s.u rename a to z;
create temporary table tt (a int);
@postgres
alter schema a_s owner to a_alice;
@alice
drop view a_s.v;
drop table a_s.u cascade;

== temporary tables of others
create user a_alice; create user a_bob;
@alice a_alice
create temporary table secret (a int primary key); insert into secret values (42);
create temporary sequence sq;
@bob a_bob
select * from secret;
select count(*) from pg_class where relname = 'secret' and has_table_privilege(oid, 'select');
select count(*) from pg_namespace where nspname like 'pg_temp%' and has_schema_privilege(oid, 'usage');
create table pg_temp.mine (a int);
select * from pg_temp.secret;
@postgres
revoke temporary on database $db from public;
select has_database_privilege('a_bob', current_database(), 'temp');

== names in stored texts mean what they meant when the text was written
create user a_alice; create schema a_s; create schema a_evil; grant usage on schema a_s to a_alice; grant usage, create on schema a_evil to a_alice;
set search_path = a_s;
create sequence q; create type e as enum ('low', 'high'); grant all on sequence q to a_alice;
create table d (id int default nextval('q'), k text check (k::e = 'low'), g text default ('high'::e)::text, who text default current_user);
alter table d add n int default 5 + length('low'::e::text), add check (who is not null and 'low'::e < 'high'::e);
create view v as select k::e as e, 'q'::regclass::text as r from d;
create view numbers as select nextval('q');
create table p (k text); insert into p values ('low'), ('high'); alter table p enable row level security; create policy p on p using (k::e = 'low');
grant all on d, v, p, numbers to a_alice;
@alice a_alice
set search_path = a_evil, public;
create sequence q start 1000; create type e as enum ('high', 'low', 'other');
insert into a_s.d (k) values ('low') returning *;
insert into a_s.d (k) values ('other');
insert into a_s.d (k) values ('high');
select * from a_s.p;
select * from a_s.v;
select * from a_s.numbers;
set search_path = '';
insert into a_s.d (k) values ('low') returning *;
select e from a_s.v;
update a_s.d set k = 'low';
@postgres
alter schema a_s rename to a_t;
@alice
insert into a_t.d (k) values ('low') returning id, k, g, n;
select * from a_t.p;
@postgres
set search_path = a_t;
alter table d rename k to kk; alter table d alter g set default 'x';
@alice
insert into a_t.d (kk) values ('low') returning id, kk, g, n;
