//! Checks of a data directory: whether it can be used, has room, and what is in it is whole.

use super::finding::Finding;
use nix::sys::statvfs::statvfs;
use runtime::store::{fjall_engine, map_store};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Below this much free space a node may not get through its next compaction.
const FREE_MIN: u64 = 1 << 30;
/// Below this much it may fail at the next write: journals are made 64 MiB at a time.
const FREE_PROBLEM: u64 = 256 << 20;
/// `keyway up` keeps stores two directories down.
const DEPTH_MAX: usize = 3;

/// All checks.
pub(crate) fn check(directory: &Path) -> Vec<Finding> {
    let metadata = match fs::metadata(directory) {
        Ok(metadata) if metadata.is_dir() => metadata,
        Ok(_) => {
            let todo = "name the directory that is `data` in the configuration, or after --data";
            return vec![Finding::problem("directory", "it is no directory", todo)];
        }
        Err(why) => {
            let todo = "it is made when the role that uses it is started for the first time";
            return vec![Finding::problem("directory", why.to_string(), todo)];
        }
    };
    let mut found = vec![
        private(directory, metadata.permissions().mode()),
        writable(directory),
        space(directory),
    ];
    let mut stores = Vec::new();
    look(directory, 0, &mut stores);
    found.extend(stores);
    found
}

fn private(directory: &Path, mode: u32) -> Finding {
    let mode = mode & 0o777;
    if mode & 0o077 == 0 {
        return Finding::ok("private", format!("nobody else gets in (mode {mode:o})"));
    }
    let todo = format!("chmod 700 {}", directory.display());
    Finding::warning("private", format!("others get in (mode {mode:o})"), todo)
}

fn writable(directory: &Path) -> Finding {
    let name = directory.join(format!(".keyway-doctor-{}", std::process::id()));
    match fs::File::create_new(&name).and_then(|_| fs::remove_file(&name)) {
        Ok(()) => Finding::ok("writable", "yes"),
        Err(why) => Finding::problem(
            "writable",
            why.to_string(),
            format!(
                "give {} to whoever runs keyway, and see that the disk is not full or \
                     read-only",
                directory.display()
            ),
        ),
    }
}

fn space(directory: &Path) -> Finding {
    let Ok(stat) = statvfs(directory) else {
        return Finding::warning("space", "it cannot be told", "df shows it");
    };
    let unit = stat.fragment_size();
    let (free, all) = (stat.blocks_available() * unit, stat.blocks() * unit);
    judge_space(free, all)
}

fn judge_space(free: u64, all: u64) -> Finding {
    let found = format!("{} MiB of {} MiB are free", free >> 20, all >> 20);
    let todo = "make room on this disk, or add nodes (keyway cluster add-node)";
    match free {
        _ if free < FREE_PROBLEM => Finding::problem("space", found, todo),
        _ if free < FREE_MIN || free < all / 20 => Finding::warning("space", found, todo),
        _ => Finding::ok("space", found),
    }
}

/// Every store below a directory.
fn look(directory: &Path, depth: usize, found: &mut Vec<Finding>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name == "map.redb" {
            found.push(judge("controller", &path, map_store::inspect(&path)));
        } else if name.starts_with("shard-") && path.is_dir() {
            found.push(judge("shard", &path, fjall_engine::inspect(&path)));
        } else if path.is_dir() && depth + 1 < DEPTH_MAX {
            look(&path, depth + 1, found);
        }
    }
}

fn judge(
    what: &'static str,
    path: &Path,
    outcome: Result<String, runtime::store::StoreError>,
) -> Finding {
    match outcome {
        Ok(what_it_is) => Finding::ok(what, format!("{}: {what_it_is}", path.display())),
        Err(why) => Finding::problem(what, why.to_string(), "docs/operating/recovery.md"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Grade;

    #[test]
    fn little_space_is_a_warning_and_hardly_any_a_problem() {
        assert_eq!(judge_space(100 << 30, 200 << 30).grade, Grade::Ok);
        assert_eq!(judge_space(5 << 30, 200 << 30).grade, Grade::Warning);
        assert_eq!(judge_space(500 << 20, 1 << 30).grade, Grade::Warning);
        assert_eq!(judge_space(10 << 20, 200 << 30).grade, Grade::Problem);
    }

    #[test]
    fn stores_that_are_not_whole_are_problems() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("controller")).unwrap();
        fs::write(dir.path().join("controller/map.redb"), b"").unwrap();
        fs::create_dir_all(dir.path().join("node-1/shard-0/store/fjall")).unwrap();
        let found = check(dir.path());
        let problems: Vec<_> = found.iter().filter(|it| it.grade == Grade::Problem).collect();
        let checks: Vec<&str> = problems.iter().map(|it| it.check).collect();
        assert_eq!(checks, ["controller", "shard"], "{found:?}");
        assert!(problems[0].found.contains("it is empty"), "{found:?}");
        assert!(problems[1].found.contains("about.json is missing"), "{found:?}");
    }

    #[test]
    fn a_directory_that_is_not_there_is_a_problem() {
        let found = check(Path::new("/nowhere/at/all"));
        assert_eq!((found.len(), found[0].grade), (1, Grade::Problem));
    }
}
