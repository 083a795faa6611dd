-- MERGE.
\set SHOW_CONTEXT never
\pset footer off
create table mt (id int primary key, v text, b int default 7);
create table ms (id int, v text);
insert into mt values (1, 'a'), (2, 'b');
insert into ms values (2, 'x'), (3, 'y');
-- what the parser and the planner refuse
merge into mt using ms on mt.id = ms.id when not matched and mt.v = 'x' then insert values (ms.id, ms.v);
merge into mt using ms on mt.id = ms.id when not matched then insert values (mt.id, ms.v);
merge into mt using (select * from ms where ms.id = mt.id) s on true when matched then delete;
merge into mt using (select id from ms) s on mt.id = s.id when not matched and v = 'x' then insert values (s.id);
merge into mt using ms on mt.id = ms.id when matched then delete when matched then do nothing;
merge into mt using ms on mt.id = ms.id when matched then delete when not matched then do nothing when matched then do nothing;
merge into mt using mt on mt.id = mt.id when matched then delete;
merge into mt using ms as mt on mt.id = mt.id when matched then delete;
create view mv as select * from mt;
create materialized view mm as select * from mt;
create sequence mq;
create index mi on mt (v);
merge into mv using ms on mv.id = ms.id when matched then delete;
merge into mm using ms on mm.id = ms.id when matched then delete;
merge into mq using ms on true when matched then delete;
merge into mi using ms on true when matched then do nothing;
merge into nosuch using ms on true when matched then do nothing;
drop view mv;
drop materialized view mm;
drop index mi;
with x as (merge into mt using ms on true when matched then delete) select 1;
copy (merge into mt using ms on true when matched then delete) to stdout;
merge into mt using ms on true when matched then delete returning mt.*;
with recursive z as (select 1) merge into mt using ms on true when matched then delete;
merge into mt using ms on sum(mt.id) = 1 when matched then delete;
merge into mt using ms on mt.id = ms.id when matched and sum(ms.id) > 1 then delete;
merge into mt using ms on mt.id = ms.id when matched and row_number() over () > 1 then delete;
merge into mt using ms on mt.id = ms.id when matched and generate_series(1, 2) > 1 then delete;
merge into mt using ms on mt.id = ms.id when matched then update set v = sum(ms.id);
merge into mt using ms on mt.id = ms.id when not matched then insert values (sum(ms.id));
merge into mt using ms on mt.id = ms.id when matched and ms.id then delete;
merge into mt using ms on mt.id = ms.id when matched then update set nosuch = 1;
merge into mt using ms on mt.id = ms.id when matched then update set v = 'a', v = 'b';
merge into mt using ms on mt.id = ms.id when not matched then insert (id, nosuch) values (1, 2);
merge into mt using ms on mt.id = ms.id when not matched then insert (id, id) values (1, 2);
merge into mt using ms on mt.id = ms.id when not matched then insert (id) values (1, 2);
merge into mt using ms on mt.id = ms.id when not matched then insert (id, v) values (1);
merge into mt using ms on mt.id = ms.id when not matched then insert values (1, 'a', 2, 3);
merge into mt using ms on mt.id = ms.id when not matched then insert (id) values (1), (2);
merge into mt using ms on mt.id = ms.id when not matched then insert (id) select 1;
merge into mt using ms on mt.id = ms.id when not matched then insert (id) default values;
merge into mt using ms on mt.id = ms.id when not matched then update set v = 'a';
merge into mt using ms on mt.id = ms.id when matched then insert values (1);
merge into mt using ms on mt.id = ms.id when matched then update set v = (select max(v) from ms) where true;
merge into mt using ms on mt.id = ms.id;
-- rows
\set QUIET off
merge into only mt using ms on mt.id = ms.id when matched then do nothing;
merge into mt x using (select 2 id) y on x.id = y.id when matched then update set v = x.v || y.id, b = default when not matched then insert default values;
select * from mt order by id;
merge into mt using ms on mt.id = ms.id when matched then update set (v, b) = (ms.v, 5) when not matched then insert (v, id) values (ms.v, ms.id);
select * from mt order by id;
merge into mt using ms on mt.id = ms.id when matched and ms.id > 2 then delete when matched then update set b = b + 1;
select * from mt order by id;
merge into mt t using (values (1, 'one'), (2, null), (8, 'eight'), (9, 'nine')) s (id, v) on t.id = s.id
  when matched and s.v is null then delete
  when matched then update set v = s.v
  when not matched and s.id = 8 then do nothing
  when not matched then insert (id, v, b) values (s.id, upper(s.v), default);
select * from mt order by id;
with z as (select 9 q) merge into mt using z on mt.id = z.q when matched then update set b = (select count(*) from ms) + z.q;
with d as (delete from ms where id = 3 returning *) merge into mt using d on mt.id = d.id when not matched then insert values (d.id, d.v);
select * from mt order by id;
merge into mt using generate_series(1, 3) g on mt.id = g when matched then delete when not matched then insert values (g, 'g');
merge into mt using ms join (values (2, 100)) w (id, n) using (id) on mt.id = ms.id when matched then update set b = w.n;
merge into mt using mt as o on mt.id = o.id + 1 when matched then update set v = o.v;
select * from mt order by id;
-- a row a second time; a key that is there
insert into ms values (2, 'again');
merge into mt using ms on mt.id = ms.id when matched then update set v = ms.v;
merge into mt using ms on mt.id = ms.id when matched then delete;
merge into mt using (values (19, 'q'), (19, 'r')) s (id, v) on mt.id = s.id when not matched then insert values (s.id, s.v);
with d as (update mt set b = b + 1 returning *) merge into mt using d on mt.id = d.id when matched then update set b = 9;
-- constraints
create table mp (id int primary key);
create table mc (id int primary key references mp, n int not null check (n > 0));
insert into mp values (1), (2);
insert into mc values (1, 1);
merge into mc using (values (1, -1)) s (id, n) on mc.id = s.id when matched then update set n = s.n;
merge into mc using (values (2, -1)) s (id, n) on mc.id = s.id when not matched then insert values (s.id, s.n);
merge into mc using (values (3, 1)) s (id, n) on mc.id = s.id when not matched then insert values (s.id, s.n);
merge into mc using (values (2, null::int)) s (id, n) on mc.id = s.id when not matched then insert values (s.id, s.n);
merge into mp using (values (1)) s (id) on mp.id = s.id when matched then delete;
merge into mc using (values (2, 5), (1, 6)) s (id, n) on mc.id = s.id when matched then update set n = s.n when not matched then insert values (s.id, s.n);
merge into mc using (values (1)) s (id) on mc.id = s.id when matched then update set id = 2;
merge into mc using (values (7)) s (id) on false when not matched then insert values (1, 1);
select * from mc order by id;
-- identity and generated columns
create table mg (a int generated always as identity, b int, c int generated always as (b * 2) stored);
merge into mg using (values (4)) s (id) on mg.a = s.id when not matched then insert (a, b) values (1, 2);
merge into mg using (values (4)) s (id) on mg.a = s.id when not matched then insert (a, b) overriding system value values (s.id, 2);
merge into mg using (values (4)) s (id) on mg.a = s.id when not matched then insert (b, c) values (1, 2);
merge into mg using (values (4)) s (id) on mg.a = s.id when matched then update set c = 1;
merge into mg using (values (4)) s (id) on mg.a = s.id when matched then update set a = 1;
merge into mg using (values (4)) s (id) on mg.a = s.id when matched then update set a = default, b = 8, c = default;
select * from mg;
-- rules, transactions that only read, prepared statements, functions
create rule mr as on insert to mg do instead nothing;
merge into mg using ms on mg.a = ms.id when matched then delete;
begin read only;
merge into mt using ms on mt.id = ms.id when matched then do nothing;
merge into mt using ms on mt.id = ms.id when matched then delete;
rollback;
prepare mx (int, text) as merge into mt using (values ($1, $2)) s (a, b) on mt.id = s.a when matched then update set v = s.b when not matched then insert values (a, b);
execute mx (77, 'n');
execute mx (77, 'o');
select * from mt where id = 77;
create function mf (int) returns void language sql as $$ merge into mt using (values ($1)) s (id) on mt.id = s.id when matched then delete $$;
select mf (77);
select * from mt where id = 77;
create function mf2 () returns int language sql as $$ merge into mt using ms on mt.id = ms.id when matched then do nothing $$;
-- rights
create role psql_merge;
create table ma (id int primary key, v text, w text);
insert into ma values (1, 'a', 'w'), (2, 'b', 'w');
grant select on ms to psql_merge;
delete from ms where v = 'again';
set role psql_merge;
merge into ma using ms on true when matched then do nothing;
merge into ma using ms on true when matched and false then delete;
merge into ma using ms on true when matched and false then update set v = 'x';
merge into ma using ms on true when not matched and false then insert values (1);
reset role;
grant delete on ma to psql_merge;
set role psql_merge;
merge into ma using ms on true when matched and false then delete;
merge into ma using ms on ma.id = ms.id when matched and false then delete;
reset role;
grant select (id), update (v), insert (id, v) on ma to psql_merge;
set role psql_merge;
merge into ma using ms on ma.id = ms.id when matched and false then delete;
merge into ma using ms on ma.id = ms.id when matched then update set v = ms.v;
merge into ma using ms on ma.id = ms.id when matched then update set w = ms.v;
merge into ma using ms on ma.id = ms.id when matched then update set v = w;
merge into ma using ms on ma.id = ms.id when matched and w = 'a' then update set v = ms.v;
merge into ma using (values (8)) s (id) on ma.id = s.id when not matched then insert (id, w) values (s.id, 'a');
merge into ma using (values (8)) s (id) on ma.id = s.id when not matched then insert (id, v) values (s.id, 'a');
merge into ma using ms on false when not matched and false then insert default values;
reset role;
select * from ma order by id;
-- row-level security
create table ml (id int primary key, owner text, v text);
insert into ml values (1, 'me', 'a'), (2, 'me', 'b'), (3, 'other', 'c'), (4, 'nodel', 'd'), (5, 'noupd', 'e'), (6, 'restr', 'e');
alter table ml enable row level security;
create policy s on ml for select using (owner <> 'other');
create policy i on ml for insert with check (v <> 'bad');
create policy u on ml for update using (owner <> 'noupd') with check (v <> 'bad');
create policy d on ml for delete using (owner <> 'nodel');
grant all on ml to psql_merge;
set role psql_merge;
merge into ml using (select 3 id) x on ml.id = x.id when matched then update set v = 'z' when not matched then insert values (33, 'me', 'ins');
merge into ml using (select 3 id) x on ml.id = x.id when not matched then insert values (3, 'me', 'ins');
merge into ml using (select 5 id) x on ml.id = x.id when matched then update set v = 'z';
merge into ml using (select 5 id) x on ml.id = x.id when matched and v = 'zz' then update set v = 'z';
merge into ml using (select 4 id) x on ml.id = x.id when matched then delete;
merge into ml using (select 4 id) x on ml.id = x.id when matched then update set v = 'bad';
merge into ml using (select 40 id) x on ml.id = x.id when not matched then insert values (40, 'me', 'bad');
merge into ml using (select 40 id) x on ml.id = x.id when not matched then insert values (40, 'other', 'ok');
merge into ml using (select 4 id) x on ml.id = x.id when matched then update set owner = 'other';
reset role;
create policy rr on ml as restrictive for update using (owner <> 'restr');
create policy rd on ml as restrictive for delete using (owner <> 'me');
set role psql_merge;
merge into ml using (select 6 id) x on ml.id = x.id when matched then update set v = 'z';
merge into ml using (select 1 id) x on ml.id = x.id when matched then delete;
merge into ml using (select 1 id) x on ml.id = x.id when matched then update set owner = 'restr';
merge into ml using (select 2 id) x on ml.id = x.id when matched then update set v = 'good';
reset role;
select * from ml order by id;
-- a policy that looks into another table
create policy deep on ml as restrictive for select using (id in (select id from ms));
set role psql_merge;
merge into ml using (values (1), (2)) x (id) on ml.id = x.id and 1 / (ml.id - 1) >= 0 when matched then update set v = 'deep' when not matched then do nothing;
reset role;
select * from ml order by id;
\set QUIET on
drop table mt, ms, mc, mp, mg, ma, ml cascade;
drop sequence mq;
drop function mf;
drop role psql_merge;
