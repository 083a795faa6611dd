-- The text of the line in the context of COPY's errors: where the row itself is at fault, not where other rows are.
create table cl (a int primary key, b int check (b > 0), c text not null);
copy cl from stdin;
1	1	x
2	-2	y
\.
copy cl from stdin with (header);
a	b	c
1	1	x
2	2	\N
\.
copy cl from stdin csv;
1,1,"two
lines"
2,-1,"x ""y"""
\.
copy cl (a, b) from stdin;
1	1
\.
copy cl from stdin;
1	1	this is a text of more than one hundred characters, so that the line in the context of the error is cut off somewhere
2	-1	this is a text of more than one hundred characters, so that the line in the context of the error is cut off somewhere
\.
copy cl from stdin;
1	1	x
1	2	y
\.
select count(*) from cl;
drop table cl;
