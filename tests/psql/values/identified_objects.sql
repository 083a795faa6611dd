-- What objects are called: pg_identify_object, pg_identify_object_as_address, pg_describe_object.
create schema "S a";
create table "S a"."T b" (id int primary key, "c d" text default 'x' check ("c d" <> ''), e int);
create view "S a".v as select 1 a;
create sequence "S a".q;
create index on "S a"."T b" (e);
create type "S a".en as enum ('x');
create domain "S a".dom as int check (value > 0);
create type "S a".comp as (a int);
create function "S a".f(a int, b text, variadic c timestamptz[]) returns int language sql as 'select 1';
create procedure pr(int) language sql as 'select 1';
create role "R x";
create policy po on "S a"."T b";
create function tx(int, text) returns bool language sql as 'select true';
create operator public.=== (leftarg = int, rightarg = text, function = tx);
create rule ru as on insert to "S a".v do instead nothing;
create materialized view mv as select 1 a;
select * from pg_identify_object('pg_class'::regclass, '"S a"."T b"'::regclass, 0);
select * from pg_identify_object('pg_class'::regclass, '"S a"."T b"'::regclass, 2);
select * from pg_identify_object('pg_class'::regclass, '"S a".v'::regclass, 0);
select * from pg_identify_object('pg_class'::regclass, '"S a".v'::regclass, 1);
select * from pg_identify_object('pg_class'::regclass, 'mv'::regclass, 0);
select * from pg_identify_object('pg_class'::regclass, 'pg_class'::regclass, 1);
select * from pg_identify_object('pg_class'::regclass, '"S a".q'::regclass, 0);
select * from pg_identify_object('pg_class'::regclass, '"S a"."T b_pkey"'::regclass, 0);
select * from pg_identify_object('pg_type'::regclass, '"S a".en'::regtype, 0);
select * from pg_identify_object('pg_type'::regclass, '"S a".dom'::regtype, 0);
select * from pg_identify_object('pg_type'::regclass, 'int4'::regtype, 0);
select * from pg_identify_object('pg_type'::regclass, 'text[]'::regtype, 0);
select * from pg_identify_object('pg_type'::regclass, '"S a".en[]'::regtype, 0);
select * from pg_identify_object('pg_proc'::regclass, (select oid from pg_proc where proname='f' and pronamespace='"S a"'::regnamespace), 0);
select * from pg_identify_object('pg_proc'::regclass, 'abs(int4)'::regprocedure, 0);
select * from pg_identify_object('pg_proc'::regclass, 'sum(int4)'::regprocedure, 0);
select * from pg_identify_object('pg_proc'::regclass, 'textcat'::regproc, 0);
select * from pg_identify_object('pg_proc'::regclass, 'pr'::regproc, 0);
select * from pg_identify_object('pg_namespace'::regclass, '"S a"'::regnamespace, 0);
select * from pg_identify_object('pg_authid'::regclass, '"R x"'::regrole, 0);
select * from pg_identify_object('pg_database'::regclass, (select oid from pg_database where datname = current_database()), 0);
select * from pg_identify_object('pg_constraint'::regclass, (select oid from pg_constraint where conname='T b_pkey'), 0);
select * from pg_identify_object('pg_constraint'::regclass, (select oid from pg_constraint where conname='dom_check'), 0);
select * from pg_identify_object('pg_attrdef'::regclass, (select oid from pg_attrdef where adrelid='"S a"."T b"'::regclass), 0);
select * from pg_identify_object('pg_operator'::regclass, '===(int,text)'::regoperator, 0);
select * from pg_identify_object('pg_operator'::regclass, '-(NONE,int)'::regoperator, 0);
select * from pg_identify_object('pg_language'::regclass, 14, 0);
select * from pg_identify_object('pg_cast'::regclass, (select oid from pg_cast where castsource=23 and casttarget=20), 0);
select * from pg_identify_object('pg_collation'::regclass, 100, 0);
select * from pg_identify_object('pg_opclass'::regclass, 1978, 0);
select * from pg_identify_object('pg_opfamily'::regclass, 1976, 0);
select * from pg_identify_object('pg_am'::regclass, 403, 0);
select * from pg_identify_object('pg_tablespace'::regclass, 1663, 0);
select * from pg_identify_object('pg_policy'::regclass, (select oid from pg_policy where polname = 'po'), 0);
select * from pg_identify_object('pg_rewrite'::regclass, (select oid from pg_rewrite where rulename='ru'), 0);
select * from pg_identify_object('pg_class'::regclass, 99999, 0);
select * from pg_identify_object('pg_proc'::regclass, 99999, 0);
select * from pg_identify_object('pg_type'::regclass, 99999, 0);
select * from pg_identify_object('pg_constraint'::regclass, 99999, 0);
select * from pg_identify_object('pg_class'::regclass, '"S a"."T b"'::regclass, 9);
select * from pg_identify_object(1, 1, 0);
select * from pg_identify_object(null, 1, 0);
select class::regclass, a.*, pg_describe_object(class, obj, sub) from (values
 ('pg_class'::regclass::oid, '"S a"."T b"'::regclass::oid, 0), ('pg_class'::regclass, '"S a"."T b"'::regclass, 2), ('pg_class'::regclass, 'mv'::regclass, 0), ('pg_class'::regclass,'pg_class'::regclass,0),
 ('pg_type'::regclass, '"S a".en'::regtype, 0), ('pg_type'::regclass, '"S a".dom'::regtype, 0), ('pg_type'::regclass, 'int4'::regtype, 0),('pg_type'::regclass, 'text[]'::regtype, 0),
 ('pg_proc'::regclass, (select oid from pg_proc where proname='f' and pronamespace='"S a"'::regnamespace), 0), ('pg_proc'::regclass, 'sum(int4)'::regprocedure, 0), ('pg_proc'::regclass, 'pr'::regproc, 0),
 ('pg_namespace'::regclass, '"S a"'::regnamespace, 0), ('pg_authid'::regclass, '"R x"'::regrole, 0), ('pg_database'::regclass, (select oid from pg_database where datname = current_database()), 0),
 ('pg_constraint'::regclass, (select oid from pg_constraint where conname='T b_pkey'), 0), ('pg_constraint'::regclass, (select oid from pg_constraint where conname='dom_check'), 0),
 ('pg_attrdef'::regclass, (select oid from pg_attrdef where adrelid='"S a"."T b"'::regclass), 0), ('pg_operator'::regclass, '===(int,text)'::regoperator, 0), ('pg_operator'::regclass, '-(NONE,int)'::regoperator, 0), ('pg_language'::regclass, 14, 0),
 ('pg_cast'::regclass, (select oid from pg_cast where castsource=23 and casttarget=20), 0), ('pg_collation'::regclass, 100, 0), ('pg_opclass'::regclass, 1978, 0), ('pg_opfamily'::regclass, 1976, 0), ('pg_am'::regclass, 403, 0), ('pg_tablespace'::regclass, 1663, 0),
 ('pg_policy'::regclass, (select oid from pg_policy where polname = 'po'), 0), ('pg_rewrite'::regclass, (select oid from pg_rewrite where rulename='ru'), 0)) v(class, obj, sub), pg_identify_object_as_address(class, obj, sub) a;
select pg_describe_object('pg_class'::regclass, 99999, 0), pg_describe_object('pg_proc'::regclass, 99999, 0);
select pg_describe_object(1, 1, 0);
select pg_describe_object(1, 1, 2);
select pg_describe_object('pg_proc'::regclass, 1, 2);
select pg_filenode_relation(0, pg_relation_filenode('pg_am')), pg_filenode_relation(0, 99999), pg_get_replica_identity_index('"S a"."T b"'), pg_get_replica_identity_index('"S a".v');
select pg_xact_commit_timestamp('3');
select mxid_age('0');
drop operator public.=== (int, text);
drop function tx;
drop materialized view mv;
drop procedure pr;
set client_min_messages = warning;
drop schema "S a" cascade;
drop role "R x";
