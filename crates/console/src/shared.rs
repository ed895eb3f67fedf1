//! What all commands share.

use crate::certs;
use crate::exit::Failure;
use crate::out::Color;
use crate::parse;
use clap::Args;
use runtime::identity::{Role, Security};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What commands have in common.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Shared options")]
pub struct Shared {
    /// Service address of the cluster: where every request goes. Where switches stand by, those of
    /// all, with commas: the one that answers is found.
    #[arg(long = "service", global = true, value_name = "HOST:PORT,..", env = "KEYWAY_SERVICE")]
    #[arg(default_value = "127.0.0.1:7700", value_delimiter = ',', value_parser = parse::address)]
    pub services: Vec<SocketAddr>,
    /// Admin address of the controller: status, map, keyspaces, members. Where a second one stands
    /// by, those of both, with a comma.
    #[arg(long = "admin", global = true, value_name = "HOST:PORT,..", env = "KEYWAY_ADMIN")]
    #[arg(default_value = "127.0.0.1:7780", value_delimiter = ',', value_parser = parse::address)]
    pub admins: Vec<SocketAddr>,
    /// Certificate to show the controller: a directory that `keyway certs` has made, or one of the
    /// certificates in it. Without it no certificate is shown, and none asked for.
    #[arg(long, global = true, value_name = "PATH", env = "KEYWAY_CERTS")]
    pub certs: Option<PathBuf>,
    /// Keyspace that keys belong to.
    #[arg(long, short = 'k', global = true, value_name = "NAME", env = "KEYWAY_KEYSPACE")]
    #[arg(default_value = "default")]
    pub keyspace: String,
    /// How long an answer is waited for, such as 500ms, 5s or 1h30m.
    #[arg(long, global = true, value_name = "TIME", default_value = "5s")]
    #[arg(value_parser = parse::some_time)]
    pub timeout: Duration,
    /// Print JSON, one object per line.
    #[arg(long, global = true)]
    pub json: bool,
    /// When to use colours: on a terminal, unless NO_COLOR is set; always; or never.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    pub color: Color,
}

impl Shared {
    /// What the command line would say that names these addresses and these certificates, and waits
    /// for answers for so long.
    pub fn of(
        services: &[SocketAddr],
        admins: &[SocketAddr],
        certs: Option<PathBuf>,
        timeout: Duration,
    ) -> Self {
        Self {
            services: services.to_vec(),
            admins: admins.to_vec(),
            certs,
            keyspace: "default".to_owned(),
            timeout,
            json: false,
            color: Color::default(),
        }
    }

    /// What the readers of single arguments do not see.
    pub fn check(&self) -> Result<(), Failure> {
        let (count, most) = (self.services.len(), client::SERVICES_MAX);
        if count > most {
            return Err(Failure::usage(format!("{count} service addresses: give at most {most}")));
        }
        if self.services.iter().any(SocketAddr::is_ipv4)
            && self.services.iter().any(SocketAddr::is_ipv6)
        {
            let why = "no socket reaches IPv4 and IPv6 service addresses: give them all as one";
            return Err(Failure::usage(why));
        }
        Ok(())
    }

    /// The certificate that the command line names.
    pub fn security(&self) -> Result<Security, Failure> {
        let Some(path) = &self.certs else { return Ok(Security::Loopback) };
        certs::load(path, &[Role::Admin, Role::Client, Role::Gateway, Role::Controller])
    }

    /// The one service address and the one admin address of a cluster that is to be started.
    pub fn listen(&self) -> Result<(SocketAddr, SocketAddr), Failure> {
        match (self.services.as_slice(), self.admins.as_slice()) {
            ([service], [admin]) => Ok((*service, *admin)),
            _ => Err(Failure::usage(
                "a cluster in one process listens at one --service and one --admin address",
            )),
        }
    }
}
