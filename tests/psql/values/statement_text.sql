-- What current_query() shows: the text that psql has sent.
select current_query();
select current_query() as "text", 1   as  one;
do $$ begin raise notice '%', current_query(); end $$;
select current_query() from (values (1), (2)) v(n) where n > 1;
