-- ON DELETE SET NULL and SET DEFAULT of some of the columns.
create table set_p (a int, b int, primary key (a, b));
create table set_c (id int primary key, a int default 0, b int default 7, foreign key (a, b) references set_p on delete set null (b));
create table set_d (id int primary key, a int default 0, b int default 7, foreign key (a, b) references set_p on delete set default (b) on update cascade);
insert into set_p values (1, 1), (1, 2), (1, 7), (2, 2);
insert into set_c values (1, 1, 1), (2, 1, 2), (3, 2, 2);
insert into set_d values (1, 1, 1), (2, 1, 2);
\d set_c
\d set_d
select conname, confdeltype, confdelsetcols from pg_constraint where conrelid in ('set_c'::regclass, 'set_d'::regclass) and contype = 'f' order by 1;
delete from set_p where b = 1;
select * from set_c order by id;
select * from set_d order by id;
update set_p set b = 3 where a = 1 and b = 2;
update set_c set b = null where id = 2;
update set_p set b = 3 where a = 1 and b = 2;
select * from set_d order by id;
delete from set_p where b = 7;
delete from set_p where b = 3;
-- The default refers to no row.
insert into set_p values (5, 5);
insert into set_d values (3, 5, 5);
delete from set_p where a = 5;
create table set_e (a int, b int, c int, foreign key (a, b) references set_p on delete set null (c));
create table set_e (a int, b int, c int, foreign key (a, b) references set_p on delete set null (nosuch));
create table set_e (a int, b int, c int, foreign key (a, b) references set_p on update set null (a));
create table set_e (a int, b int, c int, foreign key (a, b) references set_p on delete cascade (a));
create table set_e (a int references set_e on delete set default (a), b int primary key);
alter table set_c add column e int;
alter table set_c rename column b to bb;
\d set_c
drop table set_c, set_d;
drop table set_e, set_p;
