-- Names in texts are read as SQL reads them: what is not quoted in lower case, blanks only around them.
\set VERBOSITY terse
select 'Pg_Class'::regclass, ' pg_class '::regclass, 'pg_catalog . pg_class'::regclass, '"pg_class"'::regclass, 'pg_Catalog'::regnamespace;
select 'a b'::regclass;
select ''::regclass;
select '"a'::regclass;
select 'a.'::regclass;
select '"a" b'::regclass;
select '""'::regclass;
select 'NoSuch'::regclass;
select 'public.NoSuch'::regclass;
select 'No.Such'::regclass;
select 'a.b.c.d'::regclass;
select 'NoSuch'::regrole;
select 'a.b'::regrole;
select 'NoSuch'::regnamespace;
select 'a b'::regproc;
select '"no such"'::regcollation;
select to_regclass('a b');
select to_regrole('');
select to_regclass('No.Such'), to_regrole('nobody'), to_regclass('123'), to_regnamespace('No_Such'), to_regclass('"A ""B"""');
select nextval('NoSuch');
select pg_get_serial_sequence('NoSuch', 'i');
create table "Name T" (i serial);
select '"Name T"'::regclass, pg_get_serial_sequence('"Name T"', 'i'), to_regclass(' public . "Name T" ');
drop table "Name T";
