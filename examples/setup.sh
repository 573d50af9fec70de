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

# Each `can_` proves the very thing that a build or a download uses, since a command's name in the
# path says little: packages are half removed, too old, or shims of a tool that isn't there.

# True if a program of C or C++ compiles and links: `$1` is the compiler, `$2` the language.
can_compile() {
    local folder done=1
    folder=$(mktemp -d)
    if [ "$2" = c ]; then
        printf '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n'
    else
        printf '#include <string>\n#include <thread>\nint main() { std::thread([] {}).join(); }\n'
    fi >"$folder/probe.$2"
    # shellcheck disable=SC2086 # CC and CXX may hold arguments, "ccache c++" say
    if $1 -pthread -o "$folder/probe" "$folder/probe.$2" >/dev/null 2>&1 && "$folder/probe" >/dev/null; then
        done=0
    fi
    rm -rf "$folder"
    return "$done"
}

can_make() {
    [ -n "$(printf 'all:\n\t@echo made\n' | make -f - 2>/dev/null)" ]
}

# llama.cpp's CMakeLists.txt asks for 3.14.
can_configure() {
    local found
    found=$("${CMAKE:-cmake}" --version 2>/dev/null | sed -n '1s/^cmake version \([0-9.]*\).*/\1/p')
    [ -n "$found" ] && [ "$(printf '3.14\n%s\n' "$found" | sort -V | head -n 1)" = 3.14 ]
}

# models.py names the oldest Python that it runs on; checksums and packages need the rest.
can_run_python() {
    python3 -c 'import sys, hashlib, zipfile, zlib; sys.exit(sys.version_info < (3, 9))' 2>/dev/null
}

can_download() {
    python3 -c 'import ssl' 2>/dev/null && python3 -m pip download --help >/dev/null 2>&1
}

# bindgen opens libclang at build time; a compiler alone doesn't bring it.
can_bind() {
    python3 "$root/examples/libclang.py" >/dev/null 2>&1
}

# Where the libclang that bindgen would take is broken and another one works, names that one to it.
choose_libclang() {
    local found
    found=$(python3 "$root/examples/libclang.py" 2>/dev/null) || return 0
    case "$found" in other*) export LIBCLANG_PATH="${found#* }" ;; esac
}

# Debian packages that are needed and aren't there, one a line: for the models, and (asked with
# `build`) for compiling llama.cpp and its bindings.
missing_tools() {
    can_run_python || echo python3
    can_download || echo python3-pip
    [ "$1" = build ] || return 0
    if ! can_compile "${CC:-cc}" c || ! can_compile "${CXX:-c++}" cpp || ! can_make; then
        echo build-essential
    fi
    can_configure || echo cmake
    can_bind || echo libclang-dev
}

# What makes it faster or helps optional features; its absence never stops a build.
missing_helpers() {
    ccache --version >/dev/null 2>&1 || echo ccache
    pkg-config --version >/dev/null 2>&1 || echo pkg-config
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

# Packages that are there by name and don't work: half configured, or with files removed.
apt_repair() {
    as_root dpkg --configure -a >&2 || true
    as_root apt-get install -qq -y -o Dpkg::Use-Pty=0 --fix-broken >&2 || true
    as_root apt-get install -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends --reinstall "$@" >&2
}

# Rust isn't Debian's: its package is older than what this workspace needs.
ensure_rust() {
    has cargo || PATH="$HOME/.cargo/bin:$PATH"
    local least found
    least=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")
    has cargo || die "Rust is missing: install Rust $least or newer with rustup, run again"
    # rustup's cargo is there without a toolchain, too.
    if ! cargo --version >/dev/null 2>&1 || ! found=$(rustc --version 2>/dev/null); then
        die "cargo or rustc doesn't start: install Rust $least or newer (rustup default stable), run again"
    fi
    found=$(cut -d' ' -f2 <<<"$found")
    [ "$(printf '%s\n' "$least" "$found" | sort -V | head -n 1)" = "$least" ] ||
        die "Rust $found is too old: $least or newer is needed (rustup update), run again"
}

# Installs through apt what is missing for `fetch` or `build`; silent when nothing is.
ensure_tools() {
    install_missing "$1"
    [ "$1" != build ] || choose_libclang
}

install_missing() {
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
    if [ -n "$need" ]; then
        say "these are installed and don't work, or weren't installed; repairing: $need"
        # shellcheck disable=SC2086
        apt_repair $need || say "apt-get could not repair everything"
        need=$(missing_tools "$goal" | xargs)
    fi
    [ -n "$need" ] || return 0
    case "$need" in *libclang-dev*) say "$(python3 "$root/examples/libclang.py" 2>&1)" ;; esac
    die "still missing or broken: $need. Install them (apt-get install --reinstall $need), run again"
}

# Runs a build and, if it fails, names the packages whose absence its output tells of.
build_or_explain() {
    local log need
    log=$(mktemp)
    if (set -o pipefail && "$@" 2>&1 | tee "$log" >&2); then
        rm -f "$log"
        return 0
    fi
    need=$(packages_of "$log" | sort -u | xargs)
    rm -f "$log"
    [ -z "$need" ] || say "a tool is missing or broken: apt-get install --reinstall $need, run again"
    return 1
}

# Debian packages that the errors in file `$1` point at, one a line.
packages_of() {
    if grep -Eqi "libclang|fatal error: '(std|lim|float|inttypes)[a-z]*\.h' file not found" "$1"; then
        echo libclang-dev
    fi
    ! grep -Eq 'is `cmake` not installed|CMake [0-9.]* or higher is required' "$1" || echo cmake
    if grep -Eq 'linker `c[c+]*` not found|CMAKE_CXX_COMPILER|CMAKE_C_COMPILER|CMAKE_MAKE_PROGRAM|cannot find -lstdc\+\+|cannot find Scrt1.o' "$1"; then
        echo build-essential
    fi
    ! grep -q 'cannot find -lgomp' "$1" || echo libgomp1
    missing_tools build
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
