-- t.f and (t).f call f of the whole row where t has no column f.
\set VERBOSITY terse
create table row_t (id int, b text);
insert into row_t values (1, 'x'), (2, 'y');
create function row_text(row_t) returns text language sql as $$ select $1.b || '!' $$;
create function row_ids(row_t) returns setof int language plpgsql as $$ begin return next $1.id; return next 10; end $$;
create function row_int(int) returns int language sql as 'select $1';
create function id(row_t) returns int language sql as 'select 99';
select row_t.row_text, (row_t).row_text, row_text(row_t), row_t.id, public.row_t.row_text from row_t order by row_t.row_text desc;
select x.row_ids, x.id from row_t x;
select x.row_text, count(*) from row_t x where x.row_text = 'x!' group by x.row_text having count(*) > 0;
select l.g from row_t s, lateral (select s.row_text as g) l where l.g = s.row_text;
create view row_v as select row_t.row_text, id from row_t;
select * from row_v;
update row_t set b = row_t.row_text returning row_t.row_text, *;
select row_t.row_int from row_t;
select row_t.nothing from row_t;
select row_text from row_t;
drop view row_v;
drop function row_text, row_ids, row_int, id(row_t);
drop table row_t;
