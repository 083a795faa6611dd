-- CREATE SCHEMA with what is made in it, whatever the order; what is declared of columns; triggers and replica identity of tables.
set role none;
create schema made
  create view of_both as select a.id, b.name, n.v from b join a on a.id = b.a cross join (select 1 as v) n
  create index on b (name)
  create table made.a (id int primary key default nextval('numbers'))
  create table b (a int references a, name text)
  create sequence numbers start 5
  grant select on of_both to public;
\d made.a
\d made.b
insert into made.a default values;
insert into made.b values (5, 'x');
select * from made.of_both;
select relname, relacl from pg_class where relnamespace = 'made'::regnamespace and relacl is not null;
show search_path;
create schema other create table made.x (a int);
create schema other create table x (a int) create table x (b int);
create schema if not exists made create table x (a int);
create schema other create function f() returns int language sql as 'select 1';
select count(*) from pg_namespace where nspname = 'other';
drop schema made cascade;

create domain positive as int check (value > 0);
create table declared (a positive, b int[][], c text collate "C", d varchar(3)[2][4] collate "POSIX", e text);
insert into declared values (1);
select attname, attndims, attcollation from pg_attribute where attrelid = 'declared'::regclass and attnum > 0 order by attnum;
alter table declared alter b type bigint[], alter e type text collate "C", alter c type text;
\d declared
alter table declared replica identity full;
select relreplident from pg_class where oid = 'declared'::regclass;
\d+ declared
alter table declared replica identity nothing;
select relreplident from pg_class where oid = 'declared'::regclass;
alter table declared replica identity default;
select relreplident from pg_class where oid = 'declared'::regclass;
alter table declared disable trigger all, enable trigger all, disable trigger user, enable trigger user;
alter table declared disable trigger nix;
alter table declared enable always trigger nix;
create view declared_view as select * from declared;
alter table declared_view disable trigger all;
explain (costs off) create table explained as select a from declared where e is null;
explain (costs off) create table declared as select 1;
explain (costs off) create materialized view explained as select a from declared;
cluster declared using nix;
begin read only;
create table x (a int);
rollback;
begin read only;
drop view declared_view;
rollback;
begin read only;
alter table declared rename a to aa;
rollback;
begin read only;
grant select on declared to public;
rollback;
begin read only;
create materialized view x as select 1;
rollback;
begin read only;
comment on table declared is 'x';
rollback;
begin read only;
alter domain positive set not null;
rollback;
begin read only;
create function f() returns int language sql as 'select 1';
rollback;
begin read only;
truncate declared;
rollback;
create table needed (id int primary key, v int);
create view needed_view as select id from needed;
create table needing (id int references needed, v int, needed int references needed);
create view needed_above as select n.id, d.id as other from needed_view n join needed d using (id);
create materialized view needed_last as select * from needed;
drop table needed;
drop table needed, needing;
drop view needed_view;
drop table needed, needing cascade;
drop table declared cascade;
drop domain positive;
