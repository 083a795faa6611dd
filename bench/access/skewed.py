"""Films, people, companies and keywords in the shape of the join order benchmark (Leis et al., "How Good Are Query Optimizers, Really?", VLDB 2015):
some rows have many others that refer to them, most have few, and the columns of a table depend on each other."""

# Numbers without chance, so that both servers have the same rows: `spread` has no order, `skewed` prefers small ones.
SETUP = """
create function spread(n bigint, seed bigint) returns double precision language sql immutable as 'select ((n * 2654435761 + seed * 40503) % 1000003 + 1000003) % 1000003 / 1000003.0';
create function skewed(n bigint, seed bigint, most bigint) returns int language sql immutable as 'select 1 + floor(most * power(spread(n, seed), 1.6))::int';
create table kind_type (id int primary key, kind text not null);
insert into kind_type values (1, 'movie'), (2, 'tv series'), (3, 'tv movie'), (4, 'video movie'), (5, 'tv mini series'), (6, 'video game'), (7, 'episode');
create table info_type (id int primary key, info text not null);
insert into info_type select i, case i when 1 then 'genres' when 2 then 'rating' when 3 then 'votes' when 4 then 'countries' when 5 then 'release dates' else 'type ' || i end from generate_series(1, 110) i;
create table company_type (id int primary key, kind text not null);
insert into company_type values (1, 'production companies'), (2, 'distributors'), (3, 'special effects companies'), (4, 'miscellaneous companies');
create table keyword (id int primary key, keyword text not null);
insert into keyword select i, 'keyword-' || md5(i::text) from generate_series(1, {rows} / 50) i;
create table company_name (id int primary key, name text not null, country_code text);
insert into company_name select i, 'company ' || md5(i::text), case when i % 11 = 0 then null else '[' || (array['us','us','us','gb','de','fr','jp','in'])[1 + i % 8] || ']' end from generate_series(1, {rows} / 100) i;
create table name (id int primary key, name text not null, gender text);
insert into name select i, chr(65 + (i % 26)) || md5(i::text), case when spread(i, 3) < 0.6 then 'm' when spread(i, 3) < 0.9 then 'f' end from generate_series(1, {rows} / 4) i;
create table title (id int primary key, title text not null, kind_id int not null references kind_type, production_year int);
insert into title select i, 'title ' || md5(i::text), case when i % 3 = 0 then 7 else skewed(i, 5, 6) end, case when i % 20 <> 0 then 2020 - skewed(i, 7, 120) end from generate_series(1, {rows} / 5) i;
create table cast_info (id int primary key, person_id int not null, movie_id int not null, role_id int not null, note text);
insert into cast_info select i, skewed(i, 11, {rows} / 4), skewed(i, 13, {rows} / 5), 1 + i % 11, case when i % 4 = 0 then '(voice)' when i % 9 = 0 then '(producer)' end from generate_series(1, {rows}) i;
create table movie_info (id int primary key, movie_id int not null, info_type_id int not null, info text not null);
insert into movie_info select i, skewed(i, 17, {rows} / 5), skewed(i, 19, 110), case skewed(i, 19, 110) when 1 then (array['Drama','Comedy','Horror','Action'])[1 + i % 4] when 4 then (array['USA','Germany','Sweden'])[1 + i % 3] else 'info ' || i % 1000 end from generate_series(1, {rows} / 2) i;
create table movie_info_idx (id int primary key, movie_id int not null, info_type_id int not null, info text not null);
insert into movie_info_idx select i, 1 + i % ({rows} / 5), 2 + i % 2, (i % 100 / 10.0)::text from generate_series(1, {rows} / 5) i;
create table movie_keyword (id int primary key, movie_id int not null, keyword_id int not null);
insert into movie_keyword select i, skewed(i, 23, {rows} / 5), skewed(i, 29, {rows} / 50) from generate_series(1, {rows} / 3) i;
create table movie_companies (id int primary key, movie_id int not null, company_id int not null, company_type_id int not null, note text);
insert into movie_companies select i, skewed(i, 31, {rows} / 5), skewed(i, 37, {rows} / 100), 1 + i % 2, case when i % 3 = 0 then '(' || 2000 + i % 15 || ') (USA)' when i % 5 = 0 then '(presents)' end from generate_series(1, {rows} / 4) i;
create index on cast_info (movie_id);
create index on cast_info (person_id);
create index on movie_info (movie_id);
create index on movie_info (info_type_id);
create index on movie_info_idx (movie_id);
create index on movie_keyword (movie_id);
create index on movie_keyword (keyword_id);
create index on movie_companies (movie_id);
create index on movie_companies (company_id);
create index on title (kind_id);
"""

TABLES = "kind_type info_type company_type keyword company_name name title cast_info movie_info movie_info_idx movie_keyword movie_companies".split()

FROM = {
    "companies and ratings": "select min(mc.note), min(t.title), min(t.production_year) from company_type ct, info_type it, movie_companies mc, movie_info_idx mi, title t "
    "where ct.kind = 'production companies' and it.info = 'rating' and mc.note not like '%(presents)%' and mc.note like '%(USA)%' and ct.id = mc.company_type_id and t.id = mc.movie_id and t.id = mi.movie_id "
    "and mc.movie_id = mi.movie_id and it.id = mi.info_type_id and t.production_year > {year}",
    "companies of a country by keyword": "select min(t.title) from company_name cn, keyword k, movie_companies mc, movie_keyword mk, title t where cn.country_code = '[{country}]' "
    "and k.keyword = 'keyword-' || md5('{keyword}') and cn.id = mc.company_id and mc.movie_id = t.id and t.id = mk.movie_id and mk.keyword_id = k.id and mc.movie_id = mk.movie_id",
    "a rare keyword": "select min(t.title) from keyword k, movie_info mi, movie_keyword mk, title t where k.keyword like 'keyword-{prefix}%' and mi.info in ('Sweden', 'Germany', 'Drama') and t.production_year > {year} "
    "and t.id = mi.movie_id and t.id = mk.movie_id and mk.movie_id = mi.movie_id and k.id = mk.keyword_id",
    "a common keyword": "select min(t.title), count(*) from keyword k, movie_info_idx mi, movie_keyword mk, title t, info_type it where k.id < 4 and it.info = 'rating' and mi.info > '{rating}' and t.production_year > {year} "
    "and t.id = mi.movie_id and t.id = mk.movie_id and mk.movie_id = mi.movie_id and k.id = mk.keyword_id and it.id = mi.info_type_id",
    "people of films with a keyword": "select min(k.keyword), min(n.name), min(t.title) from cast_info ci, keyword k, movie_keyword mk, name n, title t where k.keyword = 'keyword-' || md5('{keyword}') and n.name like '{letter}%' "
    "and t.production_year > {year} and k.id = mk.keyword_id and t.id = mk.movie_id and t.id = ci.movie_id and ci.movie_id = mk.movie_id and n.id = ci.person_id",
    "voices of a company": "select min(n.name), min(t.title) from cast_info ci, company_name cn, movie_companies mc, name n, title t where ci.note = '(voice)' and cn.country_code = '[{country}]' and mc.note like '%(200%' "
    "and n.gender = 'f' and n.name like '{letter}%' and ci.movie_id = mc.movie_id and mc.company_id = cn.id and n.id = ci.person_id and t.id = ci.movie_id and t.production_year between {year} and 2010",
    "producers without a company's country": "select count(*), min(n.name) from cast_info ci, company_name cn, movie_companies mc, name n, title t where ci.note = '(producer)' and cn.country_code is null and mc.company_id = cn.id "
    "and n.id = ci.person_id and t.id = ci.movie_id and t.id = mc.movie_id and ci.movie_id = mc.movie_id and t.production_year > {year}",
    "ratings of a kind": "select min(mi.info), min(t.title) from company_name cn, company_type ct, info_type it, movie_companies mc, movie_info_idx mi, title t, kind_type kt where cn.country_code = '[{country}]' and ct.kind = 'distributors' "
    "and it.info = 'votes' and kt.kind = 'tv movie' and kt.id = t.kind_id and mi.movie_id = t.id and it.id = mi.info_type_id and mc.movie_id = t.id and cn.id = mc.company_id and ct.id = mc.company_type_id and mi.movie_id = mc.movie_id",
    "episodes of a country, seven tables": "select min(n.name), min(t.title) from cast_info ci, company_name cn, keyword k, movie_companies mc, movie_keyword mk, name n, title t where cn.country_code = '[{country}]' "
    "and k.keyword = 'keyword-' || md5('{keyword}') and n.id = ci.person_id and ci.movie_id = t.id and t.id = mk.movie_id and mk.keyword_id = k.id and t.id = mc.movie_id and mc.company_id = cn.id "
    "and ci.movie_id = mc.movie_id and ci.movie_id = mk.movie_id and mc.movie_id = mk.movie_id and t.production_year > {year}",
    "genres, votes and keywords, eight tables": "select min(mi.info), min(mx.info), min(n.name), min(t.title) from cast_info ci, info_type i1, info_type i2, keyword k, movie_info mi, movie_info_idx mx, movie_keyword mk, name n, title t "
    "where ci.note in ('(voice)', '(producer)') and i1.info = 'genres' and i2.info = 'votes' and k.id between {keyword} and {keyword} + 5 and mi.info = 'Horror' and n.gender = 'm' and t.id = mi.movie_id and t.id = mx.movie_id "
    "and t.id = ci.movie_id and t.id = mk.movie_id and ci.movie_id = mi.movie_id and ci.movie_id = mx.movie_id and ci.movie_id = mk.movie_id and mi.movie_id = mx.movie_id and mi.movie_id = mk.movie_id "
    "and mx.movie_id = mk.movie_id and n.id = ci.person_id and i1.id = mi.info_type_id and i2.id = mx.info_type_id and k.id = mk.keyword_id and t.production_year > {year}",
    "films that no company has": "select count(*) from title t, kind_type kt where kt.id = t.kind_id and kt.kind = 'movie' and t.production_year > {year} and not exists (select from movie_companies mc where mc.movie_id = t.id) "
    "and exists (select from movie_keyword mk where mk.movie_id = t.id)",
    "films of the same people": "select count(*) from title a, cast_info x, cast_info y, title b where a.id = {film} and x.movie_id = a.id and y.person_id = x.person_id and b.id = y.movie_id and b.production_year = a.production_year",
    "companies by the number of films": "select cn.country_code, count(distinct t.id) from company_name cn, movie_companies mc, title t, movie_info_idx mi where cn.id = mc.company_id and mc.movie_id = t.id and mi.movie_id = t.id "
    "and mi.info > '{rating}' and t.production_year > {year} group by 1 order by 2 desc, 1 limit 5",
    "keywords of well rated films": "select k.keyword, count(*) from movie_keyword mk join keyword k on k.id = mk.keyword_id where mk.movie_id in (select mi.movie_id from movie_info_idx mi join info_type it on it.id = mi.info_type_id "
    "where it.info = 'rating' and mi.info > '9.{digit}') group by 1 order by 2 desc, 1 limit 10",
}


def accesses(rows):
    """(chapter, name, how often in a round, a function of a source of random numbers that gives the statement)."""
    def filled(text):
        return lambda r: text.format(year=r.choice([1950, 1990, 2005, 2015]), country=r.choice(["us", "gb", "jp"]), keyword=r.choice([1, 2, 7, 30, 200, rows // 60]), prefix="".join(r.choice("0123456789abcdef") for _ in range(2)),
                                     rating=r.choice(["5.0", "8.5", "9.7"]), letter=r.choice("ABX"), film=r.choice([1, 5, 40, rows // 10]), digit=r.choice("258"))
    return [("Joins of skewed tables", name, 6, filled(text)) for name, text in FROM.items()]
