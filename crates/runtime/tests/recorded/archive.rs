//! A directory as a text: a line for each file, with its path and its bytes as hex digits, and one
//! for each folder, whose path ends with a slash.

use crate::fixtures;
use data_encoding::HEXLOWER;
use std::fs;
use std::path::Path;

/// Records a directory under this name. Journals are made longer than what is in them: of zeros at
/// their end nothing is kept.
pub(crate) fn pack(directory: &Path, name: &str) {
    let mut lines = Vec::new();
    walk(directory, "", &mut lines);
    lines.sort();
    fs::create_dir_all(fixtures()).expect("a folder of ours");
    fs::write(fixtures().join(name), lines.concat()).expect("a file of ours");
}

fn walk(directory: &Path, prefix: &str, lines: &mut Vec<String>) {
    for entry in fs::read_dir(directory).expect("it is there") {
        let entry = entry.expect("it can be read");
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().expect("it has one").is_dir() {
            lines.push(format!("{path}/\n"));
            walk(&entry.path(), &format!("{path}/"), lines);
            continue;
        }
        let mut bytes = fs::read(entry.path()).expect("it can be read");
        if path.ends_with(".jnl") {
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            bytes.truncate(used);
        }
        lines.push(format!("{path} {}\n", HEXLOWER.encode(&bytes)));
    }
}

/// Makes the directory anew.
pub(crate) fn unpack(name: &str, directory: &Path) {
    let path = fixtures().join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path:?}: {why}"));
    for line in text.lines() {
        let Some((path, digits)) = line.split_once(' ') else {
            fs::create_dir_all(directory.join(line)).expect("a folder of ours");
            continue;
        };
        let path = directory.join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder of ours");
        let bytes = HEXLOWER.decode(digits.as_bytes()).expect("hex digits");
        fs::write(path, bytes).expect("a file of ours");
    }
}
