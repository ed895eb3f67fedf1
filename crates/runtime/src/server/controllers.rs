//! Controllers: one alone, one that stands by, or one of several.

use super::{Driver, Server, StartError, controller_files, open_admin};
use crate::admin::Admin;
use crate::config::Config;
use crate::driver::{ControllerDriver, ControllerPlan, KeyPlan, Stand, over_http};
use crate::entropy;
use crate::files::Reserve;
use crate::identity::Security;
use crate::private;
use crate::roles::Roles;
use crate::store::{Candidacy, Candidate, EmbeddedStore, EtcdUrl, MapStore, StoreError};
use cluster::{CacheId, ClusterId, Member};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

impl Server {
    /// Starts the controller.
    ///
    /// # Errors
    ///
    /// If the address is taken, another process is the controller, the store cannot be opened, or
    /// what it holds does not go with the configuration.
    pub fn start_controller(config: &Config) -> Result<Self, StartError> {
        if let Some(etcd) = &config.controller.store {
            return Self::start_candidate(config, etcd);
        }
        let reserve = Reserve::new(controller_files(config.members()));
        let security = config.security_of_controller()?;
        let keys = config.key_plan()?;
        let store = open_map_store(&config.controller.data).map_err(|error| match error {
            StartError::Store(StoreError::Locked { path }) => StartError::Active { path },
            other => other,
        })?;
        let plan = plan(config, &security, keys).map_err(StartError::Entropy)?;
        let driver = ControllerDriver::start(plan, store)?;
        let roles = Roles {
            controller: Some(driver.handle()),
            security,
            classes: config.classes(),
            ..Roles::default()
        };
        let admin = open_admin("controller", config.controller.admin, roles.clone())?;
        tracing::info!(admin = %admin.local(), "controller started");
        Ok(Self { admin, _driver: Driver::Controller(driver), roles, _reserve: reserve })
    }

    /// Starts a controller that waits for the store while another process has it, and then takes
    /// over. It serves at the first of the configured addresses that is free here, so that both
    /// processes may be started in the same way.
    ///
    /// # Errors
    ///
    /// If no address is free, or the store's directory cannot be made.
    pub fn start_standby(config: &Config) -> Result<Self, StartError> {
        if let Some(etcd) = &config.controller.store {
            return Self::start_candidate(config, etcd);
        }
        let reserve = Reserve::new(controller_files(config.members()));
        let security = config.security_of_controller()?;
        let keys = config.key_plan()?;
        let path = map_store_path(&config.controller.data)?;
        let (planned, shown) = (config.clone(), security.clone());
        let stand = move || match EmbeddedStore::open(&path) {
            Ok(store) => Ok(Stand::Leads(Box::new(store))),
            Err(StoreError::Locked { .. }) => Ok(Stand::Waits(None)),
            Err(error) => Err(error),
        };
        let driver =
            ControllerDriver::stand_by(move || plan(&planned, &shown, keys.clone()), stand)?;
        let roles = Roles {
            controller: Some(driver.handle()),
            security,
            classes: config.classes(),
            ..Roles::default()
        };
        let admin = open_first_admin(&config.controller.admins(), &roles)?;
        tracing::info!(admin = %admin.local(), "controller stands by");
        Ok(Self { admin, _driver: Driver::Controller(driver), roles, _reserve: reserve })
    }

    /// Starts a controller whose state is in an etcd: one of several, on one machine or on several,
    /// of which one leads. It serves at the first of the configured addresses that is free here.
    fn start_candidate(config: &Config, etcd: &EtcdUrl) -> Result<Self, StartError> {
        let reserve = Reserve::new(controller_files(config.members()));
        let security = config.security_of_controller()?;
        let keys = config.key_plan()?;
        let access = config.etcd_access(etcd)?;
        let (etcd, planned, shown) = (etcd.clone(), config.clone(), security.clone());
        // It does not stand before it is known where it can be reached.
        let (here, at): (_, Receiver<SocketAddr>) = sync_channel(1);
        let mut candidate = None;
        let stand = move || {
            let candidate = match &candidate {
                Some(candidate) => candidate,
                None => {
                    let Ok(admin) = at.try_recv() else { return Ok(Stand::Waits(None)) };
                    candidate.insert(Candidate::new(etcd.clone(), access.clone(), Some(admin))?)
                }
            };
            Ok(match candidate.stand()? {
                Candidacy::Leads(store) => Stand::Leads(store),
                Candidacy::Waits(leader) => Stand::Waits(leader),
            })
        };
        let driver =
            ControllerDriver::stand_by(move || plan(&planned, &shown, keys.clone()), stand)?;
        let roles = Roles {
            controller: Some(driver.handle()),
            security,
            classes: config.classes(),
            ..Roles::default()
        };
        let admin = open_first_admin(&config.controller.admins(), &roles)?;
        // There is room for it; if the thread has ended, so has the process.
        here.try_send(admin.local()).ok();
        tracing::info!(admin = %admin.local(), "controller started");
        driver.handle().wait_settled(SETTLE_WAIT);
        Ok(Self { admin, _driver: Driver::Controller(driver), roles, _reserve: reserve })
    }
}

/// Opens the store in this directory, which is created if need be.
pub(crate) fn open_map_store(data: &Path) -> Result<Box<dyn MapStore>, StartError> {
    Ok(Box::new(EmbeddedStore::open(&map_store_path(data)?)?))
}

pub(crate) fn map_store_path(data: &Path) -> Result<PathBuf, StartError> {
    private::directory(data).map_err(|why| StartError::Directory { path: data.into(), why })?;
    // The name of the first format, which was a database: backups and scripts know it.
    Ok(data.join("map.redb"))
}

/// What the configuration asks of a controller.
fn plan(config: &Config, security: &Security, keys: Option<KeyPlan>) -> io::Result<ControllerPlan> {
    let switches = (0..).zip(&config.switches).map(|(index, it)| (Member::Switch(index), it.admin));
    let caches = config.caches.iter().map(|it| (Member::Cache(CacheId(it.id)), it.admin));
    let reach = |(member, at)| (member, over_http(member, at, security));
    let members = switches.chain(caches).map(reach);
    let cluster = entropy::draw().map(ClusterId)?;
    Ok(ControllerPlan {
        config: config.controller_config(cluster),
        keyspaces: config.keyspace_specs(),
        members: members.collect(),
        security: security.clone(),
        keys,
    })
}

/// How long one of several controllers is given to find out whether it leads, before it is said
/// that it runs.
const SETTLE_WAIT: Duration = Duration::from_secs(1);

/// Serves at the first of these addresses that is free here.
fn open_first_admin(addresses: &[SocketAddr], roles: &Roles) -> Result<Admin, StartError> {
    let mut tried = addresses.iter();
    loop {
        let at = tried.next().expect("the last one's error has ended this");
        match open_admin("controller", *at, roles.clone()) {
            Err(StartError::Bind { .. }) if tried.len() > 0 => {}
            outcome => return outcome,
        }
    }
}
