-- The views of pg_catalog that are queries: PostgreSQL 15's definitions.

-- pg_catalog.pg_group
SELECT pg_authid.rolname AS groname,
  pg_authid.oid AS grosysid,
  ARRAY( SELECT pg_auth_members.member
     FROM pg_auth_members
     WHERE pg_auth_members.roleid = pg_authid.oid) AS grolist
 FROM pg_authid
 WHERE NOT pg_authid.rolcanlogin

-- pg_catalog.pg_indexes
SELECT n.nspname AS schemaname,
  c.relname AS tablename,
  i.relname AS indexname,
  t.spcname AS tablespace,
  pg_get_indexdef(i.oid) AS indexdef
 FROM pg_index x
  JOIN pg_class c ON c.oid = x.indrelid
  JOIN pg_class i ON i.oid = x.indexrelid
  LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_tablespace t ON t.oid = i.reltablespace
 WHERE (c.relkind IN ('r', 'm', 'p')) AND (i.relkind IN ('i', 'I'))

-- pg_catalog.pg_matviews
SELECT n.nspname AS schemaname,
  c.relname AS matviewname,
  pg_get_userbyid(c.relowner) AS matviewowner,
  t.spcname AS tablespace,
  c.relhasindex AS hasindexes,
  c.relispopulated AS ispopulated,
  pg_get_viewdef(c.oid) AS definition
 FROM pg_class c
  LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace
 WHERE c.relkind = 'm'

-- pg_catalog.pg_policies
SELECT n.nspname AS schemaname,
  c.relname AS tablename,
  p.polname AS policyname,
  CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END AS permissive,
  CASE WHEN p.polroles = '{0}'::oid[] THEN ARRAY['public'::name]
    ELSE ARRAY(SELECT r.rolname FROM pg_roles r WHERE r.oid = ANY (p.polroles) ORDER BY r.rolname) END AS roles,
  CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE'
    WHEN '*' THEN 'ALL' END AS cmd,
  pg_get_expr(p.polqual, p.polrelid) AS qual,
  pg_get_expr(p.polwithcheck, p.polrelid) AS with_check
 FROM pg_policy p
  JOIN pg_class c ON c.oid = p.polrelid
  LEFT JOIN pg_namespace n ON n.oid = c.relnamespace

-- pg_catalog.pg_rules
SELECT n.nspname AS schemaname,
  c.relname AS tablename,
  r.rulename,
  pg_get_ruledef(r.oid) AS definition
 FROM pg_rewrite r
  JOIN pg_class c ON c.oid = r.ev_class
  LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE r.rulename <> '_RETURN'

-- pg_catalog.pg_sequences
SELECT n.nspname AS schemaname,
  c.relname AS sequencename,
  pg_get_userbyid(c.relowner) AS sequenceowner,
  s.seqtypid::regtype AS data_type,
  s.seqstart AS start_value,
  s.seqmin AS min_value,
  s.seqmax AS max_value,
  s.seqincrement AS increment_by,
  s.seqcycle AS cycle,
  s.seqcache AS cache_size,
    CASE
      WHEN has_sequence_privilege(c.oid, 'SELECT,USAGE') THEN pg_sequence_last_value(c.oid::regclass)
      ELSE NULL::bigint
    END AS last_value
 FROM pg_sequence s
  JOIN pg_class c ON c.oid = s.seqrelid
  LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE NOT pg_is_other_temp_schema(n.oid) AND c.relkind = 'S'

-- pg_catalog.pg_shadow
SELECT pg_authid.rolname AS usename,
  pg_authid.oid AS usesysid,
  pg_authid.rolcreatedb AS usecreatedb,
  pg_authid.rolsuper AS usesuper,
  pg_authid.rolreplication AS userepl,
  pg_authid.rolbypassrls AS usebypassrls,
  pg_authid.rolpassword AS passwd,
  pg_authid.rolvaliduntil AS valuntil,
  s.setconfig AS useconfig
 FROM pg_authid
  LEFT JOIN pg_db_role_setting s ON pg_authid.oid = s.setrole AND s.setdatabase = 0::oid
 WHERE pg_authid.rolcanlogin

-- pg_catalog.pg_tables
SELECT n.nspname AS schemaname,
  c.relname AS tablename,
  pg_get_userbyid(c.relowner) AS tableowner,
  t.spcname AS tablespace,
  c.relhasindex AS hasindexes,
  c.relhasrules AS hasrules,
  c.relhastriggers AS hastriggers,
  c.relrowsecurity AS rowsecurity
 FROM pg_class c
  LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace
 WHERE c.relkind IN ('r', 'p')

-- pg_catalog.pg_user
SELECT pg_shadow.usename,
  pg_shadow.usesysid,
  pg_shadow.usecreatedb,
  pg_shadow.usesuper,
  pg_shadow.userepl,
  pg_shadow.usebypassrls,
  '********' AS passwd,
  pg_shadow.valuntil,
  pg_shadow.useconfig
 FROM pg_shadow

-- pg_catalog.pg_views
SELECT n.nspname AS schemaname,
  c.relname AS viewname,
  pg_get_userbyid(c.relowner) AS viewowner,
  pg_get_viewdef(c.oid) AS definition
 FROM pg_class c
  LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = 'v'

-- pg_catalog.pg_stat_user_tables
SELECT * FROM pg_stat_all_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname !~ '^pg_toast'

-- pg_catalog.pg_stat_sys_tables
SELECT * FROM pg_stat_all_tables WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname ~ '^pg_toast'

-- pg_catalog.pg_stat_xact_user_tables
SELECT * FROM pg_stat_xact_all_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname !~ '^pg_toast'

-- pg_catalog.pg_stat_xact_sys_tables
SELECT * FROM pg_stat_xact_all_tables WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname ~ '^pg_toast'

-- pg_catalog.pg_statio_user_tables
SELECT * FROM pg_statio_all_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname !~ '^pg_toast'

-- pg_catalog.pg_statio_sys_tables
SELECT * FROM pg_statio_all_tables WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname ~ '^pg_toast'

-- pg_catalog.pg_stat_user_indexes
SELECT * FROM pg_stat_all_indexes WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname !~ '^pg_toast'

-- pg_catalog.pg_stat_sys_indexes
SELECT * FROM pg_stat_all_indexes WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname ~ '^pg_toast'

-- pg_catalog.pg_statio_user_indexes
SELECT * FROM pg_statio_all_indexes WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname !~ '^pg_toast'

-- pg_catalog.pg_statio_sys_indexes
SELECT * FROM pg_statio_all_indexes WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname ~ '^pg_toast'

-- pg_catalog.pg_statio_user_sequences
SELECT * FROM pg_statio_all_sequences WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname !~ '^pg_toast'

-- pg_catalog.pg_statio_sys_sequences
SELECT * FROM pg_statio_all_sequences WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname ~ '^pg_toast'

-- pg_catalog.pg_stats
SELECT n.nspname AS schemaname,
  c.relname AS tablename,
  a.attname,
  s.stainherit AS inherited,
  s.stanullfrac AS null_frac,
  s.stawidth AS avg_width,
  s.stadistinct AS n_distinct,
  CASE
    WHEN s.stakind1 = 1 THEN s.stavalues1
    WHEN s.stakind2 = 1 THEN s.stavalues2
    WHEN s.stakind3 = 1 THEN s.stavalues3
    WHEN s.stakind4 = 1 THEN s.stavalues4
    WHEN s.stakind5 = 1 THEN s.stavalues5
    ELSE NULL::text
  END AS most_common_vals,
  CASE
    WHEN s.stakind1 = 1 THEN s.stanumbers1
    WHEN s.stakind2 = 1 THEN s.stanumbers2
    WHEN s.stakind3 = 1 THEN s.stanumbers3
    WHEN s.stakind4 = 1 THEN s.stanumbers4
    WHEN s.stakind5 = 1 THEN s.stanumbers5
    ELSE NULL::real[]
  END AS most_common_freqs,
  CASE
    WHEN s.stakind1 = 2 THEN s.stavalues1
    WHEN s.stakind2 = 2 THEN s.stavalues2
    WHEN s.stakind3 = 2 THEN s.stavalues3
    WHEN s.stakind4 = 2 THEN s.stavalues4
    WHEN s.stakind5 = 2 THEN s.stavalues5
    ELSE NULL::text
  END AS histogram_bounds,
  CASE
    WHEN s.stakind1 = 3 THEN s.stanumbers1[1]
    WHEN s.stakind2 = 3 THEN s.stanumbers2[1]
    WHEN s.stakind3 = 3 THEN s.stanumbers3[1]
    WHEN s.stakind4 = 3 THEN s.stanumbers4[1]
    WHEN s.stakind5 = 3 THEN s.stanumbers5[1]
    ELSE NULL::real
  END AS correlation,
  CASE
    WHEN s.stakind1 = 4 THEN s.stavalues1
    WHEN s.stakind2 = 4 THEN s.stavalues2
    WHEN s.stakind3 = 4 THEN s.stavalues3
    WHEN s.stakind4 = 4 THEN s.stavalues4
    WHEN s.stakind5 = 4 THEN s.stavalues5
    ELSE NULL::text
  END AS most_common_elems,
  CASE
    WHEN s.stakind1 = 4 THEN s.stanumbers1
    WHEN s.stakind2 = 4 THEN s.stanumbers2
    WHEN s.stakind3 = 4 THEN s.stanumbers3
    WHEN s.stakind4 = 4 THEN s.stanumbers4
    WHEN s.stakind5 = 4 THEN s.stanumbers5
    ELSE NULL::real[]
  END AS most_common_elem_freqs,
  CASE
    WHEN s.stakind1 = 5 THEN s.stanumbers1
    WHEN s.stakind2 = 5 THEN s.stanumbers2
    WHEN s.stakind3 = 5 THEN s.stanumbers3
    WHEN s.stakind4 = 5 THEN s.stanumbers4
    WHEN s.stakind5 = 5 THEN s.stanumbers5
    ELSE NULL::real[]
  END AS elem_count_histogram
 FROM pg_statistic s
  JOIN pg_class c ON c.oid = s.starelid
  JOIN pg_attribute a ON c.oid = a.attrelid AND a.attnum = s.staattnum
  LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE NOT a.attisdropped
  AND CASE WHEN c.relkind = 'i' THEN pg_has_role(c.relowner, 'USAGE') ELSE has_column_privilege(c.oid, a.attnum, 'select') END
  AND (c.relrowsecurity = false OR NOT row_security_active(c.oid))
