//! What a cluster keeps is for its owner: directories that nobody else can enter, and files that
//! nobody else can read, also those that an older version has left open to all.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

const DIRECTORY: u32 = 0o700;
/// What group and others may do.
const OTHERS: u32 = 0o077;

/// Makes a directory, with those above it, if it is not there.
///
/// # Errors
///
/// If it cannot be made.
pub(crate) fn directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY).create(path)
}

/// Takes a directory that is ours from others, with all that is in it.
///
/// # Errors
///
/// If it cannot be read, or belongs to somebody else.
pub(crate) fn tighten_all(path: &Path) -> io::Result<()> {
    tighten(path)?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            tighten_all(&entry.path())?;
        } else if kind.is_file() {
            tighten(&entry.path())?;
        }
    }
    Ok(())
}

/// Takes one file or directory from others.
pub(crate) fn tighten(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        // It went meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mode = found.mode() & 0o7777;
    if found.is_symlink() || mode & OTHERS == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS))
}
