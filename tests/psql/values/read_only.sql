-- A read-only transaction writes temporary tables, and no others.
create table dc_plain (a int);
create temporary table ro (a int);
begin read only;
insert into ro values (1), (2);
update ro set a = 3 where a = 2;
select * from ro for update;
with gone as (delete from ro where a = 1 returning a) select * from gone;
copy ro from stdin;
5
\.
savepoint s;
insert into ro values (6);
rollback to s;
insert into dc_plain values (1);
rollback to s;
select * from ro order by a;
commit;
select * from ro order by a;
begin read only;
copy dc_plain from stdin;
rollback;
begin read only;
insert into ro values (7);
with x as (insert into dc_plain values (1) returning a) insert into ro select a from x;
rollback;
begin read only;
select * from dc_plain for update;
rollback;
set default_transaction_read_only = on;
insert into ro values (8);
insert into dc_plain values (8);
reset default_transaction_read_only;
select * from ro order by a;
drop table dc_plain, ro;
