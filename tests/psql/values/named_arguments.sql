-- Functions of the system are called with arguments by name, in FROM, too; what is left out has its default.
select make_interval(years => 1, days => -3, secs => 4.5), make_interval(1, hours => 2), make_interval(mins := 90);
select jsonb_set(target => 1);
select jsonb_set(jsonb_in => '{"a":1}', path => '{b}', replacement => '2'), jsonb_set('{"a":1}', '{b}', replacement => '2', create_if_missing => false);
select jsonb_insert('[1,2]', insert_after => true, replacement => '9', path => '{0}');
select * from jsonb_path_query(path => '$.a[*]', target => '{"a":[1,2]}');
select jsonb_path_query_array('[1,5,9]', '$[*] ? (@ > $min)', vars => '{"min":4}');
select x + make_interval(days => x::int) as y from (values (1)) v(x);
select timestamp '2024-01-31' + make_interval(months => n) from generate_series(1, 2) n;
select pg_catalog.make_interval(weeks => 2);
select make_interval(fortnights => 1);
select make_interval(1, years => 1);
select upper(arg => 'x');
create view named_interval as select make_interval(days => 3) as i;
select * from named_interval;
