#!/usr/bin/env bash
# CPython's tests of sqlite3 (Lib/test/test_sqlite3 of Debian's source package python3.11; no binary package has them), fetched by apt with a
# configuration of its own, so that the machine's list of sources stays as it is. They are kept in a cache directory outside the repository
# ($CLEARWAY_CPYTHON, default ~/.cache/clearway/cpython-source).
#
# usage: tests/cpython-source.sh      prints the cache directory, which holds version and test_sqlite3/
set -u
cache=${CLEARWAY_CPYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/clearway/cpython-source}
if [ -s "$cache/version" ]; then
    echo "$cache"
    exit
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
apt=$scratch/apt
mkdir -p "$apt/etc" "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/src" "$cache"
printf 'Types: deb-src\nURIs: http://deb.debian.org/debian\nSuites: bookworm\nComponents: main\nSigned-By: %s\n' \
    /usr/share/keyrings/debian-archive-keyring.gpg >"$apt/etc/source.sources"
options=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$apt/etc" -o "Dir::State::lists=$apt/lists"
    -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
# Only the source as CPython released it: Debian's changes do not touch these tests.
(timeout 300 apt-get -q "${options[@]}" update && cd "$apt/src" &&
    timeout 300 apt-get -q "${options[@]}" source --download-only --tar-only python3.11) >"$scratch/apt.log" 2>&1 ||
    { cat "$scratch/apt.log" >&2; exit 1; }
tar -xf "$apt"/src/python3.11_*.orig.tar.* -C "$apt/src" --wildcards '*/Lib/test/test_sqlite3/*' || exit 1
rm -rf "$cache/test_sqlite3"
cp -r "$apt"/src/*/Lib/test/test_sqlite3 "$cache/" || exit 1
archive=$(basename "$apt"/src/python3.11_*.orig.tar.*)
archive=${archive#python3.11_}
echo "${archive%%.orig.*}" >"$cache/version"
echo "$cache"
