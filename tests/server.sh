# Sourced by the scripts beside it.

# start_server CLEARWAY LOG OPTIONS...: serves on a free port of loopback and waits until it listens. Sets `server` to its process and `port`, which
# is empty if it did not come up: the log says why.
start_server() {
    local clearway=$1 log=$2
    shift 2
    "$clearway" serve "$@" --listen 127.0.0.1:0 >"$log" 2>&1 &
    server=$!
    port=
    for _ in $(seq 200); do
        port=$(grep -oE -- '-p [0-9]+' "$log" 2>/dev/null | head -n 1 | cut -d' ' -f2)
        [ -n "$port" ] && break
        sleep 0.1
    done
}

# library_directory CLEARWAY DIRECTORY: makes the directory, or opens it and adds a table, as a program with the library inside does; `clearway
# import` is such a program.
library_directory() {
    local file made
    file=$(mktemp)
    python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute(f"CREATE TABLE {sys.argv[2]} (a INTEGER PRIMARY KEY)")' \
        "$file" "from_sqlite_$RANDOM" &&
        "$1" import sqlite "$file" --data "$2" >"$file.log" 2>&1
    made=$?
    [ "$made" = 0 ] || { echo "the library could not make $2:"; cat "$file.log"; } >&2
    rm -f "$file" "$file.log"
    return "$made"
}
