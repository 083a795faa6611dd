#!/usr/bin/env bash
# tests/rights.py and tests/rights_scenarios.py against `clearway serve` and a PostgreSQL 15 of its own. The last line is `N passed, N failed`.
#
# usage: tests/rights.sh PATH-TO-clearway
set -u
. "$(dirname "$0")/server.sh"
home=$(realpath "$(dirname "$0")")
bin=/usr/lib/postgresql/15/bin
scratch=$(mktemp -d)
chmod 755 "$scratch"
server=
as_postgres=()
if [ "$(id -u)" = 0 ]; then as_postgres=(runuser -u postgres --); mkdir "$scratch/pg"; chown postgres "$scratch/pg"; fi
trap '"${as_postgres[@]}" "$bin/pg_ctl" -D "$scratch/pg" -m immediate stop >/dev/null 2>&1
    [ -n "$server" ] && kill $server 2>/dev/null; wait 2>/dev/null; rm -rf "$scratch"' EXIT
start_server "$(realpath "$1")" "$scratch/serve.log" --data "$scratch/data"
cd "$scratch" || exit 1
"${as_postgres[@]}" "$bin/initdb" -D "$scratch/pg" -U postgres --auth=trust --no-sync --locale=C.UTF-8 >"$scratch/initdb.log" 2>&1
# A port that somebody has by now is not taken: the next one is tried.
other=
for try in 1 2 3 4 5 6 7 8 9; do
    if "${as_postgres[@]}" "$bin/pg_ctl" -D "$scratch/pg" -w -l "$scratch/pg/log" \
        -o "-p $((port + 7 * try)) -h 127.0.0.1 -k $scratch/pg -F" start >/dev/null 2>&1; then
        other=$((port + 7 * try))
        break
    fi
done
if [ -z "$port" ] || [ -z "$other" ]; then
    cat "$scratch/initdb.log" "$scratch/pg/log" "$scratch/serve.log"
    echo "0 passed, 1 failed"
    exit 1
fi
python3 "$home/rights.py" "$port" "$other" >"$scratch/matrix" 2>&1
python3 "$home/rights_scenarios.py" "$port" "$other" >"$scratch/scenarios" 2>&1
passed=0 failed=0
for part in matrix scenarios; do
    sed '$d' "$scratch/$part"
    last=$(tail -n 1 "$scratch/$part")
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
    else
        echo "$part: $last"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
