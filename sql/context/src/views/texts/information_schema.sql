-- The views of information_schema: PostgreSQL 15's definitions (licence: sql/values/src/builtin/COPYRIGHT). The columns' names and types are those of the relation's declaration, to
-- which the planner casts, so that the texts leave them out where they are longer than what they say. Where a definition calls a function
-- that gives a row, it is in FROM here.

-- information_schema.administrable_role_authorizations
SELECT applicable_roles.grantee,
  applicable_roles.role_name,
  applicable_roles.is_grantable
 FROM information_schema.applicable_roles
 WHERE applicable_roles.is_grantable::text = 'YES'

-- information_schema.applicable_roles
SELECT a.rolname AS grantee,
  b.rolname AS role_name,
    CASE
      WHEN m.admin_option THEN 'YES'
      ELSE 'NO'
    END AS is_grantable
 FROM ( SELECT pg_auth_members.member,
      pg_auth_members.roleid,
      pg_auth_members.admin_option
     FROM pg_auth_members
    UNION
    SELECT pg_database.datdba,
      pg_authid.oid,
      false
     FROM pg_database,
      pg_authid
     WHERE pg_database.datname = current_database() AND pg_authid.rolname = 'pg_database_owner') m
  JOIN pg_authid a ON m.member = a.oid
  JOIN pg_authid b ON m.roleid = b.oid
 WHERE pg_has_role(a.oid, 'USAGE')

-- information_schema.attributes
SELECT current_database() AS udt_catalog,
  nc.nspname AS udt_schema,
  c.relname AS udt_name,
  a.attname AS attribute_name,
  a.attnum AS ordinal_position,
  pg_get_expr(ad.adbin, ad.adrelid) AS attribute_default,
    CASE
      WHEN a.attnotnull OR t.typtype = 'd' AND t.typnotnull THEN 'NO'
      ELSE 'YES'
    END AS is_nullable,
    CASE
      WHEN t.typelem <> 0::oid AND t.typlen = -1 THEN 'ARRAY'
      WHEN nt.nspname = 'pg_catalog' THEN format_type(a.atttypid, NULL::integer)
      ELSE 'USER-DEFINED'
    END AS data_type,
  information_schema._pg_char_max_length(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) AS character_maximum_length,
  information_schema._pg_char_octet_length(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) AS character_octet_length,
  NULL::name AS character_set_catalog,
  NULL::name AS character_set_schema,
  NULL::name AS character_set_name,
    CASE
      WHEN nco.nspname IS NOT NULL THEN current_database()
      ELSE NULL::name
    END AS collation_catalog,
  nco.nspname AS collation_schema,
  co.collname AS collation_name,
  information_schema._pg_numeric_precision(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) AS numeric_precision,
  information_schema._pg_numeric_precision_radix(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) AS numeric_precision_radix,
  information_schema._pg_numeric_scale(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) AS numeric_scale,
  information_schema._pg_datetime_precision(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) AS datetime_precision,
  information_schema._pg_interval_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) AS interval_type,
  NULL::integer AS interval_precision,
  current_database() AS attribute_udt_catalog,
  nt.nspname AS attribute_udt_schema,
  t.typname AS attribute_udt_name,
  NULL::name AS scope_catalog,
  NULL::name AS scope_schema,
  NULL::name AS scope_name,
  NULL::integer AS maximum_cardinality,
  a.attnum::text AS dtd_identifier,
  'NO' AS is_derived_reference_attribute
 FROM pg_attribute a
  LEFT JOIN pg_attrdef ad ON a.attrelid = ad.adrelid AND a.attnum = ad.adnum
  JOIN (pg_class c
  JOIN pg_namespace nc ON c.relnamespace = nc.oid) ON a.attrelid = c.oid
  JOIN (pg_type t
  JOIN pg_namespace nt ON t.typnamespace = nt.oid) ON a.atttypid = t.oid
  LEFT JOIN (pg_collation co
  JOIN pg_namespace nco ON co.collnamespace = nco.oid) ON a.attcollation = co.oid AND (nco.nspname <> 'pg_catalog' OR co.collname <> 'default')
 WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind = 'c' AND (pg_has_role(c.relowner, 'USAGE') OR has_type_privilege(c.reltype, 'USAGE'))

-- information_schema.character_sets
SELECT NULL::name AS character_set_catalog,
  NULL::name AS character_set_schema,
  getdatabaseencoding() AS character_set_name,
    CASE
      WHEN getdatabaseencoding() = 'UTF8' THEN 'UCS'
      ELSE getdatabaseencoding()
    END AS character_repertoire,
  getdatabaseencoding() AS form_of_use,
  current_database() AS default_collate_catalog,
  nc.nspname AS default_collate_schema,
  c.collname AS default_collate_name
 FROM pg_database d
  LEFT JOIN (pg_collation c
  JOIN pg_namespace nc ON c.collnamespace = nc.oid) ON d.datcollate = c.collcollate AND d.datctype = c.collctype
 WHERE d.datname = current_database()
 ORDER BY (char_length(c.collname::text)) DESC, c.collname
LIMIT 1

-- information_schema.check_constraints
SELECT current_database() AS constraint_catalog,
  rs.nspname AS constraint_schema,
  con.conname AS constraint_name,
  SUBSTRING(pg_get_constraintdef(con.oid) FROM 7) AS check_clause
 FROM pg_constraint con
  LEFT JOIN pg_namespace rs ON rs.oid = con.connamespace
  LEFT JOIN pg_class c ON c.oid = con.conrelid
  LEFT JOIN pg_type t ON t.oid = con.contypid
 WHERE pg_has_role(COALESCE(c.relowner, t.typowner), 'USAGE') AND con.contype = 'c'
UNION
SELECT current_database() AS constraint_catalog,
  n.nspname AS constraint_schema,
  (((((n.oid::text || '_') || r.oid::text) || '_') || a.attnum::text) || '_not_null') AS constraint_name,
  (a.attname::text || ' IS NOT NULL') AS check_clause
 FROM pg_namespace n,
  pg_class r,
  pg_attribute a
 WHERE n.oid = r.relnamespace AND r.oid = a.attrelid AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull AND (r.relkind IN ('r', 'p')) AND pg_has_role(r.relowner, 'USAGE')

-- information_schema.collation_character_set_applicability
SELECT current_database() AS collation_catalog,
  nc.nspname AS collation_schema,
  c.collname AS collation_name,
  NULL::name AS character_set_catalog,
  NULL::name AS character_set_schema,
  getdatabaseencoding() AS character_set_name
 FROM pg_collation c,
  pg_namespace nc
 WHERE c.collnamespace = nc.oid AND (c.collencoding = ANY (ARRAY[-1, ( SELECT pg_database.encoding
     FROM pg_database
     WHERE pg_database.datname = current_database())]))

-- information_schema.collations
SELECT current_database() AS collation_catalog,
  nc.nspname AS collation_schema,
  c.collname AS collation_name,
  'NO PAD' AS pad_attribute
 FROM pg_collation c,
  pg_namespace nc
 WHERE c.collnamespace = nc.oid AND (c.collencoding = ANY (ARRAY[-1, ( SELECT pg_database.encoding
     FROM pg_database
     WHERE pg_database.datname = current_database())]))

-- information_schema.column_domain_usage
SELECT current_database() AS domain_catalog,
  nt.nspname AS domain_schema,
  t.typname AS domain_name,
  current_database() AS table_catalog,
  nc.nspname AS table_schema,
  c.relname AS table_name,
  a.attname AS column_name
 FROM pg_type t,
  pg_namespace nt,
  pg_class c,
  pg_namespace nc,
  pg_attribute a
 WHERE t.typnamespace = nt.oid AND c.relnamespace = nc.oid AND a.attrelid = c.oid AND a.atttypid = t.oid AND t.typtype = 'd' AND (c.relkind IN ('r', 'v', 'f', 'p')) AND a.attnum > 0 AND NOT a.attisdropped AND pg_has_role(t.typowner, 'USAGE')

-- information_schema.column_privileges
SELECT u.rolname, g.rolname, current_database(), nc.nspname, x.relname, x.attname, x.privilege_type,
    CASE WHEN pg_has_role(g.oid, x.relowner, 'USAGE') OR x.is_grantable THEN 'YES' ELSE 'NO' END
FROM (
    SELECT e.grantor, e.grantee, a.attname, c.relname, c.relnamespace, e.privilege_type, e.is_grantable, c.relowner
    FROM pg_class c
        CROSS JOIN LATERAL aclexplode(COALESCE(c.relacl, acldefault('r', c.relowner))) AS e
        JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relkind IN ('r', 'v', 'f', 'p') AND a.attnum > 0 AND NOT a.attisdropped
    UNION
    SELECT e.grantor, e.grantee, a.attname, c.relname, c.relnamespace, e.privilege_type, e.is_grantable, c.relowner
    FROM pg_attribute a
        JOIN pg_class c ON c.oid = a.attrelid
        CROSS JOIN LATERAL aclexplode(COALESCE(a.attacl, acldefault('c', c.relowner))) AS e
    WHERE c.relkind IN ('r', 'v', 'f', 'p') AND a.attnum > 0 AND NOT a.attisdropped
) AS x
    JOIN pg_namespace nc ON nc.oid = x.relnamespace
    JOIN pg_authid u ON u.oid = x.grantor
    JOIN (SELECT oid, rolname FROM pg_authid UNION ALL SELECT 0, 'PUBLIC') AS g(oid, rolname) ON g.oid = x.grantee
WHERE x.privilege_type IN ('INSERT', 'SELECT', 'UPDATE', 'REFERENCES')
    AND (pg_has_role(u.oid, 'USAGE') OR pg_has_role(g.oid, 'USAGE') OR g.rolname = 'PUBLIC')

-- information_schema.column_udt_usage
SELECT current_database() AS udt_catalog,
  COALESCE(nbt.nspname, nt.nspname) AS udt_schema,
  COALESCE(bt.typname, t.typname) AS udt_name,
  current_database() AS table_catalog,
  nc.nspname AS table_schema,
  c.relname AS table_name,
  a.attname AS column_name
 FROM pg_attribute a,
  pg_class c,
  pg_namespace nc,
  pg_type t
  JOIN pg_namespace nt ON t.typnamespace = nt.oid
  LEFT JOIN (pg_type bt
  JOIN pg_namespace nbt ON bt.typnamespace = nbt.oid) ON t.typtype = 'd' AND t.typbasetype = bt.oid
 WHERE a.attrelid = c.oid AND a.atttypid = t.oid AND nc.oid = c.relnamespace AND a.attnum > 0 AND NOT a.attisdropped AND (c.relkind IN ('r', 'v', 'f', 'p')) AND pg_has_role(COALESCE(bt.typowner, t.typowner), 'USAGE')

-- information_schema.columns
SELECT current_database() AS table_catalog,
  nc.nspname AS table_schema,
  c.relname AS table_name,
  a.attname AS column_name,
  a.attnum AS ordinal_position,
    CASE
      WHEN a.attgenerated = '' THEN pg_get_expr(ad.adbin, ad.adrelid)
      ELSE NULL::text
    END AS column_default,
    CASE
      WHEN a.attnotnull OR t.typtype = 'd' AND t.typnotnull THEN 'NO'
      ELSE 'YES'
    END AS is_nullable,
    CASE
      WHEN t.typtype = 'd' THEN
      CASE
        WHEN bt.typelem <> 0::oid AND bt.typlen = -1 THEN 'ARRAY'
        WHEN nbt.nspname = 'pg_catalog' THEN format_type(t.typbasetype, NULL::integer)
        ELSE 'USER-DEFINED'
      END
      ELSE
      CASE
        WHEN t.typelem <> 0::oid AND t.typlen = -1 THEN 'ARRAY'
        WHEN nt.nspname = 'pg_catalog' THEN format_type(a.atttypid, NULL::integer)
        ELSE 'USER-DEFINED'
      END
    END AS data_type,
  information_schema._pg_char_max_length(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) AS character_maximum_length,
  information_schema._pg_char_octet_length(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) AS character_octet_length,
  information_schema._pg_numeric_precision(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) AS numeric_precision,
  information_schema._pg_numeric_precision_radix(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) AS numeric_precision_radix,
  information_schema._pg_numeric_scale(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) AS numeric_scale,
  information_schema._pg_datetime_precision(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) AS datetime_precision,
  information_schema._pg_interval_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) AS interval_type,
  NULL::integer AS interval_precision,
  NULL::name AS character_set_catalog,
  NULL::name AS character_set_schema,
  NULL::name AS character_set_name,
    CASE
      WHEN nco.nspname IS NOT NULL THEN current_database()
      ELSE NULL::name
    END AS collation_catalog,
  nco.nspname AS collation_schema,
  co.collname AS collation_name,
    CASE
      WHEN t.typtype = 'd' THEN current_database()
      ELSE NULL::name
    END AS domain_catalog,
    CASE
      WHEN t.typtype = 'd' THEN nt.nspname
      ELSE NULL::name
    END AS domain_schema,
    CASE
      WHEN t.typtype = 'd' THEN t.typname
      ELSE NULL::name
    END AS domain_name,
  current_database() AS udt_catalog,
  COALESCE(nbt.nspname, nt.nspname) AS udt_schema,
  COALESCE(bt.typname, t.typname) AS udt_name,
  NULL::name AS scope_catalog,
  NULL::name AS scope_schema,
  NULL::name AS scope_name,
  NULL::integer AS maximum_cardinality,
  a.attnum::text AS dtd_identifier,
  'NO' AS is_self_referencing,
    CASE
      WHEN a.attidentity IN ('a', 'd') THEN 'YES'
      ELSE 'NO'
    END AS is_identity,
    CASE a.attidentity
      WHEN 'a' THEN 'ALWAYS'
      WHEN 'd' THEN 'BY DEFAULT'
      ELSE NULL::text
    END AS identity_generation,
  seq.seqstart AS identity_start,
  seq.seqincrement AS identity_increment,
  seq.seqmax AS identity_maximum,
  seq.seqmin AS identity_minimum,
    CASE
      WHEN seq.seqcycle THEN 'YES'
      ELSE 'NO'
    END AS identity_cycle,
    CASE
      WHEN a.attgenerated <> '' THEN 'ALWAYS'
      ELSE 'NEVER'
    END AS is_generated,
    CASE
      WHEN a.attgenerated <> '' THEN pg_get_expr(ad.adbin, ad.adrelid)
      ELSE NULL::text
    END AS generation_expression,
    CASE
      WHEN (c.relkind IN ('r', 'p')) OR (c.relkind IN ('v', 'f')) AND pg_column_is_updatable(c.oid::regclass, a.attnum, false) THEN 'YES'
      ELSE 'NO'
    END AS is_updatable
 FROM pg_attribute a
  JOIN (pg_class c
  JOIN pg_namespace nc ON c.relnamespace = nc.oid) ON a.attrelid = c.oid
  JOIN (pg_type t
  JOIN pg_namespace nt ON t.typnamespace = nt.oid) ON a.atttypid = t.oid
  LEFT JOIN pg_attrdef ad ON a.attrelid = ad.adrelid AND a.attnum = ad.adnum
  LEFT JOIN pg_type bt ON t.typtype = 'd' AND t.typbasetype = bt.oid
  LEFT JOIN pg_namespace nbt ON bt.typnamespace = nbt.oid
  LEFT JOIN (pg_collation co
  JOIN pg_namespace nco ON co.collnamespace = nco.oid) ON a.attcollation = co.oid AND (nco.nspname <> 'pg_catalog' OR co.collname <> 'default')
  LEFT JOIN (pg_depend dep
  JOIN pg_sequence seq ON dep.classid = 1259 AND dep.objid = seq.seqrelid AND dep.deptype = 'i') ON dep.refclassid = 1259 AND dep.refobjid = c.oid AND dep.refobjsubid = a.attnum
 WHERE NOT pg_is_other_temp_schema(nc.oid) AND a.attnum > 0 AND NOT a.attisdropped AND (c.relkind IN ('r', 'v', 'f', 'p')) AND (pg_has_role(c.relowner, 'USAGE') OR has_column_privilege(c.oid, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES'))

-- information_schema.constraint_column_usage
SELECT current_database() AS table_catalog,
  x.tblschema AS table_schema,
  x.tblname AS table_name,
  x.colname AS column_name,
  current_database() AS constraint_catalog,
  x.cstrschema AS constraint_schema,
  x.cstrname AS constraint_name
 FROM ( SELECT DISTINCT nr.nspname,
      r.relname,
      r.relowner,
      a.attname,
      nc.nspname,
      c.conname
     FROM pg_namespace nr,
      pg_class r,
      pg_attribute a,
      pg_depend d,
      pg_namespace nc,
      pg_constraint c
     WHERE nr.oid = r.relnamespace AND r.oid = a.attrelid AND d.refclassid = 1259 AND d.refobjid = r.oid AND d.refobjsubid = a.attnum AND d.classid = 2606 AND d.objid = c.oid AND c.connamespace = nc.oid AND c.contype = 'c' AND (r.relkind IN ('r', 'p')) AND NOT a.attisdropped
    UNION ALL
    SELECT nr.nspname,
      r.relname,
      r.relowner,
      a.attname,
      nc.nspname,
      c.conname
     FROM pg_namespace nr,
      pg_class r,
      pg_attribute a,
      pg_namespace nc,
      pg_constraint c
     WHERE nr.oid = r.relnamespace AND r.oid = a.attrelid AND nc.oid = c.connamespace AND r.oid =
        CASE c.contype
          WHEN 'f' THEN c.confrelid
          ELSE c.conrelid
        END AND (a.attnum = ANY (
        CASE c.contype
          WHEN 'f' THEN c.confkey
          ELSE c.conkey
        END)) AND NOT a.attisdropped AND (c.contype IN ('p', 'u', 'f')) AND (r.relkind IN ('r', 'p'))) x(tblschema, tblname, tblowner, colname, cstrschema, cstrname)
 WHERE pg_has_role(x.tblowner, 'USAGE')

-- information_schema.constraint_table_usage
SELECT current_database() AS table_catalog,
  nr.nspname AS table_schema,
  r.relname AS table_name,
  current_database() AS constraint_catalog,
  nc.nspname AS constraint_schema,
  c.conname AS constraint_name
 FROM pg_constraint c,
  pg_namespace nc,
  pg_class r,
  pg_namespace nr
 WHERE c.connamespace = nc.oid AND r.relnamespace = nr.oid AND (c.contype = 'f' AND c.confrelid = r.oid OR (c.contype IN ('p', 'u')) AND c.conrelid = r.oid) AND (r.relkind IN ('r', 'p')) AND pg_has_role(r.relowner, 'USAGE')

-- information_schema.data_type_privileges
SELECT current_database() AS object_catalog,
  x.objschema AS object_schema,
  x.objname AS object_name,
  x.objtype AS object_type,
  x.objdtdid AS dtd_identifier
 FROM ( SELECT attributes.udt_schema,
      attributes.udt_name,
      'USER-DEFINED TYPE' AS text,
      attributes.dtd_identifier
     FROM information_schema.attributes
    UNION ALL
    SELECT columns.table_schema,
      columns.table_name,
      'TABLE' AS text,
      columns.dtd_identifier
     FROM information_schema.columns
    UNION ALL
    SELECT domains.domain_schema,
      domains.domain_name,
      'DOMAIN' AS text,
      domains.dtd_identifier
     FROM information_schema.domains
    UNION ALL
    SELECT parameters.specific_schema,
      parameters.specific_name,
      'ROUTINE' AS text,
      parameters.dtd_identifier
     FROM information_schema.parameters
    UNION ALL
    SELECT routines.specific_schema,
      routines.specific_name,
      'ROUTINE' AS text,
      routines.dtd_identifier
     FROM information_schema.routines) x(objschema, objname, objtype, objdtdid)

-- information_schema.domain_constraints
SELECT current_database() AS constraint_catalog,
  rs.nspname AS constraint_schema,
  con.conname AS constraint_name,
  current_database() AS domain_catalog,
  n.nspname AS domain_schema,
  t.typname AS domain_name,
    CASE
      WHEN con.condeferrable THEN 'YES'
      ELSE 'NO'
    END AS is_deferrable,
    CASE
      WHEN con.condeferred THEN 'YES'
      ELSE 'NO'
    END AS initially_deferred
 FROM pg_namespace rs,
  pg_namespace n,
  pg_constraint con,
  pg_type t
 WHERE rs.oid = con.connamespace AND n.oid = t.typnamespace AND t.oid = con.contypid AND (pg_has_role(t.typowner, 'USAGE') OR has_type_privilege(t.oid, 'USAGE'))

-- information_schema.domain_udt_usage
SELECT current_database() AS udt_catalog,
  nbt.nspname AS udt_schema,
  bt.typname AS udt_name,
  current_database() AS domain_catalog,
  nt.nspname AS domain_schema,
  t.typname AS domain_name
 FROM pg_type t,
  pg_namespace nt,
  pg_type bt,
  pg_namespace nbt
 WHERE t.typnamespace = nt.oid AND t.typbasetype = bt.oid AND bt.typnamespace = nbt.oid AND t.typtype = 'd' AND pg_has_role(bt.typowner, 'USAGE')

-- information_schema.domains
SELECT current_database() AS domain_catalog,
  nt.nspname AS domain_schema,
  t.typname AS domain_name,
    CASE
      WHEN t.typelem <> 0::oid AND t.typlen = -1 THEN 'ARRAY'
      WHEN nbt.nspname = 'pg_catalog' THEN format_type(t.typbasetype, NULL::integer)
      ELSE 'USER-DEFINED'
    END AS data_type,
  information_schema._pg_char_max_length(t.typbasetype, t.typtypmod) AS character_maximum_length,
  information_schema._pg_char_octet_length(t.typbasetype, t.typtypmod) AS character_octet_length,
  NULL::name AS character_set_catalog,
  NULL::name AS character_set_schema,
  NULL::name AS character_set_name,
    CASE
      WHEN nco.nspname IS NOT NULL THEN current_database()
      ELSE NULL::name
    END AS collation_catalog,
  nco.nspname AS collation_schema,
  co.collname AS collation_name,
  information_schema._pg_numeric_precision(t.typbasetype, t.typtypmod) AS numeric_precision,
  information_schema._pg_numeric_precision_radix(t.typbasetype, t.typtypmod) AS numeric_precision_radix,
  information_schema._pg_numeric_scale(t.typbasetype, t.typtypmod) AS numeric_scale,
  information_schema._pg_datetime_precision(t.typbasetype, t.typtypmod) AS datetime_precision,
  information_schema._pg_interval_type(t.typbasetype, t.typtypmod) AS interval_type,
  NULL::integer AS interval_precision,
  t.typdefault AS domain_default,
  current_database() AS udt_catalog,
  nbt.nspname AS udt_schema,
  bt.typname AS udt_name,
  NULL::name AS scope_catalog,
  NULL::name AS scope_schema,
  NULL::name AS scope_name,
  NULL::integer AS maximum_cardinality,
  1 AS dtd_identifier
 FROM pg_type t
  JOIN pg_namespace nt ON t.typnamespace = nt.oid
  JOIN (pg_type bt
  JOIN pg_namespace nbt ON bt.typnamespace = nbt.oid) ON t.typbasetype = bt.oid AND t.typtype = 'd'
  LEFT JOIN (pg_collation co
  JOIN pg_namespace nco ON co.collnamespace = nco.oid) ON t.typcollation = co.oid AND (nco.nspname <> 'pg_catalog' OR co.collname <> 'default')
 WHERE pg_has_role(t.typowner, 'USAGE') OR has_type_privilege(t.oid, 'USAGE')

-- information_schema.element_types
SELECT current_database() AS object_catalog,
  n.nspname AS object_schema,
  x.objname AS object_name,
  x.objtype AS object_type,
  x.objdtdid AS collection_type_identifier,
    CASE
      WHEN nbt.nspname = 'pg_catalog' THEN format_type(bt.oid, NULL::integer)
      ELSE 'USER-DEFINED'
    END AS data_type,
  NULL::integer AS character_maximum_length,
  NULL::integer AS character_octet_length,
  NULL::name AS character_set_catalog,
  NULL::name AS character_set_schema,
  NULL::name AS character_set_name,
    CASE
      WHEN nco.nspname IS NOT NULL THEN current_database()
      ELSE NULL::name
    END AS collation_catalog,
  nco.nspname AS collation_schema,
  co.collname AS collation_name,
  NULL::integer AS numeric_precision,
  NULL::integer AS numeric_precision_radix,
  NULL::integer AS numeric_scale,
  NULL::integer AS datetime_precision,
  NULL::character varying AS interval_type,
  NULL::integer AS interval_precision,
  NULL::character varying AS domain_default,
  current_database() AS udt_catalog,
  nbt.nspname AS udt_schema,
  bt.typname AS udt_name,
  NULL::name AS scope_catalog,
  NULL::name AS scope_schema,
  NULL::name AS scope_name,
  NULL::integer AS maximum_cardinality,
  ('a' || x.objdtdid::text) AS dtd_identifier
 FROM pg_namespace n,
  pg_type at,
  pg_namespace nbt,
  pg_type bt,
  ( SELECT c.relnamespace,
      c.relname AS relname,
        CASE
          WHEN c.relkind = 'c' THEN 'USER-DEFINED TYPE'
          ELSE 'TABLE'
        END AS "case",
      a.attnum,
      a.atttypid,
      a.attcollation
     FROM pg_class c,
      pg_attribute a
     WHERE c.oid = a.attrelid AND (c.relkind IN ('r', 'v', 'f', 'c', 'p')) AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT t.typnamespace,
      t.typname AS typname,
      'DOMAIN' AS text,
      1,
      t.typbasetype,
      t.typcollation
     FROM pg_type t
     WHERE t.typtype = 'd'
    UNION ALL
    SELECT p.pronamespace, nameconcatoid(p.proname, p.oid), 'ROUTINE', k.n::int, k.x, 0
     FROM pg_proc p CROSS JOIN LATERAL unnest(COALESCE(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY AS k(x, n)
    UNION ALL
    SELECT p.pronamespace,
      nameconcatoid(p.proname, p.oid) AS nameconcatoid,
      'ROUTINE' AS text,
      0,
      p.prorettype,
      0
     FROM pg_proc p) x(objschema, objname, objtype, objdtdid, objtypeid, objcollation)
  LEFT JOIN (pg_collation co
  JOIN pg_namespace nco ON co.collnamespace = nco.oid) ON x.objcollation = co.oid AND (nco.nspname <> 'pg_catalog' OR co.collname <> 'default')
 WHERE n.oid = x.objschema AND at.oid = x.objtypeid AND at.typelem <> 0::oid AND at.typlen = -1 AND at.typelem = bt.oid AND nbt.oid = bt.typnamespace
  AND (n.nspname || '.' || x.objname || '.' || x.objtype || '.' || x.objdtdid) IN
    (SELECT d.object_schema || '.' || d.object_name || '.' || d.object_type || '.' || d.dtd_identifier
      FROM information_schema.data_type_privileges d)

-- information_schema.enabled_roles
SELECT a.rolname AS role_name
 FROM pg_authid a
 WHERE pg_has_role(a.oid, 'USAGE')

-- information_schema.information_schema_catalog_name
SELECT current_database() AS catalog_name

-- information_schema.key_column_usage
SELECT current_database(), nc.nspname, c.conname, current_database(), nr.nspname, r.relname, a.attname, k.n,
    CASE WHEN c.contype = 'f' THEN information_schema._pg_index_position(c.conindid, c.confkey[k.n]) END
FROM pg_constraint c
    JOIN pg_class r ON r.oid = c.conrelid
    JOIN pg_namespace nr ON nr.oid = r.relnamespace
    JOIN pg_namespace nc ON nc.oid = c.connamespace
    CROSS JOIN LATERAL unnest(c.conkey) WITH ORDINALITY AS k(x, n)
    JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum = k.x
WHERE c.contype IN ('p', 'u', 'f') AND r.relkind IN ('r', 'p') AND NOT pg_is_other_temp_schema(nr.oid) AND NOT a.attisdropped
    AND (pg_has_role(r.relowner, 'USAGE') OR has_column_privilege(r.oid, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES'))

-- information_schema.parameters
SELECT current_database() AS specific_catalog,
  n.nspname AS specific_schema,
  nameconcatoid(p.proname, p.oid) AS specific_name,
  k.n::int AS ordinal_position,
    CASE
      WHEN p.proargmodes IS NULL THEN 'IN'
      WHEN p.proargmodes[k.n::int] = 'i' THEN 'IN'
      WHEN p.proargmodes[k.n::int] = 'o' THEN 'OUT'
      WHEN p.proargmodes[k.n::int] = 'b' THEN 'INOUT'
      WHEN p.proargmodes[k.n::int] = 'v' THEN 'IN'
      WHEN p.proargmodes[k.n::int] = 't' THEN 'OUT'
      ELSE NULL::text
    END AS parameter_mode,
  'NO' AS is_result,
  'NO' AS as_locator,
  NULLIF(p.proargnames[k.n::int], '') AS parameter_name,
    CASE
      WHEN t.typelem <> 0::oid AND t.typlen = -1 THEN 'ARRAY'
      WHEN nt.nspname = 'pg_catalog' THEN format_type(t.oid, NULL::integer)
      ELSE 'USER-DEFINED'
    END AS data_type,
  NULL::integer AS character_maximum_length,
  NULL::integer AS character_octet_length,
  NULL::name AS character_set_catalog,
  NULL::name AS character_set_schema,
  NULL::name AS character_set_name,
  NULL::name AS collation_catalog,
  NULL::name AS collation_schema,
  NULL::name AS collation_name,
  NULL::integer AS numeric_precision,
  NULL::integer AS numeric_precision_radix,
  NULL::integer AS numeric_scale,
  NULL::integer AS datetime_precision,
  NULL::character varying AS interval_type,
  NULL::integer AS interval_precision,
  current_database() AS udt_catalog,
  nt.nspname AS udt_schema,
  t.typname AS udt_name,
  NULL::name AS scope_catalog,
  NULL::name AS scope_schema,
  NULL::name AS scope_name,
  NULL::integer AS maximum_cardinality,
  k.n::int AS dtd_identifier,
    CASE
      WHEN pg_has_role(p.proowner, 'USAGE') THEN pg_get_function_arg_default(p.oid, k.n::int)
      ELSE NULL::text
    END AS parameter_default
 FROM pg_proc p
  JOIN pg_namespace n ON n.oid = p.pronamespace
  CROSS JOIN LATERAL unnest(COALESCE(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY AS k(x, n)
  JOIN pg_type t ON t.oid = k.x
  JOIN pg_namespace nt ON nt.oid = t.typnamespace
 WHERE pg_has_role(p.proowner, 'USAGE') OR has_function_privilege(p.oid, 'EXECUTE')

-- information_schema.referential_constraints
SELECT current_database(), ncon.nspname, con.conname,
    CASE WHEN npkc.nspname IS NOT NULL THEN current_database() END, npkc.nspname, pkc.conname,
    CASE con.confmatchtype WHEN 'f' THEN 'FULL' WHEN 'p' THEN 'PARTIAL' WHEN 's' THEN 'NONE' END,
    CASE con.confupdtype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' WHEN 'r' THEN 'RESTRICT'
        WHEN 'a' THEN 'NO ACTION' END,
    CASE con.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' WHEN 'r' THEN 'RESTRICT'
        WHEN 'a' THEN 'NO ACTION' END
FROM pg_constraint con
    JOIN pg_namespace ncon ON ncon.oid = con.connamespace
    JOIN pg_class c ON c.oid = con.conrelid
    LEFT JOIN pg_constraint pkc ON pkc.conindid = con.conindid AND pkc.contype IN ('p', 'u') AND pkc.conrelid = con.confrelid
    LEFT JOIN pg_namespace npkc ON npkc.oid = pkc.connamespace
WHERE con.contype = 'f' AND (pg_has_role(c.relowner, 'USAGE')
    OR has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
    OR has_any_column_privilege(c.oid, 'INSERT, UPDATE, REFERENCES'))

-- information_schema.role_column_grants
SELECT column_privileges.grantor,
  column_privileges.grantee,
  column_privileges.table_catalog,
  column_privileges.table_schema,
  column_privileges.table_name,
  column_privileges.column_name,
  column_privileges.privilege_type,
  column_privileges.is_grantable
 FROM information_schema.column_privileges
 WHERE (column_privileges.grantor::name IN ( SELECT enabled_roles.role_name
     FROM information_schema.enabled_roles)) OR (column_privileges.grantee::name IN ( SELECT enabled_roles.role_name
     FROM information_schema.enabled_roles))

-- information_schema.role_routine_grants
SELECT routine_privileges.grantor,
  routine_privileges.grantee,
  routine_privileges.specific_catalog,
  routine_privileges.specific_schema,
  routine_privileges.specific_name,
  routine_privileges.routine_catalog,
  routine_privileges.routine_schema,
  routine_privileges.routine_name,
  routine_privileges.privilege_type,
  routine_privileges.is_grantable
 FROM information_schema.routine_privileges
 WHERE (routine_privileges.grantor::name IN ( SELECT enabled_roles.role_name
     FROM information_schema.enabled_roles)) OR (routine_privileges.grantee::name IN ( SELECT enabled_roles.role_name
     FROM information_schema.enabled_roles))

-- information_schema.role_table_grants
SELECT table_privileges.grantor,
  table_privileges.grantee,
  table_privileges.table_catalog,
  table_privileges.table_schema,
  table_privileges.table_name,
  table_privileges.privilege_type,
  table_privileges.is_grantable,
  table_privileges.with_hierarchy
 FROM information_schema.table_privileges
 WHERE (table_privileges.grantor::name IN ( SELECT enabled_roles.role_name
     FROM information_schema.enabled_roles)) OR (table_privileges.grantee::name IN ( SELECT enabled_roles.role_name
     FROM information_schema.enabled_roles))

-- information_schema.role_udt_grants
SELECT udt_privileges.grantor,
  udt_privileges.grantee,
  udt_privileges.udt_catalog,
  udt_privileges.udt_schema,
  udt_privileges.udt_name,
  udt_privileges.privilege_type,
  udt_privileges.is_grantable
 FROM information_schema.udt_privileges
 WHERE (udt_privileges.grantor::name IN ( SELECT enabled_roles.role_name
     FROM information_schema.enabled_roles)) OR (udt_privileges.grantee::name IN ( SELECT enabled_roles.role_name
     FROM information_schema.enabled_roles))

-- information_schema.role_usage_grants
SELECT usage_privileges.grantor,
  usage_privileges.grantee,
  usage_privileges.object_catalog,
  usage_privileges.object_schema,
  usage_privileges.object_name,
  usage_privileges.object_type,
  usage_privileges.privilege_type,
  usage_privileges.is_grantable
 FROM information_schema.usage_privileges
 WHERE (usage_privileges.grantor::name IN ( SELECT enabled_roles.role_name
     FROM information_schema.enabled_roles)) OR (usage_privileges.grantee::name IN ( SELECT enabled_roles.role_name
     FROM information_schema.enabled_roles))

-- information_schema.routine_privileges
SELECT u.rolname, g.rolname, current_database(), n.nspname, nameconcatoid(p.proname, p.oid),
    current_database(), n.nspname, p.proname, 'EXECUTE',
    CASE WHEN pg_has_role(g.oid, p.proowner, 'USAGE') OR e.is_grantable THEN 'YES' ELSE 'NO' END
FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    CROSS JOIN LATERAL aclexplode(COALESCE(p.proacl, acldefault('f', p.proowner))) AS e
    JOIN pg_authid u ON u.oid = e.grantor
    JOIN (SELECT oid, rolname FROM pg_authid UNION ALL SELECT 0, 'PUBLIC') AS g(oid, rolname) ON g.oid = e.grantee
WHERE e.privilege_type = 'EXECUTE' AND (pg_has_role(u.oid, 'USAGE') OR pg_has_role(g.oid, 'USAGE') OR g.rolname = 'PUBLIC')

-- information_schema.routines
SELECT current_database() AS specific_catalog,
  n.nspname AS specific_schema,
  nameconcatoid(p.proname, p.oid) AS specific_name,
  current_database() AS routine_catalog,
  n.nspname AS routine_schema,
  p.proname AS routine_name,
    CASE p.prokind
      WHEN 'f' THEN 'FUNCTION'
      WHEN 'p' THEN 'PROCEDURE'
      ELSE NULL::text
    END AS routine_type,
  NULL::name AS module_catalog,
  NULL::name AS module_schema,
  NULL::name AS module_name,
  NULL::name AS udt_catalog,
  NULL::name AS udt_schema,
  NULL::name AS udt_name,
    CASE
      WHEN p.prokind = 'p' THEN NULL::text
      WHEN t.typelem <> 0::oid AND t.typlen = -1 THEN 'ARRAY'
      WHEN nt.nspname = 'pg_catalog' THEN format_type(t.oid, NULL::integer)
      ELSE 'USER-DEFINED'
    END AS data_type,
  NULL::integer AS character_maximum_length,
  NULL::integer AS character_octet_length,
  NULL::name AS character_set_catalog,
  NULL::name AS character_set_schema,
  NULL::name AS character_set_name,
  NULL::name AS collation_catalog,
  NULL::name AS collation_schema,
  NULL::name AS collation_name,
  NULL::integer AS numeric_precision,
  NULL::integer AS numeric_precision_radix,
  NULL::integer AS numeric_scale,
  NULL::integer AS datetime_precision,
  NULL::character varying AS interval_type,
  NULL::integer AS interval_precision,
    CASE
      WHEN nt.nspname IS NOT NULL THEN current_database()
      ELSE NULL::name
    END AS type_udt_catalog,
  nt.nspname AS type_udt_schema,
  t.typname AS type_udt_name,
  NULL::name AS scope_catalog,
  NULL::name AS scope_schema,
  NULL::name AS scope_name,
  NULL::integer AS maximum_cardinality,
    CASE
      WHEN p.prokind <> 'p' THEN 0
      ELSE NULL::integer
    END AS dtd_identifier,
    CASE
      WHEN l.lanname = 'sql' THEN 'SQL'
      ELSE 'EXTERNAL'
    END AS routine_body,
    CASE
      WHEN pg_has_role(p.proowner, 'USAGE') THEN p.prosrc
      ELSE NULL::text
    END AS routine_definition,
    CASE
      WHEN l.lanname = 'c' THEN p.prosrc
      ELSE NULL::text
    END AS external_name,
  upper(l.lanname::text) AS external_language,
  'GENERAL' AS parameter_style,
    CASE
      WHEN p.provolatile = 'i' THEN 'YES'
      ELSE 'NO'
    END AS is_deterministic,
  'MODIFIES' AS sql_data_access,
    CASE
      WHEN p.prokind <> 'p' THEN
      CASE
        WHEN p.proisstrict THEN 'YES'
        ELSE 'NO'
      END
      ELSE NULL::text
    END AS is_null_call,
  NULL::character varying AS sql_path,
  'YES' AS schema_level_routine,
  0 AS max_dynamic_result_sets,
  NULL::character varying AS is_user_defined_cast,
  NULL::character varying AS is_implicitly_invocable,
    CASE
      WHEN p.prosecdef THEN 'DEFINER'
      ELSE 'INVOKER'
    END AS security_type,
  NULL::name AS to_sql_specific_catalog,
  NULL::name AS to_sql_specific_schema,
  NULL::name AS to_sql_specific_name,
  'NO' AS as_locator,
  NULL::timestamp with time zone AS created,
  NULL::timestamp with time zone AS last_altered,
  NULL::character varying AS new_savepoint_level,
  'NO' AS is_udt_dependent,
  NULL::character varying AS result_cast_from_data_type,
  NULL::character varying AS result_cast_as_locator,
  NULL::integer AS result_cast_char_max_length,
  NULL::integer AS result_cast_char_octet_length,
  NULL::name AS result_cast_char_set_catalog,
  NULL::name AS result_cast_char_set_schema,
  NULL::name AS result_cast_char_set_name,
  NULL::name AS result_cast_collation_catalog,
  NULL::name AS result_cast_collation_schema,
  NULL::name AS result_cast_collation_name,
  NULL::integer AS result_cast_numeric_precision,
  NULL::integer AS result_cast_numeric_precision_radix,
  NULL::integer AS result_cast_numeric_scale,
  NULL::integer AS result_cast_datetime_precision,
  NULL::character varying AS result_cast_interval_type,
  NULL::integer AS result_cast_interval_precision,
  NULL::name AS result_cast_type_udt_catalog,
  NULL::name AS result_cast_type_udt_schema,
  NULL::name AS result_cast_type_udt_name,
  NULL::name AS result_cast_scope_catalog,
  NULL::name AS result_cast_scope_schema,
  NULL::name AS result_cast_scope_name,
  NULL::integer AS result_cast_maximum_cardinality,
  NULL::name AS result_cast_dtd_identifier
 FROM pg_namespace n
  JOIN pg_proc p ON n.oid = p.pronamespace
  JOIN pg_language l ON p.prolang = l.oid
  LEFT JOIN (pg_type t
  JOIN pg_namespace nt ON t.typnamespace = nt.oid) ON p.prorettype = t.oid AND p.prokind <> 'p'
 WHERE pg_has_role(p.proowner, 'USAGE') OR has_function_privilege(p.oid, 'EXECUTE')

-- information_schema.schemata
SELECT current_database() AS catalog_name,
  n.nspname AS schema_name,
  u.rolname AS schema_owner,
  NULL::name AS default_character_set_catalog,
  NULL::name AS default_character_set_schema,
  NULL::name AS default_character_set_name,
  NULL::character varying AS sql_path
 FROM pg_namespace n,
  pg_authid u
 WHERE n.nspowner = u.oid AND (pg_has_role(n.nspowner, 'USAGE') OR has_schema_privilege(n.oid, 'CREATE, USAGE'))

-- information_schema.sequences
SELECT current_database() AS sequence_catalog,
  nc.nspname AS sequence_schema,
  c.relname AS sequence_name,
  format_type(s.seqtypid, NULL::integer) AS data_type,
  information_schema._pg_numeric_precision(s.seqtypid, -1) AS numeric_precision,
  2 AS numeric_precision_radix,
  0 AS numeric_scale,
  s.seqstart AS start_value,
  s.seqmin AS minimum_value,
  s.seqmax AS maximum_value,
  s.seqincrement AS increment,
    CASE
      WHEN s.seqcycle THEN 'YES'
      ELSE 'NO'
    END AS cycle_option
 FROM pg_namespace nc,
  pg_class c,
  pg_sequence s
 WHERE c.relnamespace = nc.oid AND c.relkind = 'S' AND NOT (EXISTS ( SELECT 1
     FROM pg_depend
     WHERE pg_depend.classid = 1259 AND pg_depend.objid = c.oid AND pg_depend.deptype = 'i')) AND NOT pg_is_other_temp_schema(nc.oid) AND c.oid = s.seqrelid AND (pg_has_role(c.relowner, 'USAGE') OR has_sequence_privilege(c.oid, 'SELECT, UPDATE, USAGE'))

-- information_schema.table_constraints
SELECT current_database() AS constraint_catalog,
  nc.nspname AS constraint_schema,
  c.conname AS constraint_name,
  current_database() AS table_catalog,
  nr.nspname AS table_schema,
  r.relname AS table_name,
    CASE c.contype
      WHEN 'c' THEN 'CHECK'
      WHEN 'f' THEN 'FOREIGN KEY'
      WHEN 'p' THEN 'PRIMARY KEY'
      WHEN 'u' THEN 'UNIQUE'
      ELSE NULL::text
    END AS constraint_type,
    CASE
      WHEN c.condeferrable THEN 'YES'
      ELSE 'NO'
    END AS is_deferrable,
    CASE
      WHEN c.condeferred THEN 'YES'
      ELSE 'NO'
    END AS initially_deferred,
  'YES' AS enforced,
    CASE
      WHEN c.contype = 'u' THEN
      CASE
        WHEN ( SELECT NOT pg_index.indnullsnotdistinct
         FROM pg_index
         WHERE pg_index.indexrelid = c.conindid) THEN 'YES'
        ELSE 'NO'
      END
      ELSE NULL::text
    END AS nulls_distinct
 FROM pg_namespace nc,
  pg_namespace nr,
  pg_constraint c,
  pg_class r
 WHERE nc.oid = c.connamespace AND nr.oid = r.relnamespace AND c.conrelid = r.oid AND (c.contype <> ALL (ARRAY['t', 'x'])) AND (r.relkind IN ('r', 'p')) AND NOT pg_is_other_temp_schema(nr.oid) AND (pg_has_role(r.relowner, 'USAGE') OR has_table_privilege(r.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') OR has_any_column_privilege(r.oid, 'INSERT, UPDATE, REFERENCES'))
UNION ALL
SELECT current_database() AS constraint_catalog,
  nr.nspname AS constraint_schema,
  (((((nr.oid::text || '_') || r.oid::text) || '_') || a.attnum::text) || '_not_null') AS constraint_name,
  current_database() AS table_catalog,
  nr.nspname AS table_schema,
  r.relname AS table_name,
  'CHECK' AS constraint_type,
  'NO' AS is_deferrable,
  'NO' AS initially_deferred,
  'YES' AS enforced,
  NULL::character varying AS nulls_distinct
 FROM pg_namespace nr,
  pg_class r,
  pg_attribute a
 WHERE nr.oid = r.relnamespace AND r.oid = a.attrelid AND a.attnotnull AND a.attnum > 0 AND NOT a.attisdropped AND (r.relkind IN ('r', 'p')) AND NOT pg_is_other_temp_schema(nr.oid) AND (pg_has_role(r.relowner, 'USAGE') OR has_table_privilege(r.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') OR has_any_column_privilege(r.oid, 'INSERT, UPDATE, REFERENCES'))

-- information_schema.table_privileges
SELECT u.rolname, g.rolname, current_database(), nc.nspname, c.relname, e.privilege_type,
    CASE WHEN pg_has_role(g.oid, c.relowner, 'USAGE') OR e.is_grantable THEN 'YES' ELSE 'NO' END,
    CASE WHEN e.privilege_type = 'SELECT' THEN 'YES' ELSE 'NO' END
FROM pg_class c
    JOIN pg_namespace nc ON nc.oid = c.relnamespace
    CROSS JOIN LATERAL aclexplode(COALESCE(c.relacl, acldefault('r', c.relowner))) AS e
    JOIN pg_authid u ON u.oid = e.grantor
    JOIN (SELECT oid, rolname FROM pg_authid UNION ALL SELECT 0, 'PUBLIC') AS g(oid, rolname) ON g.oid = e.grantee
WHERE c.relkind IN ('r', 'v', 'f', 'p')
    AND e.privilege_type IN ('INSERT', 'SELECT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER')
    AND (pg_has_role(u.oid, 'USAGE') OR pg_has_role(g.oid, 'USAGE') OR g.rolname = 'PUBLIC')

-- information_schema.tables
SELECT current_database() AS table_catalog,
  nc.nspname AS table_schema,
  c.relname AS table_name,
    CASE
      WHEN nc.oid = pg_my_temp_schema() THEN 'LOCAL TEMPORARY'
      WHEN c.relkind IN ('r', 'p') THEN 'BASE TABLE'
      WHEN c.relkind = 'v' THEN 'VIEW'
      WHEN c.relkind = 'f' THEN 'FOREIGN'
      ELSE NULL::text
    END AS table_type,
  NULL::name AS self_referencing_column_name,
  NULL::character varying AS reference_generation,
    CASE
      WHEN t.typname IS NOT NULL THEN current_database()
      ELSE NULL::name
    END AS user_defined_type_catalog,
  nt.nspname AS user_defined_type_schema,
  t.typname AS user_defined_type_name,
    CASE
      WHEN (c.relkind IN ('r', 'p')) OR (c.relkind IN ('v', 'f')) AND (pg_relation_is_updatable(c.oid::regclass, false) & 8) = 8 THEN 'YES'
      ELSE 'NO'
    END AS is_insertable_into,
    CASE
      WHEN t.typname IS NOT NULL THEN 'YES'
      ELSE 'NO'
    END AS is_typed,
  NULL::character varying AS commit_action
 FROM pg_namespace nc
  JOIN pg_class c ON nc.oid = c.relnamespace
  LEFT JOIN (pg_type t
  JOIN pg_namespace nt ON t.typnamespace = nt.oid) ON c.reloftype = t.oid
 WHERE (c.relkind IN ('r', 'v', 'f', 'p')) AND NOT pg_is_other_temp_schema(nc.oid) AND (pg_has_role(c.relowner, 'USAGE') OR has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))

-- information_schema.udt_privileges
SELECT u.rolname, g.rolname, current_database(), n.nspname, t.typname, 'TYPE USAGE',
    CASE WHEN pg_has_role(g.oid, t.typowner, 'USAGE') OR e.is_grantable THEN 'YES' ELSE 'NO' END
FROM pg_type t
    JOIN pg_namespace n ON n.oid = t.typnamespace
    CROSS JOIN LATERAL aclexplode(COALESCE(t.typacl, acldefault('T', t.typowner))) AS e
    JOIN pg_authid u ON u.oid = e.grantor
    JOIN (SELECT oid, rolname FROM pg_authid UNION ALL SELECT 0, 'PUBLIC') AS g(oid, rolname) ON g.oid = e.grantee
WHERE t.typtype = 'c' AND e.privilege_type = 'USAGE'
    AND (pg_has_role(u.oid, 'USAGE') OR pg_has_role(g.oid, 'USAGE') OR g.rolname = 'PUBLIC')

-- information_schema.usage_privileges
SELECT u.rolname, 'PUBLIC', current_database(), n.nspname, c.collname, 'COLLATION', 'USAGE', 'NO'
FROM pg_authid u, pg_namespace n, pg_collation c
WHERE u.oid = c.collowner AND c.collnamespace = n.oid AND c.collencoding IN (-1, 6)
UNION ALL
SELECT u.rolname, g.rolname, current_database(), n.nspname, t.typname, 'DOMAIN', 'USAGE',
    CASE WHEN pg_has_role(g.oid, t.typowner, 'USAGE') OR e.is_grantable THEN 'YES' ELSE 'NO' END
FROM pg_type t
    JOIN pg_namespace n ON n.oid = t.typnamespace
    CROSS JOIN LATERAL aclexplode(COALESCE(t.typacl, acldefault('T', t.typowner))) AS e
    JOIN pg_authid u ON u.oid = e.grantor
    JOIN (SELECT oid, rolname FROM pg_authid UNION ALL SELECT 0, 'PUBLIC') AS g(oid, rolname) ON g.oid = e.grantee
WHERE t.typtype = 'd' AND e.privilege_type = 'USAGE'
    AND (pg_has_role(u.oid, 'USAGE') OR pg_has_role(g.oid, 'USAGE') OR g.rolname = 'PUBLIC')
UNION ALL
SELECT u.rolname, g.rolname, current_database(), n.nspname, c.relname, 'SEQUENCE', 'USAGE',
    CASE WHEN pg_has_role(g.oid, c.relowner, 'USAGE') OR e.is_grantable THEN 'YES' ELSE 'NO' END
FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL aclexplode(COALESCE(c.relacl, acldefault('r', c.relowner))) AS e
    JOIN pg_authid u ON u.oid = e.grantor
    JOIN (SELECT oid, rolname FROM pg_authid UNION ALL SELECT 0, 'PUBLIC') AS g(oid, rolname) ON g.oid = e.grantee
WHERE c.relkind = 'S' AND e.privilege_type = 'USAGE'
    AND (pg_has_role(u.oid, 'USAGE') OR pg_has_role(g.oid, 'USAGE') OR g.rolname = 'PUBLIC')

-- information_schema.user_defined_types
SELECT current_database() AS user_defined_type_catalog,
  n.nspname AS user_defined_type_schema,
  c.relname AS user_defined_type_name,
  'STRUCTURED' AS user_defined_type_category,
  'YES' AS is_instantiable,
  NULL::character varying AS is_final,
  NULL::character varying AS ordering_form,
  NULL::character varying AS ordering_category,
  NULL::name AS ordering_routine_catalog,
  NULL::name AS ordering_routine_schema,
  NULL::name AS ordering_routine_name,
  NULL::character varying AS reference_type,
  NULL::character varying AS data_type,
  NULL::integer AS character_maximum_length,
  NULL::integer AS character_octet_length,
  NULL::name AS character_set_catalog,
  NULL::name AS character_set_schema,
  NULL::name AS character_set_name,
  NULL::name AS collation_catalog,
  NULL::name AS collation_schema,
  NULL::name AS collation_name,
  NULL::integer AS numeric_precision,
  NULL::integer AS numeric_precision_radix,
  NULL::integer AS numeric_scale,
  NULL::integer AS datetime_precision,
  NULL::character varying AS interval_type,
  NULL::integer AS interval_precision,
  NULL::name AS source_dtd_identifier,
  NULL::name AS ref_dtd_identifier
 FROM pg_namespace n,
  pg_class c,
  pg_type t
 WHERE n.oid = c.relnamespace AND t.typrelid = c.oid AND c.relkind = 'c' AND (pg_has_role(t.typowner, 'USAGE') OR has_type_privilege(t.oid, 'USAGE'))

-- information_schema.view_column_usage
SELECT DISTINCT current_database() AS view_catalog,
  nv.nspname AS view_schema,
  v.relname AS view_name,
  current_database() AS table_catalog,
  nt.nspname AS table_schema,
  t.relname AS table_name,
  a.attname AS column_name
 FROM pg_namespace nv,
  pg_class v,
  pg_depend dv,
  pg_depend dt,
  pg_class t,
  pg_namespace nt,
  pg_attribute a
 WHERE nv.oid = v.relnamespace AND v.relkind = 'v' AND v.oid = dv.refobjid AND dv.refclassid = 1259 AND dv.classid = 2618 AND dv.deptype = 'i' AND dv.objid = dt.objid AND dv.refobjid <> dt.refobjid AND dt.classid = 2618 AND dt.refclassid = 1259 AND dt.refobjid = t.oid AND t.relnamespace = nt.oid AND (t.relkind IN ('r', 'v', 'f', 'p')) AND t.oid = a.attrelid AND dt.refobjsubid = a.attnum AND pg_has_role(t.relowner, 'USAGE')

-- information_schema.view_table_usage
SELECT DISTINCT current_database() AS view_catalog,
  nv.nspname AS view_schema,
  v.relname AS view_name,
  current_database() AS table_catalog,
  nt.nspname AS table_schema,
  t.relname AS table_name
 FROM pg_namespace nv,
  pg_class v,
  pg_depend dv,
  pg_depend dt,
  pg_class t,
  pg_namespace nt
 WHERE nv.oid = v.relnamespace AND v.relkind = 'v' AND v.oid = dv.refobjid AND dv.refclassid = 1259 AND dv.classid = 2618 AND dv.deptype = 'i' AND dv.objid = dt.objid AND dv.refobjid <> dt.refobjid AND dt.classid = 2618 AND dt.refclassid = 1259 AND dt.refobjid = t.oid AND t.relnamespace = nt.oid AND (t.relkind IN ('r', 'v', 'f', 'p')) AND pg_has_role(t.relowner, 'USAGE')

-- information_schema.views
SELECT current_database() AS table_catalog,
  nc.nspname AS table_schema,
  c.relname AS table_name,
    CASE
      WHEN pg_has_role(c.relowner, 'USAGE') THEN pg_get_viewdef(c.oid)
      ELSE NULL::text
    END AS view_definition,
    CASE
      WHEN 'check_option=cascaded' = ANY (c.reloptions) THEN 'CASCADED'
      WHEN 'check_option=local' = ANY (c.reloptions) THEN 'LOCAL'
      ELSE 'NONE'
    END AS check_option,
    CASE
      WHEN (pg_relation_is_updatable(c.oid::regclass, false) & 20) = 20 THEN 'YES'
      ELSE 'NO'
    END AS is_updatable,
    CASE
      WHEN (pg_relation_is_updatable(c.oid::regclass, false) & 8) = 8 THEN 'YES'
      ELSE 'NO'
    END AS is_insertable_into,
    CASE
      WHEN (EXISTS ( SELECT 1
       FROM pg_trigger
       WHERE pg_trigger.tgrelid = c.oid AND (pg_trigger.tgtype::integer & 81) = 81)) THEN 'YES'
      ELSE 'NO'
    END AS is_trigger_updatable,
    CASE
      WHEN (EXISTS ( SELECT 1
       FROM pg_trigger
       WHERE pg_trigger.tgrelid = c.oid AND (pg_trigger.tgtype::integer & 73) = 73)) THEN 'YES'
      ELSE 'NO'
    END AS is_trigger_deletable,
    CASE
      WHEN (EXISTS ( SELECT 1
       FROM pg_trigger
       WHERE pg_trigger.tgrelid = c.oid AND (pg_trigger.tgtype::integer & 69) = 69)) THEN 'YES'
      ELSE 'NO'
    END AS is_trigger_insertable_into
 FROM pg_namespace nc,
  pg_class c
 WHERE c.relnamespace = nc.oid AND c.relkind = 'v' AND NOT pg_is_other_temp_schema(nc.oid) AND (pg_has_role(c.relowner, 'USAGE') OR has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))
