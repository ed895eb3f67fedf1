//! Parameters that CONFIG GET tells and CONFIG SET changes: real ones only, under Redis' names.

use crate::budget::HELD_MAX;
use crate::glob::Pattern;
use crate::resp::Limits;
use crate::script::Scripts;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// All parameters.
#[derive(Debug)]
pub(crate) struct Settings {
    clients_max: usize,
    maxclients: AtomicUsize,
    timeout_s: AtomicU64,
    slower_than_micros: AtomicI64,
    slowlog_len_max: AtomicUsize,
    bulk_max: AtomicUsize,
    command_max: AtomicUsize,
    held_max: AtomicUsize,
    scripts: Arc<Scripts>,
    fixed: Vec<(&'static str, String)>,
}

/// Parameters that cannot be changed, of which the gateway knows when it starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fixed {
    pub(crate) listen: SocketAddr,
    pub(crate) tls: bool,
    /// Whether it says that it is a node of a Redis Cluster.
    pub(crate) cluster: bool,
    pub(crate) workers: usize,
    /// The highest number of a database, and 1.
    pub(crate) databases: u16,
    /// Most clients that there are descriptors for.
    pub(crate) clients_max: usize,
}

/// Seconds after which the kernel asks whether a silent client is still there: Redis' default.
pub(crate) const KEEPALIVE: Duration = Duration::from_secs(300);

/// What a command has to take to be slow, in microseconds, unless somebody says otherwise: Redis'
/// default.
const SLOWER_THAN_MICROS: i64 = 10_000;
/// Slow commands that are kept, unless somebody says otherwise: Redis' default.
const SLOWLOG_LEN: usize = 128;

/// The names of the parameters that can be changed, in the order of the alphabet.
const CHANGEABLE: [&str; 8] = [
    "client-query-buffer-limit",
    "lua-time-limit",
    "maxclients",
    "maxmemory-clients",
    "proto-max-bulk-len",
    "slowlog-log-slower-than",
    "slowlog-max-len",
    "timeout",
];

/// Why CONFIG SET was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SetError {
    Unknown,
    Immutable,
    Value(String),
}

impl Settings {
    pub(crate) fn new(
        maxclients: usize,
        timeout: Duration,
        fixed: Fixed,
        scripts: Arc<Scripts>,
    ) -> Self {
        let clients_max = fixed.clients_max;
        let port = fixed.listen.port().to_string();
        let (plain, tls) = if fixed.tls { ("0".into(), port) } else { (port, "0".into()) };
        let text = str::to_owned;
        let fixed = vec![
            // The gateway itself keeps nothing; what the nodes keep is the cluster's to say.
            ("appendonly", text("no")),
            ("bind", fixed.listen.ip().to_string()),
            ("cluster-enabled", text(if fixed.cluster { "yes" } else { "no" })),
            ("databases", fixed.databases.to_string()),
            ("io-threads", fixed.workers.to_string()),
            ("maxmemory", text("0")),
            ("maxmemory-policy", text("noeviction")),
            ("port", plain),
            ("protected-mode", text("yes")),
            ("save", String::new()),
            ("tcp-keepalive", KEEPALIVE.as_secs().to_string()),
            ("tls-port", tls),
        ];
        Self {
            clients_max,
            maxclients: AtomicUsize::new(maxclients.min(clients_max)),
            timeout_s: AtomicU64::new(timeout.as_secs()),
            slower_than_micros: AtomicI64::new(SLOWER_THAN_MICROS),
            slowlog_len_max: AtomicUsize::new(SLOWLOG_LEN),
            bulk_max: AtomicUsize::new(Limits::DEFAULT.bulk_max),
            command_max: AtomicUsize::new(Limits::DEFAULT.command_max),
            held_max: AtomicUsize::new(HELD_MAX),
            scripts,
            fixed,
        }
    }

    /// Most connections at once.
    pub(crate) fn maxclients(&self) -> usize {
        self.maxclients.load(Ordering::Relaxed)
    }

    /// Most bytes that all connections may hold.
    pub(crate) fn held_max(&self) -> usize {
        self.held_max.load(Ordering::Relaxed)
    }

    /// How long a connection may go without a whole command; `None` for ever.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let seconds = self.timeout_s.load(Ordering::Relaxed);
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// What commands have to take to be slow; `None`: none is.
    pub(crate) fn slower_than(&self) -> Option<Duration> {
        let micros = self.slower_than_micros.load(Ordering::Relaxed);
        u64::try_from(micros).ok().map(Duration::from_micros)
    }

    pub(crate) fn slowlog_len_max(&self) -> usize {
        self.slowlog_len_max.load(Ordering::Relaxed)
    }

    /// What a client that has shown who it is may send.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            bulk_max: self.bulk_max.load(Ordering::Relaxed),
            command_max: self.command_max.load(Ordering::Relaxed),
            ..Limits::DEFAULT
        }
    }

    /// The parameters whose names match one of the patterns, with their values.
    pub(crate) fn get(&self, patterns: &[Pattern]) -> Vec<(&'static str, String)> {
        let wanted = |name: &str| patterns.iter().any(|it| it.matches(name.as_bytes()));
        let fixed = self.fixed.iter().filter(|(name, _)| wanted(name));
        let fixed = fixed.map(|(name, value)| (*name, value.clone()));
        let changeable = CHANGEABLE.iter().filter(|name| wanted(name));
        let changeable = changeable.map(|name| (*name, self.value(name)));
        let mut found: Vec<_> = fixed.chain(changeable).collect();
        found.sort_unstable();
        found
    }

    fn value(&self, name: &str) -> String {
        match name {
            "client-query-buffer-limit" => self.command_max.load(Ordering::Relaxed).to_string(),
            "lua-time-limit" => self.scripts.time_max().as_millis().to_string(),
            "maxclients" => self.maxclients().to_string(),
            "maxmemory-clients" => self.held_max().to_string(),
            "proto-max-bulk-len" => self.bulk_max.load(Ordering::Relaxed).to_string(),
            "slowlog-log-slower-than" => {
                self.slower_than_micros.load(Ordering::Relaxed).to_string()
            }
            "slowlog-max-len" => self.slowlog_len_max().to_string(),
            _ => self.timeout_s.load(Ordering::Relaxed).to_string(),
        }
    }

    /// What is wrong with a change, if something is.
    pub(crate) fn check(&self, name: &str, value: &[u8]) -> Result<(), SetError> {
        if self.fixed.iter().any(|(fixed, _)| *fixed == name) {
            return Err(SetError::Immutable);
        }
        let (least, most) = bounds(name).ok_or(SetError::Unknown)?;
        let number = read(value).ok_or_else(|| {
            let what = if is_memory(name) {
                "argument must be a memory value"
            } else {
                "argument couldn't be parsed into an integer"
            };
            SetError::Value(what.into())
        })?;
        if name == "maxclients" && usize::try_from(number).is_ok_and(|it| it > self.clients_max) {
            let what = format!(
                "The operating system is not able to handle the specified number of clients, \
                 try with {}",
                self.clients_max
            );
            return Err(SetError::Value(what));
        }
        if (least..=most).contains(&number) {
            return Ok(());
        }
        let what = format!("argument must be between {least} and {most} inclusive");
        Err(SetError::Value(what))
    }

    /// Makes a change that [`check`](Self::check) found nothing wrong with.
    pub(crate) fn set(&self, name: &str, value: &[u8]) {
        let number = read(value).unwrap_or_default();
        let (size, unsigned) = (usize::try_from(number).unwrap_or_default(), number.unsigned_abs());
        match name {
            "client-query-buffer-limit" => self.command_max.store(size, Ordering::Relaxed),
            "lua-time-limit" => self.scripts.set_time_max(Duration::from_millis(unsigned)),
            "maxclients" => self.maxclients.store(size, Ordering::Relaxed),
            "maxmemory-clients" => self.held_max.store(size, Ordering::Relaxed),
            "proto-max-bulk-len" => self.bulk_max.store(size, Ordering::Relaxed),
            "slowlog-log-slower-than" => self.slower_than_micros.store(number, Ordering::Relaxed),
            "slowlog-max-len" => self.slowlog_len_max.store(size, Ordering::Relaxed),
            _ => self.timeout_s.store(unsigned, Ordering::Relaxed),
        }
    }
}

/// The smallest and the largest value of a parameter that can be changed.
fn bounds(name: &str) -> Option<(i64, i64)> {
    Some(match name {
        "client-query-buffer-limit" => (1 << 20, 1 << 40),
        "lua-time-limit" => (1, i32::MAX.into()),
        "maxclients" => (1, u32::MAX.into()),
        "maxmemory-clients" | "proto-max-bulk-len" => (1 << 20, 1 << 40),
        "slowlog-log-slower-than" => (-1, i64::MAX),
        // Entries of up to 4 KB: some 40 MB, which SLOWLOG GET may tell at once.
        "slowlog-max-len" => (0, 10_000),
        "timeout" => (0, i32::MAX.into()),
        _ => return None,
    })
}

fn is_memory(name: &str) -> bool {
    matches!(name, "client-query-buffer-limit" | "maxmemory-clients" | "proto-max-bulk-len")
}

/// A number, with a unit of memory perhaps.
fn read(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?.to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: i64 = match text.get(digits.len()..)? {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<i64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let fixed = Fixed {
            listen: "127.0.0.1:6379".parse().unwrap(),
            tls: false,
            cluster: false,
            workers: 2,
            databases: 1,
            clients_max: 3_000_000,
        };
        Settings::new(10_000, Duration::ZERO, fixed, Arc::default())
    }

    #[test]
    fn every_parameter_is_told_and_those_that_can_be_are_changed() {
        let settings = settings();
        let get = |pattern: &[u8]| settings.get(&[Pattern::any_case(pattern).unwrap()]);
        assert_eq!(get(b"*").len(), CHANGEABLE.len() + settings.fixed.len());
        assert_eq!(get(b"max[cx]*"), [("maxclients", "10000".to_owned())]);
        for name in CHANGEABLE {
            settings.check(name, b"2000000").or_else(|_| settings.check(name, b"99")).unwrap();
            assert!(settings.check(name, b"x").is_err(), "{name}");
        }
        settings.set("timeout", b"30");
        assert_eq!(settings.timeout(), Some(Duration::from_secs(30)));
        settings.set("slowlog-log-slower-than", b"-1");
        assert_eq!(settings.slower_than(), None);
        settings.set("proto-max-bulk-len", b"2mb");
        assert_eq!(settings.limits().bulk_max, 2 << 20);
    }

    #[test]
    fn what_cannot_be_changed_is_refused() {
        let settings = settings();
        assert_eq!(settings.check("port", b"1"), Err(SetError::Immutable));
        assert_eq!(settings.check("nothing", b"1"), Err(SetError::Unknown));
        let error = settings.check("maxclients", b"0").unwrap_err();
        let text = "argument must be between 1 and 4294967295 inclusive";
        assert_eq!(error, SetError::Value(text.into()));
    }
}
