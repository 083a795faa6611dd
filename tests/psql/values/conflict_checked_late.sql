-- ON CONFLICT DO NOTHING without a target beside a unique constraint that is checked late: indexes are asked in the order in which they were made, and only a row
-- that comes to that one is refused.
create table late (id int primary key, k int unique deferrable, n int unique, v int default 0);
insert into late values (1, 10, 100), (2, 20, 200);
insert into late values (1, 30, 300) on conflict do nothing;
insert into late values (3, 10, 300) on conflict do nothing;
insert into late values (3, 30, 300) on conflict do nothing;
insert into late values (3, 30, 100) on conflict do nothing;
insert into late values (1, 30, 300), (2, 30, 300) on conflict do nothing;
insert into late values (1, 30, 300), (4, 40, 400) on conflict do nothing;
insert into late select 7, 80, 90 where false on conflict do nothing;
insert into late values (5, 50, 500) on conflict (id) do nothing;
insert into late values (5, 50, 500) on conflict (n) do update set v = 1;
insert into late values (6, 60, 600) on conflict (k) do nothing;
insert into late values (6, 60, 600) on conflict on constraint late_k_key do nothing;
prepare put (int) as insert into late values ($1, $1, $1) on conflict do nothing;
execute put (1);
execute put (9);
create table late_only (k int unique deferrable initially deferred, v int);
insert into late_only values (1, 1) on conflict do nothing;
insert into late_only select 1, 1 where false on conflict do nothing;
create unique index on late_only (v);
insert into late_only values (1, 1) on conflict do nothing;
select * from late order by id;
drop table late, late_only;
