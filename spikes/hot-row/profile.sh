#!/bin/bash
# Where the server's CPU goes: profile.sh "SERVER FLAGS" CLIENTS MODE   (needs perf and the scripts that bench.py wrote)
scratch=${HOTROW:-/tmp/hotrow}
ulimit -n 20000
coproc server { exec "${HOTROW_BIN:-target/release/hot-row}" serve $1 --port 16544 --log "$scratch/ring.log"; }
read -r _ <&"${server[0]}"
pgbench -n -M prepared -h 127.0.0.1 -p 16544 -U postgres -c "$2" -j 2 -T 4 -f "$scratch/$3.sql" postgres > "$scratch/profile.txt" &
client=$!
sleep 2
perf record -q -e cpu-clock -F 1999 -g -o "$scratch/perf.data" -p "$server_PID" -- sleep 1.5 > /dev/null 2>&1
wait $client
grep '^tps' "$scratch/profile.txt"
kill "$server_PID"
perf report -i "$scratch/perf.data" --no-children -g none --percent-limit 1.2 --stdio 2> /dev/null | grep -v '^#' | grep -v '^$' | head -25
perf report -i "$scratch/perf.data" --children -g none --stdio --percent-limit 3 2> /dev/null | grep -E 'x64_sys|do_syscall|softirq|hot_row|tokio' | head -30
