//! Who asks admin servers: with a certificate, if there is one.

use runtime::identity::{Expected, Security, agent};
use std::net::SocketAddr;
use std::time::Duration;
use ureq::Agent;
use ureq::unversioned::resolver::DefaultResolver;

/// Asks servers that have to be of some role.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    pub(super) agent: Agent,
    scheme: &'static str,
}

impl Asker {
    pub(super) fn new(security: &Security, expected: Expected, timeout: Duration) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            // The body of a refusal says why.
            .http_status_as_error(false)
            // A proxy that the environment names is for the world outside.
            .proxy(None)
            .build();
        let agent = agent(security, expected, config, DefaultResolver::default());
        Self { agent, scheme: security.scheme() }
    }

    /// Where to ask for this.
    pub(super) fn url(&self, at: SocketAddr, path: &str) -> String {
        format!("{}://{at}{path}", self.scheme)
    }

    /// What may help somebody whom nobody answers.
    pub(super) fn hint(&self) -> &'static str {
        match self.scheme {
            "http" => "\n  if it asks for certificates:         --certs DIR  (or KEYWAY_CERTS)",
            _ => "",
        }
    }
}
