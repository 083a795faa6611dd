-- A table that an open cursor of the session reads is not altered, dropped or emptied.
create table in_use (id int primary key, b text, c int);
insert into in_use select g, 'x' || g, g from generate_series(1, 1000) g;
create view in_use_v as select id, b from in_use;
create table in_use_o (id int primary key);
begin; declare c cursor for select * from in_use; fetch 2 from c; alter table in_use drop column b; rollback;
begin; declare c cursor for select * from in_use; alter table in_use add column d int default 7; rollback;
begin; declare c cursor for select * from in_use; truncate in_use; rollback;
begin; declare c cursor for select * from in_use_o; drop table in_use_o; rollback;
begin; declare c cursor for select * from in_use; create index in_use_c on in_use (c); rollback;
begin; declare c cursor for select count(*) from in_use a join in_use b on a.id = b.c; alter table in_use alter column c type text; rollback;
-- Through a view, too; the view itself may go.
begin; declare c cursor for select * from in_use_v; alter table in_use alter column c set not null; rollback;
begin; declare c cursor for select * from in_use_v; drop view in_use_v; fetch 1 from c; rollback;
-- Other tables, and what changes no rows' form.
begin; declare c cursor for select * from in_use; alter table in_use_o add column d int; truncate in_use_o; alter table in_use rename to in_used; fetch 1 from c; rollback;
begin; declare c cursor for select * from in_use; insert into in_use values (2000, 'y', 1); delete from in_use where id = 1; lock table in_use; fetch 1 from c; rollback;
-- A materialized view that is filled anew.
create materialized view in_use_m as select id, b from in_use;
create unique index on in_use_m (id);
begin; declare c cursor for select * from in_use_m; fetch 1 from c; refresh materialized view in_use_m; rollback;
begin; declare c cursor for select * from in_use_m; refresh materialized view concurrently in_use_m; rollback;
begin; declare c cursor for select * from in_use; refresh materialized view in_use_m; rollback;
begin; declare c cursor for select * from in_use_m; close c; refresh materialized view in_use_m; rollback;
-- Once it is closed, has kept its rows, or has gone with a savepoint.
begin; declare c cursor for select * from in_use; close c; alter table in_use add column d int default 7; rollback;
begin; savepoint a; declare c cursor for select * from in_use; rollback to a; alter table in_use add column d int default 7; rollback;
begin; declare c cursor with hold for select id from in_use order by id; alter table in_use add column d int; rollback;
begin; declare c cursor with hold for select id from in_use order by id; commit;
alter table in_use add column d int default 7;
fetch 2 from c; close c;
begin; declare c cursor for select 1; alter table in_use drop column d; fetch 1 from c; commit;
-- In PL/pgSQL.
do $$ declare c cursor for select * from in_use; begin open c; truncate in_use; end $$;
do $$ declare c cursor for select * from in_use; begin open c; close c; truncate in_use; end $$;
select count(*) from in_use;
drop table in_use cascade;
drop table in_use_o;
