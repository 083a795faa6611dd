-- Rows that are found by their ctid: no plan reads the whole table for them.
create table cl_r (v int);
insert into cl_r select g from generate_series(1, 5) g;
create table cl_k (id int primary key, v int);
insert into cl_k values (-7, 1), (0, 2), (7, 3), (2147483647, 4), (-2147483648, 5);
analyze cl_r; analyze cl_k;
-- Each row is found by its own ctid, and no other.
select count(*) from cl_r r where (select v from cl_r x where x.ctid = r.ctid) = v;
select count(*) from cl_k r where (select v from cl_k x where x.ctid = r.ctid) = v;
select id from cl_k where ctid = any (array(select ctid from cl_k where id in (-7, 7, 0))) order by id;
select id from cl_k where ctid in (select ctid from cl_k where id < 0) order by id;
select count(*) from cl_k a join cl_k b on a.ctid = b.ctid where b.v < 3;
select count(*) from cl_r where ctid = null;
select count(*) from cl_r where ctid = any ('{}'::tid[]);
select count(*) from cl_r where ctid = any (null::tid[]);
select count(*) from cl_r where ctid in ('(4294967295,65535)', null);
select count(*) from cl_r where ctid <> '(4294967295,65535)';
explain (costs off) select v from cl_r where ctid = '(0,1)';
explain (costs off) select v from cl_k where ctid = '(0,1)' and v > 1;
explain (costs off) update cl_k set v = 0 where ctid = '(0,1)';
explain (costs off) delete from cl_k where ctid = '(0,1)';
explain (costs off) select v from cl_k where ctid = '(0,1)' for update;
prepare cl_p(tid) as select v from cl_k where ctid = $1;
set plan_cache_mode = force_generic_plan;
explain (costs off) execute cl_p('(0,1)');
prepare cl_q(tid[]) as select v from cl_k where ctid = any ($1);
explain (costs off) execute cl_q('{}');
reset plan_cache_mode;
select v, ctid as place from cl_k where id = 7 \gset
update cl_k set v = v + 10 where ctid = :'place' returning id, v;
begin isolation level repeatable read;
select ctid as place from cl_k where id = 0 \gset
delete from cl_k where ctid = :'place' returning id;
select count(*) from cl_k where ctid = :'place';
rollback;
-- A condition beside it holds too; so do several.
select ctid as one from cl_r where v = 1 \gset
select ctid as two from cl_r where v = 2 \gset
select v from cl_r where ctid = :'one' or ctid = :'two' order by v;
select v from cl_r where ctid in (:'one', :'two', :'two') and v > 1;
select v from cl_r where ctid = :'one' and ctid = :'two';
select v from cl_r where ctid in (:'one', :'two') order by ctid desc;
drop table cl_r, cl_k;
