-- What conditions and results learn of rows that a policy or a barrier hides. set_config keeps every value that it is called with: a function
-- that tells.

== a function that keeps what it sees meets no hidden row, wherever it stands
create user a_user; grant create on schema public to a_user;
create table t (id int primary key, who name, n text, k int unique); insert into t values (1, 'a_user', 'mine', 10), (2, 'a_other', 'secret', 20), (3, 'a_user', 'mine too', 30), (4, 'a_other', 'hidden', 40);
alter table t enable row level security; create policy p on t using (who = current_user); grant all on t to a_user;
create table u (id int primary key, t int); insert into u values (1, 1), (2, 2), (3, 3), (4, 4); grant all on u to a_user;
@user a_user
select id from t where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null order by id;
select current_setting('a.kept', true);
select set_config('a.kept', '', false);
select u.id from u join t on u.t = t.id and set_config('a.kept', concat(current_setting('a.kept', true), t.n), false) is not null order by 1;
select u.id from u left join t on u.t = t.id and set_config('a.kept', concat(current_setting('a.kept', true), t.n), false) is not null order by 1;
select u.id from u, lateral (select * from t where t.id = u.t and set_config('a.kept', concat(current_setting('a.kept', true), t.n), false) is not null) q order by 1;
select u.id from u where exists (select 1 from t where t.id = u.t and set_config('a.kept', concat(current_setting('a.kept', true), t.n), false) is not null) order by 1;
select u.id from u where t in (select id from t where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null) order by 1;
select (select set_config('a.kept', concat(current_setting('a.kept', true), n), false) from t where t.id = u.t) is null from u order by u.id;
with c as (select * from t) select id from c where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null order by 1;
with c as materialized (select * from t) select id from c where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null order by 1;
select id from (select * from t offset 0) q where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null order by 1;
select id from (select id, n from t union all select id, 'x' from u) q where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null order by 1;
select id from (select id, n from t except select id, 'x' from u) q where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null order by 1;
select max(id) from t group by n having set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null order by 1;
select count(*) filter (where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null) from t;
select id from t order by set_config('a.kept', concat(current_setting('a.kept', true), n), false);
select id, row_number() over (order by set_config('a.kept', concat(current_setting('a.kept', true), n), false)) > 0 from t;
select distinct on (set_config('a.kept', concat(current_setting('a.kept', true), n), false)) id > 0 from t;
select id from t where id = 2 and set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null;
select id from t where k = 20 and set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null;
select id from t where id in (1, 2, 4) and set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null order by 1;
select id from t where id = 2 or set_config('a.kept', concat(current_setting('a.kept', true), n), false) is null;
select id from t where case when n = 'secret' then set_config('a.kept', concat(current_setting('a.kept', true), n), false) is null else false end;
select id from t where coalesce(set_config('a.kept', concat(current_setting('a.kept', true), n), false), '') = 'x';
select id from t where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null for update;
select id from t where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null limit 1;
update t set k = k where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is null;
update t set k = t.k from u where u.t = t.id and set_config('a.kept', concat(current_setting('a.kept', true), t.n), false) is null;
delete from t where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is null;
delete from t using u where u.t = t.id and set_config('a.kept', concat(current_setting('a.kept', true), t.n), false) is null;
insert into t values (2, 'a_user', 'x', 99) on conflict (id) do update set n = set_config('a.kept', concat(current_setting('a.kept', true), t.n), false);
insert into t values (2, 'a_user', 'x', 99) on conflict (id) do update set n = 'y' where set_config('a.kept', concat(current_setting('a.kept', true), t.n), false) is null;
insert into t values (4, 'a_user', 'x', 99) on conflict (id) do nothing returning n;
copy (select id from t where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null) to stdout;
create view w as select * from t where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null;
select id from w order by 1;
prepare q (text) as select id from t where set_config('a.kept', concat(current_setting('a.kept', true), n, $1), false) is not null order by id;
execute q ('x');
begin; declare c scroll cursor for select id from t where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null; fetch all from c; fetch first from c; commit;
select replace(replace(current_setting('a.kept', true), 'mine too', ''), 'mine', '') like '%secret%', current_setting('a.kept', true) like '%hidden%';
select n::int from t where id = 2;
select id from t where n::int = 1;
select id from t where 1 / (k - 20) > 0;
select 1 / (id - 2) from t order by id;
select sum(1 / (id - 2)) from t;
select id from t where (array[1, 2])[id] = 2;
select id from t where n ~ '(' order by 1;
create unique index on t (n);
create table mine as select * from t; select count(*) from mine;
select * into mine2 from t; select count(*) from mine2;
insert into u select id + 10, k from t; select count(*) from u;
select count(*) from t, u where t.id = u.id;
table t;

== with a policy that has a query, and one that has to wait for the joins
create user a_user; grant create on schema public to a_user;
create table allowed (id int, who name); insert into allowed values (1, 'a_user'), (3, 'a_user'), (2, 'x');
create table t (id int primary key, n text, k int); insert into t values (1, 'mine', 1), (2, 'secret', 0), (3, 'mine', 3);
alter table t enable row level security; create policy p on t using (id in (select a.id from allowed a where a.who = current_user)); grant all on t to a_user;
@user a_user
select id from t;
@postgres
grant select on allowed to a_user;
@user
select id from t order by 1;
select id from t where 1 / k > 0 order by 1;
select id from t where n::int > 0;
select t.id from t join (values (1), (2), (3)) v (i) on v.i = t.id and 1 / t.k > -1 order by 1;
select t.id from (values (1), (2), (3)) v (i) left join t on v.i = t.id and 1 / t.k > -1 order by 1;
select t.id from t full join (values (1), (2), (3)) v (i) on v.i = t.id where 1 / k > -1 order by 1;
update t set k = k where 1 / k > -1;
update t set k = t.k from allowed a where a.id = t.id and 1 / t.k > -1;
delete from t where 1 / k < -5;
delete from t using allowed a where a.id = t.id and 1 / t.k < -5;
select id from t where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null for share;
select current_setting('a.kept', true) like '%secret%';
@postgres
alter table allowed enable row level security; create policy q on allowed using (exists (select 1 from t where t.id = allowed.id));
@user
select id from t;
@postgres
drop policy q on allowed; create policy q on allowed using (id < 3);
@user
select id from t order by 1;

== barriers: joins, aggregates, limits, views over views
create user a_user; create table t (id int primary key, who name, n text, k int); insert into t values (1, 'a_user', 'mine', 1), (2, 'x', 'secret', 0), (3, 'a_user', 'mine', 3);
create table g (id int, open bool); insert into g values (1, true), (2, false), (3, true);
create view b with (security_barrier) as select * from t where who = current_user;
create view bj with (security_barrier) as select t.* from t join g using (id) where g.open;
create view ba with (security_barrier) as select who, sum(k) as s, max(n) as m from t where who = current_user group by who;
create view bb as select * from b where k > -1;
create view bd with (security_barrier) as select distinct n, k from t where who = current_user;
create view bu with (security_barrier) as select id, k, n from t where who = current_user union all select id, 1, 'x' from g;
create view bl with (security_barrier) as select * from t where who = current_user order by id limit 5;
create view bw with (security_barrier) as select id, k, n, rank() over (order by id) from t where who = current_user;
grant all on b, bj, ba, bb, bd, bu, bl, bw to a_user; grant select on g to a_user;
@user a_user
select id from b where 1 / k > -1 order by 1;
select id from bj where 1 / k > -1 order by 1;
select id from bj where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null order by 1;
select id from bb where 1 / k > -1 order by 1;
select s from ba where 1 / s > -1;
select k from bd where 1 / k > -1 order by 1;
-- PostgreSQL takes the branches of UNION ALL apart and meets the rows that the view hides.
-- here: SELECT 5 [1] [1] [2] [3] [3]
select id from bu where 1 / k > -1 order by 1;
select id from bl where 1 / k > -1 order by 1;
select id from bw where 1 / k > -1 order by 1;
select b.id from b join g on b.id = g.id and 1 / b.k > -1 order by 1;
select g.id from g left join b on b.id = g.id and 1 / b.k > -1 order by 1;
select g.id, (select 1 / b.k from b where b.id = g.id) from g order by 1;
select id from b x where exists (select 1 from b y where y.id = x.id and 1 / y.k > -1) order by 1;
select id from bb where set_config('a.kept', concat(current_setting('a.kept', true), n), false) is not null order by 1;
update b set k = k where 1 / k > -1;
update bb set k = k where 1 / k > -1;
update b set k = b.k from g where g.id = b.id and 1 / b.k > -1;
delete from b using g where g.id = b.id and 1 / b.k < -5;
insert into b values (2, 'a_user', 'z', 7) on conflict (id) do update set n = 'z' returning n;
select current_setting('a.kept', true) like '%secret%';

== COPY where policies hold
create user a_user; create user a_free bypassrls; create table t (id int primary key, who name); insert into t values (1, 'a_user'), (2, 'x');
alter table t enable row level security; create policy p on t using (who = current_user); grant all on t to a_user, a_free;
@user a_user
copy t to stdout;
copy t (id) to stdout;
copy t from stdin;
copy (select * from t) to stdout;
@free a_free
copy t to stdout;
set row_security = off;
copy t to stdout;
@user
set row_security = off;
copy t to stdout;
copy (select 1) to stdout;

== a row that leaves a policy, or enters it, while a statement waits for it
create user a_user; create table t (id int primary key, who name, n int); insert into t values (1, 'a_user', 1), (2, 'a_user', 2), (3, 'x', 3), (4, 'a_user', 4);
alter table t enable row level security; create policy p on t using (who = current_user); grant all on t to a_user;
@user a_user
prepare u (int) as update t set n = n + 100 where id = $1;
execute u (1); execute u (1);
@postgres
begin; update t set who = 'x', n = 0 where id = 1;
@user
-- begins
update t set n = n + 1 where id = 1 returning n;
@postgres
commit;
@user
-- ends
@postgres
begin; update t set who = 'x', n = 0 where id = 2;
@user
-- begins
execute u (2);
@postgres
commit;
@user
-- ends
@postgres
begin; update t set who = 'x', n = 0 where id = 4;
@user
-- begins
select n from t where 1 / n > -1 for update;
@postgres
commit;
@user
-- ends
@postgres
select * from t order by id;
begin; update t set who = 'a_user' where id = 3;
@user
-- begins
insert into t values (3, 'a_user', 9) on conflict (id) do update set n = t.n + 1000 returning n;
@postgres
commit;
@user
-- ends
@postgres
select * from t order by id;
