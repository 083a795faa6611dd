-- SIMILAR TO, SUBSTRING ... SIMILAR, and format() with positions and widths.
\set VERBOSITY terse
select 'abcdefg' similar to '_bcd%', 'abcdefg' similar to 'bcd%', 'abcdefg' similar to '_bcd#%' escape '#', 'abcd%' similar to '_bcd#%' escape '#', 'abcdefg' not similar to 'x%', null similar to 'a', 'abc' similar to '(a|b)[b-z]+';
select 'a' similar to 'b' or 'a' similar to 'a', 'abc' similar to 'a_c' and true;
select 'abcd\efg' similar to '_bcd\%' escape '', 'abcdefg' similar to '_bcd%' escape null;
select 'abcdefg' similar to '_bcd#%' escape '##';
select substring('abcdefg' similar 'a#"(b_d)#"%' escape '#'), substring('abcdefg' similar '#"(b_d)#"%' escape '#'), substring('abcdefg' similar 'a*#"%#"g*x' escape '#'), substring('abcdefg' similar 'a#"%#"g' escape '#');
select substring('abcdefg' from 'a#"(b_d)#"%' for '#'), substring('abcdefg' similar 'a#"%#"x|g' escape '#');
select substring('abcdefg' similar 'a*#"%#"g*#"x' escape '#');
select format('%1$s %3$s', 1, 2, 3), format('%1$s %s', 1, 2), format('%2$s %s %1$s', 'a', 'b', 'c'), format('>>%10s<<', 'Hello'), format('>>%-10s<<', 'Hello'), format('>>%1$-10s<<', 'Hello'), format('>>%*s<<', 8, 'x'), format('>>%2$*1$L<<', 10, 'Hello'), format('>>%2$*1$s<<', -10, 'Hello'), format('>>%-*s<<', null, 'x'), format('%10s%%|%5I|%-5L|', null, 'a', null);
select format('%1$s', variadic array[1, 2]), format('%2$s, %1$s', variadic array['first', 'second']);
select format('%s');
select format('%1$s %12$s', 1, 2);
select format('%0$s', 'Hello');
select format('%*0$s', 'Hello');
select format('%*1s', 'Hello');
select format('%1$', 1);
select format('%1$1', 1);
select format('%', 1);
select format('%x', 1);
select format('%I', null);
select format('%99999999999s', 'a');
