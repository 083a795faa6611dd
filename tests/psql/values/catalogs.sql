-- information_schema, the functions about rights and definitions, and the types that show an oid by a name.
CREATE SCHEMA seen;
CREATE TABLE seen.parent(a int, b varchar(20), c numeric(8,2) DEFAULT 1.5, PRIMARY KEY (a, b));
CREATE TABLE seen.child(id serial PRIMARY KEY, pa int, pb varchar(20) NOT NULL, at timestamp(3), UNIQUE (pb),
    CONSTRAINT belongs FOREIGN KEY (pa, pb) REFERENCES seen.parent(a, b) ON DELETE CASCADE);
CREATE VIEW seen.both_of AS SELECT p.a, c.id FROM seen.parent p JOIN seen.child c ON c.pa = p.a;
SELECT table_name, table_type, is_insertable_into FROM information_schema.tables WHERE table_schema = 'seen' AND table_type = 'BASE TABLE' ORDER BY 1;
SELECT c.table_name, c.column_name, ordinal_position, is_nullable, data_type, character_maximum_length AS chars, numeric_precision AS digits,
    numeric_scale AS scale, datetime_precision AS fraction, udt_name FROM information_schema.columns c WHERE table_schema = 'seen' ORDER BY 1, 3;
SELECT constraint_name, table_name, constraint_type FROM information_schema.table_constraints
    WHERE table_schema = 'seen' AND constraint_type <> 'CHECK' ORDER BY 1;
SELECT constraint_name, column_name, ordinal_position, position_in_unique_constraint FROM information_schema.key_column_usage
    WHERE table_schema = 'seen' ORDER BY 1, 3;
SELECT constraint_name, unique_constraint_name, match_option, update_rule, delete_rule FROM information_schema.referential_constraints
    WHERE constraint_schema = 'seen';
SELECT sequence_name, data_type, start_value, maximum_value, increment, cycle_option FROM information_schema.sequences WHERE sequence_schema = 'seen';
SELECT table_name, view_name FROM information_schema.view_table_usage WHERE view_schema = 'seen' ORDER BY 1;
SELECT conname, conindid::regclass, conkey, confkey FROM pg_constraint WHERE connamespace = 'seen'::regnamespace AND contype <> 'c' ORDER BY 1;
SELECT pg_get_serial_sequence('seen.child', 'id'), to_regclass('seen.none'), to_regtype('int4'), to_regrole('nobody_here');
SELECT 'pg_catalog.now()'::regprocedure, '+(int4,int4)'::regoperator, 'lower(text)'::regprocedure::oid, 1242::regproc, 'trigger'::regtype;
SELECT 'sum'::regproc;
SELECT 'none_such'::regproc;
SELECT has_table_privilege('seen.child', 'SELECT, INSERT'), has_column_privilege('seen.child', 'pb', 'UPDATE'), has_schema_privilege('seen', 'USAGE'),
    has_table_privilege('seen.child', 'FLY');
SELECT has_sequence_privilege('seen.child_id_seq', 'USAGE'), pg_has_role('pg_monitor', 'MEMBER'), has_table_privilege(1::oid, 'SELECT');
SELECT privilege_type, is_grantable FROM aclexplode(acldefault('r', 10)) ORDER BY 1;
SELECT catcode, count(*) FROM pg_get_keywords() GROUP BY 1 ORDER BY 1;
SELECT pg_get_function_arguments('substr(text,int,int)'::regprocedure), pg_get_function_result('generate_series(int,int)'::regprocedure);
SELECT tableoid::regclass, relname FROM pg_class WHERE oid = 'pg_type'::regclass;
SELECT ('abc'::name)[0], ('abc'::name)[2];
SELECT typname, typlen, typinput, typcategory, typdelim FROM pg_type WHERE typname IN ('int4', 'text', 'bool', '_int4') ORDER BY 1;
SELECT oprname, oprleft::regtype, oprright::regtype, oprresult::regtype, oprcode FROM pg_operator WHERE oid IN (96, 97, 551) ORDER BY 1, 2;
SELECT castsource::regtype, casttarget::regtype, castcontext FROM pg_cast WHERE castsource = 23 AND casttarget IN (20, 21, 701) ORDER BY 2;
SET client_min_messages = warning;
DROP SCHEMA seen CASCADE;
