//! `keyway controller migrate-store`: the controller's state moves to another store.

use crate::command::role::private_files;
use console::answer::Answer;
use console::exit::{Failure, Verdict};
use console::out;
use console::shared::Shared;
use runtime::config::Config;
use runtime::identity::IdentityError;
use runtime::migrate::{MigrateError, StoreLocation, migrate};
use runtime::store::{EtcdAccess, EtcdUrl};
use std::path::PathBuf;

/// Move the controller's state to another store: from its directory to an etcd, or back.
///
/// No controller may run. What is in the other store already is not written over. Afterwards change
/// the configuration and start the controllers: what was left behind is old from then on.
///
/// Ends with exit code 3 if nothing was moved.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway controller migrate-store --from /var/lib/keyway/controller \\
      --to etcd://10.0.0.1:2379,10.0.0.2:2379/keyway
  keyway controller migrate-store --from etcd://10.0.0.1:2379/keyway --to ./controller
  keyway controller migrate-store --from ./controller --to etcds://10.0.0.1:2379/keyway \
      --config keyway.toml")]
pub(super) struct Args {
    /// The store that has the state: the `data` or the `store` of a [controller].
    #[arg(long, value_name = "PLACE")]
    from: StoreLocation,
    /// The store that is to have it.
    #[arg(long, value_name = "PLACE")]
    to: StoreLocation,
    /// The configuration whose [controller.etcd] says how etcd is reached, if it has TLS or users.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Args {
    pub(super) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        private_files();
        let Self { from, to, config } = self;
        if from == to {
            return Err(Failure::usage("--from and --to are the same"));
        }
        let load =
            |path: &PathBuf| Config::load(path).map_err(|error| Failure::usage(error.to_string()));
        let config = config.as_ref().map(load).transpose()?;
        let access = |url: &EtcdUrl| access(config.as_ref(), url);
        let saved = migrate(&from, &to, &access).map_err(|error| match error {
            MigrateError::Start(error) => Failure::Other(error.into()),
            other => Failure::Refused(other.to_string()),
        })?;
        let (cluster, revision) = (format!("{:016x}", saved.map.cluster.0), saved.map.revision);
        if shared.json {
            let answer = Answer::new("done").with("cluster", cluster).with("revision", revision);
            answer.with("to", to.to_string()).print()?;
            return Ok(Verdict::Yes);
        }
        let setting = match &to {
            StoreLocation::Directory(path) => {
                format!("data = \"{}\"    (and no store)", path.display())
            }
            StoreLocation::Etcd(url) => format!("store = \"{url}\""),
        };
        out::print(&format!(
            "\
{to} has the state of cluster {cluster}, map revision {revision}.
What is in {from} stays, and is old from now on. Next, in [controller] of the configuration:

  {setting}

and start the controllers.
"
        ))?;
        Ok(Verdict::Yes)
    }
}

/// How an etcd is reached, as the configuration says.
fn access(config: Option<&Config>, url: &EtcdUrl) -> Result<EtcdAccess, IdentityError> {
    match config {
        Some(config) => config.etcd_access(url),
        None if url.is_tls() => Err(IdentityError::Missing {
            path: "--config".into(),
            hint: format!("its [controller.etcd] says by which certificates {url} is known"),
        }),
        None => Ok(EtcdAccess::default()),
    }
}
