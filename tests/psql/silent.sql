\d+
\dt+
\di+
\dv+
\dm+
\ds+
\dn
\dn+
\l
\l+
\d+ titles
\d+ counts
\dx
\db
\db+
\dF
\dA
\dconfig nothing
\dO
