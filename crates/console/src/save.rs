//! Files that commands write because they were told to. A file is there when all of it is, and
//! what stood there before stays until then; what is no file, a device or a pipe, is written as it
//! is.

use crate::exit::Failure;
use crate::out::{self, Out};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file that is being written. Dropped before [`finish`](Self::finish), it never was.
#[derive(Debug)]
pub struct Save {
    /// As it was given, for messages.
    named: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    /// Standard output.
    Out(Out),
    /// A device, a pipe, or somebody's open file: there is nothing to replace.
    InPlace(File),
    /// A new file beside the one that it becomes.
    Whole { new: NamedTempFile, path: PathBuf, how: How },
}

/// How the new file becomes the one that was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// It takes its name.
    Rename,
    /// Its contents are copied: the old one has other names, or an owner that a new one cannot
    /// have.
    Copy,
}

impl Save {
    /// Begins to write a file; `-` is standard output. Links are followed, and permissions
    /// stay as they are.
    ///
    /// # Errors
    ///
    /// If it could not be written.
    pub fn begin(path: &Path) -> Result<Self, Failure> {
        let named = path.to_owned();
        let to = if path == Path::new("-") { Ok(To::Out(Out::lock())) } else { open(path) };
        match to {
            Ok(to) => Ok(Self { named, to }),
            Err(error) => Err(failed(&named, error)),
        }
    }

    /// Makes what was written the contents of the file.
    ///
    /// # Errors
    ///
    /// If that fails. What was there before is there still.
    pub fn finish(self) -> Result<(), Failure> {
        let done = match self.to {
            To::Out(out) => return out.end(),
            To::InPlace(mut file) => file.flush(),
            To::Whole { new, path, how } => finish(new, &path, how),
        };
        done.map_err(|error| failed(&self.named, error))
    }

    /// What an error of a write means.
    pub fn failed(&self, error: io::Error) -> Failure {
        self.on_error()(error)
    }

    /// The same, for those who write through something else.
    pub fn on_error(&self) -> impl Fn(io::Error) -> Failure + use<> {
        let named = (!matches!(self.to, To::Out(_))).then(|| self.named.clone());
        move |error| match &named {
            Some(named) => failed(named, error),
            None => out::failed(error),
        }
    }
}

impl Write for Save {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::Out(out) => out.write(bytes),
            To::InPlace(file) => file.write(bytes),
            To::Whole { new, .. } => new.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Out(out) => out.flush(),
            To::InPlace(file) => file.flush(),
            To::Whole { new, .. } => new.flush(),
        }
    }
}

/// Writes all of a file at once.
///
/// # Errors
///
/// If it could not be written. What was there before is there still.
pub fn save(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    let mut file = Save::begin(path)?;
    file.write_all(contents).map_err(|error| file.failed(error))?;
    file.finish()
}

fn failed(path: &Path, error: io::Error) -> Failure {
    if error.kind() == ErrorKind::BrokenPipe {
        return Failure::Unread;
    }
    let what = format!("cannot write {}", path.display());
    Failure::Other(anyhow::Error::new(error).context(what))
}

fn open(path: &Path) -> io::Result<To> {
    let Some(path) = follow(path)? else {
        return Ok(To::InPlace(OpenOptions::new().append(true).open(path)?));
    };
    match fs::metadata(&path) {
        Ok(old) if old.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(old) if !old.is_file() => Ok(To::InPlace(OpenOptions::new().write(true).open(&path)?)),
        Ok(old) => {
            // Whoever may not write it may not replace it.
            drop(OpenOptions::new().write(true).open(&path)?);
            let new = beside(&path, old.permissions().mode())?;
            new.as_file().set_permissions(Permissions::from_mode(old.permissions().mode()))?;
            let how = if old.nlink() == 1 && same_owner(new.as_file(), &old) {
                How::Rename
            } else {
                How::Copy
            };
            Ok(To::Whole { new, path, how })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // Less what the umask takes away, as for any new file.
            Ok(To::Whole { new: beside(&path, 0o666)?, path, how: How::Rename })
        }
        Err(error) => Err(error),
    }
}

/// Where links lead in the end, whether something is there or not; `None` where it is a file that
/// somebody has open, such as `/dev/stdout`.
fn follow(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
        let real = folder(&path).canonicalize()?.join(name);
        match fs::symlink_metadata(&real) {
            Ok(found) if found.is_symlink() && real.starts_with("/proc") => return Ok(None),
            Ok(found) if found.is_symlink() => path = folder(&real).join(fs::read_link(&real)?),
            Ok(_) => return Ok(Some(real)),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Some(real)),
            Err(error) => return Err(error),
        }
    }
    Err(nix::errno::Errno::ELOOP.into())
}

/// As many as Linux follows.
const LINKS_MAX: usize = 40;

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// A new file in the same directory, with a name that nobody can guess.
fn beside(path: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".keyway-").permissions(Permissions::from_mode(mode));
    builder.tempfile_in(folder(path))
}

/// Gives the new file the owner of the old one; whether it has it.
fn same_owner(new: &File, old: &Metadata) -> bool {
    let Ok(now) = new.metadata() else { return false };
    if (now.uid(), now.gid()) == (old.uid(), old.gid()) {
        return true;
    }
    // Takes away what a set-user-id bit would give to somebody else.
    fchown(new, Some(old.uid()), Some(old.gid())).is_ok()
}

fn finish(mut new: NamedTempFile, path: &Path, how: How) -> io::Result<()> {
    new.flush()?;
    // A full disk may say so only now.
    new.as_file().sync_all()?;
    match how {
        How::Rename => new.persist(path).map(drop).map_err(|error| error.error),
        How::Copy => {
            let mut old = OpenOptions::new().write(true).truncate(true).open(path)?;
            io::copy(&mut File::open(new.path())?, &mut old)?;
            old.sync_all()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt as _, symlink};

    fn folder_of_a_test() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            names.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_file_is_replaced_when_all_is_there_and_keeps_its_mode() {
        let folder = folder_of_a_test();
        let path = folder.path().join("it");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let mut file = Save::begin(&path).unwrap();
        file.write_all(b"half").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(file);
        assert_eq!(names(folder.path()), ["it"], "nothing is left of it");
        save(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
        assert_eq!(names(folder.path()), ["it"]);
    }

    #[test]
    fn links_lead_to_what_is_written() {
        let folder = folder_of_a_test();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("far")).unwrap();
        fs::write(at("far/it"), "old").unwrap();
        symlink("far/it", at("link")).unwrap();
        symlink("link", at("links")).unwrap();
        symlink("far/new", at("dangling")).unwrap();
        save(&at("links"), b"1").unwrap();
        save(&at("dangling"), b"2").unwrap();
        assert_eq!(fs::read(at("far/it")).unwrap(), b"1");
        assert_eq!(fs::read(at("far/new")).unwrap(), b"2");
        for link in ["link", "links", "dangling"] {
            assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink(), "{link}");
        }
        symlink("round", at("round")).unwrap();
        assert!(save(&at("round"), b"3").is_err());
    }

    #[test]
    fn other_names_of_a_file_go_on_naming_it() {
        let folder = folder_of_a_test();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("it"), "old and longer").unwrap();
        fs::hard_link(at("it"), at("other")).unwrap();
        save(&at("it"), b"new").unwrap();
        assert_eq!(fs::read(at("other")).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["it", "other"]);
    }

    #[test]
    fn what_is_no_file_is_written_and_not_replaced() {
        let folder = folder_of_a_test();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let reader = {
            let pipe = pipe.clone();
            std::thread::spawn(move || fs::read(pipe).unwrap())
        };
        save(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        save(Path::new("/dev/null"), b"away").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        assert!(save(Path::new("/dev/full"), b"too much").is_err());
        assert!(save(folder.path(), b"a folder").is_err());
    }
}
