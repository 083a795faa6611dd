-- UNIQUE NULLS NOT DISTINCT: constraints, indexes, arbiters of ON CONFLICT, constraints that are checked late, and what the catalogs say.
create table nnd (id int, a int unique nulls not distinct, b int, c text, constraint nnd_bc unique nulls not distinct (b, c));
insert into nnd values (1, null, 1, null);
insert into nnd values (2, null, 2, null);
insert into nnd values (3, 3, 1, null);
insert into nnd values (3, 3, null, null);
insert into nnd values (4, 4, null, null);
insert into nnd values (4, 4, null, 'x'), (5, 5, 1, 'x');
update nnd set a = null where id = 3;
update nnd set c = null where id = 5;
update nnd set a = null where id = 1;
insert into nnd values (6, null, 6, 'f') on conflict (a) do update set c = excluded.c || coalesce(nnd.c, '-') returning *;
insert into nnd values (7, 7, 1, 'f-') on conflict (b, c) do nothing;
insert into nnd values (7, null, 7, null) on conflict do nothing;
insert into nnd values (7, null, 7, null) on conflict on constraint nnd_bc do nothing;
select * from nnd order by id;
begin;
delete from nnd where a is null;
insert into nnd values (8, null, 8, null);
insert into nnd values (9, null, 9, null);
rollback;
insert into nnd select 10, null, 10, 'j' from generate_series(1, 2);
create unique index nnd_expr on nnd (abs(b), upper(c) desc) nulls not distinct where id > 0;
insert into nnd values (11, 11, null, 'X');
insert into nnd values (11, 11, null, null) on conflict (b, c) do nothing;
update nnd set c = 'row ' || id where c = 'x';
create unique index nnd_include on nnd (c) include (b) nulls not distinct;
insert into nnd values (12, 12, null, 'y'), (13, 13, 13, 'y');
create index nnd_plain on nnd (c) nulls not distinct;
create unique index nnd_usual on nnd (b) nulls distinct where a > 100;
select c.relname, i.indisunique, i.indnullsnotdistinct, pg_get_indexdef(c.oid) from pg_index i join pg_class c on c.oid = i.indexrelid
  where i.indrelid = 'nnd'::regclass order by 1;
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'nnd'::regclass order by 1;
select constraint_name, nulls_distinct from information_schema.table_constraints where table_name = 'nnd' order by 1;
\d nnd
create table nnd_like (like nnd including indexes);
\d nnd_like
alter table nnd add unique nulls not distinct (id);
alter table nnd add constraint nnd_id unique nulls not distinct (id);
\set VERBOSITY terse
alter table nnd add column e int unique nulls not distinct;
\set VERBOSITY default
alter table nnd drop constraint nnd_bc;
insert into nnd values (15, 15, null, 'n');
create unique index nnd_c on nnd (c) nulls not distinct;
alter table nnd add constraint nnd_c_key unique using index nnd_c;
insert into nnd values (16, 16, 16, null);
select pg_get_constraintdef(oid) from pg_constraint where conname = 'nnd_c_key';
create table nnd_late (id int, a int unique nulls not distinct deferrable initially deferred);
begin;
insert into nnd_late values (1, null), (2, null);
update nnd_late set a = 1 where id = 1;
commit;
begin;
insert into nnd_late values (3, null);
commit;
select * from nnd_late order by id;
create table nnd_key (a int, primary key nulls not distinct (a));
create table nnd_ref (a int references nnd (a));
insert into nnd_ref values (null), (4);
insert into nnd_ref values (99);
delete from nnd where a is null;
create table nnd_dup (a int, b int);
insert into nnd_dup values (null, 1), (null, 1), (null, null);
\set VERBOSITY terse
create unique index on nnd_dup (a, b) nulls not distinct;
create unique index on nnd_dup (a, b);
alter table nnd_dup add unique nulls not distinct (a);
drop table nnd_dup, nnd_ref, nnd_late, nnd_like, nnd;
\set VERBOSITY default
