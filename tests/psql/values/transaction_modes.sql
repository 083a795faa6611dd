-- Modes of a transaction, changed before and after its first query and in a subtransaction.
create table modes (id int);
begin read only; select 1; set transaction read write; rollback;
begin read only; select 1; set transaction_read_only = off; rollback;
begin read only; select 1; set local transaction_read_only to off; rollback;
begin read only; select 1; select set_config('transaction_read_only', 'off', true); rollback;
begin read only; select set_config('transaction_read_only', 'off', true); rollback;
begin read only; set transaction read write; insert into modes values (1); rollback;
begin read only; savepoint a; set transaction read write; rollback;
begin read only; savepoint a; set transaction_read_only = off; rollback;
begin read only; savepoint a; release a; set transaction read write; insert into modes values (1); rollback;
begin; select 1; set transaction read only; insert into modes values (1); rollback;
begin; select 1; set transaction read only; set transaction read write; rollback;
begin; savepoint a; set transaction read only; insert into modes values (1); rollback to a; insert into modes values (1); rollback;
begin; select 1; savepoint a; set transaction read only; rollback to a; show transaction_read_only; insert into modes values (1); rollback;
begin; select 1; savepoint a; set transaction read only; release a; show transaction_read_only; insert into modes values (1); rollback;
begin; select 1; set transaction isolation level repeatable read; rollback;
begin; select 1; set transaction isolation level read committed; rollback;
begin; select 1; set transaction_isolation = 'repeatable read'; rollback;
begin; select 1; set local transaction_isolation to 'repeatable read'; rollback;
begin; select 1; select set_config('transaction_isolation', 'repeatable read', true); rollback;
begin; savepoint a; set transaction isolation level repeatable read; rollback;
begin; savepoint a; set transaction isolation level read committed; rollback;
begin; savepoint a; set transaction_isolation = 'repeatable read'; rollback;
begin; set transaction isolation level repeatable read; show transaction_isolation; select 1; set transaction isolation level repeatable read; rollback;
begin; lock table modes; set transaction isolation level repeatable read; show transaction_isolation; rollback;
begin; set local lock_timeout = '1s'; set transaction isolation level repeatable read; show transaction_isolation; rollback;
begin; show lock_timeout; set transaction isolation level repeatable read; show transaction_isolation; rollback;
begin; declare c cursor for select 1; set transaction isolation level repeatable read; rollback;
begin; insert into modes values (1); set transaction isolation level repeatable read; rollback;
begin read only; lock table modes in access share mode; set transaction read write; rollback;
begin; set transaction read only, isolation level repeatable read; show transaction_read_only; show transaction_isolation; select 1; set transaction read write; rollback;
begin read only; select 1; commit and chain; set transaction read write; insert into modes values (1); rollback;
begin read only; select 1; commit and chain; select 1; set transaction read write; rollback;
set transaction read only;
set transaction isolation level repeatable read;
set transaction_read_only = on;
show transaction_read_only;
set session characteristics as transaction read only;
begin; select 1; set transaction read write; rollback;
begin read write; insert into modes values (2); commit;
set transaction_read_only = off;
set session characteristics as transaction read write;
begin; select 1; set default_transaction_read_only = on; show transaction_read_only; insert into modes values (3); rollback;
reset default_transaction_read_only;
begin transaction read only; select * from modes; insert into modes values (4); rollback;
begin read only; select * from modes for update; rollback;
begin read only; lock table modes; rollback;
begin read only; lock table modes in row exclusive mode; rollback;
begin read only; lock table modes in row share mode; rollback;
begin read only; notify x; rollback;
begin read only; listen x; rollback;
begin read only; update modes set id = 1; rollback;
begin read only; delete from modes; rollback;
drop table modes;
-- The first one of several statements in a text.
\! psql -X -q -At -d psql_describe -c "set transaction isolation level repeatable read; show transaction_isolation; select 1; set transaction isolation level read committed" 2>&1
\! psql -X -q -At -d psql_describe -c "select 1; commit; set transaction read only; insert into author (id, name) values (1, 'x')" 2>&1
\! psql -X -q -At -d psql_describe -c "set transaction read only" -c "show transaction_read_only" 2>&1
