//! Signs of a leader: who gives orders when several controllers share a store.
//!
//! These are the rules T5, T6 and T8 of `spec/protocol.md`, section 7, "Leaders". The store has the
//! leader's key, bound to a lease, and the leader's last sign. A leader renews the lease and gives
//! a sign with one renewal, of which each part may come late or never; it is paused, which is that
//! it does nothing while time passes; the store has no room for a while. Candidates look, at a
//! member of the store that may be behind, and take the key.
//!
//! - T5. A leader counts on itself for [`LEAD_FOR`] since it sent what renewed its lease and gave a
//!   sign. It looks at that after it has heard the reports that leases in the order rest on.
//! - T6. A candidate takes the key when it has seen one sign of the leader, and no other, for as
//!   long, on condition that it is the last one still.
//! - T8. A leader that has no room for a sign removes the last one, and looks whether the key is
//!   still its own. Where there is no sign of the leader, candidates go by the lease.
//!
//! # What is promised
//!
//! - *Nobody leads beside one that has seen its signs stand still.* From when a key was taken in
//!   view of a sign, none that had it before counts on itself, so that no order of it leaves which
//!   was not about to.
//! - *No lease rests on what was heard too late.* Where there was no sign, two may count on
//!   themselves at once, but the one before for less than [`LEAD_FOR`] after its key was taken. So
//!   no lease that it gives rests on a report that it has heard later, wherever it then was paused.
//!   A new leader counts leases from that moment (L5), so that none outlasts what it counts on.
//!
//! A member that obeys the one before in that time has not heard the new one yet (T2), and follows
//! what was decided before it led: by then it has decided nothing that others would notice.
//!
//! That a candidate waits for a lease that is kept is not needed for any of this: without it only
//! leaders that are well would be replaced.
//!
//! # What is merged, and why nothing is lost by it
//!
//! - Time is counted in ticks. Whoever counts on something has the slowest clock, whoever waits the
//!   fastest: what is [`LEAD_FOR`] to the first, and with the bound on clock rates more to the
//!   second, is the same number of ticks. A candidate that forgets the bound waits for half of it.
//! - The lease is renewed in the instant in which that is sent, or not at all: the sooner that is,
//!   the sooner others find it old. It may be over as soon as it can be, or much later. That it is
//!   not renewed and a sign is given all the same is what a member of the store does that does not
//!   know yet that others have gone on without it.
//! - A member of the store that is behind tells a candidate what it was told before. A first look
//!   that shows what is old is one that was made in time.
//! - A leader hears a report in the instant in which it looks whether it leads: that is the last
//!   that it may. When the order leaves does not matter then, nor when it comes.
//! - How long leases of members last is the same for all, and left out.
//!
//! # What is not in it
//!
//! Terms and what is put on record (T1 to T4, T7): an order of a leader that was deposed, at
//! members that have or have not heard of the next one, is in [`fence`](crate::fence). Leaders that
//! give their lease back, and stores that are put back as they were before.

mod rules;
mod scope;
mod state;
mod store;

pub use rules::Action;
pub use scope::{Bug, Rules, Scope};
pub use state::{Ask, Call, Controller, LEAD_FOR, LEASE, Sign, Store, Taking, View, World};
