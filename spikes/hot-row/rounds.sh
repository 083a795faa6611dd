#!/bin/bash
# One round of the whole comparison: rounds.sh OUT.tsv ROUND [COMMAND that keeps the machine quiet...]
# Repeat it with ROUND = 1, 2, 3: the rounds are what interleaves the servers. Then: bench.py --medians OUT.tsv
out=$1 round=$2; shift 2
quiet=("$@")
ulimit -n 20000
cells() { for cell in $2; do for server in $1; do echo "$server:$cell"; done; done; }
run() { "${quiet[@]}" python3 bench.py "$out" "$round" 2 "$@" || echo "FAILED: $*"; }
run $(cells "tokio own" "1:auto 10:auto 100:auto 1000:auto 5000:auto 1:block 10:block 100:block 1000:block 5000:block")
run $(cells "tokio own" "10:auto:readers 100:auto:readers 1000:auto:readers 10:block:readers 100:block:readers 1000:block:readers") own-flat:100:block:readers
run $(cells "tokio tokio-1w own thread inline last-group direct" "1:auto 100:block") block:1:auto block:100:auto direct:100:auto
run $(cells "const pg" "1:auto 10:auto 100:auto") const:1000:auto const:1:auto:readers const:100:auto:readers $(cells pg "1:block 10:block 100:block")
run pg:1000:auto pg:1000:block
pinned="tokio-pinned own-pinned"
run const-pinned:1:auto const-pinned:1:auto:readers $(cells "$pinned" "100:block 100:auto 100:auto:readers") $(cells "$pinned own-flat-pinned" "100:block:readers")
