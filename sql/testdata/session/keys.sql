-- Keys and indexes of types whose stored bytes do not sort as their values do.
create table span (d interval primary key, note text)
insert into span values ('1 mon', 'a month'), ('1 day', 'a day'), ('-1 mon', 'back'), ('1 year', 'a year')
insert into span values ('30 days', 'thirty days')
insert into span values ('30 days', 'thirty days') on conflict (d) do update set note = span.note || ', or ' || excluded.note returning d, note
insert into span values ('365 days', 'not a year') on conflict do nothing
select d, note from span order by d
select d from span order by d desc limit 2
select d from span where d = '720:00:00'
select d from span where d > '29 days' and d <= '360 days' order by d
select d from span where d in ('24:00:00', '12 mons', '2 days') order by d
update span set d = '30 days' where note like 'a month%' returning d
select d from span where d = '1 mon'
update span set d = '24:00:00' where note = 'a year'
delete from span where d = '30 days' returning d, note
select count(distinct d), min(d), max(d) from span
create table part_of (d interval references span on update cascade, n int)
insert into part_of values ('24:00:00', 1), ('365 days', 2)
insert into part_of values ('24:00:00', 1)
delete from span where note = 'a day'
update span set d = '2 days' where note = 'a day'
select d, n from part_of order by d, n
create table list (id int primary key, a int[], t text[], n numeric[], d interval[], b char(3)[])
create unique index list_a on list (a)
create index on list (t desc, a)
create unique index on list (n, d nulls first)
insert into list values (1, '{1,2}', '{a,b}', '{1.0}', '{1 mon}', '{a}'), (2, '{1,2,3}', '{a}', '{1.0}', '{1 day}', '{b}')
insert into list values (3, '{1,null}', '{a,null}', '{2}', null, '{a,b}'), (4, '{}', '{}', '{}', '{}', '{}')
insert into list values (5, null, null, null, null, null), (6, null, null, null, null, null)
insert into list values (7, '{1,2}', null, null, null, null)
insert into list values (7, '[0:1]={1,2}', null, null, null, null), (8, '{{1},{2}}', null, null, null, null), (9, '{{1,2}}', null, null, null, null)
insert into list values (10, '{9}', null, '{1.00}', '{30 days}', null)
select id, a from list order by a, id
select id, a from list order by a desc, id
select id, t, a from list order by t desc, a, id
select id, n, d from list where n = '{1.000}' order by d nulls first, id
select id from list where a = '{1,2}'
select id from list where a > '{1,2}' order by a
select id from list where a >= '{1,2}' and a < '{1,2,3}' order by a
select id from list where a in ('{}', '{1,NULL}', '{2}') order by id
select id from list where a = any (select l.a from list l where l.id < 3) order by id
select distinct n from list order by n
select a, count(*) from list group by a order by a
create table copy_of (a int[] references list (a) on delete set null, id int)
insert into copy_of values ('{1,2}', 1), ('{1,2,4}', 2)
insert into copy_of values ('{1,2}', 1), ('{}', 2), (null, 3)
delete from list where id = 1
select * from copy_of order by id
create table doc (id int primary key, j jsonb)
insert into doc values (1, '{"a": 1}'), (2, '{"a": 1, "b": 2}'), (3, '[]'), (4, '[1, 2]'), (5, '[1]'), (6, 'null'), (7, 'true'), (8, 'false'), (9, '"x"'), (10, '""'), (11, '1.0'), (12, '-5'), (13, '{}'), (14, '[[]]'), (15, '[null]'), (16, '{"aa": 0}'), (17, '{"b": 0}'), (18, '"ä"'), (19, '[[], 1]'), (20, '{"a": []}')
create unique index doc_j on doc (j)
insert into doc values (30, '1.00')
insert into doc values (30, '{"b": 2.0, "a": 1.00}')
select id, j from doc order by j
select id, j from doc order by j desc limit 3
select id from doc where j = '1' or j = '{"b": 2, "a": 1}' order by id
select id from doc where j >= '[]' and j < '"x"' order by j
create index on doc ((j -> 'a'), id)
select id from doc where j -> 'a' = '1.0' order by id
insert into doc values (31, '1.00') on conflict (j) do update set j = excluded.j returning id, j
select id, j from doc where j = '1.000'
create table during (id int, r int4range, m datemultirange, n numrange, primary key (r, id))
insert into during values (1, '[1,5)', '{[2024-01-01,2024-02-01)}', '[1.0,2]'), (2, '(,5)', '{}', '(1,2)'), (3, 'empty', null, 'empty'), (4, '[1,)', '{(,2024-01-01),[2024-03-01,)}', '[1.00,2)'), (5, '(,)', '{(,)}', '(,)'), (6, '[1,4]', '{[2024-01-01,2024-01-31]}', '(,2]')
select id, r from during order by r, id
select id, r from during order by r desc, id desc
create unique index on during (n)
insert into during values (7, '[1,5)', null, '[1.000,2.0)')
create index during_m on during (m, n desc)
select id, m from during order by m, id
select id from during where r = '[1,4]' order by id
select id from during where r > '[1,4]' order by r, id
select id from during where m = '{[2024-01-01,2024-01-31]}' order by id
create table flags (b bit(3), v varbit, primary key (b, v))
insert into flags values ('101', '1'), ('101', '10'), ('001', ''), ('111', '0'), ('101', '0')
insert into flags values ('101', '10')
select * from flags order by b, v
select * from flags where b = '101' and v > '0' order by v
create type pair as (x int, y interval)
create table pairs (p pair primary key)
insert into pairs values ((1, '1 mon')), ((1, null)), ((null, null)), ((0, '1 day'))
insert into pairs values ((1, '30 days'))
insert into pairs values ((1, null))
select p from pairs order by p
select p from pairs where p = (1, '720:00')::pair
select p from pairs where p >= (1, '1 day')::pair order by p
create domain span_domain as interval check (value > '0')
create table spans (d span_domain unique, l int[])
insert into spans values ('1 mon')
insert into spans values ('30 days')
alter table spans add primary key (l)
alter table spans drop constraint spans_d_key
insert into spans values ('1 mon', '{1}'), ('1 mon', '{1}')
delete from spans
insert into spans values ('1 mon', '{1}'), ('1 mon', '{1,2}')
alter table spans add primary key (l)
alter table spans add unique (d)
select * from spans where l = '{1,2}'
select * from spans where l < '{1,2}'
insert into spans values ('2 mons', '{1}')
alter table spans alter l type text[]
select * from spans where l = '{1,2}'
insert into spans values ('2 mons', '{1}')
alter table spans alter d type text
create table js (j json unique)
create table pt (p point primary key)
create index on doc ((j::text::json))
select indexdef from pg_indexes where schemaname = 'public' and tablename in ('list', 'doc', 'during') order by indexname
select indexrelid::regclass, (select array_agg(opcname order by at) from unnest(indclass) with ordinality as u (oid, at), pg_opclass c where c.oid = u.oid) from pg_index where indrelid in ('list'::regclass, 'doc'::regclass, 'during'::regclass, 'flags'::regclass, 'pairs'::regclass, 'span'::regclass) order by indexrelid::regclass::text
create index list_a_class on list (a array_ops)
create index list_a_class on list (a jsonb_ops)
select pg_get_indexdef('list_a'::regclass)
