#!/usr/bin/env bash
# Every check of the project, in one command:
#
#     tests/run.sh [--no-extra-models]
#
# Sets up what a bare machine lacks (build tools through apt, models through pip), then runs, in
# this order, and stops at the first stage that fails: the tree's own rules, formatting, lints,
# all tests, the proof that core needs no allocator, licences of dependencies, documentation.
#
#   --no-extra-models  leave out the second model family (Gemma 3 270M, 240 MB, under the Gemma
#                      Terms of Use, for tests alone); its tests are then skipped
#
# Environment: CARGO_TARGET_DIR, CCACHE_DIR and GARRET_MODELS_DIR are honoured. Models and the
# compiler cache live in the user's cache folder, outside the clone.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=examples/setup.sh
. "$root/examples/setup.sh"

models=(chat embedder second-family)
case "${1:-}" in
"") ;;
--no-extra-models) models=(chat embedder) && skip=1 ;;
-h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "${BASH_SOURCE[0]}" && exit ;;
*) die "unknown argument $1; tests/run.sh --help lists what there is" ;;
esac
cd "$root"

# Runs one stage under a heading and says how long it took.
stage() {
    local name=$1 began=$SECONDS
    shift
    printf '\n== %s\n' "$name"
    "$@" || die "stage failed: $name (exit code $?)"
    printf '== %s: passed in %d s\n' "$name" $((SECONDS - began))
}

tools() {
    ensure_rust
    ensure_tools build
    cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 && return 0
    say "adding rustfmt and clippy with rustup"
    rustup component add rustfmt clippy >&2 ||
        die "rustfmt or clippy is missing: rustup component add rustfmt clippy, run again"
}

# Tests see the models' folder and nothing else of the user's own settings.
bring_models() {
    fetch_models "${models[@]}" || return
    GARRET_TEST_MODELS=$(cd "$(models_dir)" && pwd) || return
    local name
    for name in $(compgen -e GARRET_); do
        [ "$name" = GARRET_TEST_MODELS ] || unset "$name"
    done
    export GARRET_TEST_MODELS
    [ -z "${skip:-}" ] || export GARRET_TEST_SKIP=1
}

# Without debug information llama.cpp builds and links faster, and its objects are the same as a
# release build's, so that ccache has them for both. What panics here still names its line.
trim_builds() {
    export CARGO_PROFILE_DEV_DEBUG="${CARGO_PROFILE_DEV_DEBUG:-line-tables-only}"
    export LLAMA_LIB_PROFILE="${LLAMA_LIB_PROFILE:-Release}"
    export RUST_BACKTRACE=1
    # The same cases in every run; another number, and PROPTEST_CASES=5000, look further.
    export PROPTEST_RNG_SEED="${PROPTEST_RNG_SEED:-20261129}"
    share_ccache
}

lints() {
    build_or_explain cargo clippy --locked --workspace --all-targets -- -D warnings
}

# The tests of whole programs run the binary, so it is built first: with the same selection of
# packages and targets as everything else, since another one would give build dependencies other
# features and compile llama.cpp once more.
workspace_tests() {
    cargo build --locked --workspace --all-targets &&
        cargo test --locked --workspace --no-fail-fast 2>&1 | tee "$log"
}

documentation() {
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps
}

# Adds up what the test programs reported.
totals() {
    awk '/^test result:/ { passed += $4; failed += $6; skipped += $8 }
        END { printf "\n%d passed, %d failed, %d skipped\n", passed, failed, skipped
              exit passed == 0 || failed > 0 }' "$log"
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
began=$SECONDS
stage "tools" tools
stage "models" bring_models
trim_builds
stage "files" python3 tests/hygiene.py files
stage "licences" python3 tests/hygiene.py licences
stage "rooms" python3 tests/rooms.py
stage "manual" python3 tests/hygiene.py manual
stage "one build of llama.cpp" python3 tests/hygiene.py builds
stage "set-up" python3 tests/setup.py
stage "formatting" cargo fmt --all --check
stage "lints" lints
stage "tests" workspace_tests
stage "no allocator in core" tests/noalloc/check.sh
stage "documentation" documentation
printf '\nall stages passed in %d s\n' $((SECONDS - began))
totals
