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
#![warn(clippy::print_stdout, clippy::print_stderr)]
#![expect(missing_docs, reason = "fields and variants say by their names what they are")]

pub mod certs;
pub mod child;
pub mod cluster;
pub mod etcd;
pub mod faults;
pub mod guard;
pub mod hammer;
pub mod hosts;
pub mod keeper;
pub mod links;
pub mod name;
pub mod namespace;
pub mod network;
pub mod openvswitch;
pub mod place;
pub mod plane;
pub mod process;
pub mod rack;
pub mod ready;
pub mod redundant;
pub mod soak;
pub mod state;
pub mod tool;
pub mod user;
