-- EXPLAIN ANALYZE: rows of each step, rows that a condition has removed, and how a sort, a hash table and groups did their work. Sizes differ
-- between the two programs and are masked. Keys that are no columns are not asked for at a scan (`Rows Removed by Join Keys`), which PostgreSQL never does.
CREATE FUNCTION measured(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        RETURN NEXT regexp_replace(regexp_replace(line, '\d+kB', 'NkB', 'g'), 'Buckets: \d+', 'Buckets: N');
    END LOOP;
END $$;
CREATE TEMPORARY TABLE ea_many (k int PRIMARY KEY, g int, t text);
INSERT INTO ea_many SELECT n, n % 7, 'text ' || n % 100 FROM generate_series(1, 5000) AS n;
CREATE TEMPORARY TABLE ea_few (g int, name text);
INSERT INTO ea_few SELECT n, 'name ' || n FROM generate_series(0, 4) AS n;
ANALYZE ea_many;
ANALYZE ea_few;
SET max_parallel_workers_per_gather = 0;
SELECT measured('SELECT * FROM ea_many WHERE t = ''text 7''');
SELECT measured('SELECT * FROM ea_many WHERE k < 100 AND t < ''text 5''');
SELECT measured('SELECT g, count(*) FROM ea_many GROUP BY g');
SELECT measured('SELECT g, count(*) FROM ea_many GROUP BY g HAVING count(*) > 714 ORDER BY 2 DESC, 1 LIMIT 2');
SELECT measured('SELECT * FROM ea_many ORDER BY t, k');
SELECT measured('SELECT * FROM ea_many ORDER BY t, k LIMIT 3');
SELECT measured('SELECT * FROM ea_many ORDER BY t, k LIMIT 3 OFFSET 2');
SELECT measured('SELECT count(*) FROM ea_many m JOIN ea_few f ON m.g + 0 = f.g');
SELECT measured('SELECT count(*) FROM ea_many m JOIN ea_few f ON m.g + 0 = f.g AND m.t < f.name');
SELECT measured('SELECT count(*) FROM ea_many m LEFT JOIN ea_few f ON m.g = f.g WHERE f.name IS NULL');
SELECT measured('SELECT row_number() OVER (ORDER BY t) FROM ea_many WHERE k <= 20');
SELECT measured('SELECT g, sum(k), row_number() OVER (PARTITION BY g % 2 ORDER BY g) FROM ea_many GROUP BY g ORDER BY 1');
SELECT measured('SELECT DISTINCT ON (g) g, t FROM ea_many ORDER BY g, t');
SELECT measured('SELECT g FROM ea_many UNION SELECT g FROM ea_few');
SELECT measured('SELECT g FROM ea_many UNION ALL SELECT g FROM ea_few ORDER BY 1 LIMIT 4');
SELECT measured('SELECT g, t, count(*) FROM ea_many GROUP BY GROUPING SETS ((g), (t), ())');
SELECT measured('SELECT count(*) FROM ea_many WHERE false');
SELECT measured('INSERT INTO ea_few VALUES (9, ''nine'')');
SELECT measured('UPDATE ea_few SET name = ''x'' WHERE g > 2');
SELECT measured('DELETE FROM ea_few WHERE g > 3');
SET work_mem = '64kB';
SELECT measured('SELECT * FROM ea_many ORDER BY t, k');
RESET work_mem;
-- Constants of an expression are computed when it is planned.
EXPLAIN (VERBOSE, COSTS OFF) SELECT k * (1 + 1), 1 + 1, t || 'a' || 'b', sqrt(k * 1.5 + 2) FROM ea_many WHERE k < 10 * 10;
EXPLAIN (COSTS OFF) SELECT k FROM ea_many ORDER BY k + (2 * 3), lower(t), g;
EXPLAIN (COSTS OFF) SELECT sum(1 - g::numeric) FROM ea_few GROUP BY g % (1 + 1) HAVING sum(g) > 2 + 2;
EXPLAIN (COSTS OFF) SELECT g FROM ea_few ORDER BY CASE WHEN g > 2 + 1 THEN 2 - 1 ELSE 3 * 3 END;
-- Of VERBOSE the schemas are shown, and the columns of the output.
EXPLAIN (VERBOSE, COSTS OFF) SELECT g, name FROM ea_few WHERE g > 1;
EXPLAIN (VERBOSE, COSTS OFF) SELECT m.g, m.t FROM ea_many m WHERE m.k = 5;
EXPLAIN (COSTS OFF) DELETE FROM pg_temp.ea_few WHERE g > 2 + 1;
DROP FUNCTION measured;
