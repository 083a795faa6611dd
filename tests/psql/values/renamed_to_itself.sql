-- An object can't get the name that it has.
create table r (id int primary key, k int, constraint r_c check (k > 0));
create view rv as select * from r;
create sequence rs;
create index ri on r (k);
create materialized view rm as select * from r;
create schema rx;
create domain rd as int;
alter table r rename to r;
alter view rv rename to rv;
alter sequence rs rename to rs;
alter index ri rename to ri;
alter materialized view rm rename to rm;
alter table r rename column k to k;
alter table r rename constraint r_c to r_c;
alter domain rd rename to rd;
alter schema rx rename to rx;
drop table r cascade; drop sequence rs; drop schema rx; drop domain rd;
