-- By which plan prepared statements run, as pg_prepared_statements counts it.
create table chosen (id int primary key, status text, note text);
insert into chosen select i, case when i % 2000 = 0 then 'rare' else 'common' end, 'note ' || i from generate_series(1, 20000) i;
create index chosen_status on chosen (status);
create index chosen_rare on chosen (note) where status = 'rare';
analyze chosen;
prepare by_status (text) as select count(*), min(id) from chosen where status = $1;
prepare by_key (int) as select note from chosen where id = $1;
prepare maybe (int, text) as select count(*) from chosen where ($1 is null or id < $1) and ($2 is null or status = $2);
prepare whole as select count(*) from chosen;
select name, generic_plans, custom_plans from pg_prepared_statements order by name;
execute by_status('rare');
execute by_status('common');
execute by_status(null);
select name, generic_plans, custom_plans from pg_prepared_statements where name = 'by_status';
execute maybe(null, null);
execute maybe(100, null);
execute maybe(null, 'rare');
execute maybe(5000, 'rare');
execute whole;
execute whole;
select name, generic_plans, custom_plans from pg_prepared_statements where name in ('maybe', 'whole') order by name;
set plan_cache_mode = force_generic_plan;
execute by_status('rare');
execute maybe(5000, 'rare');
select name, generic_plans, custom_plans from pg_prepared_statements where name in ('by_status', 'maybe') order by name;
set plan_cache_mode = force_custom_plan;
execute by_status('rare');
execute maybe(5000, 'rare');
execute maybe(5000, 'common');
execute whole;
select name, generic_plans, custom_plans from pg_prepared_statements where name in ('by_status', 'maybe', 'whole') order by name;
reset plan_cache_mode;
-- A plan for the values at hand is not kept: the next values have their own.
execute by_status('rare');
execute by_status('common');
execute by_status('rare');
execute by_status('none');
execute by_status('common');
-- What is wrong with a value is said as before.
prepare divided (int) as select id from chosen where id > 19998 and id / $1 > 0 order by id;
execute divided(1);
execute divided(0);
execute divided(2);
-- Changes.
prepare changing (text, text) as update chosen set note = $2 where status = $1;
execute changing('rare', 'few');
execute changing('none', 'no');
execute changing('rare', null);
select count(*) from chosen where note is null;
prepare adding (int, text) as insert into chosen select $1 + i, $2 from generate_series(1, 3) i;
execute adding(30000, 'more');
execute adding(40000, null);
select count(*), count(status) from chosen where id > 30000;
-- After a change of the table.
alter table chosen add column more int default 7;
execute by_status('rare');
prepare star (text) as select * from chosen where status = $1 and id < 2001;
execute star('rare');
alter table chosen drop column note;
execute star('rare');
deallocate star;
-- Functions.
create function by_plan(what text) returns bigint language plpgsql as $$
declare n bigint; low int := 0;
begin
  select count(*) into n from chosen where status = what and id > low;
  return n;
end $$;
select by_plan(case when i % 2 = 0 then 'rare' else 'common' end) from generate_series(1, 14) i;
create function by_sql(what text, low int) returns bigint language sql volatile as 'select count(*) from chosen where status = what and id > $2';
select by_sql(case when i % 2 = 0 then 'rare' else 'common' end, i) from generate_series(1, 14) i;
create function by_execute(what text) returns bigint language plpgsql as $$
declare n bigint;
begin
  execute 'select count(*) from chosen where status = $1' into n using what;
  return n;
end $$;
select by_execute('rare'), by_execute(null), by_execute('common');
deallocate all;
drop function by_plan(text), by_sql(text, int), by_execute(text);
drop table chosen;
