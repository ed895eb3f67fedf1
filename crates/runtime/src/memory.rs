//! How much memory a node may take, and how much there is.

use crate::driver::CacheLimits;
use serde::de::{self, Deserialize, Deserializer};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The most that a node may hold in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaxMemory {
    /// A share of what the machine has, or the cgroup may take: [`AUTO_PERCENT`].
    #[default]
    Auto,
    /// No limit.
    Unlimited,
    /// So many bytes.
    Bytes(u64),
}

/// What nodes may take of the memory there is. The rest is for what is not counted: what allocators
/// lose between pieces, the other roles of the process, the gateway's buffers, the system.
pub const AUTO_PERCENT: u64 = 60;

/// Less is no memory for a node: its tables and buffers alone take some.
const BYTES_MIN: u64 = 1 << 20;

impl MaxMemory {
    /// Bytes for each of so many nodes of this process; `None` without a limit.
    #[must_use]
    pub fn of_each(self, nodes: u16) -> Option<u64> {
        match self {
            Self::Auto => {
                let all = available(Path::new("/"))? / 100 * AUTO_PERCENT;
                Some((all / u64::from(nodes.max(1))).max(BYTES_MIN))
            }
            Self::Unlimited => None,
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

impl fmt::Display for MaxMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Unlimited => f.write_str("unlimited"),
            Self::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

impl FromStr for MaxMemory {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "unlimited" => Ok(Self::Unlimited),
            _ => match parse_bytes(text) {
                Some(bytes) if bytes >= BYTES_MIN => Ok(Self::Bytes(bytes)),
                Some(_) => Err(format!("{text} is too little for a node; give it 1m or more")),
                None => Err(format!("{text:?} is no size; try 512m, 2g, auto or unlimited")),
            },
        }
    }
}

impl<'de> Deserialize<'de> for MaxMemory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// The most that a cache may hold: so many bytes of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheMemory(pub u64);

impl Default for CacheMemory {
    fn default() -> Self {
        Self(CacheLimits::default().bytes)
    }
}

impl FromStr for CacheMemory {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match parse_bytes(text) {
            Some(bytes) if bytes >= BYTES_MIN => Ok(Self(bytes)),
            Some(_) => Err(format!("{text} is too little for a cache; give it 1m or more")),
            None => Err(format!("{text:?} is no size; try 256m or 2g")),
        }
    }
}

impl<'de> Deserialize<'de> for CacheMemory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A number of bytes, with `k`, `m`, `g` or `t` for powers of 1024.
pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text.get(digits.len()..)? {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Bytes of memory that this process can hope for: those of the machine, or of its cgroups where
/// they allow less. `None` if the system does not say.
fn available(root: &Path) -> Option<u64> {
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
        kib.checked_mul(1024)
    });
    machine.into_iter().chain(cgroup_limits(root)).min()
}

/// The limits of the cgroups that this process is in, from the innermost outwards.
fn cgroup_limits(root: &Path) -> Vec<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        let (mount, name) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|it| it == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let mount = root.join(mount);
        let inside: PathBuf = mount.join(group.trim_start_matches('/'));
        // In a container the path may be that of outside: then the mount itself has the limit.
        for folder in inside.ancestors().take_while(|it| it.starts_with(&mount)) {
            let limit = fs::read_to_string(folder.join(name)).ok();
            found.extend(limit.and_then(|text| text.trim().parse::<u64>().ok()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!("512m".parse(), Ok(MaxMemory::Bytes(512 << 20)));
        assert_eq!("2G".parse(), Ok(MaxMemory::Bytes(2 << 30)));
        assert_eq!("2000000".parse(), Ok(MaxMemory::Bytes(2_000_000)));
        assert_eq!("auto".parse(), Ok(MaxMemory::Auto));
        assert_eq!("unlimited".parse(), Ok(MaxMemory::Unlimited));
        for text in ["", "m", "1x", "-1", "1.5g", "100", "99999999999999999999t"] {
            assert!(text.parse::<MaxMemory>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_least_of_machine_and_cgroups_counts() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(available(dir.path()), None);
        write("proc/meminfo", "MemTotal:       4000 kB\nMemFree:  10 kB\n");
        assert_eq!(available(dir.path()), Some(4_096_000));
        write("proc/self/cgroup", "0::/a/b\n");
        write("sys/fs/cgroup/a/b/memory.max", "max\n");
        write("sys/fs/cgroup/a/memory.max", "1000000\n");
        assert_eq!(available(dir.path()), Some(1_000_000));
        write("proc/self/cgroup", "3:cpu:/a\n7:memory:/docker/x\n");
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n");
        assert_eq!(available(dir.path()), Some(500_000));
    }

    #[test]
    fn nodes_of_one_process_share_what_there_is() {
        let one = MaxMemory::Auto.of_each(1).unwrap();
        let eight = MaxMemory::Auto.of_each(8).unwrap();
        assert!(one / 8 <= eight && eight <= one / 8 + BYTES_MIN);
        assert_eq!(MaxMemory::Bytes(7).of_each(8), Some(7));
    }
}
