//! Delegations: hot keys of which writes go anywhere (section 9 of `spec/protocol.md`).
//!
//! Members of a chain agree on [`records`]; the head brings keys home ([`recall`]), the tail
//! answers what it still can ([`reads`]), and any node takes [`writes`], which wait for [`disks`].

pub(crate) mod disks;
pub(crate) mod early;
pub(crate) mod orders;
pub(crate) mod reads;
pub(crate) mod recall;
pub(crate) mod records;
pub(crate) mod writes;
