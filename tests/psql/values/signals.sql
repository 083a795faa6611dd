-- Ending what is not there, and sizes of parts of a table.
select pg_cancel_backend(0);
select pg_terminate_backend(0);
select pg_terminate_backend(0, 1000);
select pg_terminate_backend(0, -1);
select pg_terminate_backend(null, 5), pg_terminate_backend(0, null);
create table sized (a int);
insert into sized select generate_series(1, 10);
select pg_relation_size('sized', 'main') = pg_relation_size('sized') as same, pg_relation_size('sized', 'init') as none;
select pg_relation_size('sized', 'MAIN');
drop table sized;
