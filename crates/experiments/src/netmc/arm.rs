//! The ways to take multigets apart that are compared.

/// Who takes multigets apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Splitter {
    /// The switch (NetMC).
    Switch,
    /// The switch, of keys that the clients have put in the order of nodes, with NetMC's hints.
    Assisted,
    /// The clients, by the map (CliMC).
    Client,
    /// A coordinator on a host of its own (CoordiMC).
    Coordinator,
}

impl Splitter {
    /// All of them, in the order of tables.
    pub(crate) const ALL: [Self; 4] =
        [Self::Switch, Self::Assisted, Self::Client, Self::Coordinator];

    /// As tables and plots call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Switch => "switch",
            Self::Assisted => "assisted",
            Self::Client => "client",
            Self::Coordinator => "coordinator",
        }
    }
}
