//! Where a backend is, as people write it.

use crate::secret;
use std::fmt;
use std::str::FromStr;

/// The address of a backend: `redis://host:port/db` or `memcached://host:port`.
#[derive(Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct BackendUrl(String);

/// A text that is no address of a backend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no address of a backend: write redis://HOST:PORT/DB, redis://:PASSWORD@HOST:PORT/DB, \
     redis+unix:///PATH, or memcached://HOST:PORT (the text is not shown: it may have a password)"
)]
pub struct NoBackendUrl;

/// What addresses of memcached begin with.
const MEMCACHED: &str = "memcached://";

impl BackendUrl {
    /// Whether it is one of memcached; else it is one of Redis.
    #[must_use]
    pub fn is_memcached(&self) -> bool {
        self.0.starts_with(MEMCACHED)
    }

    /// All of it, with its password.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Whether it has parts that others must not see.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        secret::scrub(&self.0) != self.0
    }

    /// Host and port of a memcached.
    pub(super) fn memcached_address(&self) -> &str {
        self.0.strip_prefix(MEMCACHED).unwrap_or_default()
    }
}

impl FromStr for BackendUrl {
    type Err = NoBackendUrl;

    fn from_str(text: &str) -> Result<Self, NoBackendUrl> {
        let is_known = match text.strip_prefix(MEMCACHED) {
            Some(address) => address.rsplit_once(':').is_some_and(|(host, port)| {
                !host.is_empty() && !host.contains(['/', '@']) && port.parse::<u16>().is_ok()
            }),
            None => redis::Client::open(text).is_ok(),
        };
        if is_known { Ok(Self(text.to_owned())) } else { Err(NoBackendUrl) }
    }
}

impl TryFrom<String> for BackendUrl {
    type Error = NoBackendUrl;

    fn try_from(text: String) -> Result<Self, NoBackendUrl> {
        text.parse()
    }
}

/// Without password: it goes into logs.
impl fmt::Display for BackendUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&secret::scrub(&self.0))
    }
}

impl fmt::Debug for BackendUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_kind_and_shows_no_password() {
        let url = |text: &str| text.parse::<BackendUrl>();
        assert!(url("memcached://127.0.0.1:11211").unwrap().is_memcached());
        let redis = url("redis://user:s3cret@127.0.0.1:6379/2").unwrap();
        assert!(!redis.is_memcached());
        assert_eq!(redis.to_string(), "redis://127.0.0.1:6379/2");
        assert_eq!(format!("{redis:?}"), "redis://127.0.0.1:6379/2");
        assert!(redis.secret().contains("s3cret"));
        assert!(redis.is_secret() && !url("memcached://127.0.0.1:11211").unwrap().is_secret());
        let unix = url("redis+unix:///run/it?db=1&pass=s3cret").unwrap();
        assert_eq!(unix.to_string(), "redis+unix:///run/it");
        let wrong = url("http://user:s3cret@a:1").unwrap_err();
        assert!(!format!("{wrong} {wrong:?}").contains("s3cret"));
        for text in ["", "127.0.0.1:6379", "http://a:1", "memcached://", "memcached://a:b"] {
            assert!(url(text).is_err(), "{text}");
        }
    }
}
