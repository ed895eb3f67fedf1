//! The file of the secret that all keys of envelopes follow from. Controllers have it, each the
//! same; nobody else needs it.
//!
//! Its first line is a secret. Each further line is a period and the secret that holds from then
//! on.

use super::error::IdentityError;
use super::files::read_secret;
use super::watch::Watched;
use super::write::{Visibility, write};
use crate::entropy;
use data_encoding::HEXLOWER_PERMISSIVE as HEX;
use envelope::{Period, Secret, Secrets};
use machine::UnixMs;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Its name in a directory.
const FILE: &str = "envelope.key";

/// Periods after which a new secret holds: by then every member has its keys.
const FROM_LATER: u64 = 2;

/// Where it is in a directory that `keyway certs` has made.
#[must_use]
pub fn secret_in(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// The secrets as they are now.
#[derive(Clone)]
pub struct SecretSource(Arc<dyn Fn() -> Arc<Secrets> + Send + Sync>);

impl SecretSource {
    /// Those that this says whenever it is asked, which is often.
    pub fn new(ask: impl Fn() -> Arc<Secrets> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    /// Those of a file, which is read again when it changes.
    ///
    /// # Errors
    ///
    /// If it cannot be used.
    pub fn of_file(path: &Path) -> Result<Self, IdentityError> {
        let read = path.to_owned();
        let paths = vec![read.clone()];
        let secrets = Watched::new("envelope key", paths, move || read_secrets(&read))?;
        Ok(Self::new(move || secrets.get()))
    }

    /// The secrets.
    #[must_use]
    pub fn get(&self) -> Arc<Secrets> {
        (self.0)()
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretSource")
    }
}

/// Makes a secret where there is none.
///
/// # Errors
///
/// If there is one, or it cannot be written.
pub fn make_secret(path: &Path) -> Result<(), IdentityError> {
    if path.exists() {
        return Err(IdentityError::Exists { path: path.to_owned() });
    }
    save(path, &Secrets::new(draw()?))
}

/// Has a new secret hold two periods from this time on, and says from which. Makes the first one if
/// there is none, which holds at once.
///
/// # Errors
///
/// If the file cannot be read or written.
pub fn replace_secret(path: &Path, now: UnixMs) -> Result<Period, IdentityError> {
    let current = Period::at(now.0);
    if !path.exists() {
        make_secret(path)?;
        return Ok(current);
    }
    let mut secrets = read_secrets(path)?;
    let from = Period(current.0 + FROM_LATER);
    secrets.forget_before(current);
    secrets.replace(from, draw()?);
    save(path, &secrets)?;
    Ok(from)
}

/// The secrets in a file.
///
/// # Errors
///
/// If it cannot be read, others can read it, or it holds something else.
pub fn read_secrets(path: &Path) -> Result<Secrets, IdentityError> {
    let text = read_secret(path).map_err(|error| match error {
        IdentityError::Missing { path, .. } => {
            let directory = path.parent().unwrap_or(Path::new(".")).display();
            let hint = format!(
                "keyway certs rotate --envelopes --dir {directory} makes it, once for all \
                 controllers"
            );
            IdentityError::Missing { path, hint }
        }
        other => other,
    })?;
    let text = String::from_utf8_lossy(&text);
    parse(&text).ok_or_else(|| IdentityError::Form {
        path: path.to_owned(),
        what: "secret of envelopes",
        why: "it has lines of 64 hexadecimal digits, all but the first behind a number".to_owned(),
    })
}

fn parse(text: &str) -> Option<Secrets> {
    let secret = |hex: &str| {
        let bytes = HEX.decode(hex.as_bytes()).ok()?;
        Some(Secret::new(bytes.try_into().ok()?))
    };
    let mut lines = text.lines();
    let mut secrets = Secrets::new(secret(lines.next()?)?);
    for line in lines {
        let (from, hex) = line.split_once(' ')?;
        secrets.replace(Period(from.parse().ok()?), secret(hex)?);
    }
    Some(secrets)
}

fn save(path: &Path, secrets: &Secrets) -> Result<(), IdentityError> {
    let line = |(from, secret): (Option<Period>, &Secret)| {
        let from = from.map_or_else(String::new, |from| format!("{} ", from.0));
        format!("{from}{}\n", HEX.encode(secret.bytes()))
    };
    let text: String = secrets.iter().map(line).collect();
    write(path, Visibility::Secret, text.as_bytes())
}

fn draw() -> Result<Secret, IdentityError> {
    let mut bytes = [0; Secret::LEN];
    for place in bytes.as_chunks_mut::<8>().0 {
        let drawn = entropy::draw().map_err(IdentityError::refused("a random number"))?;
        *place = drawn.to_be_bytes();
    }
    Ok(Secret::new(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_made_once_and_replaced_with_notice() {
        let directory = tempfile::tempdir().unwrap();
        let path = secret_in(directory.path());
        let missing = read_secrets(&path).unwrap_err().to_string();
        assert!(missing.contains("keyway certs rotate --envelopes --dir"), "{missing}");
        make_secret(&path).unwrap();
        assert!(matches!(make_secret(&path), Err(IdentityError::Exists { .. })));
        let first = read_secrets(&path).unwrap();
        let now = UnixMs(10 * 180_000);
        assert_eq!(replace_secret(&path, now).unwrap(), Period(12));
        let both = read_secrets(&path).unwrap();
        assert_eq!(both.key_set(Period(10), true), first.key_set(Period(10), true));
        assert_ne!(both.key_set(Period(12), true), first.key_set(Period(12), true));
        // When that holds, the first is forgotten with the next.
        replace_secret(&path, now + 4 * Period::LEN).unwrap();
        let later = read_secrets(&path).unwrap();
        assert_eq!(later.iter().count(), 2);
        assert_eq!(
            later.key_set(Period(14), true).periods[1],
            both.key_set(Period(14), true).periods[1]
        );
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = secret_in(directory.path());
        let hex = "00".repeat(Secret::LEN);
        for text in ["", "00", "x", &format!("7 {hex}"), &format!("{hex}\n{hex}")] {
            write(&path, Visibility::Secret, text.as_bytes()).unwrap();
            assert!(matches!(read_secrets(&path), Err(IdentityError::Form { .. })), "{text}");
        }
        write(&path, Visibility::Public, hex.as_bytes()).unwrap();
        assert!(matches!(read_secrets(&path), Err(IdentityError::Readable { .. })));
    }
}
