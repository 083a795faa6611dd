-- bytea_output, signs and digits of to_timestamp, and the stars of system views.
set bytea_output to escape;
select '\xdeadbeef00417e7f5c20'::bytea, 'a\\b'::bytea, array['\x00'::bytea], row('\x5c'::bytea);
reset bytea_output;
select '\xdeadbeef'::bytea;
set timezone to 'UTC';
select to_timestamp('2011-12-18 11:38 -05', 'YYYY-MM-DD HH12:MI TZH'), to_timestamp('2011-12-18 11:38 -05:20', 'YYYY-MM-DD HH12:MI TZH:TZM'), to_timestamp('2011-12-18 11:38 +01:30', 'YYYY-MM-DD HH12:MI TZH:TZM'), to_timestamp('2011-12-18 11:38 20', 'YYYY-MM-DD HH12:MI TZM');
select i, to_timestamp('2018-11-02 12:34:56.123456', 'YYYY-MM-DD HH24:MI:SS.FF' || i) from generate_series(6, 6) i;
select i, to_timestamp('2018-11-02 12:34:56.12', 'YYYY-MM-DD HH24:MI:SS.FF' || i) from generate_series(1, 6) i;
select l.* from pg_language l, pg_am a where false;
select n.* from pg_namespace n join pg_class c on c.relnamespace = n.oid where false;
