//! What a section needs of the machine.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;

/// Something that is not everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// For namespaces, programs in the kernel and priority.
    Root,
    /// One of these programs, from the package.
    Program { any: &'static [&'static str], package: &'static str },
}

pub(super) const REDIS: Need =
    Need::Program { any: &["redis-server", "valkey-server"], package: "redis-server" };
pub(super) const MEMCACHED: Need = Need::Program { any: &["memcached"], package: "memcached" };
pub(super) const NUTCRACKER: Need = Need::Program { any: &["nutcracker"], package: "nutcracker" };
pub(super) const ETCD: Need = Need::Program { any: &["etcd"], package: "etcd-server" };
pub(super) const IP: Need = Need::Program { any: &["ip"], package: "iproute2" };

impl Need {
    /// Why it is not met, and what to do; nothing if it is.
    pub(super) fn lacks(self) -> Option<String> {
        match self {
            Self::Root if is_root() => None,
            Self::Root => Some("it needs root".to_owned()),
            Self::Program { any, .. } if any.iter().any(|name| is_installed(name)) => None,
            Self::Program { any, package } => {
                let names = any.join(" or ");
                Some(format!("there is no {names} (apt-get install {package})"))
            }
        }
    }
}

fn is_root() -> bool {
    // It belongs to who runs this process, with the rights that it has now.
    std::fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0)
}

fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian puts proxies and daemons where only root looks.
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let is_program = |path: PathBuf| {
        path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    folders.map(|folder| folder.join(name)).any(is_program)
}

#[test]
fn what_is_missing_is_named_with_its_package() {
    let need = |any| Need::Program { any, package: "keyway-none" };
    assert_eq!(need(&["no-such-program", "sh"]).lacks(), None);
    let why = need(&["no-such-program"]).lacks();
    assert_eq!(why.as_deref(), Some("there is no no-such-program (apt-get install keyway-none)"));
}
