//! `keyway gateway`: the way in for Redis clients.

use crate::command::role::warn_if_others_read;
use crate::command::status::durability;
use anyhow::Context;
use bytes::Bytes;
use console::admin::Admin;
use console::answer::Answer;
use console::certs::{self, Role};
use console::connect;
use console::exit::{Failure, Verdict};
use console::logs::Logs;
use console::note;
use console::out;
use console::parse;
use console::pass;
use console::shared::Shared;
use controller::{HotStatus, Status};
use envelope::Passes;
use gateway::{
    Acl, Cluster, Database, Endpoint, Gateway, HotKey, HotKeys, MAXCLIENTS, Multi, Options,
    StartError, TlsFiles,
};
use lab::process::pause;
use runtime::admin::Admin as AdminServer;
use runtime::identity::Security;
use runtime::roles::Roles;
use runtime::signals::{HAND_OVER, Signals};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Run a gateway: Redis clients connect to it and use the keys of --keyspace.
///
/// It keeps nothing itself, so that any number of them may stand before one cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway gateway
  redis-cli get greeting                                        in another shell
  keyway gateway --listen 127.0.0.1:0 --json                    for scripts and tests
  keyway gateway --metrics 127.0.0.1:9121                       for Prometheus
  keyway gateway --metrics 10.0.0.1:9121 --certs ./certs        with a gateway's certificate
  keyway gateway --listen 10.0.0.1:6379 --password-file secret
  keyway gateway --listen 10.0.0.1:6379 --acl-file users.acl --tls-cert a.pem --tls-key a.key")]
pub(crate) struct Args {
    /// Where clients connect; port 0 for any. Beyond loopback only with passwords.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379")]
    #[arg(value_parser = parse::address)]
    listen: SocketAddr,
    /// Where /metrics and /healthz are served; port 0 for any. Beyond loopback with --certs, as the
    /// admin servers of other roles, or with --open.
    #[arg(long, value_name = "HOST:PORT", value_parser = parse::address)]
    metrics: Option<SocketAddr>,
    /// Serve --metrics over plain HTTP to everybody who reaches it: the network is protected by
    /// other means.
    #[arg(long, conflicts_with = "certs")]
    open: bool,
    #[command(flatten)]
    rules: Rules,
    #[command(flatten)]
    logs: Logs,
}

/// Whom a gateway lets in, and how many.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Gateway")]
pub(crate) struct Rules {
    /// File with the password that every client must give.
    #[arg(long, value_name = "FILE", conflicts_with = "acl_file")]
    password_file: Option<PathBuf>,
    /// File of users, in the syntax of Redis: `user alice on >secret ~app:* +@read`.
    #[arg(long, value_name = "FILE")]
    acl_file: Option<PathBuf>,
    /// Ask in the name of each user of --acl-file, as `client/USER`, by whose rights switches and
    /// nodes go; without it, all users ask by the gateway's own rights.
    #[arg(long, requires = "acl_file")]
    act_for_users: bool,
    /// Certificate for TLS, in the PEM format, with those between it and its authority.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of the certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Authorities: a client must have a certificate of one of them.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_ca: Option<PathBuf>,
    /// Keyspace that clients see as the database of that number (`SELECT N`, `redis://host/N`).
    /// Database 0 is that of --keyspace.
    #[arg(long = "database", value_name = "N=KEYSPACE", value_parser = database)]
    databases: Vec<(u8, String)>,
    /// What EXEC does with keys that cannot change together: `atomic` refuses them, `ordered`
    /// carries out one command after the other, as those of a pipeline.
    #[arg(long, value_name = "HOW", default_value_t)]
    multi: Multi,
    /// Tell clients of Redis Cluster that this is a node of one, which has all slots, or those
    /// that --gateways leave to it.
    #[arg(long)]
    cluster: bool,
    /// Where clients of Redis Cluster reach this gateway; by default where each has connected to.
    #[arg(long, value_name = "HOST:PORT", requires = "cluster")]
    announce: Option<Endpoint>,
    /// All gateways that are to share the slots, by the places that they announce; this one may
    /// be among them.
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',', requires = "announce")]
    gateways: Vec<Endpoint>,
    /// Most clients at once.
    #[arg(long, value_name = "N", default_value_t = MAXCLIENTS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    maxclients: u32,
    /// Time after which a client that has sent no whole command is disconnected; 0s: never.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse::duration)]
    idle_timeout: Duration,
    /// Threads; by default as many as there are cores.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        self.logs.start("warn")?;
        // Before any thread is started, so that none of them takes the signal.
        let signals = Signals::hold().context("cannot hold signals back")?;
        let security = self.security(shared)?;
        if let Some(at) = self.metrics.filter(|at| !security.may_serve_at(*at)) {
            return Err(Failure::usage(format!(
                "--metrics {at} is reached from other machines: name a certificate with --certs \
                 (keyway certs issue gateway NAME makes one), or say --open if the network is \
                 protected by other means"
            )));
        }
        let controllers = |wait| Admin::with(&shared.admins, wait, &security);
        let status = controllers(shared.timeout).status();
        if let Err(failure) = &status {
            note!("keyway: replicas unknown, WAIT answers 0: {}", failure.message());
        }
        let hot = |keyspace: String| {
            let admin = controllers(HOT_WAIT_MAX);
            let ask = move || {
                let status = admin.status().map_err(|failure| failure.message())?;
                Ok(hot_keys(&status, &keyspace))
            };
            Some(HotKeys::new(ask))
        };
        let passes = |user: Option<&str>| pass::of(shared, user);
        let known = ClusterView { status: status.as_ref().ok(), hot: &hot, passes: &passes };
        let options = self.rules.options(shared, shared.services.clone(), known, self.listen)?;
        let gateway = start(options, shared)?;
        let roles = Roles { security: security.clone(), ..Roles::default() };
        let server = self.metrics.map(|at| serve_metrics(at, &gateway, &roles)).transpose()?;
        let listen = gateway.local();
        if shared.json {
            let metrics = server.as_ref().map(|server| server.local().to_string());
            Answer::new("ready")
                .with("redis", listen)
                .with("keyspace", shared.keyspace.as_str())
                .with("metrics", metrics)
                .with("pid", std::process::id())
                .print()?;
        } else {
            out::line(&format!(
                "gateway ready: redis-cli {} reads and writes keyspace {}",
                redis_cli(listen),
                shared.keyspace
            ))?;
        }
        let signal = signals.wait().context("cannot wait for signals")?;
        note!("keyway: {signal}: ending in good order");
        if signal == HAND_OVER {
            // Whoever deals out connections is to send no more here before any is closed.
            roles.ending.store(true, Ordering::Relaxed);
            pause(UNREADY_FOR);
        }
        gateway.stop();
        Ok(Verdict::Yes)
    }
}

impl Args {
    /// One that serves no metrics only asks, for which a client's certificate will do.
    fn security(&self, shared: &Shared) -> Result<Security, Failure> {
        match &shared.certs {
            Some(path) if self.metrics.is_none() => {
                certs::load(path, &[Role::Gateway, Role::Client, Role::Admin])
            }
            _ => security(shared, Role::Gateway, self.open),
        }
    }
}

impl Rules {
    /// Everything that a gateway needs to know.
    pub(crate) fn options(
        &self,
        shared: &Shared,
        services: Vec<SocketAddr>,
        known: ClusterView<'_>,
        listen: SocketAddr,
    ) -> Result<Options, Failure> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let tls = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(TlsFiles {
                certificate: certificate.clone(),
                key: key.clone(),
                authorities: self.tls_ca.clone(),
            }),
            _ => None,
        };
        let acl = self.acl()?;
        Ok(Options {
            services,
            passes: (known.passes)(None)?,
            user_passes: self.user_passes(known, &acl)?,
            databases: self.databases(shared, known)?,
            cluster: self.cluster(),
            multi: self.multi,
            sync: known.sync(),
            deadline: shared.timeout,
            listen,
            workers: self.workers.map_or_else(cores, usize::from),
            maxclients: usize::try_from(self.maxclients).unwrap_or(usize::MAX),
            idle_timeout: self.idle_timeout,
            tls,
            acl,
        })
    }

    /// The passes by which it acts for its users, if it is to.
    fn user_passes(&self, known: ClusterView<'_>, acl: &Acl) -> Result<UserPasses, Failure> {
        let mut passes = UserPasses::new();
        for user in acl.can_log_in().filter(|_| self.act_for_users) {
            let pass = (known.passes)(Some(user))?.ok_or_else(|| {
                Failure::usage(
                    "--act-for-users: nodes do not know who asks, for packets are in no \
                     envelopes; name the gateway's certificate with --certs, and see [security] of \
                     the cluster",
                )
            })?;
            passes.insert(user.to_owned(), pass);
        }
        Ok(passes)
    }

    fn databases(&self, shared: &Shared, known: ClusterView<'_>) -> Result<Vec<Database>, Failure> {
        let mut databases = vec![known.database(0, &shared.keyspace)];
        for (number, keyspace) in &self.databases {
            if databases.iter().any(|it| it.number == *number) {
                let what = format!("--database {number}={keyspace}: database {number} is there");
                return Err(Failure::usage(what));
            }
            databases.push(known.database(*number, keyspace));
        }
        Ok(databases)
    }

    fn cluster(&self) -> Option<Cluster> {
        let (announce, gateways) = (self.announce.clone(), self.gateways.clone());
        self.cluster.then_some(Cluster { announce, gateways })
    }

    fn acl(&self) -> Result<Acl, Failure> {
        if let Some(path) = &self.password_file {
            let text = read(path)?;
            let password = text.lines().next().unwrap_or_default();
            if password.is_empty() {
                let what = format!("{}: the first line is to be the password", path.display());
                return Err(Failure::usage(what));
            }
            return Ok(Acl::with_password(password.as_bytes()));
        }
        let Some(path) = &self.acl_file else { return Ok(Acl::open()) };
        let acl = Acl::parse(&read(path)?);
        acl.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
    }
}

/// Passes by the users for whom they are.
type UserPasses = BTreeMap<String, Passes>;

/// What only a controller can tell. Without one a gateway serves all the same.
#[derive(Clone, Copy)]
pub(crate) struct ClusterView<'a> {
    /// How the cluster is.
    pub(crate) status: Option<&'a Status>,
    /// Who knows the hot keys of a keyspace, by its name.
    pub(crate) hot: &'a dyn Fn(String) -> Option<HotKeys>,
    /// Who gives passes: for the gateway itself, or one by which it acts for a user.
    pub(crate) passes: &'a PassGiver<'a>,
}

/// Gives a pass, by the name of the user that it is for; none where packets are in no envelopes.
type PassGiver<'a> = dyn Fn(Option<&str>) -> Result<Option<Passes>, Failure> + 'a;

impl ClusterView<'_> {
    /// A keyspace as a database.
    fn database(self, number: u8, keyspace: &str) -> Database {
        let named = |status: &'_ Status| {
            let found = status.keyspaces.iter().find(|it| it.name == keyspace)?;
            u8::try_from(found.replicas).ok()
        };
        let replicas = self.status.and_then(named);
        let keyspace = keyspace.to_owned();
        Database { number, replicas, hot: (self.hot)(keyspace.clone()), keyspace }
    }

    /// What acknowledged writes are safe from on all nodes.
    fn sync(self) -> String {
        let durability = self.status.and_then(|status| durability(&status.load));
        durability.map_or_else(|| "unknown".to_owned(), |it| it.to_string())
    }
}

/// Reads `1=sessions`.
fn database(text: &str) -> Result<(u8, String), String> {
    let (number, keyspace) = text.split_once('=').ok_or("expected N=KEYSPACE, as 1=sessions")?;
    let number = number.parse().map_err(|_| "databases have numbers from 1 to 255")?;
    Ok((number, keyspace.to_owned()))
}

/// How long HOTKEYS and OBJECT FREQ wait for a controller.
const HOT_WAIT_MAX: Duration = Duration::from_secs(2);

/// The hot keys of a keyspace, as the controller has them.
pub(crate) fn hot_keys(status: &Status, keyspace: &str) -> Vec<HotKey> {
    let known = status.keyspaces.iter().find(|it| it.name == keyspace);
    let id = known.map(|keyspace| keyspace.id);
    let of_keyspace = status.hot.iter().filter(|it| Some(it.key.keyspace) == id);
    let key = |it: &HotStatus| HotKey {
        key: Bytes::copy_from_slice(&it.key.key),
        reads: it.key.reads,
        writes: it.key.writes,
        copies: it.generation.map_or(0, |stay| stay.readers),
    };
    of_keyspace.map(key).collect()
}

/// The certificate that a process shows which this command starts, or that it shows none, and
/// serves this machine or any.
pub(crate) fn security(shared: &Shared, role: Role, open: bool) -> Result<Security, Failure> {
    match &shared.certs {
        Some(path) => certs::load_of(path, role),
        None if open => Ok(Security::Open),
        None => Ok(Security::Loopback),
    }
}

/// How long a gateway that is asked to end says so at `/readyz` before it closes connections.
const UNREADY_FOR: Duration = Duration::from_secs(1);

fn serve_metrics(at: SocketAddr, gateway: &Gateway, roles: &Roles) -> Result<AdminServer, Failure> {
    roles.others.add(gateway.metrics());
    let server = AdminServer::start(at, roles.clone());
    server.with_context(|| format!("cannot serve metrics at {at}")).map_err(Failure::Other)
}

/// Reads a file that may have passwords in it.
fn read(path: &Path) -> Result<String, Failure> {
    warn_if_others_read(path);
    std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

/// Starts a gateway; what goes wrong is told as by commands that read and write keys.
pub(crate) fn start(options: Options, shared: &Shared) -> Result<Gateway, Failure> {
    Gateway::start(options).map_err(|error| match error {
        StartError::Lookup(why) => connect::no_keyspace(why, shared),
        StartError::Unprotected(_) | StartError::Tls(_) => Failure::usage(error.to_string()),
        StartError::Bind { .. } | StartError::System(_) => Failure::Other(error.into()),
    })
}

/// How redis-cli is told where a gateway listens.
pub(crate) fn redis_cli(at: SocketAddr) -> String {
    if at.ip() == std::net::Ipv4Addr::LOCALHOST {
        format!("-p {}", at.port())
    } else {
        format!("-h {} -p {}", at.ip(), at.port())
    }
}
