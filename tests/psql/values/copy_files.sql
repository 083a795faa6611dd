-- COPY to and from files of the server.
select pg_backend_pid() as pid \gset
\set file /tmp/clearway-copy- :pid
create table copy_files (id int, t text);
insert into copy_files select i, repeat('x', i % 90) from generate_series(1, 20000) i;
copy copy_files to :'file';
truncate copy_files;
copy copy_files from :'file';
select count(*), sum(id), sum(length(t)) from copy_files;
copy (select id, t from copy_files where id < 4 order by id) to :'file' (format csv, header);
truncate copy_files;
copy copy_files from :'file' (format csv, header match) where id <> 2;
select * from copy_files order by id;
copy (select 1 where false) to :'file';
copy copy_files from :'file';
select count(*) from copy_files;
copy (select id, t from copy_files) to :'file' (format binary);
copy copy_files (id, t) from :'file' (format binary);
select count(*) from copy_files;
-- A statement that fails before its first row leaves the file as it is.
copy copy_files to :'file';
copy (select nosuch from copy_files) to :'file';
truncate copy_files;
copy copy_files from :'file';
select count(*) from copy_files;
-- A device has no length.
copy copy_files to '/dev/null';
\echo :ERROR
-- What can't be opened.
copy copy_files from '/nosuch/file';
\echo :LAST_ERROR_SQLSTATE
copy copy_files to '/nosuch/file';
\echo :LAST_ERROR_SQLSTATE
copy copy_files to 'relative';
\echo :LAST_ERROR_SQLSTATE
copy copy_files from '/tmp';
\echo :LAST_ERROR_SQLSTATE
copy copy_files to '/tmp';
\echo :LAST_ERROR_SQLSTATE
-- Who may.
create role copy_files_reader in role pg_read_server_files;
create role copy_files_writer in role pg_write_server_files;
create role copy_files_nobody;
grant all on copy_files to copy_files_reader, copy_files_writer, copy_files_nobody;
set role copy_files_reader;
copy copy_files from :'file';
copy copy_files to :'file';
set role copy_files_writer;
copy copy_files from :'file';
copy copy_files to :'file';
set role copy_files_nobody;
copy copy_files from :'file';
copy copy_files to :'file';
copy copy_files to program 'true';
reset role;
select count(*) from copy_files;
\! rm -f /tmp/clearway-copy-[0-9]*
drop table copy_files;
drop role copy_files_reader, copy_files_writer, copy_files_nobody;
