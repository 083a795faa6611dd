\d
\dt
\di
\dv
\dm
\ds
\du
\du+
\dg
\dp
\z author
\df
\d author
\d+ author
\d book
\d+ book
\d book_title
\d+ book_title
\d author_pkey
\d "Odd name"
\d titles
\d counts
\d counter
\d "Odd name_Col one_seq"
\d extra.t
\dt extra.*
\dt *.t
\di author*
\d nosuch
\dT
\dy
\dD
\dc
\dC nothing
\do nothing
\da nothing
\dE
\des
\drds
\dRp
\dRs
\dX
\ddp
\dP
