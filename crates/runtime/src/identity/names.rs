//! What certificates say of those who have them.

use super::error::IdentityError;
use cluster::Member;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// What somebody is in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Gives orders.
    Controller,
    /// Forwards requests.
    Switch,
    /// Stores.
    Node,
    /// Holds hot keys.
    Cache,
    /// Lets Redis clients in.
    Gateway,
    /// Reads and writes keys.
    Client,
    /// Changes the cluster.
    Admin,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Controller,
        Self::Switch,
        Self::Node,
        Self::Cache,
        Self::Gateway,
        Self::Client,
        Self::Admin,
    ];

    /// Its name in certificates and commands.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::Switch => "switch",
            Self::Node => "node",
            Self::Cache => "cache",
            Self::Gateway => "gateway",
            Self::Client => "client",
            Self::Admin => "admin",
        }
    }

    /// Whether it has an admin server, so that others connect to it.
    #[must_use]
    pub fn serves(self) -> bool {
        match self {
            Self::Controller | Self::Switch | Self::Node | Self::Cache | Self::Gateway => true,
            Self::Client | Self::Admin => false,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("there is no role {text:?}: choose one of {known}")
        })
    }
}

/// A role and a name: what a certificate proves. Written `node/3`, and `keyway://node/3` in a
/// certificate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// What it is.
    pub role: Role,
    /// Which of them: the id of a node or cache, the position of a switch, or any name.
    pub name: String,
}

/// What the URI of an identity begins with.
const SCHEME: &str = "keyway://";

/// Characters of a name: it is a part of file names and of log lines.
const NAME_MAX: usize = 64;

impl Identity {
    /// An identity.
    ///
    /// # Errors
    ///
    /// If the name is empty, too long, or has other characters than letters, digits, `_`, `-` and
    /// `.`.
    pub fn new(role: Role, name: impl Into<String>) -> Result<Self, IdentityError> {
        let name = name.into();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('.')
        {
            return Ok(Self { role, name });
        }
        Err(IdentityError::Name(name))
    }

    /// What this member's certificate must say.
    #[must_use]
    pub fn of(member: Member) -> Self {
        let (role, name) = match member {
            Member::Switch(index) => (Role::Switch, index.to_string()),
            Member::Node(id) => (Role::Node, id.to_string()),
            Member::Cache(id) => (Role::Cache, id.to_string()),
        };
        Self { role, name }
    }

    /// How it stands in a certificate.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("{SCHEME}{self}")
    }

    /// Reads what [`uri`](Self::uri) has written; `None` if it is something else.
    #[must_use]
    pub fn from_uri(uri: &str) -> Option<Self> {
        let (role, name) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        Self::new(role.parse().ok()?, name).ok()
    }

    /// What its files are called, without their endings. One whose name says nothing more than its
    /// role, as the first certificate for commands, is called by its role.
    #[must_use]
    pub fn stem(&self) -> String {
        let Self { role, name } = self;
        if role.name() == name { name.clone() } else { format!("{role}-{name}") }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.role, self.name)
    }
}

/// Who must be at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Exactly this one.
    One(Identity),
    /// Anybody of this role.
    Role(Role),
    /// Any role that has an admin server.
    Server,
    /// Anybody of the cluster.
    Anybody,
}

impl Expected {
    /// Whether it may be this one.
    #[must_use]
    pub fn allows(&self, found: &Identity) -> bool {
        match self {
            Self::One(identity) => identity == found,
            Self::Role(role) => *role == found.role,
            Self::Server => found.role.serves(),
            Self::Anybody => true,
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(identity) => write!(f, "{identity}"),
            Self::Role(role) => write!(f, "{role}"),
            Self::Server => f.write_str("a role with an admin server"),
            Self::Anybody => f.write_str("anybody"),
        }
    }
}

/// Who has asked: handlers of an admin server find it among a request's extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// What its certificate proves; nothing if it has shown none.
    pub identity: Option<Identity>,
    /// Where the request came from.
    pub address: SocketAddr,
}

impl Peer {
    /// Its role, if its certificate proves one.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        self.identity.as_ref().map(|identity| identity.role)
    }

    /// Its name, if its certificate proves one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.identity.as_ref().map(|identity| identity.name.as_str())
    }

    /// Whether it is on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.address.ip().to_canonical().is_loopback()
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.identity {
            Some(identity) => write!(f, "{identity}"),
            None if self.is_local() => f.write_str("loopback"),
            None => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_as_it_is_written_and_nothing_else_is_one() {
        for role in Role::ALL {
            let identity = Identity::new(role, "a-1").unwrap();
            assert_eq!(Identity::from_uri(&identity.uri()), Some(identity.clone()));
            assert_eq!(identity.stem(), format!("{role}-a-1"));
            assert_eq!(role.name().parse(), Ok(role));
        }
        let member = Identity::of(Member::Node(cluster::NodeId(3)));
        assert_eq!((member.uri(), member.stem()), ("keyway://node/3".into(), "node-3".into()));
        assert_eq!(Identity::new(Role::Admin, "admin").unwrap().stem(), "admin");
        for wrong in [
            "",
            "keyway://node",
            "keyway://node/",
            "keyway://node/3/4",
            "keyway://king/1",
            "keyway://Node/3",
            "http://node/3",
            "keyway://node/..",
            "keyway://node/a b",
            "keyway://node/\u{e9}",
        ] {
            assert_eq!(Identity::from_uri(wrong), None, "{wrong}");
        }
        assert!(Identity::new(Role::Node, "x".repeat(65)).is_err());
    }

    #[test]
    fn who_is_expected_is_told_from_others() {
        let of = |role, name: &str| Identity::new(role, name).unwrap();
        let node = of(Role::Node, "3");
        assert!(Expected::One(node.clone()).allows(&node));
        assert!(!Expected::One(node.clone()).allows(&of(Role::Node, "30")));
        assert!(!Expected::One(node.clone()).allows(&of(Role::Cache, "3")));
        assert!(Expected::Role(Role::Node).allows(&node));
        assert!(!Expected::Role(Role::Controller).allows(&node));
        assert!(Expected::Server.allows(&node));
        assert!(!Expected::Server.allows(&of(Role::Client, "3")));
    }

    #[test]
    fn a_peer_is_called_by_its_certificate_or_by_where_it_is() {
        let at = |text: &str| text.parse().unwrap();
        let peer = |identity, address| Peer { identity, address };
        assert_eq!(peer(None, at("127.0.0.1:9")).to_string(), "loopback");
        assert_eq!(peer(None, at("[::ffff:127.0.0.1]:9")).to_string(), "loopback");
        assert_eq!(peer(None, at("10.0.0.1:9")).to_string(), "unknown");
        let admin = Identity::new(Role::Admin, "alice").ok();
        assert_eq!(peer(admin, at("10.0.0.1:9")).to_string(), "admin/alice");
    }
}
