//! Where an etcd is, and which of its keys are a cluster's.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Members of an etcd, and what a cluster's keys there begin with.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct EtcdUrl {
    /// `HOST:PORT` of each; not empty.
    endpoints: Vec<String>,
    prefix: String,
    is_tls: bool,
}

/// What the form for plain connections begins with, and that for connections under TLS.
const PLAIN: &str = "etcd://";
const UNDER_TLS: &str = "etcds://";

/// Members named at most: an etcd has three or five, seldom seven.
const ENDPOINTS_MAX: usize = 16;

impl EtcdUrl {
    /// What all keys begin with, without a slash at the end.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether it is reached under TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Members that are named.
    pub(super) fn count(&self) -> usize {
        self.endpoints.len()
    }

    /// One after the other, over and over.
    pub(super) fn endpoint(&self, at: usize) -> &str {
        let index = at.checked_rem(self.endpoints.len()).unwrap_or_default();
        self.endpoints.get(index).expect("there is one")
    }
}

impl FromStr for EtcdUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write etcd://HOST:PORT[,HOST:PORT...]/PREFIX, or etcds:// for TLS";
        let under_tls = text.strip_prefix(UNDER_TLS);
        let rest = under_tls.or_else(|| text.strip_prefix(PLAIN)).ok_or(form)?;
        let (endpoints, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_end_matches('/');
        if prefix.is_empty() {
            return Err(format!("{text} names no prefix, and others may use that etcd: {form}"));
        }
        let endpoints: Vec<String> = endpoints.split(',').map(str::to_owned).collect();
        let is_endpoint = |it: &String| {
            let port = it.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>()));
            let plain = !it.contains(['@', '?', '#', ' ']);
            plain && matches!(port, Some((host, Ok(_))) if !host.is_empty())
        };
        if let Some(wrong) = endpoints.iter().find(|it| !is_endpoint(it)) {
            return Err(format!("{wrong:?} is no HOST:PORT: {form}"));
        }
        if endpoints.len() > ENDPOINTS_MAX {
            return Err(format!("more than {ENDPOINTS_MAX} members are named"));
        }
        Ok(Self { endpoints, prefix: format!("/{prefix}"), is_tls: under_tls.is_some() })
    }
}

impl TryFrom<String> for EtcdUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<EtcdUrl> for String {
    fn from(url: EtcdUrl) -> Self {
        url.to_string()
    }
}

impl fmt::Display for EtcdUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { UNDER_TLS } else { PLAIN };
        write!(f, "{scheme}{}{}", self.endpoints.join(","), self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_a_prefix_are_named() {
        for text in [
            "etcd://127.0.0.1:2379/keyway",
            "etcds://127.0.0.1:2379/keyway",
            "etcd://a:1,b:2,[::1]:3/teams/one",
        ] {
            assert_eq!(text.parse::<EtcdUrl>().unwrap().to_string(), text);
        }
        let url: EtcdUrl = "etcd://a:1,b:2/k/".parse().unwrap();
        assert_eq!((url.prefix(), url.endpoint(0), url.endpoint(3)), ("/k", "a:1", "b:2"));
        for text in [
            "",
            "a:1/k",
            "etcd://a:1",
            "etcd://a:1/",
            "etcd://a/k",
            "etcd://,/k",
            "etcd://u:p@h:1/k",
            "etcd://:1/k",
            "https://a:1/k",
            "etcds://a:1",
        ] {
            assert!(text.parse::<EtcdUrl>().is_err(), "{text}");
        }
    }
}
