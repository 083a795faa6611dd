#!/usr/bin/env bash
# pg_dump of Clearway: plain, and in the custom and directory forms, of which pg_restore makes the same script. Objects
# stand behind those that they need, though their names come first. The last line is `N passed, N failed`.
#
# usage: tests/dump.sh PATH-TO-clearway
set -u
. "$(dirname "$0")/server.sh"
scratch=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill $server 2>/dev/null; wait 2>/dev/null; rm -rf "$scratch"' EXIT
start_server "$(realpath "$1")" "$scratch/serve.log" --data "$scratch/data"
if [ -z "$port" ]; then
    cat "$scratch/serve.log"
    echo "0 passed, 1 failed"
    exit 1
fi
export PGHOST=127.0.0.1 PGPORT=$port PGUSER=postgres
passed=0 failed=0
verdict() {
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    echo "pg_dump $2 ... $([ "$1" = 0 ] && echo ok || echo FAILED)"
}
# What pg_dump says of a database, without the keys that differ from run to run.
dump() { pg_dump "$@" 2>"$scratch/errors" | grep -vE '^\\(un)?restrict '; cat "$scratch/errors" >&2; }

psql -X -q -d postgres -c 'CREATE DATABASE original' -c 'CREATE ROLE dump_reader'
psql -X -q -v ON_ERROR_STOP=1 -d original >"$scratch/objects.log" <<'SQL'
CREATE SCHEMA shop;
CREATE TABLE shop.customer(id serial PRIMARY KEY, name text NOT NULL, born date, note varchar(40) DEFAULT 'none', CHECK (id > 0));
CREATE TABLE shop."order"(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer int REFERENCES shop.customer ON DELETE CASCADE,
    price numeric(10,2), paid boolean, at timestamptz, raw bytea, UNIQUE (customer, at));
CREATE INDEX by_price ON shop."order"(price DESC) INCLUDE (paid);
CREATE VIEW shop.a_open AS SELECT id, price FROM shop."order" WHERE NOT paid;
CREATE VIEW shop.a_first AS SELECT id FROM shop.a_open;
CREATE SEQUENCE shop.number START 7 INCREMENT 3 MAXVALUE 1000 CYCLE;
SELECT nextval('shop.number');
INSERT INTO shop.customer(name, born) SELECT 'name ' || n, date '2000-01-01' + n FROM generate_series(1, 200) AS n;
INSERT INTO shop."order"(customer, price, paid, at, raw)
    SELECT n % 200 + 1, n / 7.0, n % 2 = 0, timestamptz '2024-01-01 00:00+00' + n * interval '1 minute', '\x00ff'::bytea FROM generate_series(1, 500) AS n;
INSERT INTO shop.customer(name) VALUES (E'tab\t, line\n, quote '' and \\');
GRANT SELECT ON shop.customer TO dump_reader;
SET search_path = shop;
CREATE FUNCTION taxed(p numeric, rate numeric DEFAULT 0.2) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT AS 'SELECT p * (1 + rate)';
CREATE FUNCTION of_customer(c int) RETURNS SETOF "order" LANGUAGE sql STABLE SECURITY DEFINER SET search_path = shop AS 'SELECT * FROM "order" WHERE customer = c';
CREATE FUNCTION open_count() RETURNS bigint BEGIN ATOMIC SELECT count(*) FROM shop.a_open; END;
CREATE PROCEDURE pay(n bigint) LANGUAGE sql AS 'UPDATE shop."order" SET paid = true WHERE id = n';
REVOKE EXECUTE ON FUNCTION taxed FROM PUBLIC;
GRANT EXECUTE ON FUNCTION taxed TO dump_reader;
CREATE VIEW a_taxed AS SELECT id, taxed(price) AS total FROM "order";
CREATE TABLE rate(id int, rate numeric DEFAULT taxed(1, 0.5), CHECK (taxed(rate) > 0));
CREATE INDEX by_tax ON "order" (taxed(price, 0.1));
CREATE FUNCTION masked(numeric, integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT $1::integer & $2';
CREATE OPERATOR & (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = masked);
CREATE FUNCTION near(numeric, integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT abs($1 - $2) < 1';
CREATE OPERATOR = (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = near, RESTRICT = eqsel, JOIN = eqjoinsel, COMMUTATOR = =, NEGATOR = <~>);
CREATE OPERATOR @#@ (RIGHTARG = int8, FUNCTION = factorial);
COMMENT ON OPERATOR & (numeric, integer) IS 'a mask';
CREATE VIEW a_masked AS SELECT id, price & 6 AS own, id & 6::bigint AS plain, (price - 1.0 = 2) IS TRUE AS near, @#@ 4 AS many FROM "order";
CREATE TABLE mask(a numeric, b int DEFAULT 7.0 & 5, c int GENERATED ALWAYS AS (a & 3) STORED, CHECK (a & 8 = 0));
CREATE INDEX by_mask ON mask ((a & 1));
CREATE FUNCTION masks(n numeric) RETURNS boolean RETURN n & 5 = 5 AND n - 1.0 = 6;
CREATE EXTENSION citext SCHEMA public;
CREATE EXTENSION hstore;
CREATE TABLE place(at point DEFAULT '(1,2)', around box, corners box[], way path, area polygon, line line, side lseg, near circle, CHECK (around @> at));
INSERT INTO place VALUES (DEFAULT, '(3,3),(0,0)', '{(1,1),(0,0);(2,2),(1,1)}', '[(0,0),(1,1)]', '((0,0),(1,1))', '{1,2,3}', '[(0,0),(1,1)]', '<(0,0),0.1>');
CREATE TABLE account(name public.citext PRIMARY KEY, alias public.citext[] DEFAULT '{}', tags hstore DEFAULT 'kind=>user', CHECK (name <> 'NOBODY'));
INSERT INTO account(name, alias, tags) VALUES ('Anna', '{An,"b c"}', '"x"=>"a\"b", y=>NULL'), ('bert', DEFAULT, DEFAULT);
CREATE INDEX by_kind ON account ((tags -> 'kind'));
SELECT lo_from_bytea(70001, decode(repeat('00ff10', 3000), 'hex')), lo_create(70002);
SELECT lo_put(70002, 5000, 'sparse');
ALTER LARGE OBJECT 70002 OWNER TO dump_reader;
GRANT SELECT ON LARGE OBJECT 70001 TO dump_reader;
COMMENT ON LARGE OBJECT 70001 IS 'a large object';
SQL
dump original >"$scratch/original.sql"
[ -s "$scratch/original.sql" ] && ! [ -s "$scratch/errors" ]
verdict $? "without an error"

before() { [ "$(grep -n "$1" "$scratch/original.sql" | head -n 1 | cut -d: -f1)" -lt "$(grep -n "$2" "$scratch/original.sql" | head -n 1 | cut -d: -f1)" ]; }
before 'CREATE VIEW shop.a_open' 'CREATE VIEW shop.a_first' && before 'ADD CONSTRAINT customer_pkey' 'ADD CONSTRAINT order_customer_fkey'
verdict $? "in the order in which objects need each other"
[ "$(sed -n '/^COPY shop.customer /,/^\\\.$/p' "$scratch/original.sql" | wc -l)" = 203 ] && grep -q 'setval(.shop.number., 7, true)' "$scratch/original.sql"
verdict $? "with rows and the values of sequences"
! grep 'COMMENT ON SCHEMA public' "$scratch/original.sql"
verdict $? "without a word of the schema with which every database begins"
! grep -qE 'CREATE (TYPE|FUNCTION|OPERATOR|CAST|AGGREGATE) (public|shop).(citext|hstore|akeys|~~)' "$scratch/original.sql" &&
    grep -q 'CREATE EXTENSION IF NOT EXISTS hstore WITH SCHEMA shop' "$scratch/original.sql" && grep -q 'name public.citext NOT NULL' "$scratch/original.sql"
verdict $? "of extensions by their names, without what they bring"
for form in c d; do
    pg_dump -F$form original -f "$scratch/form.$form" && pg_restore -f "$scratch/script.$form" "$scratch/form.$form"
    # The kinds of archives say no more than the script, but for comments about themselves.
    diff <(grep -vE '^(--|\\(un)?restrict |$)' "$scratch/original.sql") <(grep -vE '^(--|\\(un)?restrict |$)' "$scratch/script.$form") | head -n 20
    cmp -s <(grep -vE '^(--|\\(un)?restrict |$)' "$scratch/original.sql") <(grep -vE '^(--|\\(un)?restrict |$)' "$scratch/script.$form")
    verdict $? "in the form $form, through pg_restore"
done
pg_dump -j3 -Fd original -f "$scratch/form.j" && pg_restore -f "$scratch/script.j" "$scratch/form.j"
cmp -s <(grep -vE '^(--|\\(un)?restrict |$)' "$scratch/original.sql") <(grep -vE '^(--|\\(un)?restrict |$)' "$scratch/script.j")
verdict $? "by three jobs, through pg_restore"
psql -X -q -d postgres -c 'CREATE DATABASE restored'
psql -X -q -v ON_ERROR_STOP=1 -d restored -f "$scratch/original.sql" >"$scratch/restored.log" 2>&1
grep ERROR "$scratch/restored.log"
[ "$(psql -X -At -d restored -c "SELECT shop.open_count(), (SELECT sum(total) > 0 FROM shop.a_taxed)")" = '250|t' ]
verdict $? "restored: functions, and what calls them"
own="SELECT id, own, plain, near, many FROM shop.a_masked WHERE own + plain > 5 OR near ORDER BY 1"
[ "$(psql -X -At -d restored -c "$own" | wc -l)" -gt 100 ] && [ "$(psql -X -At -d restored -c "$own")" = "$(psql -X -At -d original -c "$own")" ] &&
    [ "$(psql -X -At -d restored -c 'INSERT INTO shop.mask(a) VALUES (6.4)' -c 'SELECT b, c FROM shop.mask' -c 'SELECT shop.masks(7.6)')" = $'INSERT 0 1\n5|2\nf' ]
verdict $? "restored: operators, and what names them"
dump restored >"$scratch/restored.sql"
[ "$(grep OPERATOR "$scratch/restored.sql")" = "$(grep OPERATOR "$scratch/original.sql")" ] && grep -q 'OPERATOR(shop.=)' "$scratch/original.sql"
verdict $? "of operators, the same from what was restored"
[ "$(psql -X -At -d restored -c "SELECT name, alias, tags, tags OPERATOR(shop.->) 'x' FROM shop.account WHERE name = 'ANNA'")" = 'Anna|{An,"b c"}|"x"=>"a\"b", "y"=>NULL|a"b' ]
verdict $? "restored: columns of an extension's types"
# What there is of large objects: numbers, owners, rights, comments, bytes.
large() { psql -X -At -d "$1" -c "SELECT oid, lomowner::regrole, lomacl, obj_description(oid, 'pg_largeobject'), md5(lo_get(oid)) FROM pg_largeobject_metadata ORDER BY 1"; }
[ "$(large original | wc -l)" = 2 ] && [ "$(large restored)" = "$(large original)" ]
verdict $? "restored: large objects from a script"
psql -X -q -d postgres -c 'CREATE DATABASE from_archive' -c 'CREATE DATABASE without_blobs'
pg_restore -d from_archive "$scratch/form.c" 2>"$scratch/errors"
[ "$(large from_archive)" = "$(large original)" ]
verdict $? "restored: large objects from an archive, by the function call message"
pg_dump --no-blobs -Fc original | pg_restore -d without_blobs 2>>"$scratch/errors"
[ -z "$(large without_blobs)" ] && [ "$(psql -X -At -d without_blobs -c 'SELECT count(*) FROM shop.customer')" = 201 ]
verdict $? "without large objects, by --no-blobs"
# Restored by jobs: rights on one table and on its columns are given by several sessions at once, and none is lost.
psql -X -q -d postgres -c 'CREATE DATABASE granted' -c 'CREATE DATABASE granted_by_jobs'
{
    echo 'CREATE TABLE wide(key int PRIMARY KEY);'
    for n in $(seq 60); do echo "ALTER TABLE wide ADD COLUMN c$n int; GRANT SELECT (c$n), UPDATE (c$n) ON wide TO dump_reader; COMMENT ON COLUMN wide.c$n IS 'column $n';"; done
    echo 'GRANT INSERT ON wide TO dump_reader; GRANT CREATE ON SCHEMA public TO dump_reader; CREATE INDEX ON wide(c1); CREATE INDEX ON wide(c2);'
} | psql -X -q -v ON_ERROR_STOP=1 -d granted
# The rights that there are on a table and on its columns, each with its column.
rights() { psql -X -At -d "$1" -c "SELECT '', relacl FROM pg_class WHERE relname = 'wide' UNION ALL SELECT attname, attacl FROM pg_attribute WHERE attrelid = 'wide'::regclass AND attacl IS NOT NULL ORDER BY 1"; }
pg_dump -Fc granted -f "$scratch/granted.c" && pg_restore -j4 -d granted_by_jobs "$scratch/granted.c" 2>"$scratch/errors"
cat "$scratch/errors"
! [ -s "$scratch/errors" ] && [ "$(rights granted | wc -l)" = 61 ] && [ "$(rights granted_by_jobs)" = "$(rights granted)" ]
verdict $? "restored by four jobs: no right is lost"
# after CHANGE STATEMENTS: runs the statements in a session while another one has made a change that it commits when they wait.
after() {
    coproc changer { psql -X -q -At -d granted; }
    echo "BEGIN; $1; SELECT 'changed';" >&"${changer[1]}" && read -t 60 -r said <&"${changer[0]}"
    psql -X -q -d granted -c "$2" >"$scratch/waited" 2>&1 &
    local waiter=$!
    until [ "$(psql -X -At -d granted -c "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")" = 1 ]; do sleep 0.1; done
    echo 'COMMIT;' >&"${changer[1]}"
    exec {changer[1]}>&-
    wait "$waiter"
    cat "$scratch/waited"
}
after 'ALTER TABLE wide ADD COLUMN late int' 'GRANT TRUNCATE ON wide TO dump_reader'
! [ -s "$scratch/waited" ] && [ "$(psql -X -At -d granted -c "SELECT late IS NULL, has_table_privilege('dump_reader', 'wide', 'TRUNCATE') FROM wide RIGHT JOIN (SELECT 1) one ON true")" = 't|t' ]
verdict $? "of a GRANT behind ALTER TABLE: neither is lost"
psql -X -q -d granted -c 'REVOKE TRUNCATE ON wide FROM dump_reader'
coproc granter { psql -X -q -At -d granted; }
echo "BEGIN; GRANT SELECT ON wide TO PUBLIC; GRANT INSERT (key) ON wide TO dump_reader; SELECT 'granted';" >&"${granter[1]}" && read -t 60 -r said <&"${granter[0]}"
psql -X -q -d granted -c 'GRANT DELETE ON wide TO dump_reader' -c 'GRANT UPDATE (key) ON wide TO PUBLIC' -c 'ALTER TABLE wide OWNER TO dump_reader' >"$scratch/waited" 2>&1 &
until [ "$(psql -X -At -d granted -c "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")" = 1 ]; do sleep 0.1; done
echo 'COMMIT;' >&"${granter[1]}"
exec {granter[1]}>&-
wait $!
cat "$scratch/waited"
! [ -s "$scratch/waited" ] && [ "$(psql -X -At -d granted -c "SELECT relacl FROM pg_class WHERE relname = 'wide'" -c "SELECT attacl FROM pg_attribute WHERE attrelid = 'wide'::regclass AND attname = 'key'")" = $'{dump_reader=arwdDxt/dump_reader,=r/dump_reader}\n{dump_reader=a/dump_reader,=w/dump_reader}' ]
verdict $? "of rights that two sessions give at once has all"
psql -X -q -d original -c 'CREATE TABLE shop.used AS SELECT 70002::oid AS picture' && vacuumlo original >"$scratch/vacuumlo.log" 2>&1
[ "$(psql -X -At -d original -c 'SELECT oid FROM pg_largeobject_metadata')" = 70002 ]
verdict $? "vacuumlo removes the large objects that no column names"

# Under one snapshot: money that moves between two tables meanwhile is in one of them.
psql -X -q -d postgres -c 'CREATE DATABASE moving'
psql -X -q -v ON_ERROR_STOP=1 -d moving <<'SQL'
CREATE TABLE a (id int PRIMARY KEY, amount bigint NOT NULL, filler text);
CREATE TABLE b (LIKE a INCLUDING ALL);
INSERT INTO a SELECT n, 1000, repeat('x', 200) FROM generate_series(1, 5000) AS n;
INSERT INTO b SELECT * FROM a;
SQL
coproc holder { psql -X -q -At -d moving; }
ask() { echo "$1" >&"${holder[1]}" && read -t 60 -r said <&"${holder[0]}"; }
ask 'BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SELECT sum(amount) FROM a;'
in_a=$said
ask 'SELECT pg_export_snapshot();'
snapshot=$said
while [ ! -e "$scratch/enough" ]; do
    echo "BEGIN; UPDATE a SET amount = amount - 1 WHERE id = $((RANDOM % 5000 + 1)); UPDATE b SET amount = amount + 1 WHERE id = $((RANDOM % 5000 + 1)); COMMIT;"
done | psql -X -q -d moving >/dev/null 2>&1 &
mover=$!
until [ "$(psql -X -At -d moving -c 'SELECT sum(amount) < 4999900 FROM a')" = t ]; do sleep 0.1; done
# restored NAME OPTIONS...: dumps what moves, and says what the copy's tables hold.
restored() {
    local name=$1
    shift
    pg_dump "$@" -Fd moving -f "$scratch/$name" 2>"$scratch/errors" && psql -X -q -d postgres -c "CREATE DATABASE $name" && pg_restore -d "$name" "$scratch/$name" &&
        psql -X -At -d "$name" -c 'SELECT sum(amount) FROM a' -c 'SELECT sum(amount) FROM b' | paste -sd ' '
    cat "$scratch/errors" >&2
}
read -r of_a of_b <<<"$(restored by_jobs -j2)"
[ "$in_a" = 5000000 ] && [ "$((of_a + of_b))" = 10000000 ] && [ "$of_a" -lt 4999900 ]
verdict $? "by two jobs, of one moment: $of_a + $of_b"
read -r of_a of_b <<<"$(restored by_snapshot -j2 --snapshot="$snapshot")"
[ "$of_a" = "$in_a" ] && [ "$((of_a + of_b))" = 10000000 ]
verdict $? "by two jobs, of the snapshot that another session has exported: $of_a + $of_b"
ask 'COMMIT; SELECT 1;'
! pg_dump --snapshot="$snapshot" moving >/dev/null 2>"$scratch/errors" && grep -q "invalid snapshot identifier: \"$snapshot\"" "$scratch/errors"
verdict $? "of a snapshot whose transaction has ended is refused"
touch "$scratch/enough"
exec {holder[1]}>&-
wait "$mover" 2>/dev/null
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
