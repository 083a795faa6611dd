#!/usr/bin/env bash
# The test suites of PostgreSQL's source (Debian's source package postgresql-15), fetched by apt with a configuration of its own, so that the machine's
# list of sources stays as it is. They are kept in a cache directory outside the repository ($CLEARWAY_SUITE, default ~/.cache/clearway/postgres-source).
#
# usage: tests/postgres-source.sh      prints the cache directory, which holds version, isolation/ and regress/ (src/test of the source)
set -u
cache=${CLEARWAY_SUITE:-${XDG_CACHE_HOME:-$HOME/.cache}/clearway/postgres-source}
if [ -s "$cache/version" ] && [ -s "$cache/regress/sql/rolenames.sql" ]; then
    echo "$cache"
    exit
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
apt=$scratch/apt
mkdir -p "$apt/etc" "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/src" "$cache"
for suites in "debian bookworm bookworm-updates" "debian-security bookworm-security"; do
    set -- $suites
    printf 'Types: deb-src\nURIs: http://deb.debian.org/%s\nSuites: %s\nComponents: main\nSigned-By: %s\n\n' \
        "$1" "${*:2}" /usr/share/keyrings/debian-archive-keyring.gpg
done >"$apt/etc/source.sources"
options=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$apt/etc" -o "Dir::State::lists=$apt/lists"
    -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
timeout 300 apt-get -q "${options[@]}" update >"$scratch/apt.log" 2>&1 || { cat "$scratch/apt.log" >&2; exit 1; }
# The newest first; a mirror may not have that of the security archive.
versions=$(apt-cache "${options[@]}" showsrc postgresql-15 | sed -n 's/^Version: //p' | sort -Vru)
for version in $versions; do
    if (cd "$apt/src" && timeout 300 apt-get -q "${options[@]}" source --download-only "postgresql-15=$version") >"$scratch/apt.log" 2>&1; then
        tar -xf "$apt"/src/postgresql-15_*.orig.tar.* -C "$apt/src" --wildcards '*/src/test/isolation/*' '*/src/test/regress/*' \
            '*/src/test/modules/unsafe_tests/*' || exit 1
        rm -rf "$cache/isolation" "$cache/regress"
        cp -r "$apt"/src/postgresql-*/src/test/{isolation,regress} "$cache/" || exit 1
        # Since version 10 these stand apart, because they need a server of their own.
        cp "$apt"/src/postgresql-*/src/test/modules/unsafe_tests/sql/*.sql "$cache/regress/sql/" || exit 1
        echo "$version" >"$cache/version"
        echo "$cache"
        exit
    fi
    echo "postgres-source: postgresql-15 $version can't be fetched: $(grep -m 1 '^E:' "$scratch/apt.log")" >&2
done
exit 1
