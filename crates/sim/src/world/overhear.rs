//! What goes over the wires of a world, for whoever wants packets as the machines make them.

use super::World;
use crate::options::Options;
use crate::queue::Event;
use crate::role::{Role, role_of};
use envelope::ENVELOPE_LEN;

/// Lets the faults of a world happen, and hands over every datagram that is about to arrive
/// anywhere, with whether that is its reply address; the same one perhaps several times.
pub fn overhear(options: &Options, mut hears: impl FnMut(&[u8], bool)) {
    let mut world = World::new(options);
    let end = world.now + options.lead + options.span;
    loop {
        if let Some(Event::Datagram { to, bytes, .. }) = world.queue.peek() {
            let sealed = bytes.get(ENVELOPE_LEN..).filter(|_| world.guard.is_some());
            let packet = sealed.unwrap_or(bytes);
            hears(packet, matches!(role_of(*to).0, Role::Client(_)));
        }
        if !world.step(end) {
            return;
        }
    }
}
