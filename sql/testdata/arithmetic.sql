select length((0.5::numeric + 1e-1000::numeric)::text), md5((0.5::numeric + 1e-1000::numeric)::text)
select length((3::numeric + 1e-1000::numeric)::text), md5((3::numeric + 1e-1000::numeric)::text)
select length(('-Infinity'::numeric + 1e15::numeric)::text), md5(('-Infinity'::numeric + 1e15::numeric)::text)
select length((1e-16383::numeric + 9223372036854775807::numeric)::text), md5((1e-16383::numeric + 9223372036854775807::numeric)::text)
select length((-0.1::numeric + -2147483648::numeric)::text), md5((-0.1::numeric + -2147483648::numeric)::text)
select length((1e-16383::numeric + -2147483648::numeric)::text), md5((1e-16383::numeric + -2147483648::numeric)::text)
select length((0.00001::numeric + 0.5::numeric)::text), md5((0.00001::numeric + 0.5::numeric)::text)
select length((0.00001::numeric + 0.00001::numeric)::text), md5((0.00001::numeric + 0.00001::numeric)::text)
select length((1e-3::numeric + -2147483648::numeric)::text), md5((1e-3::numeric + -2147483648::numeric)::text)
select length((0::numeric + 0::numeric)::text), md5((0::numeric + 0::numeric)::text)
select length((-7.25::numeric + 0e-20::numeric)::text), md5((-7.25::numeric + 0e-20::numeric)::text)
select length(('NaN'::numeric + 1e-1000::numeric)::text), md5(('NaN'::numeric + 1e-1000::numeric)::text)
select length((-1::numeric + 10::numeric)::text), md5((-1::numeric + 10::numeric)::text)
select length((-2147483648::numeric + 65535::numeric)::text), md5((-2147483648::numeric + 65535::numeric)::text)
select length((1e-3::numeric + 0e-20::numeric)::text), md5((1e-3::numeric + 0e-20::numeric)::text)
select length((1e-3::numeric + 3::numeric)::text), md5((1e-3::numeric + 3::numeric)::text)
select length((1::numeric + 1e-1000::numeric)::text), md5((1::numeric + 1e-1000::numeric)::text)
select length((7::numeric + 65535::numeric)::text), md5((7::numeric + 65535::numeric)::text)
select length((12345.6789e40::numeric + 1e-1000::numeric)::text), md5((12345.6789e40::numeric + 1e-1000::numeric)::text)
select length(('Infinity'::numeric + 9e131071::numeric)::text), md5(('Infinity'::numeric + 9e131071::numeric)::text)
select length((1::numeric + 123456789.987654321::numeric)::text), md5((1::numeric + 123456789.987654321::numeric)::text)
select length((1e100::numeric + 1e-16383::numeric)::text), md5((1e100::numeric + 1e-16383::numeric)::text)
select length((3::numeric + 2::numeric)::text), md5((3::numeric + 2::numeric)::text)
select length(('-Infinity'::numeric + -7.25::numeric)::text), md5(('-Infinity'::numeric + -7.25::numeric)::text)
select length((0::numeric + 10::numeric)::text), md5((0::numeric + 10::numeric)::text)
select length((7::numeric + 9223372036854775807::numeric)::text), md5((7::numeric + 9223372036854775807::numeric)::text)
select length((-1::numeric + 2::numeric)::text), md5((-1::numeric + 2::numeric)::text)
select length((-2147483648::numeric + 0e-20::numeric)::text), md5((-2147483648::numeric + 0e-20::numeric)::text)
select length((0::numeric - 9e131071::numeric)::text), md5((0::numeric - 9e131071::numeric)::text)
select length((0.5::numeric - 1e100::numeric)::text), md5((0.5::numeric - 1e100::numeric)::text)
select length((7::numeric - 123456789.987654321::numeric)::text), md5((7::numeric - 123456789.987654321::numeric)::text)
select length((1e1000::numeric - 1e-16383::numeric)::text), md5((1e1000::numeric - 1e-16383::numeric)::text)
select length((10::numeric - 0.5::numeric)::text), md5((10::numeric - 0.5::numeric)::text)
select length((1.5e-8::numeric - 1::numeric)::text), md5((1.5e-8::numeric - 1::numeric)::text)
select length((1e-16383::numeric - 4.4e131071::numeric)::text), md5((1e-16383::numeric - 4.4e131071::numeric)::text)
select length((9223372036854775807::numeric - 1e-3::numeric)::text), md5((9223372036854775807::numeric - 1e-3::numeric)::text)
select length((-1::numeric - 65535::numeric)::text), md5((-1::numeric - 65535::numeric)::text)
select length((-0.1::numeric - -0.1::numeric)::text), md5((-0.1::numeric - -0.1::numeric)::text)
select length((1.5e-8::numeric - -2147483648::numeric)::text), md5((1.5e-8::numeric - -2147483648::numeric)::text)
select length((12345.6789e40::numeric - 1.5e-8::numeric)::text), md5((12345.6789e40::numeric - 1.5e-8::numeric)::text)
select length((65535::numeric - 65535::numeric)::text), md5((65535::numeric - 65535::numeric)::text)
select length((12345.6789e40::numeric - 'NaN'::numeric)::text), md5((12345.6789e40::numeric - 'NaN'::numeric)::text)
select length((7::numeric - -1::numeric)::text), md5((7::numeric - -1::numeric)::text)
select length((2::numeric - 1e100::numeric)::text), md5((2::numeric - 1e100::numeric)::text)
select length((1e-16383::numeric - 1e100::numeric)::text), md5((1e-16383::numeric - 1e100::numeric)::text)
select length((9223372036854775807::numeric - 1e1000::numeric)::text), md5((9223372036854775807::numeric - 1e1000::numeric)::text)
select length((-0.1::numeric - 123456789.987654321::numeric)::text), md5((-0.1::numeric - 123456789.987654321::numeric)::text)
select length((0e-20::numeric - 10::numeric)::text), md5((0e-20::numeric - 10::numeric)::text)
select length((12345.6789e40::numeric - 1e100::numeric)::text), md5((12345.6789e40::numeric - 1e100::numeric)::text)
select length((1e-1000::numeric - 1e15::numeric)::text), md5((1e-1000::numeric - 1e15::numeric)::text)
select length((-7.25::numeric - 9e131071::numeric)::text), md5((-7.25::numeric - 9e131071::numeric)::text)
select length((0.00001::numeric - 1e1000::numeric)::text), md5((0.00001::numeric - 1e1000::numeric)::text)
select length((123456789.987654321::numeric - 1e-16383::numeric)::text), md5((123456789.987654321::numeric - 1e-16383::numeric)::text)
select length((1e1000::numeric - 99999::numeric)::text), md5((1e1000::numeric - 99999::numeric)::text)
select length((0::numeric - 9223372036854775807::numeric)::text), md5((0::numeric - 9223372036854775807::numeric)::text)
select length((-1::numeric - 0.5::numeric)::text), md5((-1::numeric - 0.5::numeric)::text)
select length((3::numeric * 3::numeric)::text), md5((3::numeric * 3::numeric)::text)
select length((1e-16383::numeric * 0::numeric)::text), md5((1e-16383::numeric * 0::numeric)::text)
select length((1e-16383::numeric * -1::numeric)::text), md5((1e-16383::numeric * -1::numeric)::text)
select length((1e100::numeric * 'Infinity'::numeric)::text), md5((1e100::numeric * 'Infinity'::numeric)::text)
select length((7::numeric * 0.00001::numeric)::text), md5((7::numeric * 0.00001::numeric)::text)
select length((1e-3::numeric * 'NaN'::numeric)::text), md5((1e-3::numeric * 'NaN'::numeric)::text)
select length(('Infinity'::numeric * 123456789.987654321::numeric)::text), md5(('Infinity'::numeric * 123456789.987654321::numeric)::text)
select length((2::numeric * 0.5::numeric)::text), md5((2::numeric * 0.5::numeric)::text)
select length((1.5e-8::numeric * 0.5::numeric)::text), md5((1.5e-8::numeric * 0.5::numeric)::text)
select length(('-Infinity'::numeric * -7.25::numeric)::text), md5(('-Infinity'::numeric * -7.25::numeric)::text)
select length((9223372036854775807::numeric * 0e-20::numeric)::text), md5((9223372036854775807::numeric * 0e-20::numeric)::text)
select length((123456789.987654321::numeric * -7.25::numeric)::text), md5((123456789.987654321::numeric * -7.25::numeric)::text)
select length((65535::numeric * 'Infinity'::numeric)::text), md5((65535::numeric * 'Infinity'::numeric)::text)
select length((0e-20::numeric * 1e15::numeric)::text), md5((0e-20::numeric * 1e15::numeric)::text)
select length((1e-3::numeric * 2::numeric)::text), md5((1e-3::numeric * 2::numeric)::text)
select length((0.5::numeric * -1::numeric)::text), md5((0.5::numeric * -1::numeric)::text)
select length((0e-20::numeric * 9223372036854775807::numeric)::text), md5((0e-20::numeric * 9223372036854775807::numeric)::text)
select length((0.5::numeric * 65535::numeric)::text), md5((0.5::numeric * 65535::numeric)::text)
select length((1e-1000::numeric * -7.25::numeric)::text), md5((1e-1000::numeric * -7.25::numeric)::text)
select length((0.5::numeric * 1.5e-8::numeric)::text), md5((0.5::numeric * 1.5e-8::numeric)::text)
select length((1::numeric * 1.5e-8::numeric)::text), md5((1::numeric * 1.5e-8::numeric)::text)
select length((0.00001::numeric * 12345.6789e40::numeric)::text), md5((0.00001::numeric * 12345.6789e40::numeric)::text)
select length((1.5e-8::numeric * 1e-3::numeric)::text), md5((1.5e-8::numeric * 1e-3::numeric)::text)
select length((1e-1000::numeric * 0e-20::numeric)::text), md5((1e-1000::numeric * 0e-20::numeric)::text)
select length((0.5::numeric * 7::numeric)::text), md5((0.5::numeric * 7::numeric)::text)
select length(('NaN'::numeric * 0::numeric)::text), md5(('NaN'::numeric * 0::numeric)::text)
select length((12345.6789e40::numeric * -7.25::numeric)::text), md5((12345.6789e40::numeric * -7.25::numeric)::text)
select length((1e-16383::numeric / 0.00001::numeric)::text), md5((1e-16383::numeric / 0.00001::numeric)::text)
select length((1e1000::numeric / 1.5e-8::numeric)::text), md5((1e1000::numeric / 1.5e-8::numeric)::text)
select length((1e-3::numeric / 0e-20::numeric)::text), md5((1e-3::numeric / 0e-20::numeric)::text)
select length((12345.6789e40::numeric / 1e-3::numeric)::text), md5((12345.6789e40::numeric / 1e-3::numeric)::text)
select length((0.5::numeric / 1e100::numeric)::text), md5((0.5::numeric / 1e100::numeric)::text)
select length((-1::numeric / 9e131071::numeric)::text), md5((-1::numeric / 9e131071::numeric)::text)
select length((-2147483648::numeric / 1e-1000::numeric)::text), md5((-2147483648::numeric / 1e-1000::numeric)::text)
select length((65535::numeric / 7::numeric)::text), md5((65535::numeric / 7::numeric)::text)
select length((1e-16383::numeric / 1::numeric)::text), md5((1e-16383::numeric / 1::numeric)::text)
select length((9223372036854775807::numeric / 1e15::numeric)::text), md5((9223372036854775807::numeric / 1e15::numeric)::text)
select length((1::numeric / 4.4e131071::numeric)::text), md5((1::numeric / 4.4e131071::numeric)::text)
select length((99999::numeric / 1.5e-8::numeric)::text), md5((99999::numeric / 1.5e-8::numeric)::text)
select length((1e15::numeric / 1::numeric)::text), md5((1e15::numeric / 1::numeric)::text)
select length((1e-1000::numeric / 1e-3::numeric)::text), md5((1e-1000::numeric / 1e-3::numeric)::text)
select length((0.5::numeric / 1e1000::numeric)::text), md5((0.5::numeric / 1e1000::numeric)::text)
select length((-1::numeric / 4.4e131071::numeric)::text), md5((-1::numeric / 4.4e131071::numeric)::text)
select length((123456789.987654321::numeric / '-Infinity'::numeric)::text), md5((123456789.987654321::numeric / '-Infinity'::numeric)::text)
select length((12345.6789e40::numeric / 10::numeric)::text), md5((12345.6789e40::numeric / 10::numeric)::text)
select length((10::numeric / 7::numeric)::text), md5((10::numeric / 7::numeric)::text)
select length((7::numeric / 1e-16383::numeric)::text), md5((7::numeric / 1e-16383::numeric)::text)
select length((1::numeric / 99999::numeric)::text), md5((1::numeric / 99999::numeric)::text)
select length((10::numeric / '-Infinity'::numeric)::text), md5((10::numeric / '-Infinity'::numeric)::text)
select length((0.00001::numeric / 0e-20::numeric)::text), md5((0.00001::numeric / 0e-20::numeric)::text)
select length((0::numeric / -0.1::numeric)::text), md5((0::numeric / -0.1::numeric)::text)
select length((12345.6789e40::numeric / 9223372036854775807::numeric)::text), md5((12345.6789e40::numeric / 9223372036854775807::numeric)::text)
select length((-7.25::numeric / -2147483648::numeric)::text), md5((-7.25::numeric / -2147483648::numeric)::text)
select length((10::numeric / 12345.6789e40::numeric)::text), md5((10::numeric / 12345.6789e40::numeric)::text)
select length((-7.25::numeric % 'Infinity'::numeric)::text), md5((-7.25::numeric % 'Infinity'::numeric)::text)
select length((65535::numeric % 1e-1000::numeric)::text), md5((65535::numeric % 1e-1000::numeric)::text)
select length((1e-16383::numeric % 'NaN'::numeric)::text), md5((1e-16383::numeric % 'NaN'::numeric)::text)
select length((12345.6789e40::numeric % 4.4e131071::numeric)::text), md5((12345.6789e40::numeric % 4.4e131071::numeric)::text)
select length((1e-16383::numeric % 1e15::numeric)::text), md5((1e-16383::numeric % 1e15::numeric)::text)
select length((10::numeric % 1e100::numeric)::text), md5((10::numeric % 1e100::numeric)::text)
select length(('NaN'::numeric % 99999::numeric)::text), md5(('NaN'::numeric % 99999::numeric)::text)
select length((10::numeric % 65535::numeric)::text), md5((10::numeric % 65535::numeric)::text)
select length((7::numeric % 0::numeric)::text), md5((7::numeric % 0::numeric)::text)
select length((1e1000::numeric % 1.5e-8::numeric)::text), md5((1e1000::numeric % 1.5e-8::numeric)::text)
select length((10::numeric % 3::numeric)::text), md5((10::numeric % 3::numeric)::text)
select length((0::numeric % 99999::numeric)::text), md5((0::numeric % 99999::numeric)::text)
select length(('NaN'::numeric % 123456789.987654321::numeric)::text), md5(('NaN'::numeric % 123456789.987654321::numeric)::text)
select length(('-Infinity'::numeric % 1e-3::numeric)::text), md5(('-Infinity'::numeric % 1e-3::numeric)::text)
select length((4.4e131071::numeric % 'NaN'::numeric)::text), md5((4.4e131071::numeric % 'NaN'::numeric)::text)
select length((1e-1000::numeric % 99999::numeric)::text), md5((1e-1000::numeric % 99999::numeric)::text)
select length((1.5e-8::numeric % 1e1000::numeric)::text), md5((1.5e-8::numeric % 1e1000::numeric)::text)
select length((65535::numeric % -2147483648::numeric)::text), md5((65535::numeric % -2147483648::numeric)::text)
select length((12345.6789e40::numeric % 10::numeric)::text), md5((12345.6789e40::numeric % 10::numeric)::text)
select length((10::numeric % 10::numeric)::text), md5((10::numeric % 10::numeric)::text)
select length((2::numeric % 1e1000::numeric)::text), md5((2::numeric % 1e1000::numeric)::text)
select length((2::numeric % 0.5::numeric)::text), md5((2::numeric % 0.5::numeric)::text)
select length((0::numeric % '-Infinity'::numeric)::text), md5((0::numeric % '-Infinity'::numeric)::text)
select length((9e131071::numeric % -2147483648::numeric)::text), md5((9e131071::numeric % -2147483648::numeric)::text)
select length((10::numeric % -1::numeric)::text), md5((10::numeric % -1::numeric)::text)
select length((4.4e131071::numeric % 2::numeric)::text), md5((4.4e131071::numeric % 2::numeric)::text)
select length(('-Infinity'::numeric % 1e15::numeric)::text), md5(('-Infinity'::numeric % 1e15::numeric)::text)
select length((10::numeric % 1e15::numeric)::text), md5((10::numeric % 1e15::numeric)::text)
select length((sqrt(1e100::numeric))::text), md5((sqrt(1e100::numeric))::text)
select length((sqrt(123456789.987654321::numeric))::text), md5((sqrt(123456789.987654321::numeric))::text)
select length((sqrt(1e1000::numeric))::text), md5((sqrt(1e1000::numeric))::text)
select length((sqrt(1e-16383::numeric))::text), md5((sqrt(1e-16383::numeric))::text)
select length((sqrt(12345.6789e40::numeric))::text), md5((sqrt(12345.6789e40::numeric))::text)
select length((sqrt(1e-3::numeric))::text), md5((sqrt(1e-3::numeric))::text)
select length((sqrt('Infinity'::numeric))::text), md5((sqrt('Infinity'::numeric))::text)
select length((sqrt(0.5::numeric))::text), md5((sqrt(0.5::numeric))::text)
select length((ln(0.5::numeric))::text), md5((ln(0.5::numeric))::text)
select length((ln(4.4e131071::numeric))::text), md5((ln(4.4e131071::numeric))::text)
select length((ln(1e1000::numeric))::text), md5((ln(1e1000::numeric))::text)
select length((ln(-0.1::numeric))::text), md5((ln(-0.1::numeric))::text)
select length((ln(3::numeric))::text), md5((ln(3::numeric))::text)
select length((ln(7::numeric))::text), md5((ln(7::numeric))::text)
select length((ln(1e100::numeric))::text), md5((ln(1e100::numeric))::text)
select length((ln(65535::numeric))::text), md5((ln(65535::numeric))::text)
select length((ln(1::numeric))::text), md5((ln(1::numeric))::text)
select length((abs('Infinity'::numeric))::text), md5((abs('Infinity'::numeric))::text)
select length((abs(3::numeric))::text), md5((abs(3::numeric))::text)
select length((abs(0.00001::numeric))::text), md5((abs(0.00001::numeric))::text)
select length((abs(4.4e131071::numeric))::text), md5((abs(4.4e131071::numeric))::text)
select length((abs(7::numeric))::text), md5((abs(7::numeric))::text)
select length((abs(65535::numeric))::text), md5((abs(65535::numeric))::text)
select length((abs(1::numeric))::text), md5((abs(1::numeric))::text)
select length((abs(-2147483648::numeric))::text), md5((abs(-2147483648::numeric))::text)
select length((abs(0e-20::numeric))::text), md5((abs(0e-20::numeric))::text)
select length((floor(0::numeric))::text), md5((floor(0::numeric))::text)
select length((floor(1e1000::numeric))::text), md5((floor(1e1000::numeric))::text)
select length((floor(9e131071::numeric))::text), md5((floor(9e131071::numeric))::text)
select length((floor(4.4e131071::numeric))::text), md5((floor(4.4e131071::numeric))::text)
select length((floor(-1::numeric))::text), md5((floor(-1::numeric))::text)
select length((floor(65535::numeric))::text), md5((floor(65535::numeric))::text)
select length((floor('NaN'::numeric))::text), md5((floor('NaN'::numeric))::text)
select length((floor(0.5::numeric))::text), md5((floor(0.5::numeric))::text)
select length((ceil(4.4e131071::numeric))::text), md5((ceil(4.4e131071::numeric))::text)
select length((ceil(3::numeric))::text), md5((ceil(3::numeric))::text)
select length((ceil(1e-3::numeric))::text), md5((ceil(1e-3::numeric))::text)
select length((ceil(99999::numeric))::text), md5((ceil(99999::numeric))::text)
select length((ceil('Infinity'::numeric))::text), md5((ceil('Infinity'::numeric))::text)
select length((ceil(123456789.987654321::numeric))::text), md5((ceil(123456789.987654321::numeric))::text)
select length((ceil(7::numeric))::text), md5((ceil(7::numeric))::text)
select length((ceil(1::numeric))::text), md5((ceil(1::numeric))::text)
select length((sign(1e-3::numeric))::text), md5((sign(1e-3::numeric))::text)
select length((sign(1e1000::numeric))::text), md5((sign(1e1000::numeric))::text)
select length((sign(10::numeric))::text), md5((sign(10::numeric))::text)
select length((sign(1e15::numeric))::text), md5((sign(1e15::numeric))::text)
select length((sign(7::numeric))::text), md5((sign(7::numeric))::text)
select length((sign(12345.6789e40::numeric))::text), md5((sign(12345.6789e40::numeric))::text)
select length((sign(9223372036854775807::numeric))::text), md5((sign(9223372036854775807::numeric))::text)
select length((sign(0.00001::numeric))::text), md5((sign(0.00001::numeric))::text)
select length((trunc(-2147483648::numeric))::text), md5((trunc(-2147483648::numeric))::text)
select length((trunc(1e100::numeric))::text), md5((trunc(1e100::numeric))::text)
select length((trunc(1e-16383::numeric))::text), md5((trunc(1e-16383::numeric))::text)
select length((trunc('NaN'::numeric))::text), md5((trunc('NaN'::numeric))::text)
select length((trunc(2::numeric))::text), md5((trunc(2::numeric))::text)
select length((trunc('Infinity'::numeric))::text), md5((trunc('Infinity'::numeric))::text)
select length((trunc(1::numeric))::text), md5((trunc(1::numeric))::text)
select length((trunc(0.00001::numeric))::text), md5((trunc(0.00001::numeric))::text)
select length((round('Infinity'::numeric))::text), md5((round('Infinity'::numeric))::text)
select length((round(7::numeric))::text), md5((round(7::numeric))::text)
select length((round(123456789.987654321::numeric))::text), md5((round(123456789.987654321::numeric))::text)
select length((round(0.00001::numeric))::text), md5((round(0.00001::numeric))::text)
select length((round(1e15::numeric))::text), md5((round(1e15::numeric))::text)
select length((round(3::numeric))::text), md5((round(3::numeric))::text)
select length((-0.25::numeric ^ -100::numeric)::text), md5((-0.25::numeric ^ -100::numeric)::text)
select length((1.1::numeric ^ 3::numeric)::text), md5((1.1::numeric ^ 3::numeric)::text)
select length((7.5e-3::numeric ^ 33.3::numeric)::text), md5((7.5e-3::numeric ^ 33.3::numeric)::text)
select length((0::numeric ^ -1::numeric)::text), md5((0::numeric ^ -1::numeric)::text)
select length((0::numeric ^ 3::numeric)::text), md5((0::numeric ^ 3::numeric)::text)
select length((0::numeric ^ 1.0::numeric)::text), md5((0::numeric ^ 1.0::numeric)::text)
select length((1::numeric ^ 3::numeric)::text), md5((1::numeric ^ 3::numeric)::text)
select length((10::numeric ^ 1.0::numeric)::text), md5((10::numeric ^ 1.0::numeric)::text)
select length((-0.25::numeric ^ -2147483648::numeric)::text), md5((-0.25::numeric ^ -2147483648::numeric)::text)
select length((99.99::numeric ^ -100::numeric)::text), md5((99.99::numeric ^ -100::numeric)::text)
select length((7.5e-3::numeric ^ 2::numeric)::text), md5((7.5e-3::numeric ^ 2::numeric)::text)
select length(('NaN'::numeric ^ 1.0::numeric)::text), md5(('NaN'::numeric ^ 1.0::numeric)::text)
select length(('Infinity'::numeric ^ 100::numeric)::text), md5(('Infinity'::numeric ^ 100::numeric)::text)
select length((1e10::numeric ^ 10::numeric)::text), md5((1e10::numeric ^ 10::numeric)::text)
select length((1.1::numeric ^ 2::numeric)::text), md5((1.1::numeric ^ 2::numeric)::text)
select length((2::numeric ^ 1.0::numeric)::text), md5((2::numeric ^ 1.0::numeric)::text)
select length((1::numeric ^ 2::numeric)::text), md5((1::numeric ^ 2::numeric)::text)
select length((1.1::numeric ^ 0.5::numeric)::text), md5((1.1::numeric ^ 0.5::numeric)::text)
select length(('Infinity'::numeric ^ 1e3::numeric)::text), md5(('Infinity'::numeric ^ 1e3::numeric)::text)
select length((1::numeric ^ 2147483648::numeric)::text), md5((1::numeric ^ 2147483648::numeric)::text)
select length((1::numeric ^ 100::numeric)::text), md5((1::numeric ^ 100::numeric)::text)
select length((-0.25::numeric ^ -1::numeric)::text), md5((-0.25::numeric ^ -1::numeric)::text)
select length((1::numeric ^ 10::numeric)::text), md5((1::numeric ^ 10::numeric)::text)
select length((0::numeric ^ 100::numeric)::text), md5((0::numeric ^ 100::numeric)::text)
select length((1.1::numeric ^ 1.0::numeric)::text), md5((1.1::numeric ^ 1.0::numeric)::text)
select length(('NaN'::numeric ^ 3::numeric)::text), md5(('NaN'::numeric ^ 3::numeric)::text)
select length((2::numeric ^ 100::numeric)::text), md5((2::numeric ^ 100::numeric)::text)
select length((round(0.5::numeric, 20000))::text), md5((round(0.5::numeric, 20000))::text)
select length((trunc(-7.25::numeric, 2147483647))::text), md5((trunc(-7.25::numeric, 2147483647))::text)
select length((round('Infinity'::numeric, -1))::text), md5((round('Infinity'::numeric, -1))::text)
select length((trunc(65535::numeric, 20000))::text), md5((trunc(65535::numeric, 20000))::text)
select length((round('-Infinity'::numeric, -2147483648))::text), md5((round('-Infinity'::numeric, -2147483648))::text)
select length((trunc(65535::numeric, -131072))::text), md5((trunc(65535::numeric, -131072))::text)
select length((round(1.5e-8::numeric, 2147483647))::text), md5((round(1.5e-8::numeric, 2147483647))::text)
select length((trunc(4.4e131071::numeric, -131072))::text), md5((trunc(4.4e131071::numeric, -131072))::text)
select length((round(3::numeric, -2147483648))::text), md5((round(3::numeric, -2147483648))::text)
select length((trunc(99999::numeric, -1))::text), md5((trunc(99999::numeric, -1))::text)
select length((round(1e-16383::numeric, 20000))::text), md5((round(1e-16383::numeric, 20000))::text)
select length((trunc(1e1000::numeric, -5))::text), md5((trunc(1e1000::numeric, -5))::text)
select length((round('Infinity'::numeric, 16383))::text), md5((round('Infinity'::numeric, 16383))::text)
select length((trunc(9223372036854775807::numeric, -131071))::text), md5((trunc(9223372036854775807::numeric, -131071))::text)
select length((round(3::numeric, 0))::text), md5((round(3::numeric, 0))::text)
select length((trunc(0.5::numeric, 2000))::text), md5((trunc(0.5::numeric, 2000))::text)
select length((round(-0.1::numeric, -5))::text), md5((round(-0.1::numeric, -5))::text)
select length((trunc(12345.6789e40::numeric, 16383))::text), md5((trunc(12345.6789e40::numeric, 16383))::text)
select length((round(3::numeric, 5))::text), md5((round(3::numeric, 5))::text)
select length((trunc(-1::numeric, -131071))::text), md5((trunc(-1::numeric, -131071))::text)
select length((round(0.5::numeric, 1))::text), md5((round(0.5::numeric, 1))::text)
select length((trunc(0.00001::numeric, -5))::text), md5((trunc(0.00001::numeric, -5))::text)
select length((trunc(7::numeric, 2147483647))::text), md5((trunc(7::numeric, 2147483647))::text)
select length('1e9223372036854775807'::numeric::text)
select length('1e-9223372036854775808'::numeric::text)
select length('1e99999999999999999999'::numeric::text)
select length('0e1000000'::numeric::text)
select length('1e131071'::numeric::text)
select length('1e131072'::numeric::text)
select length('1e-16383'::numeric::text)
select length('1e-16384'::numeric::text)
select length('00001e131071'::numeric::text)
select length('0.1e131072'::numeric::text)
select length('1e1073741822'::numeric::text)
select length('1e1073741823'::numeric::text)
select length('-1e131072'::numeric::text)
select length('1e'::numeric::text)
select length('1e+'::numeric::text)
select length('1e-'::numeric::text)
select length('1ee5'::numeric::text)
select length('.'::numeric::text)
select length('e5'::numeric::text)
select length('0x10'::numeric::text)
select sqrt(1e-3000)
select length((1e131071*1e131071)::text)
select length((9e131071+9e131071)::text)
select (9e131071-9e131071)::text
select length((1e65535*1e65535)::text)
select length((1e65536*1e65536)::text)
select '10e400'::float4
select '10e400'::float8
select '1e39'::float4
select '1e39'::float8
select '3.4e38'::float4
select '3.4e38'::float8
select '3.5e38'::float4
select '3.5e38'::float8
select '1e-46'::float4
select '1e-46'::float8
select '1e-40'::float4
select '1e-40'::float8
select 'inf'::float4
select 'inf'::float8
select '-Infinity'::float4
select '-Infinity'::float8
select 'nan'::float4
select 'nan'::float8
select '1e400'::float4
select '1e400'::float8
select '-10e400'::float4
select '-10e400'::float8
select 3e38::float4 + 3e38::float4
select 3e38::float4 * 3e38::float4
select 3e38::float4 / 3e38::float4
select 1e-30::float4 + 1e-30::float4
select 1e-30::float4 * 1e-30::float4
select 1e-30::float4 / 1e-30::float4
select '1e308'::float8 + '1e308'::float8
select '1e308'::float8 * '1e308'::float8
select '1e308'::float8 / '1e308'::float8
select '1e-300'::float8 + '1e-300'::float8
select '1e-300'::float8 * '1e-300'::float8
select '1e-300'::float8 / '1e-300'::float8
select interval '1 day' / 3::float8
select interval '1 day' / 7::float8
select interval '1 day' * 0.1::float8
select interval '1 day' * 1.5::float8
select interval '1 day' * -2.25::float8
select interval '1 day' / 0.0001::float8
select interval '1 day' * 1e9::float8
select interval '1 day' / 'NaN'::float8
select interval '1 day' * 'Infinity'::float8
select interval '2 days' / 3::float8
select interval '2 days' / 7::float8
select interval '2 days' * 0.1::float8
select interval '2 days' * 1.5::float8
select interval '2 days' * -2.25::float8
select interval '2 days' / 0.0001::float8
select interval '2 days' * 1e9::float8
select interval '2 days' / 'NaN'::float8
select interval '2 days' * 'Infinity'::float8
select interval '1 mon' / 3::float8
select interval '1 mon' / 7::float8
select interval '1 mon' * 0.1::float8
select interval '1 mon' * 1.5::float8
select interval '1 mon' * -2.25::float8
select interval '1 mon' / 0.0001::float8
select interval '1 mon' * 1e9::float8
select interval '1 mon' / 'NaN'::float8
select interval '1 mon' * 'Infinity'::float8
select interval '1 year 1 day' / 3::float8
select interval '1 year 1 day' / 7::float8
select interval '1 year 1 day' * 0.1::float8
select interval '1 year 1 day' * 1.5::float8
select interval '1 year 1 day' * -2.25::float8
select interval '1 year 1 day' / 0.0001::float8
select interval '1 year 1 day' * 1e9::float8
select interval '1 year 1 day' / 'NaN'::float8
select interval '1 year 1 day' * 'Infinity'::float8
select interval '-5 days 3:00' / 3::float8
select interval '-5 days 3:00' / 7::float8
select interval '-5 days 3:00' * 0.1::float8
select interval '-5 days 3:00' * 1.5::float8
select interval '-5 days 3:00' * -2.25::float8
select interval '-5 days 3:00' / 0.0001::float8
select interval '-5 days 3:00' * 1e9::float8
select interval '-5 days 3:00' / 'NaN'::float8
select interval '-5 days 3:00' * 'Infinity'::float8
select interval '1 mon 15 days 12:00:00.000001' / 3::float8
select interval '1 mon 15 days 12:00:00.000001' / 7::float8
select interval '1 mon 15 days 12:00:00.000001' * 0.1::float8
select interval '1 mon 15 days 12:00:00.000001' * 1.5::float8
select interval '1 mon 15 days 12:00:00.000001' * -2.25::float8
select interval '1 mon 15 days 12:00:00.000001' / 0.0001::float8
select interval '1 mon 15 days 12:00:00.000001' * 1e9::float8
select interval '1 mon 15 days 12:00:00.000001' / 'NaN'::float8
select interval '1 mon 15 days 12:00:00.000001' * 'Infinity'::float8
select interval '178956970 years' / 3::float8
select interval '178956970 years' / 7::float8
select interval '178956970 years' * 0.1::float8
select interval '178956970 years' * 1.5::float8
select interval '178956970 years' * -2.25::float8
select interval '178956970 years' / 0.0001::float8
select interval '178956970 years' * 1e9::float8
select interval '178956970 years' / 'NaN'::float8
select interval '178956970 years' * 'Infinity'::float8
select '1 day 1 day'::interval
select '1 day 1 hour'::interval
select extract(hour from date '2020-01-01')
select extract(day from date '2020-01-01')
select date '5874897-12-31' + 1
select date '4713-01-01 BC' - 100000
select timestamp '294276-12-31' + interval '1 year'
select timestamp '2000-01-01' - interval '178000000 years'
select 2147483647 + 1
select (-2147483648) / -1
select (-9223372036854775808) % -1
select abs(-2147483648)
select -(-32768)::int2
select date 'infinity' + 5
select date '-infinity' - 5
select date 'infinity' - date '2000-01-01'
select date '2000-01-01' + 2147483647
select date '2000-01-01' - (-2147483647)
