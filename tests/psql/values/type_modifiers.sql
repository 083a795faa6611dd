-- A cast to a type without a modifier leaves none; what is one of several values keeps the modifier that all have.
create table modifier_t (c numeric(6,2), v varchar(2), h char(3), i interval(0), ts timestamp(0), vb varbit(4), n numeric(6,2)[]);
insert into modifier_t values (1.5, 'ab', 'x', '1.5 sec', '2020-01-01 00:00:01', '101', '{1}');
create table modifier_z as select c::numeric, v::varchar, h::bpchar, i::interval, ts::timestamp, vb::varbit, n::numeric[] from modifier_t;
\d modifier_z
insert into modifier_z (c, v) values (1.2345, 'abcdef') returning c, v;
create table modifier_z2 as select coalesce(c, 1) c, coalesce(c, 2::numeric(6,2)) d, case when c > 1 then c else 3::numeric(6,2) end k, case when c > 1 then v end k2,
    nullif(v, 'x') nv, greatest(c, c) g, (array[c])[1] a, array[c, c] aa, array[c, 1] ab, array[[c]] ac, max(c) m, c + c s, v || '' vv, (select c from modifier_t) sc, n[1] n1, n[1:1] ns
    from modifier_t group by c, v, n;
\d modifier_z2
create table modifier_z3 as select * from (values (1.5::numeric(6,2)), (1::numeric(6,2))) a(x), (values (1.5::numeric(6,2)), (1)) b(y);
\d modifier_z3
create view modifier_v as select c::numeric, v::varchar, coalesce(c, c) as k from modifier_t;
\d modifier_v
create or replace view modifier_v as select c, v::varchar, coalesce(c, c) as k from modifier_t;
with recursive w as (select c from modifier_t union all select (c + 1)::numeric(6,2) from w where c < 3) select * from w;
select 1.234::numeric(4,2)::numeric, 'abcdef'::varchar(3)::varchar, (1.239::numeric(4,2) + 0)::numeric, '{1.239}'::numeric(4,2)[]::numeric[];
select c::numeric, sum(c) from modifier_t group by c::numeric;
select c::numeric from modifier_t group by c;
-- The least and the greatest of equal values is the last one.
select min(x), max(x) from (values (1.0), (1.00), (1.000)) v(x);
select min(x), max(x) from (values (interval '1 month'), ('30 days'), ('720 hours')) v(x);
select min(x), max(x) from (values ('-0'::float8), ('0')) v(x);
drop view modifier_v;
drop table modifier_t, modifier_z, modifier_z2, modifier_z3;
