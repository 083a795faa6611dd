-- Arithmetic on long numbers, and large arguments.
with recursive r(n, i) as (select 9::numeric, 0 union all select n * n, i + 1 from r where i < 60) select length(n::text) from r;
select count(*) from generate_series(1, 100000) g where (1e131000 * g / 7 / 3) % 17 = 4;
select count(*) from generate_series(1, 100000) g where length((repeat('9', 131000)::numeric + g)::text) = 3;
select count(*) from generate_series(1, 100000) g where sqrt(repeat('9', 131000)::numeric + g) = 3;
select count(*) from generate_series(1, 100000) g where ln(repeat('9', 20000)::numeric + g) = 3;
select count(*) from generate_series(1, 100000) g where exp(5000 + g / 1000.0) = 3;
select count(*) from generate_series(1, 100000) g where 1.000001 ^ (g * 100000.5) = 3;
select count(*) from generate_series(1, 100000) g where round(repeat('9', 131000)::numeric, -g) = 3;
select sum(repeat('9', 131000)::numeric) from generate_series(1, 1000000);
select pg_sleep(1000000);
