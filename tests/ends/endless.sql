with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r;
with recursive r as (select 1 n union all select n from r) select count(*) from r;
with recursive r(n) as (select 1 union all select n + 1 from r) select n from r order by n;
with recursive r(n) as (values (1), (2) union select n from r) select max(n) from r, generate_series(1, 1000000000);
with recursive r(n) as (select 1 union all select n + 1 from r) select * from r where n < 0;
with recursive x(id) as (values (1) union all select id + 1 from x), y(id) as (select id from x union all select id from x) select count(*) from y;
select count(*) from generate_series(1, 1000000000) a, generate_series(1, 1000000000) b;
select (with {{', '.join('a0 as (select o.x)' if i == 0 else f'a{i} as (select p.x from a{i - 1} p, a{i - 1} q)' for i in range(31))}} select x from a30) from (values (1)) o(x);
