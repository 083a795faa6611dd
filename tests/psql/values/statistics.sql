-- How tables, indexes and databases are used, as PostgreSQL's views count it. Conditions stand so that both have the same plan.
SET enable_seqscan = off;
CREATE TABLE st_t (id int PRIMARY KEY, v int, w text);
CREATE TABLE st_u (a int, b int);
INSERT INTO st_t SELECT g, g % 10, 'w' || g FROM generate_series(1, 1000) g;
INSERT INTO st_u SELECT g, g FROM generate_series(1, 50) g;
CREATE INDEX st_v ON st_t (v);
ANALYZE st_t;
SELECT pg_stat_force_next_flush();
SELECT pg_stat_reset_single_table_counters('st_u'::regclass);
SELECT count(*) FROM st_u;
SELECT count(*) FROM st_u WHERE b > 10;
SELECT w FROM st_t WHERE id = 7;
SELECT w FROM st_t WHERE id = 5000;
UPDATE st_t SET w = 'new' WHERE id = 8;
UPDATE st_t SET v = 77 WHERE id = 9;
DELETE FROM st_t WHERE id = 10;
BEGIN;
INSERT INTO st_u VALUES (51, 51), (52, 52);
DELETE FROM st_u WHERE a = 1;
SELECT relname, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_xact_user_tables WHERE relname = 'st_u';
ROLLBACK;
BEGIN;
INSERT INTO st_u VALUES (53, 53);
COMMIT;
SELECT pg_stat_force_next_flush();
SELECT relname, seq_scan, seq_tup_read, idx_scan, idx_tup_fetch, n_tup_ins, n_tup_upd, n_tup_del
  FROM pg_stat_user_tables WHERE relname = 'st_u';
SELECT relname, idx_scan, idx_tup_fetch, n_tup_ins, n_tup_upd, n_tup_del, n_mod_since_analyze > 0 AS modified,
    last_analyze IS NOT NULL AS analyzed, analyze_count, last_vacuum, vacuum_count
  FROM pg_stat_user_tables WHERE relname = 'st_t';
SELECT relname, indexrelname, idx_scan, idx_tup_read FROM pg_stat_user_indexes WHERE relname LIKE 'st\__' ORDER BY 1, 2;
SELECT relname, heap_blks_read + heap_blks_hit > 0 AS heap
  FROM pg_statio_user_tables WHERE relname = 'st_t';
SELECT numbackends > 0 AS connected, xact_commit > 10 AS commits, xact_rollback > 0 AS rollbacks, tup_inserted >= 1053 AS inserted,
    tup_updated >= 2 AS updated, tup_deleted >= 1 AS deleted, conflicts, deadlocks, session_time > 0 AS session_time, sessions > 0 AS sessions
  FROM pg_stat_database WHERE datname = current_database();
SELECT count(*) FROM pg_stat_database WHERE datid = 0 AND datname IS NULL;
PREPARE st_p (int, text) AS SELECT $1, $2;
SELECT name, statement, parameter_types, from_sql FROM pg_prepared_statements;
DEALLOCATE st_p;
SELECT count(*) FROM pg_prepared_statements;
SELECT ssl, version, cipher, bits FROM pg_stat_ssl WHERE pid = pg_backend_pid();
SELECT count(*) FROM pg_stat_replication;
SELECT pg_stat_reset_shared('nonsense');
SELECT wal_bytes > 0 AS bytes, wal_write > 0 AS writes FROM pg_stat_wal;
CHECKPOINT;
SELECT checkpoints_req > 0 AS requested, buffers_checkpoint > 0 AS written, stats_reset < now() AS since FROM pg_stat_bgwriter;
SELECT pg_stat_reset_shared('bgwriter');
SELECT checkpoints_req, buffers_checkpoint FROM pg_stat_bgwriter;
SELECT pg_stat_reset();
SELECT seq_scan, n_tup_ins FROM pg_stat_user_tables WHERE relname = 'st_u';
SELECT archived_count, last_archived_wal, failed_count FROM pg_stat_archiver;
CREATE ROLE st_plain;
SET ROLE st_plain;
SELECT pg_stat_reset();
RESET ROLE;
DROP ROLE st_plain;
DROP TABLE st_t, st_u;
