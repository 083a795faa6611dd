-- what is wrong with a body, and where
DO $$ BEGIN RAISE NOTICE 'a % b', 1; RAISE EXCEPTION 'boo %', 2 USING HINT='h', ERRCODE='22012'; END $$;
DO $$ declare x int; BEGIN x := 1/0; END $$;
DO $$ declare x int; y int:=0; BEGIN x := 1/y; END $$;
DO $$ declare x int; BEGIN x := zz + 1; END $$;
DO $$ declare x int; BEGIN 
 if x = zz then null; end if; END $$;
DO $$ declare x int; BEGIN 
 select 1/0 into x; END $$;
DO $$ declare x int; BEGIN 
 select * from nope into x; END $$;
DO $$ declare x int; BEGIN 
 foo bar; END $$;
DO $$ declare x int; BEGIN 
 x := 1 + ; END $$;
DO $$ declare x int; BEGIN 
 y := 1; END $$;
DO $$ declare x foo; BEGIN 
 null; END $$;
DO $$ declare x int; BEGIN 
 select 1; END $$;
DO $$ declare x int := 'a'; BEGIN 
 select 1; END $$;
DO $$ declare x int not null; BEGIN 
 null; END $$;
DO $$ declare x int not null := 1; BEGIN 
 x := null; END $$;
DO $$ declare x constant int := 1; BEGIN 
 x := null; END $$;
DO $$ declare r record; BEGIN 
 r.a := 1; END $$;
DO $$ declare r record; BEGIN 
 raise notice '%', r.a; END $$;
DO $$ declare r record; BEGIN select 1 as b into r;
 raise notice '%', r.a; END $$;
DO $$ declare b int; BEGIN 
 perform b from (select 1 as b) s; END $$;
DO $$ BEGIN execute 'select 1/0'; END $$;
DO $$ BEGIN for i in 1..2 loop raise notice '%', i; end loop; 
exit; END $$;
DO $$ BEGIN raise 'x'; exception when others then raise notice '% %', sqlstate, sqlerrm; raise; END $$;
DO $$ BEGIN raise 'x %'; END $$;
DO $$ BEGIN raise unique_violation; END $$;
DO $$ BEGIN raise sqlstate '12345'; END $$;
DO $$ BEGIN assert false, 'hmm'; END $$;
DO $$ BEGIN assert false; END $$;
DO $$ BEGIN case 3 when 1 then null; end case; END $$;
DO $$ BEGIN foreach x in array array[1] loop end loop; END $$;
DO $$ BEGIN return 1; END $$;
DO $$ BEGIN begin; END $$;
DO $$ BEGIN exception when foo then null; END $$;
DO $$ declare x int; begin select 1 into strict x where false; END $$;
DO $$ declare x int; begin select generate_series(1,2) into strict x; END $$;
DO $$ declare x int; x int; begin  END $$;
DO $$ begin perform 1/0; end $$;
DO $$ declare x int; begin if 1 then null; end if; end $$;
DO $$ begin if 'foo' then null; end if; end $$;
DO language plpgsql 'begin null; end';
DO language sql 'begin null; end';
DO language nothing 'begin null; end';
DO 'foo';
DO $$ begin raise notice '%', $1; end $$;
DO $$ begin for i in 1..null loop null; end loop; end $$;
DO $$ begin for i in 1..2 by 0 loop null; end loop; end $$;
DO $$ declare x int := 1; begin execute null; end $$;
DO $$ begin raise; end $$;
DO $$ begin execute 'selec 1'; end $$;
DO $$ begin if true then null; end $$;
DO $$ declare x int; begin select 1, 2 into x; raise notice '%', x; select 1 into x, y; end $$;
DO $$ <<a>> begin null; end b $$;
DO $$ begin exit foo; end $$;
DO $$ begin null end $$;
DO $$ declare x int; begin x := (select 1 union select 2); end $$;
DO $$ begin insert into pg_nothing values (1); end $$;
DO $$ begin raise exception using message = 'm', detail = 'd', errcode = 'unique_violation', table = 't', column = 'c'; end $$;
DO $$ begin raise exception 'x' using message = 'm'; end $$;
