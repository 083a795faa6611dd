-- WITH CHECK OPTION, and what the catalogs say of views that can be changed through.
\set VERBOSITY default
create table checked (id int primary key, v int not null default 0, note text);
insert into checked values (1, 1, 'one'), (2, 2, 'two');
create table allowed (note text primary key);
insert into allowed values ('one'), ('two'), ('three');
create view small as select id, v, note from checked where v < 10;
create view small_checked as select id, v, note from checked where v < 10 with check option;
create view local_over as select * from small where id < 100 with local check option;
create view cascaded_over as select * from small where id < 100 with cascaded check option;
create view local_over_checked as select * from small_checked where id < 100 with local check option;
create view plain_over_cascaded as select id, v from cascaded_over where id > 0;
create view renamed (number, amount) as select id, v from checked where v is distinct from 5 with check option;
create view listed as select * from checked c where exists (select 1 from allowed a where a.note = c.note) with check option;
create view by_option with (check_option = local) as select * from checked where v < 3;
-- Refusals of rows.
insert into small values (10, 50, 'ten');
insert into small_checked values (11, 50, 'eleven');
insert into small_checked values (11, null, 'eleven');
insert into small_checked (id, note) values (11, 'eleven') returning *;
update small_checked set v = 10 where id = 1;
update small_checked set v = v + 7 where id < 3 returning id, v;
update small_checked set v = v - 7 where id < 3 returning id, v;
insert into local_over values (12, 50, 'twelve');
insert into local_over values (120, 5, 'twelve');
insert into cascaded_over values (13, 50, 'thirteen');
insert into cascaded_over values (130, 50, 'thirteen');
insert into cascaded_over values (130, 5, 'thirteen');
insert into local_over_checked values (14, 50, 'fourteen');
insert into local_over_checked values (140, 5, 'fourteen');
insert into plain_over_cascaded values (-5, 5);
insert into plain_over_cascaded values (15, 50);
insert into plain_over_cascaded values (150, 5);
insert into renamed values (16, 5);
insert into renamed (amount, number) values (6, 16);
update renamed set amount = 5 where number = 16;
insert into listed values (17, 1, 'none');
insert into listed values (17, 1, 'three');
update listed set note = 'none' where id = 17;
update listed set note = null where id = 17;
insert into by_option values (18, 3, 'x');
-- Several rows, one of which is refused; a row that a constraint refuses first; ON CONFLICT; WITH and FROM.
insert into small_checked values (20, 1, 'a'), (21, 11, 'b');
insert into small_checked values (1, 11, 'a');
insert into small_checked values (1, 1, 'a') on conflict (id) do update set v = 12;
insert into small_checked values (1, 11, 'a') on conflict (id) do nothing;
insert into small_checked values (1, 11, 'a') on conflict (id) do update set v = 9 returning *;
update small_checked s set v = a.n from (values (1, 30), (2, 4)) a (id, n) where a.id = s.id;
update listed s set note = a.note from allowed a where a.note = 'two' and s.id = 17 returning s.id, s.note;
with moved as (update small_checked set v = 40 where id = 2 returning id) select * from moved;
delete from small_checked where id = 1 returning *;
begin;
savepoint a;
insert into small_checked values (22, 22, '');
rollback to a;
insert into small_checked values (22, 2, '');
commit;
prepare ins (int, int) as insert into small_checked (id, v) values ($1, $2);
execute ins (23, 3);
execute ins (24, 24);
alter view small set (check_option = cascaded);
insert into small values (25, 50, 'after');
alter view small reset (check_option);
insert into small values (25, 50, 'after');
create or replace view small_checked as select id, v, note from checked where v < 10;
insert into small_checked values (26, 50, 'replaced');
select * from checked order by id;
-- Refusals of views.
create view no_way as select count(*) from checked with check option;
create view no_way as select distinct v from checked with check option;
create view no_way as select v + 1 as w from checked with check option;
create view no_way as select 1 as one with local check option;
create view no_way with (check_option = maybe) as select * from checked;
create view no_way with (nonsense = 1) as select * from checked;
alter view small set (check_option = maybe);
create view counted as select v, count(*) from checked group by v;
alter view counted set (check_option = local);
-- The catalogs.
create view over_counted as select * from counted;
create view made as select id, v + 1 as w from checked;
create view only_made as select v + 1 as w from checked;
select relname, reloptions, pg_relation_is_updatable(c.oid::regclass, false) from pg_class c
  where relname in ('checked', 'small', 'small_checked', 'local_over', 'cascaded_over', 'plain_over_cascaded', 'renamed', 'listed', 'by_option', 'counted',
    'over_counted', 'made', 'only_made') order by 1;
select table_name, check_option, is_updatable, is_insertable_into from information_schema.views
  where table_schema = 'public' and table_name in ('small', 'small_checked', 'local_over', 'cascaded_over', 'by_option', 'counted', 'over_counted', 'made', 'only_made')
  order by 1;
select table_name, column_name, is_updatable from information_schema.columns where table_name in ('checked', 'made', 'only_made', 'renamed', 'counted') order by 1, 2;
select attname, pg_column_is_updatable('made'::regclass, attnum, false) from pg_attribute where attrelid = 'made'::regclass and attnum > 0 order by attnum;
select pg_column_is_updatable('checked'::regclass, (-1)::int2, false), pg_column_is_updatable('checked'::regclass, 1::int2, false);
set client_min_messages = warning;
drop table checked cascade;
drop table allowed;
