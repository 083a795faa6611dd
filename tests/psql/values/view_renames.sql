-- A view goes on reading its columns after they were renamed, and shows what would be written now.
create table d (id int primary key, cid int, v int not null default 0);
insert into d values (1, 2, 3);
create view vx as select * from d;
create view vy as select v as z, (select max(e.v) from d e where e.cid = d.cid) from d where v > 1;
create view vv as select v + 1 as w, id from vx x where x.v > 0;
create view vj as select * from d natural join (select id, 7 as extra from d) t;
create materialized view vm as select id, v from d;
alter table d rename column v to x3;
alter table d add column v int default 9;
select * from vx;
select * from vy;
select * from vv;
select * from vj;
refresh materialized view vm;
select * from vm;
update vx set v = 5 where id = 1;
select * from d;
select * from vx;
insert into vx (id, cid, v) values (2, 2, 8);
select * from d order by id;
alter view vx rename column v to y;
select * from vv order by id;
alter table d rename to d9;
select * from vx order by id;
select * from vy order by 1;
refresh materialized view vm;
select * from vm order by id;
alter table d9 drop column x3;
alter table d9 alter column x3 type bigint;
alter table d9 drop column v;
select * from vx order by id;
-- The definition makes the same view again.
select count(*) from pg_depend where refclassid = 'pg_class'::regclass and refobjid = 'd9'::regclass and refobjsubid > 0 and classid = 'pg_rewrite'::regclass and deptype = 'n' and objid in (select oid from pg_rewrite where ev_class = 'vy'::regclass);
select format('create view again_%s as %s', relname, pg_get_viewdef(oid)) from pg_class where relname in ('vx', 'vy', 'vv') order by relname desc \gexec
select * from again_vx order by id;
select * from again_vy order by 1;
select * from again_vv order by id;
