-- to_char, to_date and to_timestamp
SET timezone = 'America/New_York';
SELECT to_char(timestamp '2002-04-20 17:31:12.66', 'HH12:MI:SS'), to_char(timestamp '2002-04-20 17:31:12.66', 'Day, DD Month YYYY HH24:MI:SS.MS US AM'), to_char(timestamp '2002-04-20 17:31:12.66', 'FMDay, FMDD FMMonth FMHH12:MI pm');
SELECT to_char(timestamptz '2012-12-12 12:00:00+00', 'YYYY-MM-DD"T"HH24:MI:SSOF TZ tz TZH:TZM'), to_char(timestamp '0044-03-15 BC', 'YYYY-MM-DD BC b.c.'), to_char(date '2021-01-03', 'IYYY-IW-ID IDDD DDD D WW W Q CC J RM rm');
SELECT to_char(interval '15h 2m 12s', 'HH24:MI:SS'), to_char(interval '3 years 2 mons 5 days 30:10:11.5', 'YY MM DD HH24 HH12 MI SS MS'), to_char(interval '1 day', 'Day');
SELECT to_char(timestamp '1997-06-06 01:02:03.45', 'Y,YYY YYYY YYY YY Y MONTH Month month MON Mon mon MM DAY Day day DY Dy dy DDD DD D'), to_char(timestamp '1997-06-01', 'DDth DDTH FMDDth "text" Q'), to_char(timestamp 'infinity', 'YYYY');
SELECT to_char(timestamp '2020-01-01 13:14:15.678901', 'FF1 FF2 FF3 FF4 FF5 FF6 SSSS SSSSS'), to_char(timestamp '2020-01-01 00:00', 'HH HH24 a.m. P.M.');
SELECT to_date('05 Dec 2000', 'DD Mon YYYY'), to_date('2011-12-18', 'YYYY-MM-DD'), to_date('20111218', 'YYYYMMDD'), to_date('97/2/16', 'YY/MM/DD'), to_date('1 February 2000', 'DD Month YYYY'), to_date('2458872', 'J'), to_date('2005-44-3', 'IYYY-IW-ID'), to_date('044-03-15 BC', 'YYYY-MM-DD BC');
SELECT to_timestamp('05 Dec 2000', 'DD Mon YYYY'), to_timestamp('2011-12-18 11:38 PM', 'YYYY-MM-DD HH12:MI PM'), to_timestamp('2011-12-18 23:38:15.678', 'YYYY-MM-DD HH24:MI:SS.MS'), to_timestamp('2011-12-18 11:38 -05', 'YYYY-MM-DD HH24:MI TZH'), to_timestamp('1985 January 12', 'FMYYYY FMMonth FMDD'), to_timestamp('15 "text" 2000', 'DD "text" YYYY'), to_timestamp('2000+   JUN', 'YYYY/MON'), to_timestamp('20000-1131', 'YYYY-MMDD');
SELECT to_timestamp('97/Feb/16', 'YYMonDD');
SELECT to_date('2011-02-30', 'YYYY-MM-DD');
SELECT to_date('2011 14 01', 'YYYY MM DD');
SELECT to_date('x', 'YYYY');
SELECT to_timestamp('2011-12-18 23:38 PM', 'YYYY-MM-DD HH12:MI PM');
SELECT to_timestamp('2011', 'YYYY TZ');
SELECT to_timestamp('2011 x', 'YYYY TZ');
SELECT to_date('200102', 'YYYYMM'), to_date('2001 5', 'YYYY DDD'), to_timestamp('3661', 'SSSS') IS NOT NULL, to_char(to_timestamp('12:30', 'HH24:MI'), 'HH24:MI'), to_date(' 2011 12  18', 'YYYYxMMxDD');
