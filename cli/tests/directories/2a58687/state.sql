select md5(string_agg(coalesce(id::text, '-') || '|' || coalesce(owner::text, '-') || '|' || coalesce(code::text, '-') || '|' || coalesce(kind::text, '-') || '|' || coalesce(balance::text, '-') || '|' || coalesce(rate::text, '-') || '|' || coalesce(weight::text, '-') || '|' || coalesce(small::text, '-') || '|' || coalesce(whole::text, '-') || '|' || coalesce(active::text, '-') || '|' || coalesce(born::text, '-') || '|' || coalesce(seen::text, '-') || '|' || coalesce(at::text, '-') || '|' || coalesce(span::text, '-') || '|' || coalesce(raw::text, '-') || '|' || coalesce(tags::text, '-') || '|' || coalesce(numbers::text, '-'), ';' order by id)), count(*), sum(balance), min(span), max(at) from accounts;
select md5(string_agg(account || ':' || n || ':' || note, '|' order by account, n)), count(*) from extra.entries;
select a, length(b), md5(b), c from heap order by a nulls last;
select * from totals order by owner;
select count(*), sum(balance) from rich;
select conname, contype from pg_constraint where conrelid <> 0 order by 1;
select indexdef from pg_indexes where schemaname in ('public', 'extra') order by 1;
select rolname, rolcanlogin from pg_roles where rolname !~ '^pg_' order by 1;
select datname from pg_database order by 1;
