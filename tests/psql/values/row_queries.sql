-- Rows that are compared with the one row of a query, and arrays of the arrays that a query gives.
\set VERBOSITY terse
create schema row_queries;
set search_path = row_queries;
create table t (a int, b text, primary key (a, b));
insert into t values (1, 'x'), (1, 'y'), (2, 'x'), (3, 'z');
select (1, 2) = (select 1, 2), (1, 2) < (select 1, 3), (1, 2) <> (select 1, 2), (2, 1) >= (select 1, 9), row(1) = (select 1);
select (1, null) = (select 1, 2), (1, null) = (select 2, 2), (1, null) <> (select 2, 2), (1, null) < (select 2, 0), (1, null) <= (select 1, 0);
select (1, 2) = (select 1, 2 where false), (1, 2) < (select null::int, 2);
select (1, 2) = (select 1, 2 union all select 3, 4);
select (1, 2) = (select 1);
select (1, 2) = (select 1, 2, 3);
select 1 = (select 1, 2);
select (1, 'x') = (select 1::bigint, 'x'::varchar), (1, 2.5) > (select 1.0, 2);
select * from t where (a, b) = (select 1, 'y');
select * from t where (a, b) > (select a, b from t order by a, b offset 1 limit 1) order by a, b limit 2;
select * from t o where (a, b) = (select max(i.a), min(i.b) from t i where i.a = o.a) order by 1, 2;
update t set b = 'n' where (a, b) >= (select 3, 'a') returning *;
delete from t where (a, b) = (select 3, 'n');
select (1, 2) < any (select 1, 3), (1, 2) >= all (select 1, 1), (1, 2) > all (select 1, null::int), (3, 2) > all (select 1, null::int);
select array(select array[1, 2] union all select array[3, 4]), array(select array[array[1], array[2]]);
select array(select string_to_array(b, ',') from t order by a, b);
select array(select null::int[]);
select array(select '{}'::int[]);
select array(select array[1, 2] union all select array[3]);
select array(select array[1] where false), pg_typeof(array(select array[1] where false));
select a, array(select array[i.b, 'k'] from t i where i.a = o.a order by i.b) from t o order by a, b;
drop schema row_queries cascade;
