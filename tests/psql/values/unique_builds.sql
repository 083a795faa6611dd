-- An index that can't be built because of a duplicate tells which key it is.
create table ub (id int, a numeric(6,2), b text, c float8, d date);
insert into ub values (1, 1.50, 'x', 0.5, '2020-02-03'), (2, 2.50, 'y', 1.5, null), (3, 1.50, 'X', 0.5, '2020-02-03'), (3, null, null, null, null);
create unique index ub_a on ub (a);
create unique index ub_bc on ub (c, d);
create unique index ub_lower on ub (lower(b));
create unique index ub_part on ub ((a + 1)) where c < 1;
create unique index ub_nulls on ub (b desc) where id < 3;
drop index ub_nulls;
create unique index concurrently ub_conc on ub (id, a) where id < 0;
drop index ub_conc;
alter table ub add primary key (id);
alter table ub add constraint ub_key unique (id);
alter table ub add unique (d, a);
alter table ub alter column a type int;
create unique index ub_fine on ub (a, b);
alter table ub alter column b type text using 'same';
drop table ub;
