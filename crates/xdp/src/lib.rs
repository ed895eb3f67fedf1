//! The switch in the kernel: loads `bpf/`, attaches it to interfaces, and keeps its maps in step
//! with the tables.
//!
//! The program is a fast path beside the user-space switch, not instead of it: both get the same
//! tables and leases, and what the program leaves to the kernel (an address to which no way is
//! known yet, IPv6, fragments, IP options) reaches the socket on the service address.
//!
//! There is one directory of hot keys, in the kernel: [`KernelDirectory`] is how the sockets behind
//! the program take note of what passes them.
//!
//! `compile` makes values of maps from the controller's tables, `plane` keeps them in the kernel,
//! `hot` the directory of hot keys, of which the sockets hear by `kernel_directory`,
//! `shadow` tries datagrams out on the live maps, `explain` reads what they say of a hot key,
//! `probe` tries an interface out. `cached` is the memory of the rules of caches, which the sockets
//! write. `envelopes` is what the sealed program opens and seals packets with.
//! `link` attaches, `counters` adds up what each processor has counted. `layout` is generated and
//! says what the records are that both sides know.

mod bytes;
mod cached;
mod compile;
mod counters;
mod envelopes;
mod explain;
pub mod faults;
mod grants;
mod hot;
mod kernel_directory;
pub mod layout;
mod link;
mod maps;
mod plane;
mod probe;
mod program;
mod shadow;
mod sink;

pub use kernel_directory::KernelDirectory;
pub use plane::{Loader, Mode, Plane, Port, Spare};
pub use program::{Error, Program, Verdict};
pub use shadow::{Fate, Shadow};
pub use sink::Sink;
