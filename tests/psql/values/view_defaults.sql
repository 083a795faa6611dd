-- A view's own default of a column stands for that of what is below it.
create table vd_base (id int primary key, cat text default 'base', n int default 7);
create view vd_inner as select id, cat, n from vd_base;
create view vd_outer as select id, cat as kind, n from vd_inner;
insert into vd_inner (id) values (1) returning *;
alter view vd_inner alter cat set default 'inner';
insert into vd_inner (id) values (2) returning *;
insert into vd_outer (id) values (3) returning *;
alter table vd_outer alter kind set default upper('outer');
insert into vd_outer (id) values (4) returning *;
insert into vd_outer (id, kind) values (5, default), (6, 'given') returning *;
insert into vd_inner (id) values (7) returning *;
insert into vd_base (id) values (8) returning *;
insert into vd_outer (id) values (9) on conflict (id) do nothing returning *;
update vd_outer set kind = default where id = 6 returning *;
alter view vd_outer alter kind drop default;
insert into vd_outer (id) values (10) returning *;
