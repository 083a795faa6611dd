-- What SET CONSTRAINTS says ends with the transaction, also in a session that has put no check off.
create table sce (id int primary key, k int, constraint sce_k unique (k) deferrable initially deferred);
insert into sce values (1, 1), (2, 2);
begin; set constraints all immediate; commit;
begin; update sce set k = 2 where id = 1; select * from sce order by id; rollback;
\c -
begin; set constraints all immediate; rollback;
begin; update sce set k = 2 where id = 1; rollback;
\c -
set constraints all immediate;
begin; update sce set k = 2 where id = 1; rollback;
\c -
alter table sce drop constraint sce_k, add constraint sce_k unique (k) deferrable;
begin; set constraints sce_k deferred; commit;
begin; update sce set k = 2 where id = 1; rollback;
drop table sce;
