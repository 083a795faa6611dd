-- Row-level security: what rows that a policy hides can still tell.

== a unique key that hidden rows have
create user a_user; create table t (id int primary key, who text default current_user, mail text unique);
insert into t values (1, 'x', 'a@b');
alter table t enable row level security; create policy p on t using (who = current_user);
grant all on t to a_user;
@user a_user
insert into t (id) values (1);
insert into t (id, mail) values (2, 'a@b');
insert into t (id) values (1) on conflict do nothing;
insert into t (id) values (1) on conflict (id) do nothing;
insert into t (id, mail) values (1, 'z') on conflict (id) do update set mail = 'z';
insert into t (id, mail) values (1, 'z') on conflict (id) do update set mail = 'z' returning *;
insert into t (id, mail) values (5, 'c@d');
update t set mail = 'a@b';
update t set id = 1;
update t set who = 'x';
copy t to stdout;
select * from t where 1 / (id - 1) > 0;
select * from t where mail::int = 1;
select count(*) from t where mail like 'a%';
@postgres
alter table t add check (id < 100);
alter table t alter mail set not null;
@user
insert into t values (7, 'a_user', 'a@b');
insert into t values (101, 'a_user', 'q');
insert into t values (8, 'a_user', null);
insert into t values (8, 'x', null);
truncate t;

== a unique violation shows the key to a role that may read it, else not
create user a_user; create user a_reader; create table t (id int, n int, mail text, unique (id, n));
insert into t values (1, 1, 'x');
grant insert, update on t to a_user; grant insert, select (id) on t to a_reader;
@user a_user
insert into t values (1, 1, 'y');
update t set id = 1;
insert into t values (2, 1, 'y'), (2, 1, 'z');
@reader a_reader
insert into t values (1, 1, 'y');
@postgres
grant select (n) on t to a_reader; alter table t add check (mail <> 'bad'); alter table t alter id set not null;
@reader
insert into t values (1, 1, 'y');
insert into t values (5, 5, 'bad');
insert into t values (null, 5, 'bad2');
insert into t (id, n) values (null, 5);
@user
insert into t values (5, 5, 'bad');
insert into t (n, mail) values (5, 'bad2');
update t set mail = 'bad';
@postgres
alter table t add d int generated always as (n * 2) stored, add check (d < 1000), add s text default 'secret';
@reader
insert into t (id, n, mail) values (777, 777, 'x');
@user
insert into t (id, n, mail) values (777, 777, 'x');
insert into t (mail, n) values (repeat('long', 50), 3);
@postgres
insert into t (id, n, mail) values (777, 777, repeat('long', 50));

== foreign keys: the check does not mind policies, the message shows no key that may not be read
create user a_user; create table p (id int primary key, who text); create table c (id int primary key, p int references p on delete cascade on update cascade);
insert into p values (1, 'x'), (2, 'a_user'), (3, 'x'); insert into c values (1, 1), (2, 2);
alter table p enable row level security; create policy p on p using (who = current_user);
grant all on c, p to a_user; alter table c enable row level security; create policy c on c using (p > 1);
@user a_user
insert into c values (3, 1);
insert into c values (4, 3);
insert into c values (5, 99);
insert into c values (6, 1000);
update c set p = 1;
delete from p where id = 2;
select * from c;
delete from p;
@postgres
select * from c order by id;
insert into p values (10, 'a_user'); insert into c values (10, 10); alter table c drop constraint c_p_fkey; alter table c add foreign key (p) references p;
drop policy c on c; create policy c on c using (false);
@user
delete from p where id = 10;
update p set id = 11 where id = 10;
@postgres
revoke select on c, p from a_user; drop policy c on c; create policy c on c using (true);
@user
insert into c values (8, 99);
insert into c values (8, 10);
delete from p;

== a foreign key needs REFERENCES of both, and learns nothing else
create user a_user; grant create on schema public to a_user; create table secret (id int primary key, k int unique); insert into secret values (1, 7);
@user a_user
create table f (x int references secret);
create table f (x int references secret (k));
create table f (x int);
alter table f add foreign key (x) references secret;
@postgres
grant references (id) on secret to a_user;
@user
create table g (x int references secret (k));
create table g (x int references secret);
insert into g values (1);
insert into g values (2);
create table h (x int references secret (id) on delete cascade);
insert into h values (1);
@postgres
delete from secret;
revoke references (id) on secret from a_user;
@user
insert into g values (1);
alter table g add y int references secret;

== policies: roles, commands, changes while a session holds a plan
create user a_group; create user a_user in role a_group; create user a_new;
create table t (id int primary key, n int); insert into t select i, i from generate_series(1, 6) i;
grant all on t to a_user, a_new; alter table t enable row level security; create policy p on t to a_group using (n < 4);
@user a_user
prepare q as select id from t order by id;
prepare u (int) as update t set n = n where id = $1 returning id;
execute q;
execute u (5);
@postgres
create policy p2 on t to a_user using (n = 5);
@user
execute q;
execute u (5);
@postgres
drop policy p on t;
@user
execute q;
@postgres
alter table t disable row level security;
@user
execute q;
@postgres
alter table t enable row level security; alter table t force row level security; alter table t owner to a_user;
@user
execute q;
execute u (1);
set row_security = off;
execute q;
select * from t;
set row_security = on;
alter table t no force row level security;
execute q;
@postgres
alter table t owner to postgres; revoke a_group from a_user; create policy p3 on t to a_new using (true);
@user
execute q;
@postgres
grant a_new to a_user;
@user
execute q;
begin;
declare c cursor for select id from t order by id;
fetch 1 from c;
fetch 1 from c;
commit;
@postgres
create policy p4 on t as restrictive using (n < 2);
@user
execute q;
