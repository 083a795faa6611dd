-- Text of clients and files in other encodings than UTF-8: this file changes its own as it goes. See tests/psql.sh.
\set VERBOSITY default
\pset format unaligned
show client_encoding; select pg_client_encoding();
create temp table t (id int primary key, a text, b char(5), c varchar(9), "n√§me" jsonb, e text[]);
insert into t values (1, '√©‚Ç¨', '√§', '√±', '{"k":"√º"}', '{"√∂","x"}');
select * from t;
set client_encoding to latin1;
show client_encoding;
select id, b, c, "n‰me", e from t;
select a from t;
insert into t values (2, '·ÈÌÛ', '¸', 'ﬂ', '{"k":"È"}', array['¯']);
select id, length(a), a, b, convert_to(a,'utf8') from t where id = 2;
select 'x' as "grˆﬂe";
select nixÈ;
select * from "gibtsnichtÈ";
copy t (id, a) from stdin;
3	È¸
4	‰\nˆ\\
\.
copy (select id, a from t where id > 1 order by 1) to stdout;
copy (select id, a from t where id > 1 order by 1) to stdout (format csv, encoding 'utf8');
copy (select a from t order by id) to stdout;
copy t (id, a) from stdin (encoding 'win1252');
5	Ä
6	Å
\.
copy t (id, a) from stdin (encoding 'win1252');
5	Ä
\.
copy t (id, a) from stdin (encoding 'koi8r', format csv);
7,"¡¬√"
\.
copy t (id, a) from stdin (encoding 'utf8');
8	√©
9	È
\.
set client_encoding to utf8;
select id, a, length(a) from t order by id;
begin; set local client_encoding to win1252; select a from t where id = 1; rollback; show client_encoding;
set client_encoding to win1252;
select a from t where id = 1;
select a from t where id = 7;
prepare p (text) as select $1 || 'È', length($1);
execute p('¸');
notify "k‰n", 'wÈrt';
show application_name;
explain (costs off) select * from t where a = 'È';
comment on table t is 't‚ble'; select obj_description('t'::regclass);
create function pg_temp.f(x text) returns text language sql as $$ select x || 'ﬂ' $$; 
select 'Å';
select 1;
set client_encoding to sql_ascii; select '√©';
set client_encoding to 'foo'; set client_encoding to mule_internal; set names 'latin9'; show client_encoding;
select '§', convert_to('§', 'utf8'), convert_from('\xa4', 'latin9') = '§';
select chr(1234);
select array[chr(1234)], 2;
select 1 as x, 'ok';
set client_encoding = default; show client_encoding;
select convert('\xe9','latin1','latin2');
select convert('\xe9','latin1','foo');
select convert('\xe9','foo','latin1');
select convert_to('√©‚Ç¨','foo');
select convert_to('√©‚Ç¨','latin1');
select convert_from('\xe9','foo');
select convert_from('\x81','win1252');
select convert('\xe9','latin1','utf8'), convert('\xe9','latin1','latin1'), convert('\xc3a9','utf8','latin9'), convert('\xe9e8','koi8r','win1251'), convert('\xe9','latin2','win1250');
select convert('\xff00','latin1','utf8');
select convert('\xff','utf8','latin1');
select convert_from('\xe28241','utf8');
select convert_from('\x6100','utf8');
select length('\xe9e9'::bytea,'latin1'), length('\xc3a9'::bytea,'utf8');
select length('\xe9e9'::bytea,'utf8');
select length('\xe9e9'::bytea,'foo');
select pg_encoding_to_char(99), pg_encoding_max_length(99), pg_char_to_encoding('foo'), pg_encoding_max_length(8), pg_char_to_encoding('ISO-8859-1'), pg_encoding_to_char(24);
select convert_to('√©','sql_ascii'), convert_from('\xc3a9','sql_ascii'), convert_from('\xe9','sql_ascii');
select name, setting, vartype, enumvals from pg_settings where name = 'client_encoding';
copy t (id, a) from stdin (encoding 'sjis2');
