//! How an etcd is reached, and as whom.

use crate::identity::{OutsideTls, OutsideUser};

/// How an etcd is reached: plainly and as nobody, if nothing else is said.
#[derive(Clone, Debug, Default)]
pub struct EtcdAccess {
    /// What connections are put under TLS by.
    pub tls: Option<OutsideTls>,
    /// Whom it is to take us for.
    pub user: Option<OutsideUser>,
}
