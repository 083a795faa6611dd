-- Bit strings: literals, lengths, operators, functions, casts, columns.
\set VERBOSITY terse
SELECT B'101', X'1fA', B'', '101'::bit(3), 'x1F'::varbit, 'b01'::varbit, '1'::bit;
SELECT B'102';
SELECT X'1G';
SELECT '12'::bit(2);
SELECT '101'::bit(2), B'101'::bit(5), B'101'::varbit(2), '1011'::varbit;
SELECT '10'::bit(0);
SELECT pg_typeof(B'1'), pg_typeof(B'1' || B'0'), B'101'::text, 'bit varying(7)'::regtype, format_type(1560, 3), format_type(1562, 9);
CREATE TABLE bits (id int PRIMARY KEY, a bit(4), b varbit(6), c bit, d bit(4)[]);
INSERT INTO bits VALUES (1, B'1010', B'1', B'1', '{1010,0101}'), (2, '0001', '111000', '0', NULL), (3, NULL, '', NULL, '{}');
INSERT INTO bits (id, a) VALUES (4, B'101');
INSERT INTO bits (id, b) VALUES (4, B'1010101');
INSERT INTO bits (id, a) VALUES (4, B'10100');
SELECT * FROM bits ORDER BY id;
SELECT id FROM bits WHERE a = B'1010';
SELECT a, count(*) FROM bits GROUP BY a ORDER BY a DESC;
SELECT id, b FROM bits ORDER BY b;
SELECT a & B'1100', a | B'0001', a # B'1111', ~a, a << 1, a >> 2, a << 9, a >> -1, a || b FROM bits WHERE id < 3 ORDER BY id;
SELECT B'101' & B'1';
SELECT B'1' | B'11';
SELECT B'1' # B'11';
SELECT length(B'10101'), bit_length(B'1'), octet_length(B'101010101'), bit_count(B'10111');
SELECT substring(B'110010' from 2 for 3), substring(B'110010' from 3), substring(B'110010' from -1 for 4), substring(B'110010' from 9), substring(B'110010', 2, 0);
SELECT substring(B'110010' from 2 for -1);
SELECT position(B'101' in B'0010110'), position(B'' in B'1'), position(B'11' in B'0101'), position(B'' in B'');
SELECT overlay(B'0101011100' placing B'001' from 2 for 3), overlay(B'0101011100' placing B'1' from 3);
SELECT get_bit(B'0110', 1), set_bit(B'0110', 0, 1), get_bit(B'01', 0);
SELECT get_bit(B'0110', 4);
SELECT set_bit(B'0110', 1, 2);
SELECT 44::bit(10), 44::bit(3), (-1)::bit(5), (-3)::bigint::bit(70), 5::bit, B'101100'::int, B'11111111111111111111111111111111'::int, B'1'::bigint;
SELECT (B'1' || 5::bit(32))::int;
SELECT B'1' < B'10', B'10' < B'11', B'01' > B'1', B'1'::varbit = B'1', B'101' <> B'1010', B'0' IN (B'1', B'0');
SELECT array_agg(a ORDER BY id) FROM bits;
COPY (SELECT * FROM bits ORDER BY id) TO STDOUT;
SELECT to_json(a), row_to_json(bits) FROM bits WHERE id = 1;
SELECT typname, typcategory, typarray::regtype FROM pg_type WHERE typname IN ('bit', 'varbit') ORDER BY 1;
\d bits
-- Aggregates.
SELECT bit_and(x), bit_or(x), bit_xor(x), bit_and(x) FILTER (WHERE x IS NULL) FROM (VALUES (B'0110'), (B'1100'), (NULL)) v(x);
SELECT bit_and(x) FROM (VALUES (B'01'), (B'1')) v(x);
