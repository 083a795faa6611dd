-- What a statement may do is judged when it has its locks, too: whoever lost the right during the wait does nothing.

== ownership that goes to somebody else during the wait
create user a_old; create user a_new; grant create on schema public to a_old, a_new; create schema a_s; grant all on schema a_s to a_old;
@old a_old
create table t1 (a int); create table t2 (a int); create sequence q; create table t3 (a int primary key); create table t4 (a int); create table t5 (a int); create table t6 (a int);
create materialized view m as select 1 as one; create view v as select 1 as one; create table t7 (a int); create table t8 (a int); create table t9 (a int);
@postgres
begin; alter table t1 owner to a_new;
@old
-- begins
drop table t1;
@postgres
commit;
@old
-- ends
@postgres
begin; alter table t2 owner to a_new;
@old
-- begins
alter table t2 set schema a_s;
@postgres
commit;
@old
-- ends
@postgres
begin; alter sequence q owner to a_new;
@old
-- begins
alter sequence q restart with 77;
@postgres
commit;
@old
-- ends
@postgres
begin; alter table t3 owner to a_new;
@old
-- begins
drop index t3_pkey;
@postgres
commit;
@old
-- ends
@postgres
begin; alter table t4 owner to a_new;
@old
-- begins
create index on t4 (a);
@postgres
commit;
@old
-- ends
@postgres
begin; alter table t5 owner to a_new;
@old
-- begins
truncate t5;
@postgres
commit;
@old
-- ends
@postgres
begin; alter table t6 owner to a_new;
@old
-- begins
alter table t6 rename to t6x;
@postgres
commit;
@old
-- ends
@postgres
begin; alter materialized view m owner to a_new;
@old
-- begins
refresh materialized view m;
@postgres
commit;
@old
-- ends
@postgres
begin; alter view v owner to a_new;
@old
-- begins
create or replace view v as select 2 as one;
@postgres
commit;
@old
-- ends
@postgres
begin; alter table t7 owner to a_new;
@old
-- begins
create policy p on t7 using (true);
@postgres
commit;
@old
-- ends
@postgres
begin; alter table t8 owner to a_new;
@old
-- begins
alter table t8 owner to a_old;
@postgres
commit;
@old
-- ends
@postgres
begin; alter table t9 owner to a_new;
@old
-- begins
comment on table t9 is 'old';
@postgres
commit;
@old
-- ends
@postgres
select relname, relowner::regrole, relnamespace::regnamespace, obj_description(oid, 'pg_class') from pg_class where relname ~ '^(t[0-9]|q|m|v)x?$' order by 1;
select last_value from q;

== rights on rows that are revoked during the wait
create user a_user; create table t (id int primary key); insert into t values (1); grant all on t to a_user; create sequence q; grant all on sequence q to a_user;
create view v as select * from t; grant all on v to a_user;
@user a_user
prepare p as select * from t where id = 1;
execute p;
@postgres
begin; lock table t; revoke all on t from a_user;
@user
-- begins
select * from t;
@postgres
commit;
@user
-- ends
@postgres
grant all on t to a_user;
begin; lock table t; revoke all on t from a_user;
@user
-- begins
execute p;
@postgres
commit;
@user
-- ends
@postgres
grant all on t to a_user;
begin; lock table t; revoke all on t from a_user;
@user
-- begins
insert into t values (2);
@postgres
commit;
@user
-- ends
@postgres
grant all on t to a_user;
begin; lock table t; alter table t enable row level security;
@user
-- begins
select * from t;
@postgres
commit;
@user
-- ends
@postgres
alter table t disable row level security; begin; lock table t; revoke all on t from a_user;
@user
begin;
-- begins
lock table t in access exclusive mode;
@postgres
commit;
@user
-- ends
rollback;
@postgres
select * from t;

== what a role loses while its session has statements prepared, texts repeated, cursors open
create user a_super superuser; create user a_free bypassrls; create user a_user; create table t (id int primary key, n int); insert into t values (1, 1), (2, 2);
create table g (id int); alter table t enable row level security; create policy p on t using (id = 1); grant select, update on t to a_free, a_user; create user a_group; grant select on g to a_group; grant a_group to a_user;
@super a_super
prepare p as select n from t where id = 2;
execute p; execute p;
select n from t where id = 2;
select n from t where id = 2;
select n from t where id = 2;
@free a_free
prepare p as select n from t where id = $1;
execute p (2); execute p (2);
update t set n = n where id = 2;
update t set n = n where id = 2;
update t set n = n where id = 2;
@user a_user
prepare g as select count(*) from g;
execute g;
@postgres
alter role a_super nosuperuser; alter role a_free nobypassrls; revoke a_group from a_user;
@super
execute p;
select n from t where id = 2;
@free
execute p (2);
update t set n = n where id = 2;
@user
execute g;
@postgres
alter role a_free bypassrls; grant a_group to a_user;
@free
execute p (2);
@user
execute g;
alter role a_user noinherit;
@postgres
alter role a_user noinherit;
@user
execute g;
set role a_group;
execute g;
reset role;
execute g;
