-- pg_snapshot and txid_snapshot, and what a transaction's id tells.
select pg_snapshot '12:18:14,14,16', txid_snapshot '1:1:', '10:20:10,14,15'::pg_snapshot::text;
select pg_snapshot '31:12:';
select pg_snapshot '0:1:';
select pg_snapshot '12:16:14,13';
select txid_snapshot '12:16:14 15';
select pg_snapshot 'x';
select pg_snapshot_xmin('12:20:13,15,18'), pg_snapshot_xmax('12:20:13,15,18'), txid_snapshot_xmin('12:20:13,15,18'), txid_snapshot_xmax('12:20:13,15,18');
select * from pg_snapshot_xip('12:20:13,15,18');
select txid_snapshot_xip('12:20:13,15,18');
select id, pg_visible_in_snapshot(id::text::xid8, '12:20:13,15,18') from generate_series(11, 21) id;
select id, txid_visible_in_snapshot(id, '12:20:13,15,18') from generate_series(11, 21) id;
select pg_typeof(pg_current_snapshot()), pg_typeof(txid_current_snapshot()), pg_typeof(pg_xact_status('3')), pg_typeof(pg_snapshot_xmin('1:1:'));
select pg_snapshot_xmin(null), txid_status(null), array['12:18:14'::pg_snapshot, null];
select '1:2:'::pg_snapshot = '1:2:'::pg_snapshot;
select pg_snapshot '1:2:' union select '1:2:';
create temp table kept (s pg_snapshot, t txid_snapshot);
insert into kept values ('12:20:13,15', '12:20:13,15'), (null, '1:1:');
select s, t, pg_snapshot_xip(s) from kept where t is not null;
select * from kept order by s;
-- A transaction in progress, one that has committed, and one that was rolled back.
create temp table ids (which text, id xid8);
begin;
insert into ids values ('first', pg_current_xact_id());
select pg_xact_status(id), txid_status(id::text::bigint) from ids;
select pg_visible_in_snapshot(id, pg_current_snapshot()) from ids;
commit;
select pg_xact_status(id), txid_status(id::text::bigint) from ids;
select pg_visible_in_snapshot(id, pg_current_snapshot()), id < pg_snapshot_xmin(pg_current_snapshot()) from ids;
begin;
select pg_current_xact_id() as rolled_back \gset
rollback;
select pg_xact_status(:'rolled_back'), txid_status(:rolled_back);
select pg_xact_status('0'), txid_status(0);
begin isolation level repeatable read;
select pg_current_snapshot()::text = pg_current_snapshot()::text;
select pg_current_snapshot() as early \gset
select pg_current_snapshot()::text = :'early';
commit;
