-- USAGE of types and domains.

== types of users are everybody's until that is revoked
create user ty_a; create user ty_b; create schema s; grant all on schema s to ty_a, ty_b; grant all on schema public to ty_a, ty_b;
create type mood as enum ('sad', 'ok'); create domain pos as int check (value > 0);
@a ty_a
create table a1 (m mood, p pos, l mood[]);
select has_type_privilege('mood', 'usage'), has_type_privilege('mood[]', 'usage'), has_type_privilege('pos', 'usage with grant option');
@postgres
select typacl from pg_type where typname in ('mood', 'pos') order by typname;
revoke usage on type mood from public;
revoke all on domain pos from public;
revoke all on domain mood from public;
select typname, typacl from pg_type where typname in ('mood', 'pos') order by typname;
@a
select has_type_privilege('mood', 'usage'), has_type_privilege('mood[]', 'usage'), has_type_privilege('int', 'usage'), has_type_privilege('int[]', 'usage');
create table a2 (m mood);
create table a2 (l mood[]);
create table a2 (p pos);
create domain more as mood;
create domain less as pos check (value < 9);
alter table a1 add column m2 mood;
alter table a1 add column i int;
alter table a1 alter column i type pos;
insert into a1 (m, p) values ('ok', 3);
select 'ok'::mood, 3::pos;
create table a3 as select m from a1;
create type both as (m mood, i int);
grant usage on type mood to ty_b;
@postgres
grant usage on type mood to ty_a with grant option;
grant usage on domain pos to ty_b;
grant select on type mood to ty_a;
grant usage on type missing to ty_a;
grant usage on type mood to missing;
@a
create table a4 (m mood, l mood[]);
grant usage on type mood to ty_b;
create table a5 (p pos);
@b ty_b
create table b1 (m mood, p pos);
grant usage on type mood to ty_a;
@postgres
revoke usage on type mood from ty_a;
revoke usage on type mood from ty_a cascade;
select typname, typacl from pg_type where typname in ('mood', 'pos') order by typname;
alter type mood owner to ty_b;
select typname, typacl from pg_type where typname in ('mood', 'pos') order by typname;
@b
create table b2 (m mood);
revoke usage on type mood from ty_b;
create table b3 (m mood);
@postgres
drop user ty_a;

== default privileges on types
create user td_a; create user td_b; grant all on schema public to td_a, td_b;
@a td_a
alter default privileges revoke usage on types from public;
alter default privileges grant usage on types to td_b with grant option;
alter default privileges grant select on types to td_b;
create type colour as enum ('red');
create domain tone as text;
select typname, typacl from pg_type where typname in ('colour', 'tone') order by typname;
alter default privileges in schema public grant usage on types to public;
create domain tint as text;
select typname, typacl from pg_type where typname = 'tint';
select defaclobjtype, defaclnamespace::regnamespace, defaclacl from pg_default_acl where defaclrole = 'td_a'::regrole order by 2;
@b td_b
create table t1 (c colour, t tone, i tint);
