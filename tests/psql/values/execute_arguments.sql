-- What the arguments of EXECUTE may be: anything but a query.
create sequence numbers_given;
prepare given(int) as select $1 as x;
execute given(nextval('numbers_given'));
execute given(nextval('numbers_given') + length(current_setting('server_encoding')));
execute given((select 1));
explain (costs off) execute given(nextval('numbers_given'));
create temp table taken as execute given(nextval('numbers_given'));
select x from taken;
execute given(1, 2);
drop table taken;
drop sequence numbers_given;
deallocate given;
