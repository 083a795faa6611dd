-- The rows of WITH RECURSIVE come as they are asked for: an error behind them is not met.
with recursive t(n, d) as (values (1, 0), (2, 0), (0, 0) union all select 6 / n, d + 1 from t where d < 3) select * from t limit 5;
with recursive t(n, d) as (values (1, 0), (2, 0), (0, 0) union all select 6 / n, d + 1 from t where d < 3) select * from t;
with recursive t(n) as (select 1 union all select n + 1 from t) select n from t limit 4;
with recursive t(n) as (select 1 / g from generate_series(3, 0, -1) g union all select n + 1 from t) select n from t limit 2;
with recursive t(n) as (select 0 union select (n + 1) % 5 from t) select n from t;
with recursive t(n) as (values (1), (1), (2) union select n from t) select n from t;
with recursive t(n) as (values (1), (2) union all select 6 / (n - 3) from t where n < 3) select exists (select from t where n = 2);
-- Two readings of one, at the same time.
with recursive t(n) as not materialized (select 1 union all select n + 1 from t where n < 4)
  select a.n, b.n from t a join t b on b.n = a.n + 1 order by 1;
with recursive t(n) as not materialized (select 1 union all select n + 1 from t where n < 3)
  select a.n, b.n, c.n from t a, t b, t c where a.n < b.n and b.n < c.n;
select x, (with recursive t(n) as (select x union all select n - 1 from t where n > 1) select string_agg(n::text, ',') from t)
  from generate_series(1, 3) x;
select x, n from generate_series(1, 3) x, lateral (with recursive t(n) as (select x union all select n - 1 from t where n > 1) select n from t limit 2) y;
-- One within the step of another.
with recursive outer_t(n) as (
  select 1 union all
  select (with recursive inner_t(m) as (select outer_t.n union all select m + 1 from inner_t where m < 3) select max(m) from inner_t) + n
  from outer_t where n < 8) select n from outer_t;
begin;
declare c cursor for with recursive t(n) as (values (1), (0) union all select 4 / n from t) select n from t;
fetch 3 from c;
fetch 1 from c;
rollback;
