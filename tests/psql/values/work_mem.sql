-- What exceeds work_mem gives the same answers.
create table big(a int primary key, b int, c text, d numeric(10,2), e date, f int[], g jsonb);
insert into big select i, (i * 7919) % 5003, case when i % 11 = 0 then null else 'text ' || (i * 31) % 9973 end,
  (i % 777) / 4.0, date '2020-01-01' + i % 400, array[i, null, i % 3], jsonb_build_object('k', i % 13)
  from generate_series(1, 20000) i;
create table other(k int, v text);
insert into other select case when i % 50 = 0 then null else i end, 'v' || i from generate_series(1, 12000) i;
analyze;
set work_mem = '64kB';
show work_mem;
set work_mem = 100;
show work_mem;
set work_mem = '32kB';
set work_mem = 'much';
-- sorts
select count(*), sum(a * n), md5(string_agg(a::text, ',' order by n)) from (select a, row_number() over () n from (select a from big order by c nulls first, d desc, a) x) y;
select a, b, c, d, e, f, g from big order by b, a offset 19995;
select c, d, a from big order by c desc nulls last, d, a limit 5;
-- groups
select count(*), sum(n), sum(s), min(x), max(y), sum(z) from (select b, count(*) n, sum(d) s, min(c) x, max(c) y, count(distinct a) z from big group by b) q;
select count(*), sum(n) from (select c, e, count(*) n from big group by c, e having count(*) > 1) q;
select b, string_agg(a::text, ',' order by a desc) from big group by b order by b limit 3;
select count(*), sum(n), count(b), count(e) from (select b, e, count(*) n from big group by grouping sets ((b), (e), (b, e), ())) q;
-- joins
select count(*), sum(a), sum(length(v)) from big join other on a = k;
select count(*), sum(a), sum(length(v)) from big left join other on a = k;
select count(*), sum(a), sum(length(v)) from big full join other on b = k;
select count(*), sum(a), sum(length(v)), sum(k) from big full join other on a = k and v <> 'v77';
select count(*), sum(a) from big where exists (select 1 from other where k = b);
select count(*), sum(a) from big where not exists (select 1 from other where k = b);
select x.b, count(*) from big x join big y on x.b = y.b and x.a < y.a group by x.b order by 2 desc, 1 limit 3;
-- all in one
select e, count(*), sum(d) from big join other on a = k left join (select b bb, max(a) m from big group by b) g on g.bb = big.b group by e order by 3 desc, 1 limit 4;
-- rows that are given once
select count(*), sum(b), sum(n) from (select distinct b, d n from big) q;
select count(*), md5(string_agg(a::text, ',')) from (select distinct a % 15000 a, e from big order by a % 15000 desc, e) q;
select count(*), sum(a) from (select distinct on (b) b, a from big order by b, a desc) q;
select count(*), sum(a) from (select distinct on (c, d) c, d, a from big order by c, d, a) q;
select distinct b, e from big order by e desc, b limit 3;
select count(*), sum(k), sum(s) from (select distinct a % 6000 k, generate_series(1, 2) s from big) q;
select count(*), sum(x), sum(s) from (select distinct on (a % 7000) a % 7000 x, a, generate_series(1, 2) s from big order by a % 7000, a) q;
-- set operations
select count(*), sum(a), sum(b) from (select a, b from big union select k, k % 5003 from other) q;
select count(*), sum(a) from (select a, c from big union all select k, v from other) q;
select count(*), sum(a) from (select a % 9000 a, e from big intersect select a % 7000, e from big) q;
select count(*), sum(a) from (select a % 9000 a from big intersect all select a % 7000 from big) q;
select count(*), sum(a) from (select a, e from big except select a, e from big where a % 3 = 0) q;
select count(*), sum(a) from (select a % 9000 a from big except all select a % 7000 from big where a < 15000) q;
select count(*), sum(a) from ((select a, c from big except select k, v from other) intersect (select a, c from big union select a, null from big)) q;
select a, b from big union select k, k from other order by 1 nulls first, 2 limit 3;
select a from big union all select k from other limit 2 offset 25000;
-- windows
select count(*), sum(a * n), sum(r), sum(d), sum(s), sum(t) from (select a, row_number() over v n, rank() over w r, dense_rank() over w d, sum(a) over w s, sum(b) over (order by a rows unbounded preceding) t from big window w as (order by b), v as (order by b, a)) q;
select count(*), sum(n), sum(m), sum(k) from (select count(*) over () n, max(a) over (partition by e) m, count(c) filter (where d > 20) over (order by e) k from big) q;
select count(*), sum(l), sum(f), sum(h) from (select lag(a) over (partition by b order by a) l, first_value(a) over (partition by b order by a desc) f, sum(a) over (order by a rows between 1 preceding and 1 following) h from big) q;
select b, count(*), rank() over (order by count(*) desc, b) r, sum(count(*)) over () from big group by b order by r limit 3;
select a, x, n from (select a, row_number() over (order by a) n, unnest(array[a, b]) x from big) q order by n desc, x limit 2;
select distinct rank() over (order by e) r from big order by r limit 3;
reset work_mem;
drop table big, other;
