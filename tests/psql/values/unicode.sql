-- Unicode escapes of strings and names, and surrogate pairs.
\set VERBOSITY terse
select U&'d\0061t\+000061' as U&"d\0061t\+000061", U&'d!0061t\+000061' uescape '!' as U&"d*0061t\+000061" uescape '*';
select U&'a\\b', u&'tricky' uescape '!', U&'\00e4'
'\0062', U&'!!\0061' UESCAPE '!', U&'\D83D\DE00', E'\uD83D\uDE00', E'\U0001F600';
select U&' \' uescape '!';
select 'tricky' as U&"\" uescape '!';
select U&'wrong: \061';
select U&'wrong: \+0061';
select U&'wrong: +0061' uescape +;
select U&'wrong: +0061' uescape '+';
select U&'wrong: \db99';
select U&'wrong: \db99xy';
select U&'wrong: \db99\\';
select U&'wrong: \db99\0061';
select U&'wrong: \+00db99\+000061';
select U&'wrong: \+2FFFFF';
select U&'\0000';
select E'wrong: \u061';
select E'wrong: \udb99';
select E'wrong: \udb99xy';
select E'wrong: \udb99\u0061';
select E'wrong: \U002FFFFF';
select U&"" from (select 1) t;
