#!/bin/sh
# Makes sure that there is a Rust toolchain, and what is named as arguments: `cc`, with which Rust
# links, `bpf`, clang for the switch in the kernel and what libbpf is built with, `c++`, with which
# the fuzzer's runtime is built, `network`, the programs with which root builds networks, looks at
# them and lets them fail, `stores`, those that nodes keep values in, controllers their state, and
# the gateway is tested with, `captures`, what captures packets and looks at them, `routers`, those
# routers and switches of others that content routing is tested with, and `clients`, the languages
# and libraries of the Redis clients that the gateway is tested with, in target/clients. Installs
# them on Debian and Ubuntu if it may; otherwise says exactly what to install and how. All else
# cargo fetches.
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

# Compiles the program of standard input, and nothing is left of it.
compiles() {
    program=$(mktemp) || return 1
    "$@" -o "$program" - 2>/dev/null
    status=$?
    rm -f "$program"
    return $status
}

# Whether $1 is there and does its work. Compilers do not without the C library's headers; libbpf is
# built by make, asks pkg-config, and is linked with libelf and zlib.
works() {
    case $1 in
        cc | c++)
            language=$([ "$1" = cc ] && echo c || echo c++)
            echo '#include <stdlib.h>
int main(void) { return EXIT_SUCCESS; }' | compiles "$1" -x "$language"
            ;;
        bpf)
            command -v make >/dev/null && command -v pkg-config >/dev/null &&
                echo 'int packets;' | compiles clang -target bpf -x c -c &&
                echo '#include <libelf.h>
#include <zlib.h>
int main(void) { return !zlibVersion() + elf_version(EV_NONE); }' |
                compiles cc -x c -Wl,--no-as-needed -lelf -lz
            ;;
    esac
}

# What $1 is called among people.
name() {
    case $1 in
        bpf) echo 'clang, libelf and zlib with their headers, pkg-config and make' ;;
        *) echo "a working $1" ;;
    esac
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
        echo 'Without ip, nft, ethtool and setpriv there is no lab, and tests are skipped:' \
            'apt-get install iproute2 nftables ethtool util-linux' >&2
}

# Without them tests say what they had to skip.
stores() {
    { command -v redis-server || command -v valkey-server; } >/dev/null &&
        command -v memcached >/dev/null && command -v redis-cli >/dev/null &&
        command -v redis-benchmark >/dev/null &&
        { command -v nutcracker >/dev/null || [ -x /usr/sbin/nutcracker ]; } &&
        command -v etcd >/dev/null && command -v etcdctl >/dev/null && return
    install redis-server redis-tools memcached nutcracker etcd-server etcd-client ||
        echo 'Without redis-server, memcached, nutcracker and etcd tests are skipped:' \
            'apt-get install redis-server redis-tools memcached nutcracker' \
            'etcd-server etcd-client' >&2
}

# Without it tests say what they had to skip.
captures() {
    command -v tshark >/dev/null && return
    # It asks who may capture packets, unless told not to.
    DEBIAN_FRONTEND=noninteractive install tshark ||
        echo 'Without tshark tests of the dissector are skipped: apt-get install tshark' >&2
}

# Without them tests say what they had to skip, and so they do for anybody but root.
routers() {
    [ "$(id -u)" = 0 ] || return 0
    [ -x /usr/lib/frr/bgpd ] && { command -v ovs-vsctl && command -v ping; } >/dev/null && return
    install frr openvswitch-switch iputils-ping ||
        echo 'Without FRR, Open vSwitch and ping tests of content routing are skipped:' \
            'apt-get install frr openvswitch-switch iputils-ping' >&2
}

# Without them tests say what they had to skip.
clients() {
    { command -v go && command -v javac && command -v mvn && command -v node && command -v npm &&
        python3 -c 'import ensurepip'; } >/dev/null 2>&1 ||
        install python3-venv golang-go default-jdk-headless maven nodejs npm ||
        echo 'Without Python, Go, Java and Node.js tests with Redis clients are skipped:' \
            'apt-get install python3-venv golang-go default-jdk-headless maven nodejs npm' >&2
    packaged PHP php-cli php-redis php-symfony-cache php-symfony-lock php-illuminate-cache \
        php-illuminate-redis
    packaged Ruby ruby ruby-redis ruby-activesupport
    mkdir -p "${CARGO_TARGET_DIR:-target}/clients"
    clients_in=$(cd "${CARGO_TARGET_DIR:-target}/clients" && pwd)
    libraries python requirements.txt
    libraries go go.sum
    libraries java pom.xml
    libraries node package-lock.json
}

# What applications in the language $1 are made of, which come as packages only.
packaged() {
    language=$1
    shift
    # It knows of packages that are not installed.
    there=$(dpkg-query --show --showformat='${db:Status-Status}\n' "$@" 2>/dev/null |
        grep -cx installed || true)
    [ "$there" = $# ] || install "$@" ||
        echo "Without these, tests with applications in $language are skipped:" \
            "apt-get install $*" >&2
}

# What the drivers in the language $1 use, once for each content of the file $2, which names it.
libraries() {
    wanted=tests/clients/$1/$2
    have=$clients_in/$1.lock
    cmp -s "$wanted" "$have" && return
    echo "Fetching the Redis clients of tests/clients/$1" >&2
    rm -rf "${clients_in:?}/$1" "$have"
    mkdir "$clients_in/$1"
    # A registry that does not answer costs time, not the whole run.
    { timeout 300 sh -eu -c "$(fetching "$1")" - "$clients_in/$1" >&2 && cp "$wanted" "$have"; } ||
        echo "They could not be fetched, and tests with them are skipped" >&2
}

# How the libraries of the language $1 come into the folder that the program is given.
fetching() {
    case $1 in
        python)
            echo 'python3 -m venv "$1"
                "$1/bin/pip" install --quiet --require-hashes \
                    -r tests/clients/python/requirements.txt'
            ;;
        go) echo 'cd tests/clients/go; GOMODCACHE=$1 GOFLAGS=-modcacherw go mod download' ;;
        java)
            echo 'mvn --batch-mode --quiet -f tests/clients/java/pom.xml \
                -Dmaven.repo.local="$1/repository" \
                dependency:copy-dependencies -DoutputDirectory="$1/lib"'
            ;;
        node)
            echo 'cp tests/clients/node/package.json tests/clients/node/package-lock.json "$1"
                cd "$1"; npm ci --no-audit --no-fund --silent'
            ;;
    esac
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
        network | stores | captures | routers | clients)
            "$needed"
            continue
            ;;
        cc) packages='gcc libc6-dev' ;;
        c++) packages='g++' ;;
        bpf) packages='clang libelf-dev zlib1g-dev pkg-config make' ;;
    esac
    if ! works "$needed"; then
        # Unquoted: two packages are two words.
        { install $packages && works "$needed"; } ||
            missing "$(name "$needed")" "sudo apt-get install -y $packages"
    fi
done
