//! A rack on one machine: every host is a network namespace, the switch's routes between them, and
//! each role is a process of this binary in the namespace of its host.
//!
//! ```text
//!   keyway-lab-c0   10.77.2.1   eth0 ══ p-c0  ┐
//!   keyway-lab-c1   10.77.2.2   eth0 ══ p-c1  │  keyway-lab-sw
//!   keyway-lab-n1   10.77.1.1   eth0 ══ p-n1  ├─ 10.77.255.1 on lo, routes,
//!   keyway-lab-n2   10.77.1.2   eth0 ══ p-n2  │  runs the switch
//!   keyway-lab-ctl  10.77.254.1 eth0 ══ p-ctl ┘
//! ```
//!
//! What there is of a lab stands in a directory of its own ([`state`]) before it is made, so that
//! whoever comes later can take down what a killed process has left.

pub(crate) mod cluster;
pub(crate) mod faults;
pub(crate) mod guard;
pub(crate) mod keeper;
pub(crate) mod namespace;
pub(crate) mod network;
pub(crate) mod plane;
pub(crate) mod process;
pub(crate) mod rack;
pub(crate) mod ready;
pub(crate) mod search;
pub(crate) mod served;
pub(crate) mod site;
pub(crate) mod soak;
pub(crate) mod state;
pub(crate) mod trial;
