#!/bin/bash
# Puts the C library where compilers find it: PREFIX/lib/libclearway_c.so, PREFIX/include/clearway.h, PREFIX/lib/pkgconfig/clearway.pc.
# usage: embedded/c/install.sh PREFIX [LIBRARY]   LIBRARY: by default what `cargo build --release -p clearway-c` has made
set -eu
[ $# -ge 1 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
here=$(realpath "$(dirname "$0")")
mkdir -p "$1/lib/pkgconfig" "$1/include"
prefix=$(realpath "$1")
library=${2:-${CARGO_TARGET_DIR:-$here/../../target}/release/libclearway_c.so}
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml")
install -m 644 "$library" "$prefix/lib/libclearway_c.so"
install -m 644 "$here/include/clearway.h" "$prefix/include/clearway.h"
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" "$here/clearway.pc.in" >"$prefix/lib/pkgconfig/clearway.pc"
