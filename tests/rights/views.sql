-- Views: whose rights, what conditions learn of rows that the view hides.

== a view reads by its owner's rights, and changes by them
create user a_owner; create user a_user; create user a_other; grant create on schema public to a_owner;
create table t (id int primary key, a int, b text); insert into t values (1, 10, 'one'), (2, 20, 'two');
grant select (id, a) on t to a_owner;
@owner a_owner
create view v as select id, a from t;
create view w as select * from t;
create view broken as select b from t;
grant all on v, broken to a_user;
@user a_user
select * from v;
select * from broken;
insert into v values (3, 30);
update v set a = 0;
delete from v;
select * from t;
select id from v for update;
lock table v;
lock table v in access share mode;
@postgres
grant insert (id, a), update (a), delete on t to a_owner;
@user
insert into v values (3, 30);
update v set a = 0 where id = 1;
delete from v where id = 3;
select id from v for update;
select id from v for share;
insert into v values (1, 5) on conflict (id) do update set a = excluded.a returning *;
lock table v in row exclusive mode;
@postgres
revoke all on t from a_owner;
@user
select * from v;
update v set a = 0 where id = 1;
@owner
select * from v;
alter view v owner to a_user;
@postgres
alter view v owner to a_other;
grant select on t to a_other;
@user
select * from v;
@owner
select * from v;
drop view v;

== EXPLAIN needs what the statement needs
create user a_user; create table t (id int primary key, a int); create view v as select * from t;
@user a_user
explain (costs off) select * from t;
explain (costs off) insert into t values (1);
explain (costs off) update t set a = 1;
explain (costs off) select * from v;
explain (costs off, analyze, timing off, summary off) delete from t;
prepare p as select * from t;
execute p;
declare c cursor for select * from t;
create table x as select * from t;
create temporary table x as select * from t;
copy (select * from t) to stdout;
copy (delete from t returning *) to stdout;
with d as (delete from t returning *) select * from d;
values ((select count(*) from t));
table t;
select 1 from t;
select count(*) from t;
select 1 where exists (table t);
insert into pg_temp.y select * from t;

== security_barrier: no condition of the statement sees what the view hides
create user a_user; create table t (id int primary key, who text, n text);
insert into t values (1, 'a_user', '1'), (2, 'other', 'secret'), (3, 'a_user', '3');
create view plain as select * from t where who = current_user;
create view barrier with (security_barrier) as select * from t where who = current_user;
grant select, update, delete, insert on plain, barrier to a_user;
@user a_user
select id from barrier where n::int > 0 order by id;
select id from barrier where 1 / (id - 2) < 5 order by id;
select id from barrier b where n::int = id order by id;
select b.id from barrier b join (values (1), (2), (3)) x (i) on b.n::int = x.i order by 1;
select count(*) from barrier where n::int > 0;
select id from (select * from barrier) q where n::int > 0 order by id;
select max(n::int) from barrier;
update barrier set n = '5' where n::int = 1;
delete from barrier where n::int = 3 returning id;
select id from barrier where id = 2;
select id from barrier for update;
select reloptions from pg_class where relname = 'barrier';
@postgres
alter view plain set (security_barrier = true);
alter view barrier reset (security_barrier);
select relname, reloptions from pg_class where relname in ('plain', 'barrier') order by 1;
alter view plain set (security_barrier = maybe);
alter view plain set (security_barier = true);
create or replace view plain with (security_barrier = false) as select * from t where who = current_user;
select relname, reloptions from pg_class where relname in ('plain', 'barrier') order by 1;
create view checked with (security_barrier = on, check_option = local) as select * from t where who = current_user;
select reloptions from pg_class where relname = 'checked';
insert into checked values (9, 'nobody', 'x');
insert into checked values (9, 'postgres', 'x');
alter table checked set (security_barrier = false);
select reloptions from pg_class where relname = 'checked';

== security_invoker: the rights and policies are those of the role that asks
create user a_owner; create user a_user; grant create on schema public to a_owner;
create table t (id int primary key, who text); insert into t values (1, 'a_user'), (2, 'a_owner'), (3, 'x');
grant all on t to a_owner;
@owner a_owner
create view def as select * from t;
create view inv with (security_invoker = true) as select * from t;
create view over_def with (security_invoker) as select * from def;
create view over_inv as select * from inv;
grant all on def, inv, over_def, over_inv to a_user;
@user a_user
select * from def order by id;
select * from inv;
select * from over_def;
select * from over_inv order by id;
insert into inv values (4, 'a_user');
update inv set who = 'x';
delete from inv;
lock table inv;
lock table def in access share mode;
lock table over_inv;
@postgres
grant select, insert on t to a_user;
revoke all on def from a_user;
@user
select * from inv order by id;
select * from over_def;
insert into inv values (4, 'a_user') returning id;
update inv set who = 'x' where id = 4;
@postgres
grant select on def to a_user;
alter table t enable row level security;
create policy p on t using (who = current_user);
@user
select * from inv order by id;
select * from over_def order by id;
select * from def order by id;
select * from over_inv order by id;
@owner
select * from inv order by id;
alter view inv set (security_invoker = false);
@user
select * from inv order by id;
@postgres
select relname, reloptions from pg_class where relname in ('def', 'inv', 'over_def', 'over_inv') order by 1;
create view both with (security_invoker = true, security_barrier = true) as select * from t;
select reloptions from pg_class where relname = 'both';

== materialized views are filled by their owner's rights
create user a_owner; create user a_user; grant create on schema public to a_owner; create table secret (a int); insert into secret values (1);
grant select on secret to a_owner;
@owner a_owner
create materialized view m as select * from secret;
create materialized view empty as select * from secret with no data;
grant select on m, empty to a_user;
@user a_user
select * from m;
select * from empty;
refresh materialized view empty;
@postgres
revoke select on secret from a_owner;
refresh materialized view empty;
refresh materialized view m;
@user
select * from m;
@postgres
grant a_owner to a_user; grant select on secret to a_user;
@user
refresh materialized view empty;
select * from empty;

== LOCK TABLE of a view goes to the tables that it named when it was made
create user a_alice; create schema a_s; create schema a_evil; grant usage on schema a_s, a_evil to a_alice;
set search_path = a_s; create table t (a int); create view v as select * from t; grant all on v to a_alice;
create table a_evil.t (a int); revoke all on a_evil.t from a_alice;
@alice a_alice
set search_path = a_evil;
begin; lock table a_s.v in access exclusive mode; select relation::regclass::text from pg_locks where mode = 'AccessExclusiveLock' and relation is not null order by 1; commit;
