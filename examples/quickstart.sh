#!/usr/bin/env bash
# From a bare Debian machine to a chat with a local model, in one command:
#
#     examples/quickstart.sh [--fetch-only | --no-start] [arguments of `garret chat`]
#
#   --fetch-only   bring the models, build nothing
#   --no-start     do everything but start the chat
#
# Needs Rust, Python 3 with pip, and apt for what else is missing (a C++ compiler, cmake, libclang).
# Environment:
#   GARRET_MODEL       a GGUF chat model of your own; the starter model isn't fetched then
#   GARRET_MODELS_DIR  where models live (default: garret/models in the user's cache)
#   GARRET_FEATURES    Cargo features of the build: cuda, vulkan, metal, openmp
#
# The starter models are SmolLM2-135M-Instruct (98 MB) and the embedder all-MiniLM-L6-v2
# (46 MB), both under Apache-2.0. They come from Python packages pinned by version and checksum,
# because a package index is the one source of large files that a machine with pip can always
# reach, through whatever mirror or proxy it is set up with. After this, nothing uses the network.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=examples/setup.sh
. "$root/examples/setup.sh"

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "${BASH_SOURCE[0]}"; }

# ggml's x86 build assumes AVX2 unless told to look at the machine, and its ARM build uses no
# dot-product instructions. What is built here runs here, so let the compiler look.
native_flags() {
    [ -z "${RUSTFLAGS:-}${CARGO_ENCODED_RUSTFLAGS:-}${CARGO_BUILD_RUSTFLAGS:-}" ] || return 0
    case "$(uname -m)" in
    aarch64) ;;
    x86_64) ! grep -qw avx2 /proc/cpuinfo 2>/dev/null || return 0 ;;
    *) return 0 ;;
    esac
    export RUSTFLAGS="-C target-cpu=native"
}

build() {
    say "building (the first build compiles llama.cpp: minutes on a PC, longer on a small board)"
    native_flags
    share_ccache
    build_or_explain cargo build --release --locked --manifest-path "$root/Cargo.toml" -p garret-cli \
        ${GARRET_FEATURES:+--features "$GARRET_FEATURES"} ||
        die "the build failed: the first error above says why; run again to go on from there"
}

until=start
case "${1:-}" in
--fetch-only) until=fetch && shift ;;
--no-start) until=build && shift ;;
-h | --help) usage && exit ;;
esac

if [ -n "${GARRET_MODEL:-}" ]; then
    [ -f "$GARRET_MODEL" ] || die "GARRET_MODEL names $GARRET_MODEL, which isn't a file"
fi
if [ "$until" = fetch ]; then
    ensure_tools fetch
else
    ensure_rust
    ensure_tools build
fi
if [ -z "${GARRET_MODEL:-}" ]; then
    GARRET_MODEL=$(fetch_models chat)
fi
fetch_models embedder >/dev/null
export GARRET_MODEL
say "chat model: $GARRET_MODEL"
[ "$until" != fetch ] || exit 0

build
garret=$(target_dir)/release/garret
[ "$until" != build ] || { say "built: $garret" && exit 0; }
exec "$garret" chat "$@"
