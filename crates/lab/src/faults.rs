//! Bad links of a rack, at the ends of its clients and nodes.

use crate::namespace::inside;
use crate::network;
use crate::rack::{LabHost, Rack};
use anyhow::{Context, Result};
use machine::mix;
use xdp::faults::{self, Counts, Faults};

/// The end of a link that is a host's own.
const INTERFACE: &str = "eth0";

/// Makes the links of these hosts bad, each with dice of its own.
pub fn set(rack: &Rack, hosts: &[LabHost], faults: Faults) -> Result<()> {
    // What the switch's kernel would hand over as one packet is to be lost one by one.
    network::segment(rack, hosts, true)?;
    for place in hosts {
        let seed = mix(faults.seed ^ u64::from(u32::from(place.address())));
        let attach = || Ok(Faults { seed, ..faults }.attach(INTERFACE)?);
        let attached = inside(&rack.namespace(*place), attach);
        attached.with_context(|| format!("the link of {place} cannot be made bad"))?;
    }
    Ok(())
}

/// Makes the links of these hosts good again.
pub fn clear(rack: &Rack, hosts: &[LabHost]) -> Result<()> {
    for place in hosts {
        let detached = inside(&rack.namespace(*place), || Ok(faults::detach(INTERFACE)?));
        detached.with_context(|| format!("the link of {place} cannot be made good"))?;
    }
    network::segment(rack, hosts, false)
}

/// What the link of a host has done; `None` if it is good.
pub fn counts(rack: &Rack, place: LabHost) -> Result<Option<Counts>> {
    inside(&rack.namespace(place), || Ok(faults::counts(INTERFACE)?))
}
