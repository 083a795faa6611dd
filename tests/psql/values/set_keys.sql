-- GROUP BY over set-returning functions: by number, by name, by the expression itself.
create table tagged (id int, tags text[], n int);
insert into tagged values (1, '{a,b}', 1), (2, '{b,c}', 2), (3, '{}', 3), (4, null, 4);
select unnest(tags), count(*) from tagged group by 1 order by 2 desc, 1;
select unnest(tags) t, sum(n) from tagged group by t order by t;
select unnest(tags), sum(n) from tagged where n < 3 group by unnest(tags) order by unnest(tags);
select unnest(tags) || 'x' x, count(*) from tagged group by unnest(tags) order by 1;
select unnest(tags) t, generate_series(1, 2) g, count(*) from tagged group by 1, 2 order by 1, 2;
select unnest(tags) t, generate_series(1, 2) g, count(*) from tagged group by 1 order by 1, 2;
select generate_series(1, 3) g, count(*) group by 1 order by 1;
select unnest(tags) t, count(*) from tagged group by rollup(unnest(tags)) order by 1;
select unnest(tags) t from tagged group by t having count(*) > 1;
select a.id, unnest(a.tags) t, count(*) from tagged a left join tagged b on a.id < b.id group by 1, 2 order by 1, 2;
select (select count(*) from (select unnest(tagged.tags) u group by 1) x) from tagged order by id;
select unnest(array_agg(n)) from tagged group by 1;
select count(*) from tagged group by count(*);
drop table tagged;
