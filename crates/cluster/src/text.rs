//! Endpoints and key prefixes as people read them in JSON.

/// An endpoint as `address:port`.
pub(crate) mod endpoint {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::net::SocketAddr;
    use wire::Endpoint;

    pub(crate) fn serialize<S: Serializer>(
        it: &Endpoint,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(it)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Endpoint, D::Error> {
        SocketAddr::deserialize(from).map(Endpoint::from)
    }
}
