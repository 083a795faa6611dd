-- Tables for which sqlsmith makes queries, on PostgreSQL and on Clearway alike.
create table people (id int primary key, name text not null, born date, height numeric(5,2), weight float8, alive boolean default true, tags text[], note varchar(40));
create table visits (id bigint primary key, person int references people, at timestamptz, until timestamp, took interval, score float4, place char(6), data bytea, doc jsonb, token uuid);
create index visits_person on visits (person, at);
create unique index people_name on people (name, id);
create table log_lines (n smallint, line text, at time, of_day date);
create view tall as select id, name, height from people where height > 1.8;
create view per_person as select person, count(*) visits, max(at) last, sum(score) score from visits group by person;
insert into people select g, 'person ' || g, date '1950-01-01' + g * 97, 1.5 + (g % 60) / 100.0, 50 + g % 70, g % 7 <> 0, array['a' || g % 3, 'b'], case when g % 5 = 0 then null else repeat('x', g % 40) end from generate_series(1, 300) g;
insert into visits select g, 1 + g % 300, timestamptz '2020-01-01 00:00:00+00' + g * interval '1 hour', timestamp '2020-01-01' + g * interval '61 minutes', g * interval '1 second', g / 7.0, 'p' || g % 9, null, null, null from generate_series(1, 3000) g;
insert into log_lines select g % 100, md5(g::text), time '00:00' + g * interval '7 seconds', date '2024-01-01' + g % 366 from generate_series(1, 2000) g;
analyze;
