//! Compiles `bpf/` with clang.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

mod benches {
    pub(crate) mod program {
        pub(crate) mod addresses;
    }
}

fn main() {
    // Asked now: what this script was compiled with may be of another checkout.
    let here = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = Path::new(&here).join("../../bpf");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    // Set by the build of libbpf, whose helpers' declarations these are.
    let libbpf = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    println!("cargo::rerun-if-changed={}", root.display());
    for program in ["switch", "sealed", "bench", "sealed_bench", "faults", "sink"] {
        compile(&root, program, &libbpf, &out);
    }
}

fn compile(root: &Path, program: &str, libbpf: &str, out: &Path) {
    let mut clang = Command::new("clang");
    clang
        .args(["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-target", "bpf", "-mcpu=v3"])
        .arg(format!("-I{}", root.join("include").display()))
        .arg(format!("-I{libbpf}"))
        .args(system_headers())
        .args(definitions(program))
        .arg("-c")
        .arg(root.join(format!("{program}.bpf.c")))
        .arg("-o")
        .arg(out.join(format!("{program}.bpf.o")));
    match clang.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("clang failed on {program}.bpf.c: {status}"),
        Err(error) => panic!(
            "clang, which compiles the in-kernel switch, does not start: {error}\n\
             Install it (apt-get install clang libelf-dev zlib1g-dev pkg-config) and build again."
        ),
    }
}

/// What a program is to know that Rust says.
fn definitions(program: &str) -> Vec<String> {
    use benches::program::addresses::{
        APART, CACHED_KEYS, CLIENT, HOT_KEYS, NODES, NODES_NET, NODES_PORT, SCATTER, VALUE_AT,
    };
    if !program.ends_with("bench") {
        return Vec::new();
    }
    let [a, b] = NODES_NET;
    let define = |(name, value): (&str, u64)| format!("-D{name}={value}ULL");
    let all = [
        ("CACHED_KEYS", CACHED_KEYS.into()),
        ("CLIENT", CLIENT.0.to_bits().into()),
        ("CLIENT_PORT", CLIENT.1.into()),
        ("APART", APART.into()),
        ("HOT_KEYS", HOT_KEYS.into()),
        ("NODES", NODES.into()),
        ("NODES_NET", u32::from_be_bytes([a, b, 0, 0]).into()),
        ("NODES_PORT", NODES_PORT.into()),
        ("SCATTER", SCATTER),
        ("VALUE_AT", VALUE_AT.into()),
    ];
    all.map(define).into()
}

/// Where Debian and its kin keep `asm/types.h`: for the BPF target clang does not look there.
fn system_headers() -> Option<String> {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let path = format!("/usr/include/{arch}-linux-gnu");
    Path::new(&path).is_dir().then(|| format!("-I{path}"))
}
