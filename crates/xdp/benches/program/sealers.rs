//! What packets are sealed with while the sealed program is measured.

use crate::addresses;
use crate::bed::OwnPlane;
use crate::cases::SERVICE;
use cluster::SwitchTables;
use envelope::{EdgeKeys, Key, PassNumber, Period, Ring, RingPorts, Secret};
use libbpf_rs::{MapCore as _, MapFlags};
use std::net::SocketAddr;

/// Who asks.
pub(crate) const CLIENT: u64 = PASS.client(7);
const PASS: PassNumber = PassNumber(5);
const PERIOD: Period = Period(1_000_003);

/// Tells a sealed program its keys and who is a member, and the programs that measure it how to
/// seal what comes.
pub(crate) fn install(plane: &mut OwnPlane, tables: &SwitchTables) -> Result<(), xdp::Error> {
    if !plane.program().is_sealed() {
        return Ok(());
    }
    let set = Secret::new([7; 32]).key_set(PERIOD, false);
    let nodes = tables.nodes.iter().map(|it| (it.endpoint, it.shards));
    let caches = tables.caches.iter().map(|it| (it.endpoint, it.shards));
    let own = (SocketAddr::V4(SERVICE).into(), 1);
    let members = nodes.chain(caches).chain([own]);
    let members = members.map(|(at, ports)| RingPorts { first: SocketAddr::from(at), ports });
    plane.install_ring(&Ring::new(&members.collect::<Vec<_>>(), None))?;
    plane.install_keys(&set)?;

    let edge = EdgeKeys::of(set.current().expect("it has them"));
    let (Key(client), Key(members)) = (edge.clients.derive(PASS.0), edge.members);
    let cookie = edge.cookies.cookie(SocketAddr::from(addresses::CLIENT).into());
    let period = u64::from(PERIOD.byte()).to_ne_bytes();
    let value = [&client[..], &members, &cookie.to_be_bytes(), &period].concat();
    let maps = plane.program().maps();
    let map = maps.iter().find(|map| map.name() == ".data.sealers").expect("bpf/ has it");
    let put = map.update(&0_u32.to_ne_bytes(), &value, MapFlags::ANY);
    put.expect("it has room for them");
    Ok(())
}
