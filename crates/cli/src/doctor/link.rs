//! Interfaces as `ip -json -details` and `ethtool --json` describe them.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// An interface of `ip -json -details link` or `address`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Link {
    #[serde(rename = "ifname")]
    pub(crate) name: String,
    #[serde(rename = "ifindex")]
    pub(crate) index: u32,
    pub(crate) link_type: String,
    pub(crate) flags: Vec<String>,
    pub(crate) mtu: u32,
    /// The bridge or bond that it belongs to.
    pub(crate) master: Option<String>,
    /// A veth's far end, in the same namespace,
    pub(crate) link: Option<String>,
    /// or its number in another one,
    pub(crate) link_index: Option<u32>,
    /// which has this number here.
    pub(crate) link_netnsid: Option<i64>,
    linkinfo: Info,
    pub(crate) xdp: Option<Xdp>,
    addr_info: Vec<Address>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Info {
    info_kind: Option<String>,
}

/// The XDP program that is attached.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Xdp {
    /// `XDP_ATTACHED_*` of the kernel.
    mode: u32,
    prog: Option<Prog>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
struct Prog {
    id: u32,
    #[serde(default)]
    name: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Address {
    local: Option<IpAddr>,
}

impl Link {
    /// What the kernel calls its kind: `veth`, `bridge`; nothing for hardware.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.linkinfo.info_kind.as_deref()
    }

    /// Whether it has this flag: `UP`, `LOWER_UP`.
    pub(crate) fn is(&self, flag: &str) -> bool {
        self.flags.iter().any(|it| it == flag)
    }

    /// Its addresses.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.addr_info.iter().filter_map(|it| it.local)
    }

    /// Whether clients or nodes may be behind it.
    pub(crate) fn is_candidate(&self) -> bool {
        let made = ["bridge", "bond", "team", "dummy", "vlan", "macvlan", "ipvlan", "vxlan", "ifb"];
        self.link_type == "ether" && self.kind().is_none_or(|kind| !made.contains(&kind))
    }
}

impl Xdp {
    /// Number of the program in the kernel.
    pub(crate) fn id(&self) -> Option<u32> {
        self.prog.as_ref().map(|prog| prog.id)
    }

    /// The name of the program.
    pub(crate) fn name(&self) -> &str {
        self.prog.as_ref().map_or("", |prog| &prog.name)
    }

    /// Whether it runs in the driver, and not behind it.
    pub(crate) fn is_native(&self) -> bool {
        const XDP_ATTACHED_SKB: u32 = 2;
        self.mode != XDP_ATTACHED_SKB
    }
}

/// Reads what `ip -json` prints. Of interfaces that a filter has left out it prints `{}`.
pub(crate) fn parse(json: &str) -> Result<Vec<Link>, serde_json::Error> {
    let links: Vec<Link> = serde_json::from_str(json)?;
    Ok(links.into_iter().filter(|link| link.index != 0).collect())
}

/// Which offloads are on, by name, in what `ethtool --json -k` prints.
pub(crate) fn parse_features(json: &str) -> Result<BTreeMap<String, bool>, serde_json::Error> {
    let ports: Vec<BTreeMap<String, serde_json::Value>> = serde_json::from_str(json)?;
    let all = ports.into_iter().flatten();
    let on = all.filter_map(|(name, value)| Some((name, value.get("active")?.as_bool()?)));
    Ok(on.collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What iproute2 6.1 says in a namespace with a veth whose far end is in another one, one with
    /// both ends there, one of them in a bridge, and a program on the first.
    pub(crate) const LINKS: &str = r#"[
        {"ifindex":1,"ifname":"lo","flags":["LOOPBACK"],"mtu":65536,"link_type":"loopback"},
        {},
        {"ifindex":2,"link_index":2,"ifname":"pa","link_type":"ether","link_netnsid":0,
         "flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":1500,"operstate":"UP",
         "linkinfo":{"info_kind":"veth"},
         "xdp":{"mode":1,"prog":{"id":5801,"name":"keyway_one","jited":1}},
         "addr_info":[{"family":"inet","local":"10.0.0.1","prefixlen":24}]},
        {"ifindex":3,"link":"pb","ifname":"pc","flags":["BROADCAST","M-DOWN"],"mtu":1500,
         "master":"br0","link_type":"ether",
         "linkinfo":{"info_kind":"veth","info_slave_kind":"bridge","info_slave_data":{}}},
        {"ifindex":5,"ifname":"br0","flags":[],"mtu":1500,"link_type":"ether",
         "linkinfo":{"info_kind":"bridge"}}]"#;

    #[test]
    fn interfaces_are_read() {
        let links = parse(LINKS).unwrap();
        let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names, ["lo", "pa", "pc", "br0"]);
        let (pa, pc) = (&links[1], &links[2]);
        assert!(pa.is("UP") && pa.is("LOWER_UP") && !pc.is("UP"));
        assert_eq!((pa.kind(), pa.link_index, pa.link_netnsid), (Some("veth"), Some(2), Some(0)));
        assert_eq!((pc.link.as_deref(), pc.master.as_deref()), (Some("pb"), Some("br0")));
        assert_eq!(pa.addresses().collect::<Vec<_>>(), ["10.0.0.1".parse::<IpAddr>().unwrap()]);
        let xdp = pa.xdp.as_ref().unwrap();
        assert_eq!((xdp.id(), xdp.name(), xdp.is_native()), (Some(5801), "keyway_one", true));
        let candidates = links.iter().filter(|link| link.is_candidate());
        assert_eq!(candidates.map(|link| link.name.as_str()).collect::<Vec<_>>(), ["pa", "pc"]);
    }

    #[test]
    fn offloads_are_read() {
        let json = r#"[{"ifname":"pa","rx-gro-list":{"active":false,"fixed":false},
            "generic-receive-offload":{"active":true,"fixed":false,"requested":true}}]"#;
        let features = parse_features(json).unwrap();
        assert_eq!(features.get("generic-receive-offload"), Some(&true));
        assert_eq!(features.get("rx-gro-list"), Some(&false));
        assert_eq!(features.len(), 2);
    }
}
