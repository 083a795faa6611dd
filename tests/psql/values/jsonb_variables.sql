-- Assignments to parts of jsonb variables in PL/pgSQL.
\set VERBOSITY terse
do $$ declare j jsonb := '{"a": 1, "l": [1, 2]}'; begin j['b'] := '2'; j['l'][1] := '"x"'; j['n']['m'] := 'true'; j['l'][5] := to_jsonb(7); raise notice '%', j; end $$;
do $$ declare j jsonb; begin j['b'] := '2'; raise notice '%', j; j := null; j[1] := '3'; raise notice '%', j; j[-1] := 'null'; raise notice '%', j; end $$;
do $$ declare j jsonb := '{}'; k text := 'key'; n int := 2; begin j[k] := to_jsonb(k); j['arr'][n] := null; j['i'] := 5; raise notice '%', j; end $$;
create table variable_t (j jsonb, a int[]);
do $$ declare r variable_t; s record; begin r.j['x'] := '1'; r.j['y']['z'] := '2'; r.a[2] := 5; raise notice '%', r; select '{"a": 1}'::jsonb as j into s; s.j['b'] := '2'; raise notice '%', s; end $$;
drop table variable_t;
\set VERBOSITY sqlstate
do $$ declare j jsonb; begin j['q'] := 'x'; end $$;
do $$ declare j jsonb; begin j[null] := '5'; end $$;
do $$ declare j jsonb := '[1]'; begin j[1:2] := '5'; end $$;
do $$ declare j jsonb := '{}'; begin j[1.5] := '1'; end $$;
do $$ declare j jsonb := '[1]'; begin j['a'] := '5'; end $$;
do $$ declare j jsonb := '1'; begin j['a'] := '5'; end $$;
do $$ declare a int[]; begin a[null] := 5; end $$;
