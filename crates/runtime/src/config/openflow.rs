//! The switch that speaks OpenFlow, and where members are behind it.

use super::{Config, SwitchSection};
use ::openflow::{Exit, Exits, Mac};
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddr};
use std::num::NonZero;

/// `[switch.openflow]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenFlowSection {
    /// TCP address at which the agent waits for the switch, as `"[::]:6653"`.
    pub listen: SocketAddr,
    /// Changes of flows that the switch takes in a second.
    #[serde(default = "default_rules")]
    pub rules_per_second: NonZero<u32>,
    /// Where nodes and caches are, by their addresses.
    pub exits: BTreeMap<Ipv6Addr, ExitSection>,
}

/// One of `[switch.openflow.exits]`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExitSection {
    /// The hardware address of the member, or of the router on the way to it.
    #[serde(deserialize_with = "mac")]
    pub mac: Mac,
    /// The number of the switch's port that leads there. Without it the switch sends packets by the
    /// hardware address, as one without OpenFlow would (`NORMAL`).
    #[serde(default)]
    pub port: Option<NonZero<u32>>,
}

fn mac<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Mac, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
}

/// What switches take that take few (SwitchKV, section 3.3: 400 to 12,000).
fn default_rules() -> NonZero<u32> {
    const { NonZero::new(1_000).expect("more than none") }
}

impl OpenFlowSection {
    /// The exits to all members.
    #[must_use]
    pub fn exits(&self) -> Exits {
        let exit = |it: &ExitSection| Exit { mac: it.mac, port: it.port.map(NonZero::get) };
        self.exits.iter().map(|(member, it)| (*member, exit(it))).collect()
    }
}

pub(super) fn check_openflow(config: &Config, found: &mut Vec<String>) {
    let sections =
        config.switches.iter().filter_map(|SwitchSection { openflow, .. }| openflow.as_ref());
    for OpenFlowSection { listen, exits, .. } in sections {
        if config.content.is_none() {
            found.push(
                "[switch.openflow] is for content addresses: say [content], or remove it".into(),
            );
        }
        if listen.port() == 0 {
            found.push("listen in [switch.openflow] has port 0: choose a port, as 6653".into());
        }
        let nodes = config.nodes.iter().map(|it| (format!("node {}", it.id), it.listen));
        let caches = config.caches.iter().map(|it| (format!("cache {}", it.id), it.listen));
        for (name, at) in nodes.chain(caches) {
            // Who has no IPv6 address is told so elsewhere.
            let SocketAddr::V6(at) = at else { continue };
            if !exits.contains_key(at.ip()) {
                found.push(format!(
                    "{name} is at {}, and [switch.openflow.exits] does not say where that is: add \
                     its hardware address and the port that leads there",
                    at.ip()
                ));
            }
        }
    }
}
