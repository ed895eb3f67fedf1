//! `keyway up`: a cluster in one process.

use crate::command::cluster_size::ClusterSize;
use crate::command::gateway::{self, ClusterView, redis_cli};
use crate::command::role::private_files;
use crate::command::status::kind;
use ::gateway::{Gateway, HotKeys};
use anyhow::{Context, anyhow};
use cluster::Map;
use console::answer::Answer;
use console::certs::{self, Role};
use console::exit::{Failure, Verdict};
use console::logs::Logs;
use console::note;
use console::out;
use console::parse;
use console::pass;
use console::shared::Shared;
use envelope::Pass;
use runtime::admin::{AskPass, Renewal};
use runtime::driver::{ControllerHandle, PassWish};
use runtime::signals::Signals;
use runtime::up::{Embedded, UpError, UpOptions};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Start a cluster in this process: a switch, storage nodes, a controller and a gateway.
///
/// Listens at --service, --admin and --redis (port 0: any) and, by default, keeps everything in
/// main memory.
/// With --certs, whoever asks at --admin shows a certificate, and packets are in envelopes.
/// Ends in good order on Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway up
  keyway up --engine fjall --data ./data
  keyway up --nodes 1 --replicas 1 --engine redis --backend redis://127.0.0.1:6379 --data ./data
  keyway up --nodes 3 --replicas 2 --service 127.0.0.1:9900 --admin 127.0.0.1:9980
  keyway up --redis 127.0.0.1:6379
  keyway up --service 10.0.0.1:7700 --admin 10.0.0.1:7780 --certs ./certs
  keyway up --json --service 127.0.0.1:0 --admin 127.0.0.1:0     for scripts and tests")]
pub(crate) struct Args {
    #[command(flatten)]
    size: ClusterSize,
    /// Where Redis clients connect, or off. By default port 7379 of 127.0.0.1, or any if --service
    /// has port 0.
    #[arg(long, value_name = "HOST:PORT", value_parser = redis)]
    redis: Option<Redis>,
    /// Serve at an --admin address that other machines reach, and ask for no certificates: the
    /// network is protected by other means.
    #[arg(long, conflicts_with = "certs")]
    open: bool,
    #[command(flatten)]
    rules: gateway::Rules,
    #[command(flatten)]
    logs: Logs,
}

/// Whether there is a way in for Redis clients.
#[derive(Clone, Copy, Debug)]
enum Redis {
    Off,
    At(SocketAddr),
}

fn redis(text: &str) -> Result<Redis, String> {
    if text == "off" { Ok(Redis::Off) } else { parse::address(text).map(Redis::At) }
}

/// Port of the gateway, unless somebody says otherwise: not that of Redis itself, which may run on
/// the same machine.
const REDIS_PORT: u16 = 7379;

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        self.logs.start("warn")?;
        let (service_wanted, admin) = shared.listen()?;
        // Before any thread is started, so that none of them takes the signal.
        let signals = Signals::hold().context("cannot hold signals back")?;
        // What is kept is for its owner.
        private_files();
        let security = gateway::security(shared, Role::Controller, self.open)?;
        let options = UpOptions {
            secrets: shared.certs.as_deref().map(certs::secrets).transpose()?,
            ..self.size.options(service_wanted, admin, security)?
        };
        let embedded = start(&options)?;
        let controller = embedded.roles().controller.clone();
        let controller = controller.ok_or_else(|| anyhow!("the cluster has no controller"))?;
        let map = controller.map().context("cannot ask the controller")?;
        let (service, admin) = (embedded.service(), embedded.admin());
        let gateway = match self.redis_at(service_wanted) {
            Redis::Off => None,
            Redis::At(at) => Some(self.start_gateway(shared, &embedded, at)?),
        };
        let redis = gateway.as_ref().map(Gateway::local);
        if shared.json {
            ready_line(service, admin, redis, &map).print()?;
        } else {
            let certs = shared.certs.as_deref();
            out::print(&self.ready_screen(&options, (service, admin), redis, certs, &map))?;
        }
        let signal = signals.wait().context("cannot wait for signals")?;
        note!("keyway: {signal}: ending in good order");
        // What Redis clients have under way, the cluster still answers.
        gateway.into_iter().for_each(Gateway::stop);
        embedded.stop();
        Ok(Verdict::Yes)
    }

    fn redis_at(&self, service: SocketAddr) -> Redis {
        let port = if service.port() == 0 { 0 } else { REDIS_PORT };
        self.redis.unwrap_or(Redis::At((Ipv4Addr::LOCALHOST, port).into()))
    }

    fn start_gateway(
        &self,
        shared: &Shared,
        embedded: &Embedded,
        at: SocketAddr,
    ) -> Result<Gateway, Failure> {
        let roles = embedded.roles();
        let controller = roles.controller.clone();
        let status = controller.as_ref().and_then(|controller| controller.status().ok());
        let hot = |keyspace: String| {
            let controller = controller.clone()?;
            Some(HotKeys::new(move || {
                let status = controller.status().map_err(|error| error.to_string())?;
                Ok(gateway::hot_keys(&status, &keyspace))
            }))
        };
        let passes = |user: Option<&str>| match controller.clone() {
            Some(controller) => pass::kept(Box::new(move |asked| give(&controller, asked)), user),
            None => Ok(None),
        };
        let known = ClusterView { status: status.as_ref(), hot: &hot, passes: &passes };
        let options = self.rules.options(shared, vec![embedded.service()], known, at)?;
        let gateway = gateway::start(options, shared)?;
        roles.others.add(gateway.metrics());
        Ok(gateway)
    }

    fn ready_screen(
        &self,
        options: &UpOptions,
        (service, admin): (SocketAddr, SocketAddr),
        redis: Option<SocketAddr>,
        certs: Option<&Path>,
        map: &Map,
    ) -> String {
        let size = &self.size;
        let engine = options.engine.name();
        let backends: Vec<String> = options.backends.iter().map(ToString::to_string).collect();
        let keeps = match &options.data {
            _ if !backends.is_empty() => format!("values in {}", backends.join(", ")),
            Some(data) => format!("{engine} in {}", data.display()),
            None => format!("{engine}, gone with this process"),
        };
        let addresses: Vec<String> = map.nodes.iter().map(|n| n.endpoint.to_string()).collect();
        let nodes = match addresses.as_slice() {
            [first, .., last] => format!("{}: {first} to {last}", addresses.len()),
            _ => addresses.concat(),
        };
        let keyspaces: Vec<String> = map
            .keyspaces
            .iter()
            .map(|keyspace| {
                let partitions = map.partitions.iter().filter(|p| p.keyspace == keyspace.id);
                let (name, kind) = (&keyspace.name, kind(&keyspace.kind));
                format!("{name} ({kind}, {} partitions)", partitions.count())
            })
            .collect();
        let export = exports(service, admin, certs);
        let (scheme, envelopes) =
            if certs.is_some() { ("https", ", in envelopes") } else { ("http", "") };
        let (at, cli) = match redis {
            Some(at) => {
                let cli = redis_cli(at);
                (at.to_string(), format!("  redis-cli {cli} set greeting hello\n"))
            }
            None => ("off".to_owned(), String::new()),
        };
        format!(
            "\
Keyway is ready.

  service    {service}, UDP{envelopes}: the switch, where clients send everything
  admin      {scheme}://{admin}, for status, /metrics and keyspaces
  redis      {at}, for Redis clients: the gateway
  nodes      {nodes}
  keeps      each key on {} nodes, {keeps}
  keyspaces  {}

Try in another shell:

{export}{cli}  keyway put greeting hello
  keyway get greeting
  keyway explain greeting
  keyway put -k ordered apple red; keyway put -k ordered banana yellow; keyway scan -k ordered
  keyway bench --load --keys 100k --workload b
  keyway status

Ctrl-C ends it.
",
            size.replicas,
            keyspaces.join(", "),
        )
    }
}

/// A pass for the gateway in this process, or one by which it acts for a user. All may do
/// everything here.
fn give(controller: &ControllerHandle, asked: &AskPass) -> Result<Option<Pass>, Failure> {
    let whose = match &asked.act_for {
        Some(user) => format!("user {user} of this process"),
        None => "this process".to_owned(),
    };
    let renew = asked.renew.map(|Renewal { number, ticket }| (number, ticket));
    let given = controller.pass(PassWish { whose, class: None, renew });
    given.context("the gateway has no pass").map_err(Failure::Other)
}

/// What another shell has to know: lines with what is not as it is without being told.
fn exports(service: SocketAddr, admin: SocketAddr, certs: Option<&Path>) -> String {
    let mut lines = folder_to_add()
        .map_or_else(String::new, |folder| format!("  export PATH={folder}:$PATH\n"));
    if service.port() != wire::PORT || admin.port() != ADMIN_PORT {
        lines.push_str(&format!("  export KEYWAY_SERVICE={service} KEYWAY_ADMIN={admin}\n"));
    }
    if let Some(certs) = certs {
        lines.push_str(&format!("  export KEYWAY_CERTS={}\n", certs.display()));
    }
    lines
}

/// The folder of this program, if a shell would not find it there.
fn folder_to_add() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&folders).map(|folder| folder.join("keyway"));
    if found.any(|path| path.canonicalize().is_ok_and(|path| path == program)) {
        return None;
    }
    Some(program.parent()?.display().to_string())
}

/// Port of the default admin address.
const ADMIN_PORT: u16 = 7780;

fn ready_line(
    service: SocketAddr,
    admin: SocketAddr,
    redis: Option<SocketAddr>,
    map: &Map,
) -> Answer {
    let nodes: Vec<serde_json::Value> = map
        .nodes
        .iter()
        .map(|node| serde_json::json!({ "id": node.id, "endpoint": node.endpoint.to_string() }))
        .collect();
    let keyspaces: Vec<&str> = map.keyspaces.iter().map(|k| k.name.as_str()).collect();
    Answer::new("ready")
        .with("service", service)
        .with("admin", admin)
        .with("redis", redis)
        .with("nodes", nodes)
        .with("keyspaces", keyspaces)
        .with("pid", std::process::id())
}

/// Starts a cluster, and says so if that takes a while.
pub(crate) fn start(options: &UpOptions) -> Result<Embedded, Failure> {
    thread::scope(|scope| {
        let (started, wait) = channel::<()>();
        scope.spawn(move || {
            let mut seconds = 0;
            while wait.recv_timeout(Duration::from_secs(2)) == Err(RecvTimeoutError::Timeout) {
                seconds += 2;
                note!("keyway: starting, {seconds} s; nodes with much data take a while");
            }
        });
        let embedded = Embedded::start(options);
        drop(started);
        embedded.map_err(|error| match error {
            UpError::Options(_) | UpError::OtherData { .. } => Failure::usage(error.to_string()),
            UpError::Start(_) | UpError::NotReady { .. } => Failure::Other(error.into()),
        })
    })
}
