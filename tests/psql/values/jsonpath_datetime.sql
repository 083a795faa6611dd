-- .datetime() of jsonpath.
\set VERBOSITY terse
select jsonb_path_query('"2023-08-15"', '$.datetime()'), jsonb_path_query('"12:34:56"', '$.datetime()'), jsonb_path_query('"12:34:56 +3"', '$.datetime("HH24:MI:SS TZH")'), jsonb_path_query('"2023-08-15 12:34:56 +05:30"', '$.datetime()'), jsonb_path_query('"2023-08-15T12:34:56"', '$.datetime()');
select jsonb_path_query('"10-03-2017 12:34 -05:20"', '$.datetime("dd-mm-yyyy HH24:MI TZH:TZM")'), jsonb_path_query('"10-03-2017 12:34"', '$.datetime("dd-mm-yyyy HH24:MI").type()'), jsonb_path_query('"12:34:56.789"', '$.datetime("HH24:MI:SS.MS")'), jsonb_path_query('"2017"', '$.datetime("yyyy")');
select jsonb_path_query('["2023-08-15", "12:34:56", "12:34:56+03", "2023-08-15 12:34:56", "2023-08-15 12:34:56+03"]', '$[*].datetime().type()');
select jsonb_path_query('1', '$.datetime()');
select jsonb_path_query('[]', 'strict $.datetime()');
select jsonb_path_query('"bogus"', '$.datetime()');
select jsonb_path_query('"bogus"', '$.datetime()', '{}', true);
select jsonb_path_query('"12:34"', '$.datetime("aaa")');
select jsonb_path_query('"aaaa"', '$.datetime("HH24")');
select jsonb_path_query('"10-03-2017 12:34"', '$.datetime("dd-mm-yyyy")');
select jsonb_path_query('"10-03"', '$.datetime("dd-mm-yyyy")');
select jsonb_path_query('"10/03/2017"', '$.datetime("dd-mm-yyyy")');
select jsonb_path_query('"10|03"', '$.datetime("dd|mm")');
select '$.datetime("x").type() ? (@ == $d.datetime())'::jsonpath;
select jsonb_path_query('["2017-03-10", "2017-03-11", "2017-03-09", "12:34:56", "2017-03-10 00:00:00", "2017-03-10 12:34:56"]', '$[*].datetime() ? (@ == "10.03.2017".datetime("dd.mm.yyyy"))');
select jsonb_path_query('["2017-03-10", "2017-03-11", "2017-03-09 01:00:00"]', '$[*].datetime() ? (@ >= "10.03.2017".datetime("dd.mm.yyyy"))');
select jsonb_path_query('["2017-03-10", "2017-03-10 12:34:56+03"]', '$[*].datetime() ? (@ < "10.03.2018".datetime("dd.mm.yyyy"))');
select jsonb_path_query('["12:34:56", "12:34:56+03"]', '$[*].datetime() ? (@ < "12:35".datetime("HH24:MI"))');
set timezone = '+10';
select jsonb_path_query_tz('["2017-03-10", "2017-03-11", "2017-03-09", "12:34:56", "12:34:56+03", "2017-03-10 00:00:00", "2017-03-10 12:34:56", "2017-03-10 01:02:03+04", "2017-03-10 03:00:00+03"]', '$[*].datetime() ? (@ >= "10.03.2017".datetime("dd.mm.yyyy"))');
select jsonb_path_query_tz('["12:34:00", "12:35:00", "12:36:00", "12:34:00+00", "12:35:00+00", "12:36:00+00", "12:34:00+01", "13:35:00+01"]', '$[*].datetime() ? (@ < "12:35".datetime("HH24:MI"))');
select jsonb_path_query_tz('["2017-03-10 12:34:00", "2017-03-10 12:35:00 +1", "2017-03-10"]', '$[*].datetime() ? (@ == "10.03.2017 12:35 +1".datetime("dd.mm.yyyy HH24:MI TZH"))');
select jsonb_path_exists_tz('["2017-03-10 12:34:00+01"]', '$[*].datetime() ? (@ > "2017-03-10".datetime())'), jsonb_path_query_array_tz('["2017-03-10 12:34:00+01"]', '$[*].datetime()'), jsonb_path_query_first('["2017-03-10"]', '$[*].datetime()'), jsonb_path_match('"2017-03-10"', '$.datetime() == "2017-03-10"');
reset timezone;
