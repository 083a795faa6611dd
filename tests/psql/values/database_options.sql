-- CREATE DATABASE and its options; TABLESPACE and USING before AS.
create database options_kept tablespace pg_default is_template false allow_connections true connection limit 3;
select datconnlimit, datistemplate, datallowconn from pg_database where datname = 'options_kept';
drop database options_kept;
create database options_kept template = default encoding = default owner = default;
drop database options_kept;
create database refused encoding utf8 encoding utf8;
create database refused nonsense = 1;
create database refused strategy 'x';
create database refused encoding 'nonesuch';
create database refused template nonesuch;
create table placed tablespace pg_default as select 1 as x;
create table placed_so using heap with (fillfactor = 80) as select 2 as x;
select x from placed union all select x from placed_so order by 1;
drop table placed, placed_so;
