-- ALTER DOMAIN while columns have the domain: values are judged; VALIDATE and RENAME CONSTRAINT, COMMENT ON CONSTRAINT ... ON DOMAIN.
create domain dc as int constraint pos check (value > 0);
create table dc_t (id int, a dc, b dc);
insert into dc_t values (1, 5, 50), (2, null, 51);
alter domain dc add constraint small check (value < 100);
alter domain dc add check (value < 50);
alter domain dc add constraint odd check (value % 2 = 1) not valid;
insert into dc_t values (3, 4, 51);
alter domain dc validate constraint odd;
alter domain dc validate constraint small;
alter domain dc validate constraint nope;
delete from dc_t where id = 1;
alter domain dc validate constraint odd;
alter domain dc set not null;
update dc_t set a = 7;
alter domain dc set not null;
alter domain dc drop not null;
select conname, convalidated, pg_get_constraintdef(oid) from pg_constraint where contypid = 'dc'::regtype order by 1;
comment on constraint pos on domain dc is 'positive';
comment on constraint small on domain dc is 'below a hundred';
comment on constraint odd on domain dc is 'odd';
comment on constraint nope on domain dc is 'x';
comment on domain dc is 'a domain';
create type dc_mood as enum ('sad');
comment on type dc_mood is 'a type';
select typname, obj_description(oid, 'pg_type') from pg_type where oid in ('dc'::regtype, 'dc_mood'::regtype) order by 1;
drop type dc_mood;
alter domain dc rename constraint pos to positive;
alter domain dc rename constraint pos to positive;
alter domain dc rename constraint small to odd;
alter domain dc drop constraint small;
comment on constraint odd on domain dc is null;
select conname, obj_description(oid, 'pg_constraint') from pg_constraint where contypid = 'dc'::regtype order by 1;
select c.conname, d.description from pg_description d join pg_constraint c on c.oid = d.objoid and d.classoid = 'pg_constraint'::regclass
  where c.contypid = 'dc'::regtype;
create table domain (id int, constraint domain_check check (id > 0));
comment on constraint domain_check on domain is 'of a table that is called domain';
select obj_description(oid, 'pg_constraint') from pg_constraint where conname = 'domain_check';
create table dc_arrays (a dc[]);
alter domain dc add constraint more check (value <> 3);
drop table dc_arrays;
alter domain dc add constraint more check (value <> 9);
insert into dc_t values (4, 9, 9);
\set VERBOSITY verbose
\set SHOW_CONTEXT never
alter domain dc drop constraint more;
\set VERBOSITY default
drop table dc_t, domain;
drop domain dc;
