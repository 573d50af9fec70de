#!/bin/sh
# Runs the tests of hal's kernels as an aarch64 program under qemu, with and without the dot
# product instruction. Takes minutes, so it's run when the kernels change, not on every push.
#
# Needs: rustup target add aarch64-unknown-linux-gnu
#        apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static
set -eu
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
for cpu in max cortex-a72; do
    echo "processor: $cpu"
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -cpu $cpu -L /usr/aarch64-linux-gnu" \
        cargo test -p garret-hal --lib --target $target kernels
done
