-- to_char and to_number of numbers.
\pset footer off
\pset tuples_only on
\pset format unaligned
select n, f, '[' || to_char(n, f) || ']' from (values (0::numeric), (1), (-1), (0.1), (-0.1), (12.5), (-12.5), (485), (-485), (1234.567), (-1234.567), (0.00001), (99999.99), (1e10), ('NaN'), ('Infinity'), ('-Infinity')) v (n),
  unnest(array['9', '999', '9999', '0999', '9990', '9.9', '0.9', '9.0', '99.99', 'FM99.99', 'FM9.9', 'FM0.00', 'FM90.99', '999D99', '9G999D99', '9,999.99', '99,99,99', '0,000.0', 'S999', '999S', 'S9.99', '9.99S', '999MI', 'MI999', '99.9MI', '999PL', 'PL999', 'SG999', '999SG', '99SG9', '999PR', '99.9PR', 'FM999PR', 'FM999MI', 'FM999PL', 'FM9G999', 'L999', '999L', '999th', '999TH', 'FM999th', '9.9th', '99V99', 'V9', '9V9S', '9.99EEEE', '9EEEE', '99.999eeee', 'B999', 'B9.9', '"a 9"999', '9\9', '"x\"y"9', '9 9 9', '9'::text]) f (f) where not (f ilike '%th' and n in ('NaN', 'Infinity', '-Infinity')) order by n, f collate "C";
select n, f, to_char(n, f) from (values (1::numeric), (1999.4), (0), (4000), (-1)) v (n), unnest(array['RN', 'FMRN', 'rn', '"x"RN']) f (f) order by n, f collate "C";
select n, f, '[' || to_char(n, f) || ']' from (values (0::int4), (1), (-1), (12), (101), (-485), (3999), (4000), (21474836)) v (n),
  unnest(array['9', '999', '99999', '9.9', '999.99', 'FM999.99', '0009', 'S99999', '99999PR', '9999th', '9V9', '9.99EEEE', '9EEEE', 'RN', 'FMrn', 'SG9,999', '9,999MI']) f (f) order by n, f collate "C";
select n, f, '[' || to_char(n, f) || ']' from (values (0::int8), (-12), (123456789012345678)) v (n),
  unnest(array['9', '999999999999999999999', '9.9', 'FM999,999,999,999,999,999,999', '9.99EEEE', '9V9']) f (f) order by n, f collate "C";
select n, f, '[' || to_char(n, f) || ']' from (values (0::float8), (0.5), (-0.5), (12.345), (-485.8), (1234567890.12345), (1e20), ('NaN'), ('Infinity'), ('-Infinity')) v (n),
  unnest(array['9', '999', '9.9', '0.99', '99999.999999999999', 'FM999.99', 'S999.9', '999.9PR', '9.99EEEE', '9V99', '9999999999.9999999999']) f (f) order by n, f collate "C";
select n, f, '[' || to_char(n, f) || ']' from (values (0::float4), (0.5), (-485.8), (1234567.8), ('NaN')) v (n),
  unnest(array['9', '999.9', '99999.9999', '9999999.99', 'FM999.99', '9.99EEEE', 'RN']) f (f) where not (f = 'RN' and n::text = 'NaN') order by n, f collate "C";
select to_char(2::int2, '99'), '[' || to_char(5, '') || ']', to_char(null::int, '9') is null, to_char(1, null) is null;
select to_char(1, 'S9S');
select to_char(1, '9.9.9');
select to_char(1, '9V9.9');
select to_char(1, '9.9V');
select to_char(1, 'S9PR');
select to_char(1, 'PR9');
select to_char(1, 'PR0');
select to_char(1, 'MI9S');
select to_char(1, 'S9MI');
select to_char(1, 'S9PL');
select to_char(1, 'S9SG');
select to_char(1, '9MIPR');
select to_char(1, '9EEEE9');
select to_char(1, '9EEEEEEEE');
select to_char(1, 'S9EEEE');
select to_char(1, 'FM9EEEE');
select to_char('NaN'::numeric, 'RN');
select to_char(1e10::numeric, 'RN');
select to_char(3000000000::int8, 'RN');
-- to_number
select t, f, to_number(t, f) from (values ('-34,338,492', '99G999G999'), ('-34,338,492.654,878', '99G999G999D999G999'), ('<564646.654564>', '999999.999999PR'), ('0.00001-', '9.999999S'), ('5.01-', 'FM9.999999S'), ('5.01-', 'FM9.999999MI'),
  ('5 4 4 4 4 8 . 7 8', '9 9 9 9 9 9 . 9 9'), ('.01', 'FM9.99'), ('.0', '99999999.99999999'), ('0', '99.99'), ('.-01', 'S99.99'), ('.01-', '99.99S'), (' . 0 1-', ' 9 9 . 9 9 S'), ('34,50', '999,99'), ('123,000', '999G'), ('123456', '999G999'),
  ('$1234.56', 'L9,999.99'), ('$1234.56', 'L99,999.99'), ('$1,234.56', 'L9,999.99'), ('1234.56', 'L99,999.99'), ('1,234.56', 'L99,999.99'), ('42nd', '99th'), ('123456', '99999V99'), ('123', '9V99'), ('  12', '9999'), ('+5', '9'), ('-5', '9'), ('5-', '9MI'), ('5+', '9PL'), ('-5', 'MI9'), ('-5', 'SG9'),
  ('1 2', '99'), ('12a', '999'), ('a12', '"a"99'), ('é12', '"é"99'), ('12', '9'), ('12.345', '99.9'), ('1,234', 'FM9,999'), ('1,2,3', '9,9,9'), ('12-', '99S'), ('0042', '9999'), ('1234', '9'), ('12', '99.99'), ('1.', '9.9'), ('5', 'B9'), ('€5', 'L9'), ('5.5', '9D9'), ('1x2', '9"y"9')) v (t, f);
select to_number('', '') is null, to_number('5', '') is null, to_number(null, '9') is null;
select to_number('', '9');
select to_number('abc', '999');
select to_number('-', '9');
select to_number('1', 'RN');
select to_number('1', '9EEEE');
select to_number('12', '9.9.9');
