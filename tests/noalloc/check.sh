#!/bin/sh
# Runs core without an allocator, and shows that an allocation would be noticed.
# Usage: tests/noalloc/check.sh (in any directory; CARGO_TARGET_DIR is honoured)
set -eu
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

fail() {
    echo "noalloc: $1" >&2
    exit 1
}

build() {
    cargo build --quiet --locked -p garret-noalloc "$@"
}

if [ "$(uname -sm)" = "Linux x86_64" ]; then
    build --profile freestanding
    "$target/freestanding/garret-noalloc" || fail "freestanding: check $? failed"
    if build --profile freestanding --features _leak 2>"$log"; then
        fail "freestanding: a program that allocates was linked"
    fi
    grep -q "no global memory allocator" "$log" || {
        cat "$log" >&2
        fail "freestanding: the allocating program failed for another reason, see above"
    }
fi

build --release --features _leak
status=0
"$target/release/garret-noalloc" || status=$?
[ "$status" = 255 ] || fail "hosted: an allocation gave exit code $status, not 255"
build --release
"$target/release/garret-noalloc" || fail "hosted: check $? failed"
echo "noalloc: core runs without an allocator"
