//! Coverage-guided fuzzing on the stable toolchain.
//!
//! `cargo fuzz` asks for a nightly toolchain because of the address sanitizer. Without unsafe code
//! there is little for that to find, and the flags for coverage itself are stable.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use xshell::{Shell, cmd};

/// What there is to fuzz.
pub(crate) const TARGETS: [&str; 3] = ["packet", "pipeline", "resp"];

/// What the target `resp` begins with: commands and what are none.
const COMMANDS: [&str; 4] = [
    "*2\r\n$3\r\nGET\r\n$1\r\na\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$0\r\n\r\nPING\r\n",
    "set a \"b\\x00\\n\" 'c\\''\r\n*0\r\n\r\n*-1\r\n",
    "*10\r\n$16384\r\n",
    "*2\r\n$1\r\na\r\n!",
];

/// The flags by which `cargo fuzz` instruments code, but for the sanitizer.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cdebug-assertions -Ccodegen-units=1 --cfg fuzzing";

/// Builds target `name` and runs it for `secs` seconds, starting from the vectors and from what
/// earlier runs found.
pub(crate) fn run(root: &Path, name: &str, secs: u32) -> Result<()> {
    let shell = Shell::new()?;
    shell.change_dir(root);
    let corpus = root.join("fuzz/corpus").join(name);
    std::fs::create_dir_all(&corpus)?;
    for (seed, bytes) in seeds(root, name)? {
        std::fs::write(corpus.join(seed), bytes)?;
    }
    let artifacts = root.join("fuzz/artifacts").join(name);
    std::fs::create_dir_all(&artifacts)?;

    let version = cmd!(shell, "rustc -vV").read()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc says its host")?;
    let target_dir = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), PathBuf::from)
        .join("fuzz");
    // With `--target` the flags are not for build scripts and procedural macros.
    cmd!(shell, "cargo build --release --locked --manifest-path fuzz/Cargo.toml --bin {name}")
        .args(["--target".as_ref(), host.as_ref(), "--target-dir".as_ref(), target_dir.as_os_str()])
        .env("RUSTFLAGS", FLAGS)
        .run()?;

    let binary = target_dir.join(host).join("release").join(name);
    let seconds = format!("-max_total_time={secs}");
    let prefix = format!("-artifact_prefix={}/", artifacts.display());
    cmd!(shell, "{binary} {seconds} {prefix} -max_len=4096 -timeout=10 -print_final_stats=1")
        .arg(&corpus)
        .run()
        .with_context(|| format!("a finding; its input is in {}", artifacts.display()))
}

/// What a target begins with, with file names: every datagram of the vectors in the form that the
/// target takes, or commands.
fn seeds(root: &Path, name: &str) -> Result<Vec<(String, Vec<u8>)>> {
    ensure!(TARGETS.contains(&name), "targets are {}", TARGETS.join(", "));
    if name == "resp" {
        let named = |(number, text): (usize, &&str)| (format!("commands-{number}"), (*text).into());
        return Ok(COMMANDS.iter().enumerate().map(named).collect());
    }
    let mut seeds = Vec::new();
    for entry in std::fs::read_dir(root.join("spec/vectors"))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let stem = path.file_stem().unwrap_or_default().display().to_string();
        let file: toml::Table = toml::from_str(&std::fs::read_to_string(&path)?)?;
        let order = order_seed(&file)?;
        let cases = file.get("case").and_then(toml::Value::as_array);
        for (number, case) in cases.context("a file of vectors has cases")?.iter().enumerate() {
            let last = datagram(case.get("packet").context("a case has a packet")?)?;
            let seed = if name == "packet" {
                last.1
            } else {
                let before = case.get("before").and_then(toml::Value::as_array);
                let before = before.into_iter().flatten().map(datagram);
                let datagrams = before.chain([Ok(last)]).collect::<Result<Vec<_>>>()?;
                pipeline_seed(&order, &datagrams)?
            };
            seeds.push((format!("vector-{stem}-{number}"), seed));
        }
    }
    ensure!(!seeds.is_empty(), "no vectors in spec/vectors");
    Ok(seeds)
}

/// A datagram of a case, and where it comes from.
fn datagram(packet: &toml::Value) -> Result<(String, Vec<u8>)> {
    let text = |key| packet.get(key).and_then(toml::Value::as_str);
    let from = text("from").context("a packet comes from somewhere")?;
    Ok((from.to_owned(), from_hex(text("hex").context("a packet has hex digits")?)?))
}

/// The form is that of `pipeline` in `crates/switch/tests/fuzzed`: default tables, an order of hot
/// keys, datagrams.
fn pipeline_seed(order: &[u8], datagrams: &[(String, Vec<u8>)]) -> Result<Vec<u8>> {
    let mut seed = [&[0, u8::try_from(order.len())?], order].concat();
    for (from, datagram) in datagrams {
        // The first hosts of 10.0.0.0/24 are the nodes of the vectors, in the order of their table.
        let host = from.strip_prefix("10.0.0.").and_then(|rest| rest.split_once(':'));
        let node = host.and_then(|(host, _)| host.parse::<u8>().ok()?.checked_sub(1));
        seed.push(node.map_or(0, |node| 224 + 4 * (node % 8)));
        seed.extend(u16::try_from(datagram.len())?.to_be_bytes());
        seed.extend(datagram);
    }
    Ok(seed)
}

/// The hot keys of a file, if it has some, in that form. They all begin at the fourth place, which
/// is that of a node that the vectors make a reader.
fn order_seed(file: &toml::Table) -> Result<Vec<u8>> {
    let keys = file.get("hot").and_then(|hot| hot.get("keys")).and_then(toml::Value::as_array);
    let Some(keys) = keys else { return Ok(Vec::new()) };
    let mut order = vec![0];
    for key in keys {
        let keyhash = key.get("keyhash").and_then(toml::Value::as_integer);
        order.push(3 | 2 << 3);
        order.extend(keyhash.context("a hot key has a hash")?.to_be_bytes());
    }
    Ok(order)
}

fn from_hex(text: &str) -> Result<Vec<u8>> {
    let digits: String = text.split_whitespace().collect();
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    ensure!(rest.is_empty(), "half a byte of hex");
    let byte = |pair: &[u8; 2]| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?);
    pairs.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vector_is_a_seed_of_both_targets() {
        let root = crate::repository_root();
        let packets = seeds(&root, "packet").unwrap();
        let pipelines = seeds(&root, "pipeline").unwrap();
        assert!(packets.len() > 100, "{} vectors", packets.len());
        assert_eq!(packets.len(), pipelines.len());
        for ((name, datagram), (same_name, seed)) in packets.iter().zip(&pipelines) {
            assert!(name == same_name && seed.ends_with(datagram), "{name}");
        }
        assert!(seeds(&root, "nothing").is_err());
    }

    #[test]
    fn hex_is_read_whole_or_not_at_all() {
        assert_eq!(from_hex("00ff 1\n2").unwrap(), [0, 0xff, 0x12]);
        assert!(from_hex("0").is_err() && from_hex("0x").is_err() && from_hex("é").is_err());
    }
}
