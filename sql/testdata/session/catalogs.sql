-- Catalogs that superusers change by INSERT, UPDATE and DELETE.
create table t (a int, b int)
create function bar() returns int language sql as 'select 1'
comment on function bar() is 'bar function'
comment on table t is 'a table'
update pg_description set objoid = 't'::regclass where objoid = 'bar'::regproc
select classoid::regclass, objoid::regclass, objsubid, description from pg_description where objoid = 't'::regclass order by 1, 3
select obj_description('bar'::regproc, 'pg_proc'), obj_description('t'::regclass, 'pg_proc'), obj_description('t'::regclass, 'pg_class'), obj_description('t'::regclass, 'pg_namespace')
update pg_description set classoid = 'pg_proc'::regclass where objoid = 't'::regclass and classoid = 'pg_class'::regclass and description = 'nothing'
insert into pg_description values ('t'::regclass, 'pg_class'::regclass, 1, 'column a') returning classoid::regclass, objsubid, description
select col_description('t'::regclass, 1), col_description('t'::regclass, 2)
update pg_description set objsubid = 2 where objoid = 't'::regclass and objsubid = 1 returning objsubid, description
select col_description('t'::regclass, 1), col_description('t'::regclass, 2)
comment on column t.b is 'said by COMMENT'
select objsubid, description from pg_description where objoid = 't'::regclass and classoid = 'pg_class'::regclass order by 1
insert into pg_description values ('t'::regclass, 'pg_class'::regclass, 3, 'column to come')
alter table t add column c int
select col_description('t'::regclass, 3)
update pg_description set description = description || '!' where objoid = 't'::regclass and objsubid = 3 returning description
select objsubid, description from pg_description where objoid = 't'::regclass and classoid = 'pg_class'::regclass order by 1
comment on column t.c is 'column that came'
select objsubid, description from pg_description where objoid = 't'::regclass and classoid = 'pg_class'::regclass order by 1
comment on column t.c is null
insert into pg_description values (1, 'pg_class'::regclass, 0, 'x'), (1, 'pg_class'::regclass, 0, 'y')
insert into pg_description values (1, 2, 0, 'x')
insert into pg_description values (1, 2, 0, 'y')
insert into pg_description select 1, 2, n, 'n' || n from generate_series(1, 3) n
insert into pg_description (objoid, classoid) values (7, 8)
update pg_description set description = null where objoid = 1 and classoid = 2 and objsubid = 1
update pg_description set objsubid = 0 where objoid = 1 and classoid = 2 and objsubid = 1
update pg_description d set description = d.description || v.x from (values (1, '!'), (1, '?'), (2, '.')) v(n, x) where d.objoid = 1 and d.classoid = 2 and d.objsubid = v.n and v.x <> '?' returning d.objsubid, d.description, v.x
select objsubid, description from pg_description where objoid = 1 and classoid = 2 order by 1
delete from pg_description d using generate_series(0, 1) n where objoid = 1 and classoid = 2 and objsubid = n returning objsubid
with gone as (delete from pg_description where objoid = 1 and classoid = 2 returning objsubid) select count(*), sum(objsubid) from gone
select count(*) from pg_description where objoid = 1 and classoid = 2
begin
update pg_description set description = 'lost' where objoid = 't'::regclass
select count(*) from pg_description where description = 'lost'
select relation::regclass, mode from pg_locks where relation = 2609 and mode <> 'AccessShareLock' and pid = pg_backend_pid()
rollback
select count(*) from pg_description where description = 'lost'
begin
savepoint s
delete from pg_description where objoid = 't'::regclass and classoid = 'pg_class'::regclass
rollback to s
insert into pg_description values (5, 6, 7, 'kept')
commit
select count(*) from pg_description where objoid = 't'::regclass
select description from pg_description where objoid = 5 and classoid = 6 and objsubid = 7
drop table t
select count(*) from pg_description where description in ('a table', 'said by COMMENT', 'bar function')
delete from pg_description where description in ('kept', 'bar function')
insert into pg_description values (1, 2, 3, 'x') on conflict do nothing
begin read only
update pg_description set description = 'x' where objoid = 1 and classoid = 2
rollback
comment on database postgres is 'scripts'
create role cat_role login
comment on role cat_role is 'a role'
select classoid::regclass, description from pg_shdescription where description in ('scripts', 'a role') order by 2
update pg_shdescription set description = description || '!' where description in ('scripts', 'a role')
select shobj_description(oid, 'pg_authid') from pg_authid where rolname = 'cat_role'
select shobj_description(oid, 'pg_database') from pg_database where datname = 'postgres'
delete from pg_shdescription where description = 'a role!'
select shobj_description(oid, 'pg_authid') from pg_authid where rolname = 'cat_role'
update pg_authid set rolpassword = 'SCRAM-SHA-256$10000000:AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=' where rolname = 'cat_role'
select left(rolpassword, 23) from pg_authid where rolname = 'cat_role'
update pg_authid set rolsuper = true, rolconnlimit = 3, rolvaliduntil = '2030-01-01 00:00:00+00', rolcreatedb = not rolcreatedb, rolcanlogin = false, rolpassword = null where rolname = 'cat_role' returning rolname, rolsuper, rolconnlimit, rolcreatedb, rolcanlogin, rolpassword is null
select rolsuper, rolconnlimit, rolcanlogin, rolcreatedb from pg_roles where rolname = 'cat_role'
update pg_authid set rolinherit = null where rolname = 'cat_role' and rolname = 'nobody'
update pg_database set datconnlimit = 5 where datname = 'postgres' returning datconnlimit
select datconnlimit from pg_database where datname = 'postgres'
insert into pg_db_role_setting select 0, oid, '{work_mem=7MB}' from pg_authid where rolname = 'cat_role' returning setdatabase, setconfig
update pg_db_role_setting set setconfig = setconfig || '{enable_sort=off}'::text[] where setrole = 'cat_role'::regrole returning setconfig
select rolconfig from pg_roles where rolname = 'cat_role'
delete from pg_db_role_setting where setrole = 'cat_role'::regrole returning setconfig
select rolconfig from pg_roles where rolname = 'cat_role'
update pg_settings set setting = '5MB' where name = 'work_mem'
show work_mem
update pg_settings s set setting = v.x from (values ('enable_sort', 'off')) v(n, x) where s.name = v.n
show enable_sort
update pg_settings set setting = 'on', name = 'enable_hashjoin' where name = 'enable_sort'
show enable_sort
update pg_settings set setting = '5MB' where name = 'work_mem' returning *
update pg_settings set setting = 'x' where name = 'work_mem'
insert into pg_settings (name) values ('x')
update pg_tables set tablename = 'x'
delete from pg_tables
insert into information_schema.tables (table_name) values ('x')
update pg_authid set rolsuper = false where rolname = 'cat_role'
set role cat_role
update pg_description set description = 'x'
insert into pg_description values (1, 2, 3, 'x')
delete from pg_description
update pg_authid set rolsuper = true where rolname = 'cat_role'
update pg_class set relname = 'x'
merge into pg_description d using (values (1)) v(n) on d.objoid = v.n when matched then delete
update pg_tables set tablename = 'x'
update pg_settings set setting = '6MB' where name = 'work_mem'
show work_mem
reset role
truncate pg_description
drop role cat_role
