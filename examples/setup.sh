# What quickstart.sh and tests/run.sh share: messages, build tools, models. Sourced by bash
# scripts that have set `root` to the top of the clone; does nothing by itself.

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

die() {
    say "$*"
    exit 1
}

# Some service managers start scripts without HOME.
export HOME="${HOME:-$(cd ~ && pwd)}"

has() { command -v "$1" >/dev/null 2>&1; }

# bindgen opens libclang at build time; a compiler alone doesn't bring it.
has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    local found
    for found in /usr/lib/llvm-*/lib/libclang*.so* /usr/lib/*/libclang*.so* \
        /usr/lib/libclang*.so* /usr/lib64/libclang*.so* /usr/local/lib/libclang*.so*; do
        [ -e "$found" ] && return 0
    done
    return 1
}

# Debian packages that are needed and aren't there, one a line: for the models, and (asked with
# `build`) for compiling llama.cpp and its bindings.
missing_tools() {
    has python3 || echo python3
    python3 -m pip --version >/dev/null 2>&1 || echo python3-pip
    [ "$1" = build ] || return 0
    if ! has c++ || ! has make; then echo build-essential; fi
    has cmake || echo cmake
    has_libclang || echo libclang-dev
}

# What makes it faster or helps optional features; its absence never stops a build.
missing_helpers() {
    has ccache || echo ccache
    has pkg-config || echo pkg-config
}

# Runs apt-get as root, with the user's knowledge.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

apt_install() {
    as_root apt-get update -qq >&2 || say "apt-get update failed; trying with the lists at hand"
    as_root apt-get install -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends "$@" >&2
}

# Rust isn't Debian's: its package is older than what this workspace needs.
ensure_rust() {
    has cargo || PATH="$HOME/.cargo/bin:$PATH"
    local least found
    least=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")
    has cargo || die "Rust is missing: install Rust $least or newer with rustup, run again"
    found=$(rustc --version | cut -d' ' -f2)
    [ "$(printf '%s\n' "$least" "$found" | sort -V | head -n 1)" = "$least" ] ||
        die "Rust $found is too old: $least or newer is needed (rustup update), run again"
}

# Installs through apt what is missing for `fetch` or `build`; silent when nothing is.
ensure_tools() {
    local goal=$1 need want=
    need=$(missing_tools "$goal" | xargs)
    [ "$goal" != build ] || want=$(missing_helpers | xargs)
    [ -n "$need$want" ] || return 0
    if [ -z "$need" ] && { [ "$(id -u)" -ne 0 ] || ! has apt-get; }; then
        return 0 # helpers aren't worth asking for a password
    fi
    has apt-get || die "these are missing, and there is no apt-get to install them: $need"
    if [ "$(id -u)" -ne 0 ]; then
        has sudo || die "these are missing: as root, run: apt-get install $need"
        say "sudo may ask for your password to install packages"
    fi
    say "installing with apt-get: $need $want"
    # shellcheck disable=SC2086 # lists of package names
    apt_install $need $want || say "apt-get could not install everything"
    need=$(missing_tools "$goal" | xargs)
    [ -z "$need" ] || die "still missing: $need. Install them (apt-get install $need), run again"
}

models_dir() {
    printf '%s\n' "${GARRET_MODELS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/garret/models}"
}

# Brings the named models and prints their paths, one a line.
fetch_models() {
    python3 "$root/examples/models.py" "$@"
}

# The folder cargo builds into, whatever chose it: environment, configuration or default.
target_dir() {
    local facts
    facts=$(cargo metadata --no-deps --format-version 1 --manifest-path "$root/Cargo.toml") ||
        die "cargo can't read this workspace, see above"
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])' <<<"$facts"
}

# llama.cpp's build takes ccache by itself when it is in the path. These two let a clone use what
# another one compiled, though paths below the build folder differ.
share_ccache() {
    has ccache || return 0
    CCACHE_BASEDIR="${CCACHE_BASEDIR:-$(target_dir)}"
    export CCACHE_BASEDIR CCACHE_NOHASHDIR="${CCACHE_NOHASHDIR:-1}"
}
