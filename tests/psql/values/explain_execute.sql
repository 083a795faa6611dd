-- EXPLAIN of a prepared statement, and arrays of records that a client reads the catalog by.
\set VERBOSITY terse
create schema explain_execute;
set search_path = explain_execute;
create table t (a int primary key, b text not null);
insert into t values (1, 'x');
prepare reads (int) as select a, b from t where a = $1;
prepare writes (text) as insert into t values (2, $1);
explain (costs off, format json) execute writes('y');
explain (costs off, analyze, timing off, summary off) execute writes('y');
select * from t order by a;
explain (costs off) execute reads;
explain (costs off) execute none(1);
explain (costs off) execute reads('x');
select count(*) from (select * from t) s;
select coalesce((select array_agg((attname, atttypid)) from (select * from pg_attribute where attrelid = 0 order by attnum) a), '{}');
select coalesce((select array_agg((attname, atttypid)) from (select * from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum) a), '{}');
select '{}'::record[], '{"(1)"}'::record[];
drop schema explain_execute cascade;
