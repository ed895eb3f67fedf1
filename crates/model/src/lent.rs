//! Keys that the tail of a chain lends to cache nodes.
//!
//! # The rules
//!
//! The tail:
//!
//! - L1. It lends a key to one cache in one incarnation, and to no other before that loan is over.
//!   Loans have numbers, which go on for as long as the tail's incarnation does, whatever the
//!   epoch. The same cache may be lent a key again, under another number.
//! - L2. A key is not lent while a write of it is under way.
//! - L3. One lease counts for all that a tail has lent a cache. Loans and grants make it longer, by
//!   what is left of the tail's right to lend at the most. The tail remembers when it is over by
//!   its own clock, with the bound on clock rates. It gives none while the cache has not answered
//!   for a write.
//! - L4. A write that all members have waits for the holder of its key. The tail sends updates
//!   until the cache has answered for that version or newer, has said that it does not hold the
//!   loan, or the lease is over.
//! - L5. From the first update of a version until that version is committed the tail shows nothing
//!   of the key, tells its chain of no commit, and answers nobody: also when an older version is
//!   committed meanwhile.
//! - L6. What is not held of a loan, by its holder in that incarnation, ends this loan and lower
//!   ones, not a higher one.
//! - L7. When a lease is over the tail may give up all that it has lent under it. Its *floor* for
//!   this cache is above all these loans then. Loans say the floor, as grants do.
//! - L8. For a batch or a deletion keys are recalled. The tail shows the old values meanwhile. No
//!   update is sent of a write that comes after one that is not committed yet and recalls.
//! - L9. A tail that closes lends no more and renews nothing. It may go on itself in the next epoch
//!   with all its loans. For another tail it settles when all are over.
//! - L10. A tail that takes over, or that starts anew, commits and shows nothing before the last
//!   one's right to lend is certainly over.
//!
//! The cache:
//!
//! - L11. It answers under the lease of the tail that has lent the key, counted from when it sent
//!   the request. It takes loans and grants for its incarnation, and for its last request alone.
//! - L12. A loan is of no use when what it says of the lease is over, even if the lease is longer
//!   by other grants.
//! - L13. It drops what is below a floor that it is told.
//! - L14. An update or a recall ends its fetch of the key, and what it holds of the key under a
//!   lower number. So nothing has to be remembered of what was denied.
//! - L15. It does not install an update that is older than what it holds.
//!
//! Values that end:
//!
//! - L16. An end is a time of the cluster's clock, by which all tails go. From then on a tail does
//!   not show the value, and a write that removes it may be ordered, which is one as any (L8).
//! - L17. Loans and grants say what time it is. The cache counts on from when it sent the request,
//!   with the bound on clock rates, as if its own clock were the slowest.
//! - L18. It shows no value whose end has come by that, nor any that ends before it was told the
//!   time.
//!
//! Keys that are copied, too (each is lent or copied at any time, never both):
//!
//! - L19. A registration waits until its key is lent to nobody: till the holder has said that it
//!   does not hold the loan, or the lease is over. Updates that come later do not make up for that,
//!   and none is sent.
//! - L20. A key that is registered is not lent. When that has ended it may be again.
//!
//! A cache's answers raise no floor of the coherence directory, so a copy may be older than what a
//! cache has shown.
//!
//! Floors may be left out if a cache drops what it holds when the lease is over.
//!
//! # What is promised
//!
//! A read shows at least what was shown or acknowledged before it began, of its key and of what was
//! written together with that. No value is shown after its end.
//! And no write is held back for longer than a lease, whatever caches do.
//!
//! # What is merged, and why nothing is lost by it
//!
//! - The chain is what its tail knows. A write is ordered and at all members in one step, as long
//!   as the tail is there. Writes of a partition are committed in order.
//! - Reads are not steps: after every step all that would answer one are read. A switch may send a
//!   read to any cache at any time. An answer that was decided on and is late is one to a read that
//!   began before.
//! - The network is the set of what was ever sent, but for what its receiver would refuse for ever.
//!   That makes nonces: an answer to a request that is not the last of its kind is forgotten.
//! - The directory of hot keys is its floors, as they are proven: what a tail shows and what is
//!   acknowledged raises them at once, as it passes the switch. Copies are the oldest that may
//!   answer. The switch forgets a key before its registration may end.
//! - Requests of caches are not messages. What a cache has asked a tail once may arrive there at
//!   any later time. What the tail then answers is for the last request or, of no use, for another.
//! - Time is relative, and goes on for as long as anybody counts. Without drift all clocks tick at
//!   once. With it a clock goes on by 1 or 2 each time, so that the bound is 2. Who waits for
//!   another is fast: the controller, or the tail where there is no controller.
//! - A cache that is dead is one that takes no step. Two incarnations of one cache are two caches
//!   with one address.
//! - How a tail comes by its right to lend is the business of `cluster::Lease`, and that no read
//!   reaches it behind a fence that of [`fence`](crate::fence).

mod bug;
mod cache;
mod rules;
mod scope;
mod state;
mod steps;
mod tail;

pub use bug::Bug;
pub use scope::{Change, Rules, Scope, Write};
pub use state::{Ask, Cache, Entry, Lease, Loan, Message, Of, Phase, Table, Tail, World};
pub use steps::Action;
