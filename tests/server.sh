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
