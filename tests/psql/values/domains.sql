-- The conditions and defaults of domains, as catalogs show them.
create domain posint as int check (value > 0);
create domain label as text not null default 'x' constraint short check (length(value) < 5) check (lower(value) <> 'zz');
\dD label
\dD posint
select conname, contype, contypid::regtype, conrelid, conkey, convalidated, conislocal, connoinherit, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true), pg_get_expr(conbin, 0)
  from pg_constraint where contypid <> 0 and contypid::regtype::text in ('label', 'posint') order by 1;
select constraint_name, domain_name, is_deferrable from information_schema.domain_constraints where domain_name in ('label', 'posint') order by 1;
alter domain posint drop constraint posint_check;
alter domain posint add constraint big check (value > 100) not valid;
\dD posint
drop domain posint, label;
