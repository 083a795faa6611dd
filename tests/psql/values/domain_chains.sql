-- A domain over a domain: what is said of the lower one later holds for the upper one. (A session of PostgreSQL keeps what it knows of NOT NULL
-- of a lower domain, so that it begins anew.)
create domain dl as int constraint pos check (value > 0) default 7;
create domain du as dl constraint even check (value % 2 = 0);
create domain dt as du;
create table dch (x dl, u du, t dt);
insert into dch values (1, 2, 4);
insert into dch values (1, 3, 4);
insert into dch values (1, -2, 4);
select (-3)::du;
alter domain dl add constraint small check (value < 100);
insert into dch (u) values (200);
select 200::dt;
alter domain dl add constraint tiny check (value < 3);
alter domain dl add constraint tiny check (value < 3) not valid;
select 8::du;
alter domain dl validate constraint tiny;
update dch set t = 2;
alter domain dl validate constraint tiny;
alter domain dl drop constraint tiny;
select 8::du;
alter domain dl set not null;
\c
insert into dch (x, u, t) values (1, null, 2);
select null::dt;
alter domain dl drop not null;
\c
insert into dch (x, u, t) values (1, null, 2);
alter domain dl set not null;
insert into dch default values returning x;
select typname, typbasetype::regtype, typtypmod, typnotnull from pg_type where typname in ('dl', 'du', 'dt') order by 1;
select conname, contypid::regtype from pg_constraint where contypid in ('dl'::regtype, 'du'::regtype, 'dt'::regtype) order by 1;
alter domain dl add constraint even check (value <> 50);
select 50::du, 49::dl;
select 50::dl;
alter domain du drop constraint even;
select 7::du;
\set VERBOSITY terse
drop domain dl;
drop domain du;
\set VERBOSITY default
drop table dch;
drop domain dt;
drop domain du;
drop domain dl;
