-- What foreign keys lead to: dropped with them or not at all.
\set VERBOSITY default
create table rp (id int primary key, u int unique, w int, boss int references rp, x int);
create unique index rp_w on rp (w);
create table rc (id int primary key, pid int references rp, pu int references rp (u), pw int references rp (w));
create table rd (id int primary key references rc);
insert into rp values (1, 1, 1, null, 1); insert into rc values (1, 1, 1, 1);
alter table rp drop column id;
alter table rp drop column u;
alter table rp drop constraint rp_u_key;
alter table rp drop constraint rp_pkey;
drop index rp_w;
alter table rp drop column x;
alter table rp add constraint rp_u_key2 unique (u);
alter table rp drop constraint rp_u_key2;
alter table rp drop column w cascade;
select conname, confrelid::regclass from pg_constraint where conrelid = 'rc'::regclass and contype = 'f' order by 1;
alter table rp drop constraint rp_u_key cascade;
insert into rc values (2, 1, 77);
alter table rp drop constraint rp_pkey cascade;
select conname, confrelid::regclass from pg_constraint where conrelid in ('rc'::regclass, 'rp'::regclass) and contype = 'f' order by 1;
insert into rc values (3, 77, 77);
select * from rc order by id;
alter table rc drop column id cascade;
\d rd
drop table rd, rc, rp;
