#!/bin/sh
# Makes sure that there is a Rust toolchain, and what is named as arguments: `cc`, with which Rust
# links, `c++`, with which the fuzzer's runtime is built, and `network`, the programs with which
# root builds networks and lets them fail. Installs them on Debian and Ubuntu if it may; otherwise
# says exactly what to install and how. All else cargo fetches.
set -eu

rust_needed=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)

missing() {
    printf 'Keyway needs %s.\n\n    %s\n\nThen run make again.\n' "$1" "$2" >&2
    exit 1
}

# Whether version $1 is at least version $2.
at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# Whether compiler $1 makes programs: without the C library's headers it does not.
works() {
    language=$([ "$1" = cc ] && echo c || echo c++)
    program=$(mktemp) || return 1
    echo '#include <stdlib.h>
int main(void) { return EXIT_SUCCESS; }' | "$1" -x "$language" -o "$program" - 2>/dev/null
    status=$?
    rm -f "$program"
    return $status
}

# Installs the packages $*.
install() {
    command -v apt-get >/dev/null || return 1
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif sudo -n true 2>/dev/null; then
        as_root='sudo -n'
    else
        return 1
    fi
    echo "Installing $*" >&2
    $as_root apt-get update -qq && $as_root apt-get install -qqy "$@" >&2
}

# Without it tests say what they had to skip, and so they do for anybody but root.
network() {
    [ "$(id -u)" = 0 ] || return 0
    { command -v ip && command -v nft && command -v ethtool && command -v setpriv; } >/dev/null &&
        return
    install iproute2 nftables ethtool util-linux ||
        echo 'Without ip, nft, ethtool and setpriv some tests are skipped:' \
            'apt-get install iproute2 nftables ethtool util-linux' >&2
}

rustup="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y"
command -v cargo >/dev/null || missing "Rust $rust_needed or newer" "$rustup"

# With rustup this fetches the version that rust-toolchain.toml names; a Rust from elsewhere has to
# be new enough as it is.
found=$(rustc --version | cut -d ' ' -f 2)
at_least "$found" "$rust_needed" ||
    missing "Rust $rust_needed or newer, and this is $found: install it with rustup" "$rustup"

for needed in "$@"; do
    case $needed in
        network)
            network
            continue
            ;;
        cc) packages='gcc libc6-dev' ;;
        c++) packages='g++' ;;
    esac
    if ! works "$needed"; then
        # Unquoted: two packages are two words.
        { install $packages && works "$needed"; } ||
            missing "a working $needed" "sudo apt-get install -y $packages"
    fi
done
