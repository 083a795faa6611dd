-- The length of a match and its groups are chosen as PostgreSQL chooses them.
select regexp_match('foobar', '(foo|foobar)'), regexp_match('foobar', '(fo|foob)(ar|bar)?'), substring('abcd' from 'a|ab|abc');
select substring('XY1234Z', 'Y*([0-9]{1,3})'), substring('XY1234Z', 'Y*?([0-9]{1,3})'), regexp_match('xyaaaz', 'a+?z'), regexp_match('aaa', 'a{1,2}?');
select regexp_match('abc01234xyz', '(.*)(\d+)(.*)'), regexp_match('abc01234xyz', '(.*?)(\d+)(.*)'), regexp_match('abc01234xyz', '(?:(.*?)(\d+)(.*)){1,1}');
select regexp_match('a<b>c<d>', '<.*?>'), regexp_match('a<b>c<d>', '<.*>'), regexp_match('aXbXc', '(.+?)X(.*)');
select regexp_match('abcd', '(a|ab)(c|bcd)(d*)'), regexp_match('ab', 'a?(ab)?'), regexp_match('ab', '(a?)(ab)?'), regexp_match('ab', 'a?(?:ab)?(b?)');
select regexp_match('aab', '(a*)(a|b)*'), regexp_match('abab', '(?:(a)|(b))*'), regexp_match('xay', '(a|x)+y'), regexp_match('aaab', '(a|aa)*(ab)?');
select regexp_replace('foobarbaz', 'b..', 'X'), regexp_replace('foobarbaz', 'b(..)', 'X\1Y', 'g'), regexp_replace('one two', 'one|one two', '<\&>');
select regexp_split_to_array('a,b;c', ',|;'), regexp_matches('k1=v1, k2=v2', '(\w+?)=(\w+)', 'g'), regexp_count('aaa', 'a|aa'), regexp_substr('foobar', 'foo|foobar'), regexp_instr('xfoobar', 'foo|foobar', 1, 1, 1);
select substring('abcdefg' similar 'a*#"%#"g*' escape '#'), substring('foobar' similar '%#"o_b#"%' escape '#'), 'abc' similar to 'a|abc';
select regexp_match('b', '(a*)*'), regexp_match('b', '(a)*'), regexp_match('b', '()*'), regexp_match('b', '(a*)+'), regexp_match('ab', '(a*)*'), regexp_match('b', '(a*){0,3}'), regexp_match('b', '(?:(a)|c)*');
select length(substring(repeat('ab x ', 20000) from '(.*?)(x|y)(.*)')), length((regexp_match(repeat('ab x ', 5000), '(.*)(x|y)(.*)'))[1]);
-- Look-around and back-references.
select 'abab' ~ '^(ab)\1$', 'abba' ~ '(.)\1', 'AbaB' ~* '^(ab)\1$', regexp_match('hello', '(.)\1'), regexp_replace('the the cat', '(\w+) \1', '\1');
select 'foobar' ~ 'foo(?=bar)', 'foobaz' ~ 'foo(?!bar)', regexp_replace('1234567', '(\d)(?=(\d{3})+$)', '\1,', 'g'), regexp_match('price: $42', '(?<=\$)\d+'), regexp_match('ab cb', '(?<!a)b');
select regexp_replace('CamelCaseName', '(?<!^)([A-Z])', '_\1', 'g'), 'abc1' ~ '^(?=.*\d)(?=.*[a-z]).{4,}$', 'abcd' ~ '^(?=.*\d).*$', regexp_split_to_array('aBcD', '(?=[A-Z])');
select 'aa' ~ '(a)(b)?\2', 'abcabc' ~ '(a(b)c)\1', 'abcb' ~ '(a(b)c)\2', regexp_matches('aabbcc', '(.)\1', 'g');
-- Brackets.
select 'ab' ~ '[[]', '[' ~ '[[]', ']' ~ '[]]', 'x[' ~ '[][]', '^' ~ '[\^]', '\' ~ '[\\]', '-' ~ '[a-]', '-' ~ '[-a]', '-' ~ '[\w-]', 'a' ~ '[\w]', ']' ~ '[^]]', 'a' ~ '[^]]';
select 'a&&b' ~ '^[a&&b]+$', '&' ~ '[a-z&&[^b]', 'a~~b' ~ '^[a~~b]+$', '-' ~ '[[.hyphen.]]', 'a' ~ '[[=a=]]', 'a' ~ '[[:alpha:][:digit:]_]', '!' ~ '[[:punct:]]', 'é' ~ '[[:alpha:]]', 'É' ~* 'é', 'E' ~* '[a-f]';
select '٣' ~ '\d', '٣' ~ '[[:digit:]]', '5' ~ '\d', 'é' ~ '\w', 'x y' ~ '\sy', 'x' ~ '\S', 'x1' ~ '\D\d', '_' ~ '\W', E'a\u00a0b' ~ 'a\sb';
-- Escapes and constraints.
select E'\b' ~ '\b', 'a b' ~ 'a\yb', '\' ~ '\B', 'a' ~ '\x61', E'\t' ~ '\t', 'A' ~ '\u0041', 'a.b' ~ 'a\.b', 'A' ~ '\101', E'\x01' ~ '\cA', 'ab' ~ 'a\Yb', 'a' ~ '\Aa\Z';
select 'x' ~ '[[:<:]]x[[:>:]]', 'foo bar' ~ '\mbar\M', 'foobar' ~ '\mbar', regexp_replace('abc de', '[[:<:]]', '|', 'g'), regexp_replace('abc de', '\M', '|', 'g');
select 'a{x' ~ 'a{x', 'a{' ~ 'a\{', 'ab' ~ 'a{0}b', 'aaa' ~ '^a{2,}$', 'b' ~ '()', 'x' ~ 'a|b|', 'ab' ~ '(a|)b', 'ab' ~ 'a(?#comment)b';
select 'x' ~ '***=x', 'a.c' ~ '***=a.c', 'abc' ~ '***=a.c', 'abc' ~ '***:a.c', 'ABC' ~ '(?i)abc', 'ab' ~ '(?x) a b # c', 'a.c' ~ '(?q)a.c', 'abc' ~ '(?q)a.c';
select E'a\nb' ~ 'a.b', E'a\nb' ~ '(?n)a.b', E'a\nb' ~ '(?n)^b', E'a\nb' ~ '(?p)^b', E'a\nb' ~ '(?w)^b', E'a\nb' ~ '(?w)a.b', E'a\nb' ~ 'a[^x]b', E'a\nb' ~ '(?n)a[^x]b', E'x\n' ~ 'x$', E'x\n' ~ 'x\Z', E'x\ny' ~ '(?n)x$';
select regexp_replace(E'l1\nl2', '^', '> ', 'gn'), regexp_match(E'a\nb', 'a.*', 'p'), regexp_match(E'a\nb', '^b', 'w'), regexp_like('A B', 'a b', 'ix'), regexp_like('AB', 'a b', 'ix'), regexp_like('a.b', 'a.b', 'q');
-- What is no pattern.
select 'x' ~ '(';
select 'x' ~ 'a)';
select 'x' ~ '[a';
select 'x' ~ '[b-a]';
select 'x' ~ '[[:foo:]]';
select 'x' ~ '[[.foo.]]';
select 'x' ~ 'a{2,1}';
select 'x' ~ 'a{256}';
select 'x' ~ 'a{1';
select 'x' ~ 'a{1x}';
select 'x' ~ '*a';
select 'x' ~ 'a**';
select 'x' ~ '^*';
select 'x' ~ 'x\';
select 'x' ~ '\p{L}';
select 'x' ~ '(?P<n>x)';
select 'x' ~ '(?<n>x)';
select 'x' ~ '(?i:x)';
select 'x' ~ '(x)\2';
select 'x' ~ '***x';
select regexp_replace('x', '(', 'y');
