//! Which commands there are: the one table that says of each how many arguments it takes, where its
//! keys are, who may use it, and what COMMAND tells of it.

mod index;
mod keyed;
mod session;
mod spec;

pub(crate) use index::quoted_name;
pub use index::{Found, all, find, number_of, numbered, resolve, subcommands};
pub use keyed::Keyed;
pub use session::{
    AclCommand, Client, ClusterCommand, Command, Config, HotKeysCommand, Latency, Script, Session,
    Slowlog, Transaction,
};
pub use spec::{Access, Keys, Run, Spec};
