CREATE TABLE k (id bigint PRIMARY KEY, g int, s varchar(20), n numeric(12,3), ts timestamp, f float8)
CREATE TABLE m (a int, b int, c text, v int, PRIMARY KEY (a, b))
CREATE TABLE h (x int, y text)
CREATE INDEX k_gs ON k (g, s)
CREATE INDEX k_ts ON k (ts DESC)
CREATE UNIQUE INDEX k_n ON k (n)
CREATE INDEX m_c ON m (c, v)
CREATE INDEX h_x ON h (x)
INSERT INTO k SELECT i * 3, CASE WHEN i % 11 = 0 THEN NULL ELSE i * 7 % 23 END, CASE WHEN i % 13 = 0 THEN NULL ELSE 's' || (i * 31 % 101) END, CASE WHEN i % 17 = 0 THEN NULL ELSE (i * 37 % 701) / 8.0 END, CASE WHEN i % 19 = 0 THEN NULL ELSE '2024-01-01'::timestamp + (i * 53 % 601) * interval '1 hour' END, (i * 29 % 500) / 4.0 - 50 FROM generate_series(1, 700) i
INSERT INTO m SELECT a, b, 'c' || ((a + b) % 9), a * b % 31 FROM generate_series(1, 40) a, generate_series(1, 12) b
INSERT INTO h SELECT i % 50, 'y' || i FROM generate_series(1, 300) i
SELECT id, g, s FROM k WHERE g = 1 ORDER BY s, g DESC, id DESC LIMIT 5
SELECT id, g, s FROM k WHERE id >= 1733 ORDER BY id DESC LIMIT 5
SELECT id, g, s FROM k WHERE id IN (590.5, 590.5) ORDER BY s, id LIMIT 12 OFFSET 3
SELECT id, g, s FROM k ORDER BY id LIMIT 5
SELECT id, g, s FROM k WHERE f >= 4.5 AND n < 23.0 ORDER BY n DESC NULLS LAST, s DESC, id DESC LIMIT 5
SELECT id, g, s FROM k ORDER BY id DESC LIMIT 5
SELECT id, g, s FROM k WHERE n IS NULL AND ts <= '2024-01-11 22:00' ORDER BY id LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE f = -42.25 OR ts > '2024-01-10 22:00' ORDER BY ts DESC, id LIMIT 30
SELECT id, g, s FROM k ORDER BY s DESC NULLS LAST, id LIMIT 30
SELECT id, g, s FROM k WHERE n IS NOT NULL AND n < 55.0 ORDER BY n DESC, id LIMIT 5
SELECT id, g, s FROM k WHERE g < -1 ORDER BY id LIMIT 30
SELECT id, g, s FROM k WHERE s <= 's16' AND ts = '2024-01-15 21:00' ORDER BY id DESC LIMIT 30
SELECT id, g, s FROM k ORDER BY id DESC LIMIT 5
SELECT id, g, s FROM k ORDER BY id LIMIT 5
SELECT id, g, s FROM k WHERE g IN (18, 18) AND g < 19 ORDER BY id LIMIT 30
SELECT id, g, s FROM k WHERE n IN (18.375, 18.375) AND s > 's88' ORDER BY ts DESC NULLS LAST, g NULLS FIRST, id LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE id <= 2118 AND ts <= '2024-01-21 07:00' AND g > 22 ORDER BY g, n DESC, id DESC LIMIT 5
SELECT id, g, s FROM k WHERE ts > '2024-01-24 11:00' AND g > 5 AND ts > '2024-01-21 11:00' ORDER BY s DESC, id LIMIT 30
SELECT id, g, s FROM k WHERE s IS NULL AND 9.25 > f AND f < -28.25 ORDER BY s NULLS FIRST, id DESC LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE ts = '2024-01-01 23:00' ORDER BY s DESC, id LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE s >= 's41' ORDER BY ts DESC NULLS LAST, s NULLS FIRST, id DESC LIMIT 5
SELECT id, g, s FROM k WHERE g = 13 AND g > 18 ORDER BY n NULLS FIRST, g, id LIMIT 5
SELECT id, g, s FROM k WHERE 2074 = id ORDER BY s, ts DESC, id DESC LIMIT 5
SELECT id, g, s FROM k WHERE ts <= '2024-01-18 06:00' AND id > 1805 AND g = 23 ORDER BY id DESC LIMIT 5
SELECT id, g, s FROM k WHERE g = 11 AND -29.5 < f ORDER BY s, id DESC LIMIT 5
SELECT id, g, s FROM k WHERE s IS NULL AND ts = '2024-01-13 10:00' AND id = 931 ORDER BY s DESC, id DESC LIMIT 30
SELECT id, g, s FROM k WHERE ts >= '2024-01-16 22:00' ORDER BY id DESC LIMIT 5
SELECT id, g, s FROM k WHERE id IN (1062, 1062) ORDER BY g, id DESC LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE g IS NULL AND id < 1067 ORDER BY id DESC LIMIT 30
SELECT id, g, s FROM k WHERE f < -15.5 OR s IS NULL ORDER BY s DESC, ts DESC, id DESC LIMIT 5
SELECT id, g, s FROM k WHERE 34.0 > f AND n <= 27.5 AND 1.75 < f ORDER BY id LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE g IS NOT NULL AND ts <= '2024-01-20 07:00' ORDER BY n, id DESC LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE ts = '2024-01-10 06:00' ORDER BY ts NULLS FIRST, id LIMIT 5
SELECT id, g, s FROM k WHERE id = 1077 AND id <= 1241 ORDER BY n DESC NULLS LAST, s DESC, id LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE ts = '2024-01-23 16:00' AND '2024-01-25 16:00' >= ts AND id IN (936, 936) ORDER BY id DESC LIMIT 30
SELECT id, g, s FROM k WHERE id = 498.0 AND id >= 2187 ORDER BY s DESC NULLS LAST, id LIMIT 5
SELECT id, g, s FROM k WHERE f > 13.0 AND f IN (48.0, 48.0) AND f < -40.25 ORDER BY ts NULLS FIRST, n DESC, id LIMIT 30
SELECT id, g, s FROM k ORDER BY g DESC, ts DESC NULLS LAST, id DESC LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE ts > '2024-01-15 03:00' AND s > 's2' AND '2024-01-09 12:00' > ts ORDER BY g DESC NULLS LAST, n NULLS FIRST, id DESC LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE ts >= '2024-01-09 03:00' ORDER BY n, id LIMIT 5
SELECT id, g, s FROM k WHERE f > 1.75 AND s BETWEEN 's42' AND 's42' ORDER BY g DESC, id LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE s IS NULL ORDER BY g DESC, s, id LIMIT 12 OFFSET 3
SELECT id, g, s FROM k ORDER BY ts DESC, n DESC, id DESC LIMIT 30
SELECT id, g, s FROM k WHERE s IS NULL AND s > 's3' ORDER BY s, ts, id DESC LIMIT 30
SELECT id, g, s FROM k WHERE g IN (14, 14) AND ts > '2024-01-14 10:00' ORDER BY ts DESC NULLS LAST, s DESC, id DESC LIMIT 30
SELECT id, g, s FROM k WHERE f > -34.75 AND 16 > g ORDER BY n DESC, id LIMIT 5
SELECT id, g, s FROM k ORDER BY g DESC, s, id DESC LIMIT 5
SELECT id, g, s FROM k ORDER BY n DESC, id LIMIT 30
SELECT id, g, s FROM k WHERE s > 's35' ORDER BY s, g DESC, id DESC LIMIT 30
SELECT id, g, s FROM k WHERE n IN (2.75, 2.75) AND n > 75.125 AND ts > '2024-01-08 03:00' ORDER BY id DESC LIMIT 5
SELECT id, g, s FROM k WHERE id = 509 OR g >= 19 ORDER BY s DESC, id DESC LIMIT 5
SELECT id, g, s FROM k WHERE id = 615.0 AND 16 < g ORDER BY g, id LIMIT 30
SELECT id, g, s FROM k WHERE f > -39.75 AND s IS NULL AND id <= 739.5 ORDER BY g DESC, n DESC, id DESC LIMIT 5
SELECT id, g, s FROM k WHERE n <= 13.875 ORDER BY id DESC LIMIT 30
SELECT id, g, s FROM k WHERE 594 >= id AND 4 = g AND s = 's21' ORDER BY n, g DESC NULLS LAST, id DESC LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE n = 10.0 ORDER BY id LIMIT 30
SELECT id, g, s FROM k WHERE s BETWEEN 's11' AND 's11' ORDER BY n DESC, id DESC LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE n IS NOT NULL AND g > 0 AND id <= 126.0 ORDER BY id DESC LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE s IS NULL ORDER BY g DESC, n, id DESC LIMIT 30
SELECT id, g, s FROM k WHERE s > 's16' AND f <= 55.25 ORDER BY n, id LIMIT 5
SELECT id, g, s FROM k WHERE g IN (19, 19) OR ts < '2024-01-14 03:00' ORDER BY id DESC LIMIT 30
SELECT id, g, s FROM k WHERE 53.25 < n AND g = 23 AND ts <= '2024-01-24 08:00' ORDER BY id DESC LIMIT 5
SELECT id, g, s FROM k WHERE id > 1025 ORDER BY id LIMIT 5
SELECT id, g, s FROM k WHERE g <= 0 AND id < 151.0 ORDER BY g DESC NULLS LAST, n NULLS FIRST, id DESC LIMIT 5
SELECT id, g, s FROM k ORDER BY id LIMIT 5
SELECT id, g, s FROM k WHERE id >= 20.5 ORDER BY id LIMIT 5
SELECT id, g, s FROM k WHERE ts > '2024-01-04 12:00' AND ts IS NULL ORDER BY n, id DESC LIMIT 30
SELECT id, g, s FROM k ORDER BY ts DESC, s, id DESC LIMIT 5
SELECT id, g, s FROM k WHERE f > -24.0 AND g = 11 ORDER BY id LIMIT 5
SELECT id, g, s FROM k WHERE 1 > g AND f IN (-28.25, -28.25) ORDER BY s, g DESC, id DESC LIMIT 5
SELECT id, g, s FROM k WHERE g = 14 ORDER BY id LIMIT 5
SELECT id, g, s FROM k WHERE n < 60.5 AND n < 49.0 ORDER BY id LIMIT 5
SELECT id, g, s FROM k WHERE s IS NULL AND ts <= '2024-01-21 13:00' AND n > 64.375 ORDER BY n DESC, id DESC LIMIT 30
SELECT id, g, s FROM k WHERE n = 16.375 ORDER BY g DESC NULLS LAST, n DESC, id LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE ts IS NOT NULL AND -46.75 < f AND f IN (-25.25, -25.25) ORDER BY s DESC NULLS LAST, id LIMIT 5
SELECT id, g, s FROM k WHERE '2024-01-11 19:00' < ts ORDER BY n NULLS FIRST, g, id LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE id < 740 ORDER BY s, id LIMIT 5
SELECT id, g, s FROM k WHERE s > 's71' AND 804.5 <= id AND ts <= '2024-01-25 02:00' ORDER BY id DESC LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE f >= 68.75 ORDER BY id LIMIT 5
SELECT id, g, s FROM k WHERE ts > '2024-01-17 11:00' ORDER BY g, n, id DESC LIMIT 12 OFFSET 3
SELECT id, g, s FROM k ORDER BY s NULLS FIRST, n, id LIMIT 5
SELECT id, g, s FROM k WHERE ts < '2024-01-05 00:00' ORDER BY id LIMIT 5
SELECT id, g, s FROM k WHERE s BETWEEN 's1' OR 's1' OR '2024-01-21 18:00' >= ts OR f > -18.25 ORDER BY id DESC LIMIT 5
SELECT id, g, s FROM k WHERE g IS NULL ORDER BY s DESC, g DESC, id DESC LIMIT 5
SELECT id, g, s FROM k WHERE s IS NULL AND f = 63.75 ORDER BY n DESC NULLS LAST, id DESC LIMIT 5
SELECT id, g, s FROM k WHERE f > -27.75 AND 9 = g AND s <= 's81' ORDER BY ts DESC NULLS LAST, s DESC, id LIMIT 5
SELECT id, g, s FROM k WHERE s < 's20' ORDER BY s DESC, id DESC LIMIT 30
SELECT id, g, s FROM k WHERE f IN (59.75, 59.75) AND f < 23.0 ORDER BY g DESC, ts DESC, id LIMIT 5
SELECT id, g, s FROM k ORDER BY id DESC LIMIT 5
SELECT id, g, s FROM k WHERE id = 165 OR id >= 1483 OR f > -36.5 ORDER BY g DESC NULLS LAST, ts, id DESC LIMIT 5
SELECT id, g, s FROM k WHERE id < 651.0 ORDER BY g DESC NULLS LAST, id DESC LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE ts IN ('2024-01-20 23:00', '2024-01-20 23:00') AND n IS NULL ORDER BY g NULLS FIRST, ts DESC, id LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE n IS NULL ORDER BY id LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE id > 1010.0 AND ts <= '2024-01-07 22:00' ORDER BY id DESC LIMIT 5
SELECT id, g, s FROM k WHERE s > 's50' AND n = 47.5 AND ts > '2024-01-21 07:00' ORDER BY g NULLS FIRST, s, id LIMIT 30
SELECT id, g, s FROM k WHERE ts < '2024-01-15 14:00' AND g > 19 AND 3 >= g ORDER BY ts DESC, g, id LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE id < 397.5 AND s > 's35' AND id IN (792.5, 792.5) ORDER BY s NULLS FIRST, id DESC LIMIT 30
SELECT id, g, s FROM k ORDER BY n DESC NULLS LAST, g DESC, id DESC LIMIT 30
SELECT id, g, s FROM k WHERE f >= 59.0 ORDER BY ts, id LIMIT 30
SELECT id, g, s FROM k WHERE n < 32.0 ORDER BY s DESC NULLS LAST, id DESC LIMIT 5
SELECT id, g, s FROM k WHERE n = 4.875 AND 16.25 < f ORDER BY id DESC LIMIT 5
SELECT id, g, s FROM k WHERE s > 's94' AND 0.0 < f AND f >= -4.5 ORDER BY id LIMIT 5
SELECT id, g, s FROM k WHERE n <= 74.25 AND 70.25 > f ORDER BY n DESC, id LIMIT 5
SELECT id, g, s FROM k ORDER BY s DESC NULLS LAST, n NULLS FIRST, id LIMIT 5
SELECT id, g, s FROM k WHERE f > 9.75 ORDER BY ts DESC, id DESC LIMIT 30
SELECT id, g, s FROM k WHERE s BETWEEN 's61' AND 's61' AND f <= -4.25 AND n IN (81.5, 81.5) ORDER BY id DESC LIMIT 30
SELECT id, g, s FROM k ORDER BY ts NULLS FIRST, g, id LIMIT 5
SELECT id, g, s FROM k WHERE id <= 1019 ORDER BY id LIMIT 30
SELECT id, g, s FROM k WHERE g IN (24, 24) AND ts <= '2024-01-07 15:00' ORDER BY g NULLS FIRST, id LIMIT 12 OFFSET 3
SELECT id, g, s FROM k WHERE g > 14 AND g < 14 ORDER BY id DESC LIMIT 30
SELECT min(id) FROM k WHERE f <= 57.5 AND f = -27.0
SELECT min(n) FROM k WHERE id IN (1978, 1978)
SELECT count(*), sum(id), count(s) FROM k WHERE id IN (1978, 1978)
SELECT max(n) FROM k WHERE s >= 's70'
SELECT count(*), sum(id), count(s) FROM k WHERE s >= 's70'
SELECT max(s) FROM k
SELECT count(*), sum(id), count(s) FROM k
SELECT min(ts) FROM k WHERE n <= 64.75 AND n <= 24.5
SELECT max(n) FROM k
SELECT max(n) FROM k
SELECT count(*), sum(id), count(s) FROM k
SELECT max(g) FROM k
SELECT max(ts) FROM k
SELECT min(g) FROM k
SELECT max(s) FROM k WHERE -37.25 < f AND n = 47.125
SELECT min(n) FROM k WHERE n IS NULL
SELECT count(*), sum(id), count(s) FROM k WHERE n IS NULL
SELECT max(id) FROM k
SELECT min(n) FROM k WHERE n IS NOT NULL AND ts < '2024-01-16 13:00'
SELECT min(n) FROM k
SELECT count(*), sum(id), count(s) FROM k
SELECT min(id) FROM k
SELECT min(n) FROM k WHERE n IS NULL
SELECT max(ts) FROM k WHERE f < 43.25
SELECT count(*), sum(id), count(s) FROM k WHERE f < 43.25
SELECT min(ts) FROM k WHERE id = 41
SELECT count(*), sum(id), count(s) FROM k WHERE id = 41
SELECT min(ts) FROM k WHERE -29.0 >= f
SELECT count(*), sum(id), count(s) FROM k WHERE -29.0 >= f
SELECT max(s) FROM k WHERE n < 14.875 AND f > 11.0
SELECT count(*), sum(id), count(s) FROM k WHERE n < 14.875 AND f > 11.0
SELECT max(ts) FROM k
SELECT max(g) FROM k
SELECT max(n) FROM k WHERE n > 77.0
SELECT min(g) FROM k WHERE s IS NULL
SELECT count(*), sum(id), count(s) FROM k WHERE s IS NULL
SELECT max(ts) FROM k WHERE ts >= '2024-01-22 15:00'
SELECT min(n) FROM k WHERE f < -10.5
SELECT max(n) FROM k
SELECT min(n) FROM k WHERE id < 1064.5
SELECT count(*), sum(id), count(s) FROM k WHERE id < 1064.5
SELECT min(g) FROM k WHERE id < 740.5
SELECT count(*), sum(id), count(s) FROM k WHERE id < 740.5
SELECT min(id) FROM k WHERE s <= 's80' AND s <= 's35'
SELECT min(n) FROM k WHERE '2024-01-25 08:00' <= ts AND '2024-01-09 01:00' < ts
SELECT count(*), sum(id), count(s) FROM k WHERE '2024-01-25 08:00' <= ts AND '2024-01-09 01:00' < ts
SELECT max(ts) FROM k
SELECT max(id) FROM k WHERE 76.5 = n AND f = -17.25
SELECT count(*), sum(id), count(s) FROM k WHERE 76.5 = n AND f = -17.25
SELECT max(s) FROM k WHERE s BETWEEN 's22' AND 's22'
SELECT count(*), sum(id), count(s) FROM k WHERE s BETWEEN 's22' AND 's22'
SELECT max(id) FROM k
SELECT max(s) FROM k WHERE id = 588 AND s > 's97'
SELECT count(*), sum(id), count(s) FROM k WHERE id = 588 AND s > 's97'
SELECT max(id) FROM k WHERE 30.5 > n
SELECT min(n) FROM k WHERE id < 156.5
SELECT max(g) FROM k WHERE id = 693.0 AND f <= -31.75
SELECT a, b, c, v FROM m WHERE a > 28 ORDER BY a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE c > 'c5' AND a = 26 ORDER BY a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE a = 17 ORDER BY v DESC, c, a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE a = 20 AND b = 3 ORDER BY v, a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE a IN (3, 7, 7) ORDER BY c, v, a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE a >= 23 AND b < 4 ORDER BY v DESC, a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE a = 24 AND b = 3 ORDER BY v DESC, a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE c = 'c4' AND a < 9 ORDER BY c NULLS FIRST, v, a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE a = 0 AND b > 4 AND b <= 9 ORDER BY v, c DESC, a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE c > 'c5' AND a = 13 ORDER BY c DESC, a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE a IN (14, 7, 7) ORDER BY c NULLS FIRST, v, a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE a = 17 AND b > 4 AND b <= 9 ORDER BY a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE a > 39 ORDER BY c DESC, v, a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE a IN (26, 7, 7) ORDER BY c, v, a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE a = 0 AND b = 3 ORDER BY v DESC, a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE a >= 11 AND b < 4 ORDER BY v DESC, c DESC NULLS LAST, a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE a = 22 ORDER BY v, c, a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE c = 'c1' AND v > 24 ORDER BY c, v DESC NULLS LAST, a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE a = 32 AND b > 4 AND b <= 9 ORDER BY a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE a = 15 ORDER BY a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE a > 10 ORDER BY a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE c = 'c4' AND a < 35 ORDER BY a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE a = 12 AND b = 3 ORDER BY c NULLS FIRST, a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE a IN (15, 7, 7) ORDER BY v, c, a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE a = 17 ORDER BY a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE a = 37 AND b > 4 AND b <= 9 ORDER BY v, c, a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE a > 34 ORDER BY c DESC, v DESC NULLS LAST, a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE c > 'c5' AND a = 10 ORDER BY a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE c > 'c5' AND a = 38 ORDER BY c, v, a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE c > 'c5' AND a = 15 ORDER BY v NULLS FIRST, a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE c > 'c5' AND a = 35 ORDER BY a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE a IN (9, 7, 7) ORDER BY v DESC, c DESC NULLS LAST, a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE c = 'c1' AND v > 6 ORDER BY c, v DESC, a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE a IN (1, 7, 7) ORDER BY a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE c > 'c5' AND a = 25 ORDER BY c, a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE c = 'c4' AND a < 39 ORDER BY c NULLS FIRST, a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE c = 'c4' AND a < 7 ORDER BY c DESC, v, a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE a = 19 AND b = 3 ORDER BY c, a, b LIMIT 15
SELECT a, b, c, v FROM m WHERE a IN (17, 7, 7) ORDER BY a DESC, b DESC LIMIT 15
SELECT a, b, c, v FROM m WHERE a IN (9, 7, 7) ORDER BY c NULLS FIRST, a, b LIMIT 15
SELECT k.id, m.a, m.b FROM k JOIN m ON m.a = k.g WHERE true AND k.s > 's5' ORDER BY 3 DESC, 1 DESC, 2 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k JOIN m ON m.a = k.g WHERE true AND k.s > 's5'
SELECT k.id, m.a, m.b FROM k JOIN m ON m.a = k.g WHERE true AND k.s > 's5' ORDER BY 1 DESC, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k JOIN m ON m.a = k.g WHERE true AND k.s > 's5'
SELECT k.id, m.a, m.b FROM k JOIN m ON m.a = k.g WHERE true AND m.a = 5 ORDER BY 1, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k JOIN m ON m.a = k.g WHERE true AND m.a = 5
SELECT k.id, m.a, m.b FROM k JOIN m ON m.a = k.g WHERE true AND k.s > 's5' ORDER BY 3 DESC, 1 DESC, 2 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k JOIN m ON m.a = k.g WHERE true AND k.s > 's5'
SELECT k.id, m.a, m.b FROM k LEFT JOIN m ON m.a = k.g AND m.b = 2 WHERE true AND m.a = 5 ORDER BY 3 DESC, 1 DESC, 2 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k LEFT JOIN m ON m.a = k.g AND m.b = 2 WHERE true AND m.a = 5
SELECT k.id, m.a, m.b FROM k LEFT JOIN m ON m.a = k.g AND m.b = 2 WHERE true AND m.a = 5 ORDER BY 1 DESC, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k LEFT JOIN m ON m.a = k.g AND m.b = 2 WHERE true AND m.a = 5
SELECT k.id, m.a, m.b FROM k LEFT JOIN m ON m.a = k.g AND m.b = 2 WHERE true AND k.id = m.b * 3 ORDER BY 1 DESC, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k LEFT JOIN m ON m.a = k.g AND m.b = 2 WHERE true AND k.id = m.b * 3
SELECT k.id, m.a, m.b FROM k LEFT JOIN m ON m.a = k.g AND m.b = 2 WHERE true AND k.id = m.b * 3 ORDER BY 3 DESC, 1 DESC, 2 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k LEFT JOIN m ON m.a = k.g AND m.b = 2 WHERE true AND k.id = m.b * 3
SELECT k.id, m.a, m.b FROM m JOIN k ON k.id = m.a * 3 WHERE true AND k.s > 's5' ORDER BY 1, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM m JOIN k ON k.id = m.a * 3 WHERE true AND k.s > 's5'
SELECT k.id, m.a, m.b FROM m JOIN k ON k.id = m.a * 3 WHERE true AND m.a = 5 ORDER BY 1 DESC, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM m JOIN k ON k.id = m.a * 3 WHERE true AND m.a = 5
SELECT k.id, m.a, m.b FROM m JOIN k ON k.id = m.a * 3 WHERE true AND m.a = 5 ORDER BY 2, 3, 1 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM m JOIN k ON k.id = m.a * 3 WHERE true AND m.a = 5
SELECT k.id, m.a, m.b FROM m JOIN k ON k.id = m.a * 3 WHERE true AND k.g IS NULL ORDER BY 3 DESC, 1 DESC, 2 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM m JOIN k ON k.id = m.a * 3 WHERE true AND k.g IS NULL
SELECT k.id, m.a, m.b FROM m LEFT JOIN k ON k.id = m.v AND k.g > 5 WHERE true AND k.g < 6 ORDER BY 1 DESC, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM m LEFT JOIN k ON k.id = m.v AND k.g > 5 WHERE true AND k.g < 6
SELECT k.id, m.a, m.b FROM m LEFT JOIN k ON k.id = m.v AND k.g > 5 WHERE true AND m.b < 3 ORDER BY 2, 3, 1 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM m LEFT JOIN k ON k.id = m.v AND k.g > 5 WHERE true AND m.b < 3
SELECT k.id, m.a, m.b FROM m LEFT JOIN k ON k.id = m.v AND k.g > 5 WHERE true AND m.v IS NULL ORDER BY 1 DESC, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM m LEFT JOIN k ON k.id = m.v AND k.g > 5 WHERE true AND m.v IS NULL
SELECT k.id, m.a, m.b FROM m LEFT JOIN k ON k.id = m.v AND k.g > 5 WHERE true AND k.id = m.b * 3 ORDER BY 1 DESC, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM m LEFT JOIN k ON k.id = m.v AND k.g > 5 WHERE true AND k.id = m.b * 3
SELECT k.id, m.a, m.b FROM k JOIN m ON k.g = m.v AND m.c = 'c3' WHERE true AND k.s > 's5' ORDER BY 2, 3, 1 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k JOIN m ON k.g = m.v AND m.c = 'c3' WHERE true AND k.s > 's5'
SELECT k.id, m.a, m.b FROM k JOIN m ON k.g = m.v AND m.c = 'c3' WHERE true AND k.s > 's5' ORDER BY 1, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k JOIN m ON k.g = m.v AND m.c = 'c3' WHERE true AND k.s > 's5'
SELECT k.id, m.a, m.b FROM k JOIN m ON k.g = m.v AND m.c = 'c3' WHERE true AND k.g < 6 ORDER BY 2, 3, 1 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k JOIN m ON k.g = m.v AND m.c = 'c3' WHERE true AND k.g < 6
SELECT k.id, m.a, m.b FROM k JOIN m ON k.g = m.v AND m.c = 'c3' WHERE true AND k.id < 300 ORDER BY 1 DESC, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k JOIN m ON k.g = m.v AND m.c = 'c3' WHERE true AND k.id < 300
SELECT k.id, m.a, m.b FROM m RIGHT JOIN k ON m.a = k.g AND m.b = k.g WHERE true AND k.id = m.b * 3 ORDER BY 1, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM m RIGHT JOIN k ON m.a = k.g AND m.b = k.g WHERE true AND k.id = m.b * 3
SELECT k.id, m.a, m.b FROM m RIGHT JOIN k ON m.a = k.g AND m.b = k.g WHERE true AND k.g IS NULL ORDER BY 3 DESC, 1 DESC, 2 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM m RIGHT JOIN k ON m.a = k.g AND m.b = k.g WHERE true AND k.g IS NULL
SELECT k.id, m.a, m.b FROM m RIGHT JOIN k ON m.a = k.g AND m.b = k.g WHERE true AND m.v IS NULL ORDER BY 1, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM m RIGHT JOIN k ON m.a = k.g AND m.b = k.g WHERE true AND m.v IS NULL
SELECT k.id, m.a, m.b FROM m RIGHT JOIN k ON m.a = k.g AND m.b = k.g WHERE true AND m.a = 5 ORDER BY 2, 3, 1 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM m RIGHT JOIN k ON m.a = k.g AND m.b = k.g WHERE true AND m.a = 5
SELECT k.id, m.a, m.b FROM k FULL JOIN m ON k.id = m.a AND m.b = 1 WHERE true AND k.g IS NULL ORDER BY 1 DESC, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k FULL JOIN m ON k.id = m.a AND m.b = 1 WHERE true AND k.g IS NULL
SELECT k.id, m.a, m.b FROM k FULL JOIN m ON k.id = m.a AND m.b = 1 WHERE true AND m.v IS NULL ORDER BY 2, 3, 1 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k FULL JOIN m ON k.id = m.a AND m.b = 1 WHERE true AND m.v IS NULL
SELECT k.id, m.a, m.b FROM k FULL JOIN m ON k.id = m.a AND m.b = 1 WHERE true AND m.a = 5 ORDER BY 1 DESC, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k FULL JOIN m ON k.id = m.a AND m.b = 1 WHERE true AND m.a = 5
SELECT k.id, m.a, m.b FROM k FULL JOIN m ON k.id = m.a AND m.b = 1 WHERE true AND k.id < 300 ORDER BY 3 DESC, 1 DESC, 2 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k FULL JOIN m ON k.id = m.a AND m.b = 1 WHERE true AND k.id < 300
SELECT k.id, m.a, m.b FROM k JOIN m ON k.g > m.a AND m.b = 1 WHERE true AND k.s > 's5' ORDER BY 2, 3, 1 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k JOIN m ON k.g > m.a AND m.b = 1 WHERE true AND k.s > 's5'
SELECT k.id, m.a, m.b FROM k JOIN m ON k.g > m.a AND m.b = 1 WHERE true AND k.g IS NULL ORDER BY 1, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k JOIN m ON k.g > m.a AND m.b = 1 WHERE true AND k.g IS NULL
SELECT k.id, m.a, m.b FROM k JOIN m ON k.g > m.a AND m.b = 1 WHERE true AND k.g < 6 ORDER BY 3 DESC, 1 DESC, 2 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k JOIN m ON k.g > m.a AND m.b = 1 WHERE true AND k.g < 6
SELECT k.id, m.a, m.b FROM k JOIN m ON k.g > m.a AND m.b = 1 WHERE true AND k.id < 300 ORDER BY 3 DESC, 1 DESC, 2 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k JOIN m ON k.g > m.a AND m.b = 1 WHERE true AND k.id < 300
SELECT k.id, m.a, m.b FROM k, m WHERE k.id = m.a AND k.g = m.b AND k.g IS NULL ORDER BY 2, 3, 1 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k, m WHERE k.id = m.a AND k.g = m.b AND k.g IS NULL
SELECT k.id, m.a, m.b FROM k, m WHERE k.id = m.a AND k.g = m.b AND k.g IS NULL ORDER BY 1 DESC, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k, m WHERE k.id = m.a AND k.g = m.b AND k.g IS NULL
SELECT k.id, m.a, m.b FROM k, m WHERE k.id = m.a AND k.g = m.b AND k.id < 300 ORDER BY 3 DESC, 1 DESC, 2 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k, m WHERE k.id = m.a AND k.g = m.b AND k.id < 300
SELECT k.id, m.a, m.b FROM k, m WHERE k.id = m.a AND k.g = m.b AND k.id = m.b * 3 ORDER BY 3 DESC, 1 DESC, 2 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k, m WHERE k.id = m.a AND k.g = m.b AND k.id = m.b * 3
SELECT k.id, m.a, m.b FROM k LEFT JOIN m ON m.a = k.g AND m.b = 1 LEFT JOIN h ON h.x = m.v WHERE true AND k.s > 's5' ORDER BY 1 DESC, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k LEFT JOIN m ON m.a = k.g AND m.b = 1 LEFT JOIN h ON h.x = m.v WHERE true AND k.s > 's5'
SELECT k.id, m.a, m.b FROM k LEFT JOIN m ON m.a = k.g AND m.b = 1 LEFT JOIN h ON h.x = m.v WHERE true AND k.s > 's5' ORDER BY 1 DESC, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k LEFT JOIN m ON m.a = k.g AND m.b = 1 LEFT JOIN h ON h.x = m.v WHERE true AND k.s > 's5'
SELECT k.id, m.a, m.b FROM k LEFT JOIN m ON m.a = k.g AND m.b = 1 LEFT JOIN h ON h.x = m.v WHERE true AND k.g IS NULL ORDER BY 3 DESC, 1 DESC, 2 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k LEFT JOIN m ON m.a = k.g AND m.b = 1 LEFT JOIN h ON h.x = m.v WHERE true AND k.g IS NULL
SELECT k.id, m.a, m.b FROM k LEFT JOIN m ON m.a = k.g AND m.b = 1 LEFT JOIN h ON h.x = m.v WHERE true AND m.v IS NULL ORDER BY 1, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM k LEFT JOIN m ON m.a = k.g AND m.b = 1 LEFT JOIN h ON h.x = m.v WHERE true AND m.v IS NULL
SELECT k.id, m.a, m.b FROM m JOIN h ON h.x = m.a JOIN k ON k.id = h.x WHERE true AND k.id = m.b * 3 ORDER BY 3 DESC, 1 DESC, 2 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM m JOIN h ON h.x = m.a JOIN k ON k.id = h.x WHERE true AND k.id = m.b * 3
SELECT k.id, m.a, m.b FROM m JOIN h ON h.x = m.a JOIN k ON k.id = h.x WHERE true AND k.id = m.b * 3 ORDER BY 1 DESC, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM m JOIN h ON h.x = m.a JOIN k ON k.id = h.x WHERE true AND k.id = m.b * 3
SELECT k.id, m.a, m.b FROM m JOIN h ON h.x = m.a JOIN k ON k.id = h.x WHERE true AND m.b < 3 ORDER BY 1 DESC, 2, 3 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM m JOIN h ON h.x = m.a JOIN k ON k.id = h.x WHERE true AND m.b < 3
SELECT k.id, m.a, m.b FROM m JOIN h ON h.x = m.a JOIN k ON k.id = h.x WHERE true AND m.b < 3 ORDER BY 3 DESC, 1 DESC, 2 LIMIT 12
SELECT count(*), sum(k.id), sum(m.v) FROM m JOIN h ON h.x = m.a JOIN k ON k.id = h.x WHERE true AND m.b < 3
SELECT id FROM k WHERE g = (SELECT max(g) FROM k) ORDER BY id LIMIT 5
SELECT id FROM k WHERE id IN (SELECT a FROM m WHERE b = 3) ORDER BY id
SELECT count(*) FROM k WHERE g NOT IN (SELECT x FROM h WHERE x > 5)
SELECT a, b FROM m WHERE EXISTS (SELECT 1 FROM k WHERE k.id = m.a AND k.g = m.b) ORDER BY a, b
SELECT a, (SELECT count(*) FROM k WHERE k.g = m.a), (SELECT min(id) FROM k WHERE k.g = m.a) FROM m WHERE b = 1 ORDER BY a LIMIT 25
SELECT g, count(*), min(id), max(s), sum(n) FROM k GROUP BY g ORDER BY g
SELECT DISTINCT g FROM k ORDER BY g DESC
SELECT DISTINCT ON (g) g, id, ts FROM k ORDER BY g, id DESC
SELECT c, sum(v) FROM m GROUP BY c HAVING sum(v) > 700 ORDER BY c
SELECT x, count(*) FROM h GROUP BY x ORDER BY count(*) DESC, x LIMIT 5
SELECT a FROM m UNION SELECT x FROM h ORDER BY 1 DESC LIMIT 5
SELECT x FROM h EXCEPT SELECT a FROM m ORDER BY 1
SELECT x FROM h INTERSECT SELECT a FROM m ORDER BY 1 LIMIT 4
WITH RECURSIVE w (id, d) AS (SELECT a, 0 FROM m WHERE a = 1 AND b = 1 UNION ALL SELECT m.a, w.d + 1 FROM w JOIN m ON m.a = w.id + 1 AND m.b = 1 WHERE w.d < 6) SELECT * FROM w ORDER BY d
