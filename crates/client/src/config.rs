//! What a client may be told about itself.

use crate::coordination::Coordination;
use crate::service::{SERVICES_MAX, Services};
use std::time::Duration;
use wire::Endpoint;

/// Everything a [`Client`](crate::Client) needs to know before its first request.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The service addresses, in the order of preference; 1 to [`SERVICES_MAX`]. Every request goes
    /// to one of them, to the next when nothing is heard any more, and after the last comes the
    /// first.
    pub services: Vec<Endpoint>,
    /// Half of every request id. Drawn at random when the client starts and never used again: two
    /// clients with one id would be given each other's answers. 0 belongs to the nodes.
    pub client_id: u64,
    /// How long a request may wait for an answer before its outcome is unknown. A scan or a
    /// request for many keys counts from its last progress.
    pub deadline: Duration,
    /// Requests at once; [`start`](crate::Client::start) says `Busy` beyond. At most
    /// [`IN_FLIGHT_MAX`].
    pub in_flight_max: usize,
    /// Datagrams of one scan or request for many keys that wait for an answer at once. Each may be
    /// answered by up to `wire::RANGE_PIECES_MAX` datagrams, and a socket's receive buffer must
    /// hold them. A request for many keys begins with fewer, and goes down when answers are lost.
    pub aggregate_in_flight_max: usize,
    /// Bytes that the result of one scan or multiget may take: a larger scan is refused, and so
    /// are the keys of a multiget whose values are too many.
    pub result_bytes_max: usize,
    /// Who coordinates.
    pub coordination: Coordination,
    /// Bounds and first value of the retransmission timeout (RFC 6298).
    pub retransmit: RetransmitBounds,
}

/// Bounds of the retransmission timeout.
#[derive(Clone, Copy, Debug)]
pub struct RetransmitBounds {
    /// Never sooner: below the time that a busy machine takes to schedule a process, copies would
    /// be sent for answers already on their way.
    pub min: Duration,
    /// Before the first answer has been seen.
    pub first: Duration,
    /// Doubling stops here, unless the path itself takes longer: a chain that has been repaired, or
    /// a switch that has taken over, is noticed within this time and its quarter of jitter.
    pub backoff_max: Duration,
    /// Never later, however long the path takes.
    pub max: Duration,
}

/// Most requests of one client that wait at once: the low-water mark travels as a distance of 16
/// bits (`lag`), so that no request may start this far after one that has not ended.
pub const IN_FLIGHT_MAX: usize = 65_535;

/// Most keys of one request for many keys: bounds what one call can make the client hold, besides
/// the keys, values to write and values found (`result_bytes_max`) about 150 bytes for each.
pub const MANY_KEYS_MAX: usize = 1 << 20;

impl ClientConfig {
    /// The usual configuration for these service addresses (or this one) and client id.
    #[must_use]
    pub fn new(services: impl Into<Services>, client_id: u64) -> Self {
        Self {
            services: services.into().0,
            client_id,
            deadline: Duration::from_secs(5),
            in_flight_max: 4096,
            aggregate_in_flight_max: 32,
            result_bytes_max: 256 << 20,
            coordination: Coordination::Switch,
            retransmit: RetransmitBounds::default(),
        }
    }

    pub(crate) fn check(&self) {
        assert!(self.client_id != 0, "client id 0 belongs to the nodes");
        assert!(
            (1..=SERVICES_MAX).contains(&self.services.len()),
            "there are 1 to {SERVICES_MAX} service addresses"
        );
        assert!(
            (1..=IN_FLIGHT_MAX).contains(&self.in_flight_max),
            "in_flight_max is 1 to {IN_FLIGHT_MAX}"
        );
        assert!(self.aggregate_in_flight_max > 0, "an aggregate needs a datagram in flight");
        assert!(!self.deadline.is_zero(), "a request needs time to be answered");
    }
}

impl Default for RetransmitBounds {
    fn default() -> Self {
        Self {
            min: Duration::from_millis(5),
            first: Duration::from_millis(50),
            // Of the second that a key may be out of reach after a failure, leases take 500 ms and
            // the repair some more: this leaves time for two addresses to be asked in turn.
            backoff_max: Duration::from_millis(100),
            max: Duration::from_secs(1),
        }
    }
}
