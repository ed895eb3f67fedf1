//! `keyway certs`: certificates for everybody on the control plane of a cluster.

mod list;

use console::answer::Answer;
use console::exit::{Failure, Verdict};
use console::out;
use console::shared::Shared;
use machine::UnixMs;
use runtime::clock::Clock;
use runtime::config::Config;
use runtime::identity::{
    Authority, Identity, IdentityError, Issued, Revoked, Role, Validity, list as certificates,
    make_secret, replace_secret, revoke, secret_in,
};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// Make certificates for the roles of a cluster and for those who run it, and replace them.
///
/// With certificates, controllers, switches, nodes and caches know each other, and only who shows
/// an admin's certificate can change a cluster. A directory has the authority (ca.key, which is
/// best kept away from the cluster), its certificate (ca.crt, which everybody needs), the secret of
/// controllers that the keys of packets follow from (envelope.key), and a certificate with its key
/// for each: node-3.crt and node-3.key. Processes see by themselves that
/// files have changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway certs init --config keyway.toml
  keyway certs issue admin alice --days 90
  keyway certs rotate
  keyway certs revoke admin/alice
  keyway certs list")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Init(Init),
    Issue(Issue),
    Rotate(Rotate),
    Revoke(Revoke),
    /// Show which certificates there are, whose they are, and until when they are valid.
    #[command(after_help = "\
Examples:
  keyway certs list
  keyway certs list --dir ./certs --json")]
    List {
        #[command(flatten)]
        place: CertsLocation,
    },
}

/// Make an authority, and a certificate for each role in the configuration and for commands.
///
/// The directory is that of --dir, or the one that the configuration names under `security`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway certs init --config keyway.toml
  keyway certs init --config keyway.toml --dir ./certs --days 90
  keyway certs init --dir ./certs                     for keyway up --certs ./certs")]
struct Init {
    #[command(flatten)]
    place: CertsLocation,
    #[command(flatten)]
    term: Term,
}

/// Make one more certificate.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway certs issue admin alice --days 90
  keyway certs issue node 4 --address 10.0.0.4
  keyway certs issue gateway 1 --dir ./certs")]
struct Issue {
    /// For which role: controller, switch, node, cache, gateway, client or admin.
    role: Role,
    /// Which of them: the id of a node or cache, the position of a switch, any name of others.
    name: String,
    /// Address that the certificate is also good for, for tools that look at it; Keyway itself
    /// goes by role and name.
    #[arg(long = "address", value_name = "IP")]
    addresses: Vec<IpAddr>,
    #[command(flatten)]
    place: CertsLocation,
    #[command(flatten)]
    term: Term,
}

/// Make new certificates in place of those that are there.
///
/// Without a name all are made anew. Processes that run use the new ones from their next
/// connection on. With --ca the authority is replaced as well: the one before it is believed on
/// until the next rotation of all, so that files may reach machines in any order.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway certs rotate
  keyway certs rotate node/3 admin/alice
  keyway certs rotate --ca
  keyway certs rotate --envelopes
  keyway certs rotate --days 90 --dir ./certs")]
struct Rotate {
    /// Only these, as `node/3`.
    #[arg(value_name = "ROLE/NAME", value_parser = identity, conflicts_with = "ca")]
    names: Vec<Identity>,
    /// Replace the authority, too.
    #[arg(long)]
    ca: bool,
    /// Replace nothing but the secret from which the keys of packets follow: the new one holds some
    /// minutes later, and needs to be on the machines of all controllers by then.
    #[arg(long, conflicts_with_all = ["ca", "names"])]
    envelopes: bool,
    #[command(flatten)]
    place: CertsLocation,
    #[command(flatten)]
    term: Term,
}

/// Have certificates refused that were made until now.
///
/// It writes the file `revoked` beside ca.crt, which counts on the machines that it is copied to,
/// within a second. Whoever is to go on needs a new certificate: `keyway certs rotate NAME`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway certs revoke admin/alice
  keyway certs revoke node/3 --dir ./certs
  keyway certs revoke node/3 && keyway certs rotate node/3")]
struct Revoke {
    /// Whose, as `admin/alice`.
    #[arg(value_name = "ROLE/NAME", value_parser = identity, required = true)]
    names: Vec<Identity>,
    #[command(flatten)]
    place: CertsLocation,
}

/// Where certificates are.
#[derive(Debug, clap::Args)]
struct CertsLocation {
    /// Directory of the certificates.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Configuration that names the directory under `security`.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// How long certificates are valid.
#[derive(Debug, clap::Args)]
struct Term {
    /// Days that certificates are valid.
    #[arg(long, value_name = "N", default_value_t = 365)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
}

fn identity(text: &str) -> Result<Identity, String> {
    let (role, name) =
        text.split_once('/').or_else(|| text.split_once('-')).unwrap_or((text, text));
    Identity::new(role.parse()?, name).map_err(|error| error.to_string())
}

impl CertsLocation {
    fn config(&self) -> Result<Option<Config>, Failure> {
        let load = |path| Config::load(path).map_err(|error| Failure::usage(error.to_string()));
        self.config.as_deref().map(load).transpose()
    }

    /// The directory, if anything says it: these options, or the one for commands.
    fn directory(&self, shared: &Shared) -> Result<PathBuf, Failure> {
        if let Some(directory) = &self.dir {
            return Ok(directory.clone());
        }
        if let Some(security) = self.config()?.and_then(|config| config.security)
            && let Some(directory) = security.directory
        {
            return Ok(directory);
        }
        let named = shared.certs.as_ref().filter(|path| self.config.is_none() && path.is_dir());
        named.cloned().ok_or_else(|| {
            Failure::usage(
                "say where certificates are: --dir DIR, or --config FILE with a directory in its \
                 [security]",
            )
        })
    }
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        match self.command {
            Command::Init(args) => args.run(shared),
            Command::Issue(args) => args.run(shared),
            Command::Rotate(args) => args.run(shared),
            Command::Revoke(args) => args.run(shared),
            Command::List { place } => {
                let directory = place.directory(shared)?;
                let revoked = Revoked::in_directory(&directory).map_err(failed)?;
                list::run(&certificates(&directory).map_err(failed)?, &revoked, shared)
            }
        }
    }
}

impl Init {
    fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let directory = self.place.directory(shared)?;
        let named = match self.place.config()? {
            Some(config) => config.identities().map_err(failed)?,
            None => {
                let local = SocketAddr::from(([127, 0, 0, 1], 0));
                vec![(Identity::new(Role::Controller, "0").map_err(failed)?, local)]
            }
        };
        let validity = Validity::days(self.term.days);
        let authority = Authority::init(&directory).map_err(failed)?;
        make_secret(&secret_in(&directory)).map_err(failed)?;
        let mut issued = Vec::new();
        for (identity, at) in named {
            let made = authority.issue(&identity, &[at.ip()], validity, false);
            issued.push(made.map_err(failed)?);
        }
        let admin = Identity::new(Role::Admin, Role::Admin.name()).map_err(failed)?;
        issued.push(authority.issue(&admin, &[], validity, false).map_err(failed)?);
        if shared.json {
            return tell(&issued, shared);
        }
        tell(&issued, shared)?;
        let shown = directory.display();
        out::line(&format!(
            "\nEach machine needs ca.crt and the two files of its role, a controller also \
             envelope.key; who runs the cluster needs ca.crt and those of admin:\n  \
             export KEYWAY_CERTS={shown}\n\
             ca.key makes certificates: keep it where only you are."
        ))?;
        Ok(Verdict::Yes)
    }
}

impl Issue {
    fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let identity = Identity::new(self.role, self.name).map_err(failed)?;
        let authority = Authority::open(&self.place.directory(shared)?).map_err(failed)?;
        let validity = Validity::days(self.term.days);
        let issued = authority.issue(&identity, &self.addresses, validity, false);
        tell(&[issued.map_err(failed)?], shared)
    }
}

impl Rotate {
    fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let directory = self.place.directory(shared)?;
        if self.envelopes {
            return rotate_envelopes(&directory, shared);
        }
        let mut authority = Authority::open(&directory).map_err(failed)?;
        if self.names.is_empty() {
            authority.forget_former().map_err(failed)?;
        }
        if self.ca {
            authority.replace().map_err(failed)?;
        }
        let issued = authority.rotate(&self.names, Validity::days(self.term.days));
        tell(&issued.map_err(failed)?, shared)
    }
}

impl Revoke {
    fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let directory = self.place.directory(shared)?;
        let now = Clock::new().now().unix_ms() / 1_000;
        let file = revoke(&directory, &self.names, now).map_err(failed)?;
        for identity in &self.names {
            if shared.json {
                let answer = Answer::new("revoked").with("role", identity.role.name());
                answer.with("name", &identity.name).with("file", &file).print()?;
            } else {
                out::line(&format!("{identity}: certificates made until now are refused"))?;
            }
        }
        if !shared.json {
            let shown = file.display();
            out::line(&format!(
                "\nCopy {shown} beside ca.crt to every machine of the cluster: it counts there \
                 from then on.\nWho is to go on needs a new certificate: keyway certs rotate NAME"
            ))?;
        }
        Ok(Verdict::Yes)
    }
}

fn rotate_envelopes(directory: &Path, shared: &Shared) -> Result<Verdict, Failure> {
    let path = secret_in(directory);
    // What time it is in the cluster, as far as this machine knows.
    let now = UnixMs(Clock::new().now().unix_ms());
    let holds_in = replace_secret(&path, now).map_err(failed)?.begins_in(now.0);
    if shared.json {
        let answer = Answer::new("replaced").with("secret", &path);
        answer.with("holds_in_s", holds_in.as_secs()).print()?;
        return Ok(Verdict::Yes);
    }
    let (shown, seconds) = (path.display(), holds_in.as_secs());
    out::line(&format!(
        "{shown}: the new secret holds in {seconds} s. Copy the file to the machines of all \
         controllers before that."
    ))?;
    Ok(Verdict::Yes)
}

fn tell(issued: &[Issued], shared: &Shared) -> Result<Verdict, Failure> {
    for Issued { identity, certificate } in issued {
        if shared.json {
            let answer = Answer::new("issued").with("role", identity.role.name());
            answer.with("name", &identity.name).with("certificate", certificate).print()?;
        } else {
            out::line(&format!("{identity}: {}", certificate.display()))?;
        }
    }
    Ok(Verdict::Yes)
}

/// What is wrong with files or names is for whoever has typed the command to put right.
fn failed(error: IdentityError) -> Failure {
    match error {
        IdentityError::Exists { .. } => Failure::Refused(error.to_string()),
        other => Failure::usage(other.to_string()),
    }
}
