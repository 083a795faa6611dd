-- Row-level security.
create role psql_alice login; create role psql_bob login; create role psql_carol bypassrls login; create role psql_staff;
grant psql_staff to psql_alice, psql_bob;
create schema pol; grant usage, create on schema pol to public; set search_path = pol;
create table doc (id int primary key, owner name, level int, title text);
insert into doc values (1, 'psql_alice', 1, '10'), (2, 'psql_alice', 2, '12'), (3, 'psql_bob', 1, '30'), (4, 'psql_bob', 3, 'hidden');
create table clearance (who name primary key, level int);
insert into clearance values ('psql_alice', 1), ('psql_bob', 3);
grant all on doc, clearance to psql_staff, psql_carol;
alter table doc enable row level security;
-- none permits: no rows
set role psql_alice; select * from doc; update doc set level = 0; delete from doc; insert into doc values (9, 'psql_alice', 1, 'x');
set role psql_carol; select count(*) from doc;
reset role; select count(*) from doc;
create policy own on doc for all to psql_staff using (owner = current_user);
create policy seen on doc for select using (level <= 1);
select policyname, permissive, roles, cmd, with_check from pg_policies where schemaname = 'pol' order by 1;
select polname, polcmd, polpermissive from pg_policy order by 1;
select relrowsecurity, relforcerowsecurity from pg_class where relname = 'doc';
select rowsecurity from pg_tables where tablename = 'doc';
set role psql_alice;
select row_security_active('doc'), row_security_active('clearance'::regclass);
select id from doc order by id;
select id from doc where id = 4; select id from doc where id = 3;
update doc set level = level + 10 returning id, level;
update doc set level = level - 10;
select id, level from doc order by id;
delete from doc where id = 3; delete from doc where id = 4;
insert into doc values (5, 'psql_alice', 1, '50');
insert into doc values (6, 'psql_bob', 1, 'not mine');
insert into doc values (6, 'psql_bob', 1, 'not mine') returning id;
update doc set owner = 'psql_bob' where id = 5;
-- an error tells nothing of hidden rows
select id from doc where title::int > 0 order by id;
select id from doc where 100 / (id - 4) > -40 order by id;
select id from doc where id / (level - 3) > -100 order by id;
update doc set title = title where title::int > 100; delete from doc where 1 / (id - 4) > 5;
-- ON CONFLICT
insert into doc values (5, 'psql_alice', 1, 'again') on conflict (id) do nothing;
insert into doc values (5, 'psql_alice', 1, '51') on conflict (id) do update set title = excluded.title || '0' returning title;
insert into doc values (4, 'psql_alice', 1, 'taken') on conflict (id) do update set title = excluded.title;
insert into doc values (3, 'psql_alice', 1, 'taken') on conflict (id) do update set title = excluded.title;
insert into doc values (4, 'psql_bob', 1, 'taken') on conflict (id) do update set title = excluded.title;
insert into doc values (5, 'psql_alice', 1, 'x') on conflict (id) do update set owner = 'psql_bob';
insert into doc values (4, 'psql_alice', 1, 'x') on conflict do nothing;
-- COPY
copy (select * from doc order by id) to stdout;
-- locks
select id from doc order by id for update; select id from doc order by id for share;
-- row_security = off
set row_security = off;
select * from doc; insert into doc values (7, 'psql_alice', 1, 'x'); select count(*) from clearance;
reset row_security;
-- prepared statements follow the role and the setting
prepare p as select id from doc order by id;
execute p;
set role psql_bob; execute p;
set role psql_carol; execute p;
reset role; execute p;
set row_security = off; execute p; reset row_security;
-- restrictive policies, subqueries, joins
update doc set title = 'secret' where id = 2;
create policy cleared on doc as restrictive using (level <= (select c.level from clearance c where c.who = current_user));
set role psql_bob; select id from doc order by id;
set role psql_alice; select id from doc order by id;
insert into doc values (8, 'psql_alice', 2, 'too high');
update doc set level = 5 where id = 1;
update doc set title = '11' where title::int = 12;
select d.id, c.who from doc d join clearance c on d.level = c.level order by 1, 2;
select c.who, d.id from clearance c left join doc d on d.owner = c.who order by 1, 2;
select d.id from clearance c, doc d where d.title::int < 25 and c.who = d.owner order by 1;
reset role;
alter policy cleared on doc using (exists (select 1 from clearance c where c.who = current_user and c.level >= doc.level));
set role psql_alice;
select id from doc order by id;
select id from doc where title::int = 12;
select d.id, c.who from doc d join clearance c on d.level = c.level order by 1, 2;
select c.who, d.id from clearance c left join doc d on d.owner = c.who order by 1, 2;
update doc set title = '11' where title::int = 510;
select d.id, c.who from doc d join clearance c on d.title::int > 0 and c.level = 3 order by 1;
select c.who, d.id from clearance c left join doc d on d.title::int = 10 order by 1, 2;
update doc set title = title || '0' from clearance c where c.who = owner and doc.id < 10 returning doc.id, title;
delete from doc using clearance c where c.who = owner and doc.id = 5 returning doc.id;
select id from doc order by id for update;
with w as (select id from doc) select count(*) from w;
select count(*), max(level) from doc; select owner, count(*) from doc group by owner order by 1;
select id, (select count(*) from doc x where x.owner = d.owner) from doc d order by 1;
begin; insert into doc values (11, 'psql_alice', 1, 'k'), (12, 'psql_alice', 9, 'l'); rollback;
-- views: the owner's policies
reset role; create view all_doc as select id, owner, level from doc; grant all on all_doc to psql_staff;
set role psql_alice; create view my_doc as select id, owner, level, title from doc; grant all on my_doc to psql_staff;
select id from all_doc order by id;
set role psql_bob; select id from my_doc order by id;
update my_doc set title = '99' where id = 1; insert into my_doc values (20, 'psql_bob', 1, 'x'); delete from my_doc where id = 3;
set role psql_alice; select id, title from doc order by id;
-- materialized views are as of their owner, and have no policies
create materialized view kept as select id from doc; select * from kept order by id;
reset role; refresh materialized view kept; select * from kept order by id;
alter table kept enable row level security; alter table all_doc enable row level security;
drop materialized view kept;
-- FORCE
alter table doc owner to psql_alice;
set role psql_alice; select count(*) from doc;
alter table doc force row level security; select count(*) from doc;
set row_security = off; select count(*) from doc; reset row_security;
alter table doc add column extra int not null default 7;
alter table doc alter column extra type bigint using extra + 1;
alter table doc add constraint low check (level < 100);
alter table doc no force row level security; select id, extra from doc order by id; select count(*) from doc;
-- foreign keys see all rows
set role psql_bob; create table child (d int references doc on delete cascade); insert into child values (2); insert into child values (77);
reset role; grant select on child to public; delete from doc where id = 2; select * from child; drop table child;
-- what is wrong
\set VERBOSITY terse
create policy own on doc using (true);
create policy w on doc for select with check (true);
create policy w on doc for insert using (true);
create policy w on doc for truncate using (true);
create policy w on doc as loose using (true);
-- (the place in the text is said here, and not by PostgreSQL)
\set VERBOSITY sqlstate
create policy w on doc using (1);
create policy w on doc using (count(*) > 1);
create policy w on doc using (nosuch = 1);
create policy w on nosuch using (true);
drop policy x on nosuch;
\set VERBOSITY terse
create policy w on doc to psql_nobody using (true);
create policy w on doc to public, psql_bob using (false);
create policy w on all_doc using (true);
alter policy nosuch on doc using (true);
alter policy seen on doc with check (true);
alter policy own on doc rename to seen;
drop policy nosuch on doc; drop policy if exists nosuch on doc; drop policy if exists nosuch on nosuch;
set role psql_bob; create policy z on doc using (true); drop policy own on doc; alter table doc disable row level security;
reset role;
\set VERBOSITY default
-- recursion
create table r1 (a int); create table r2 (a int); grant all on r1, r2 to psql_staff;
alter table r1 enable row level security; alter table r2 enable row level security;
create policy p1 on r1 using (a in (select a from r2)); create policy p2 on r2 using (a in (select a from r1));
set role psql_alice; select * from r1; insert into r1 values (1); update r1 set a = 1; reset role;
-- what depends on a policy
drop table r2; drop table r2 cascade; select polname from pg_policy where polrelid = 'r1'::regclass;
drop view all_doc, my_doc;
\set VERBOSITY sqlstate
drop role psql_staff;
\set VERBOSITY default
alter table doc drop column owner; alter table doc alter column level type bigint;
alter table doc rename column owner to possessor; alter table doc rename to papers;
select policyname, tablename from pg_policies where schemaname = 'pol' order by 1;
set role psql_bob; select id from papers order by id; reset role;
alter policy own on papers to psql_bob; alter policy own on papers rename to own2;
\d r1
create policy p3 on r1 as restrictive for insert to psql_bob, psql_alice with check (true);
\d r1
drop policy p3 on r1;
drop owned by psql_bob, psql_alice cascade;
set client_min_messages = warning; drop schema pol cascade;
drop owned by psql_staff; drop role psql_staff, psql_alice, psql_bob, psql_carol;
-- settings that are made up
set app.tenant = 'x y'; show app.tenant; select current_setting('app.tenant'), current_setting('app.other', true);
select current_setting('app.other'); show app.other; set app = 1; reset app.tenant; show app.tenant;
begin; set local app.local = 7; select current_setting('App.Local'); commit; select current_setting('app.local');
begin; set app.tenant = 'b'; rollback; show app.tenant; select set_config('app.tenant', '2', false);
set "a b.c" = 1; set a.b.c = 1; show a.b.c; set search_path = 'A b', public; show search_path; reset search_path;
