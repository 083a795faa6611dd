-- Aggregates that make json.
SELECT json_agg(x), jsonb_agg(x ORDER BY x DESC), json_agg(x) FILTER (WHERE x > 5) FROM generate_series(1, 3) x;
SELECT json_object_agg(k, v), jsonb_object_agg(k, v) FROM (VALUES ('a', 1), ('b', null), ('a', 3)) t(k, v);
SELECT json_agg(array[x, x]), json_agg(row(x, 'q')), json_agg(null::int), json_agg('x'::text) FROM generate_series(1, 2) x;
SELECT json_agg('x');
SELECT json_object_agg(null, 1);
SELECT jsonb_object_agg(null, 1);
SELECT json_object_agg(array[1], 1);
SELECT json_agg(DISTINCT x % 2), array_agg(DISTINCT x % 3), string_agg(DISTINCT (x % 3)::text, ',') FROM generate_series(1, 5) x;
SELECT x, json_agg(x) OVER (ORDER BY x) FROM generate_series(1, 3) x;
SELECT x % 2, json_agg(x ORDER BY x) FROM generate_series(1, 5) x GROUP BY 1 ORDER BY 1;
SELECT json_agg(x), jsonb_agg(x), json_object_agg(x, x), jsonb_object_agg(x, x) FROM generate_series(1, 0) x;
SELECT json_agg(t) FROM (SELECT 1 a, 'b' b UNION ALL SELECT 2, null) t;
SELECT json_agg(json_build_object('id', x, 'd', date '2020-01-01' + x)) FROM generate_series(1, 2) x;
SELECT jsonb_agg(t ORDER BY t) FROM (VALUES (time '10:00'), ('11:00')) v(t);
SELECT max(t), min(t) FROM (VALUES (timetz '10:00+01'), ('10:00+02')) v(t);
SELECT max(i), min(i) FROM (VALUES (inet '10.0.0.1'), ('10.0.0.2')) v(i);
