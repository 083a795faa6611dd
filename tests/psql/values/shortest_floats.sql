-- The digits of floats are those of PostgreSQL's algorithm: none that lie halfway to the next float, the even ones of two.
select 100000001490116.125::float8, 100000001490116.375::float8, 7071067811865477.5::float8, 4503599627370497.5::float8, 1e22::float8, 1e23::float8;
select (g + 0.5)::float8 * 1125899906842624 as v from generate_series(19, 39) g;
select 2::float8 ^ g as v, -(3::float8 ^ g) as w from generate_series(40, 120, 7) g;
select 5e-324::float8, 2.2250738585072014e-308::float8, 1.7976931348623157e308::float8, 9.5367431640625e-07::float8, '-0'::float8, 0::float8;
select 33554432::float4, 67108864::float4, 8.999999e9::float4, 1e10::float4, 1.1754944e-38::float4, 3.4028235e38::float4, 1e-45::float4, 2::float4 ^ 40;
select jsonb_build_array(1e23::float8), array[1e23::float8], row(1e23::float8), 1e23::float8::text;
