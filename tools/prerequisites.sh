#!/bin/sh
# Makes sure that there is a Rust toolchain and a C linker for it to use. Installs the linker on
# Debian and Ubuntu if it may; otherwise says exactly what to install and how. Everything else
# that the build needs, cargo fetches.
set -eu

rust_needed=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)

missing() {
    printf 'Keyway needs %s.\n\n    %s\n\nThen run make again.\n' "$1" "$2" >&2
    exit 1
}

linker_works() {
    probe=$(mktemp) || return 1
    echo 'int main(void) { return 0; }' | cc -x c -o "$probe" - 2>/dev/null
    status=$?
    rm -f "$probe"
    return $status
}

install_linker() {
    command -v apt-get >/dev/null || return 1
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif sudo -n true 2>/dev/null; then
        as_root='sudo -n'
    else
        return 1
    fi
    echo 'Installing a C linker: gcc libc6-dev' >&2
    $as_root apt-get update -qq && $as_root apt-get install -qqy gcc libc6-dev >&2
}

# Whether version $1 is at least version $2.
at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

rustup="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y"
command -v cargo >/dev/null || missing "Rust $rust_needed or newer" "$rustup"

# With rustup this fetches the version that rust-toolchain.toml names; a Rust from elsewhere has to
# be new enough as it is.
found=$(rustc --version | cut -d ' ' -f 2)
at_least "$found" "$rust_needed" ||
    missing "Rust $rust_needed or newer, and this is $found: install it with rustup" "$rustup"

if ! linker_works; then
    { install_linker && linker_works; } ||
        missing 'a C linker' 'sudo apt-get install -y gcc libc6-dev'
fi
