//! How orders reach members: each member has a thread of its own that delivers one order at a time,
//! so that a member that does not answer keeps nobody else waiting.

use super::MemberHandle;
use super::alert::{Listen, SILENCE};
use super::orders::{OrderError, PATIENCE};
use crate::identity::{self, Expected, Identity, Security};
use cluster::{Member, Order, Report, Term, Unheeded};
use serde::Deserialize;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::Duration;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Delivers an order and brings the report back, or says why it cannot.
pub type Delivery = Box<dyn FnMut(Order) -> Result<Report, Undelivered> + Send>;

/// Why an order brought no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undelivered {
    /// The member obeys a leader of this newer term.
    #[error("it obeys a leader of term {0}")]
    Deposed(Term),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

impl From<OrderError> for Undelivered {
    fn from(error: OrderError) -> Self {
        match error {
            OrderError::Unheeded(Unheeded::Deposed { newest, .. }) => Self::Deposed(newest),
            other => Self::Failed(other.to_string()),
        }
    }
}

fn failed(error: impl ToString) -> Undelivered {
    Undelivered::Failed(error.to_string())
}

/// What a member answers that obeys a newer leader.
#[derive(Deserialize)]
struct Deposed {
    newest_term: Term,
}

/// How a member is reached.
pub struct Line {
    pub(super) deliver: Delivery,
    /// How it is heard when it has not been asked. Switches and caches give no alerts.
    pub(super) listen: Option<Listen>,
}

/// The line to a member of this process.
///
/// # Errors
///
/// If the system has no files left to wait on.
pub fn in_process(member: MemberHandle) -> io::Result<Line> {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build();
    let listen = match &member {
        MemberHandle::Switch(_) | MemberHandle::Cache(_) => None,
        MemberHandle::Node(node) => {
            let (runtime, node) = (runtime()?, node.clone());
            let listen = move |heard| runtime.block_on(node.listen(heard));
            let told = move |heard| listen(heard).map_err(|error| error.to_string());
            Some(Box::new(told) as Listen)
        }
    };
    let runtime = runtime()?;
    let obey = move |order| runtime.block_on(member.obey(order));
    let deliver = Box::new(move |order| obey(order).map_err(Undelivered::from));
    Ok(Line { deliver, listen })
}

/// The line to a member with an admin server at this address, where no other one is believed to be
/// the member. Its connections are kept.
pub fn over_http(member: Member, admin: SocketAddr, security: &Security) -> Line {
    let asker = || Asker::new(member, admin, security.clone());
    let url = format!("{}://{admin}/v1", security.scheme());
    let listen = matches!(member, Member::Node(_)).then(|| listen(asker(), &url));
    Line { deliver: deliver(asker(), &url), listen }
}

/// Who asks a member. Connections are kept for as long as the certificate is.
struct Asker {
    member: Member,
    admin: SocketAddr,
    security: Security,
    generation: u64,
    agent: ureq::Agent,
}

impl Asker {
    fn new(member: Member, admin: SocketAddr, security: Security) -> Self {
        let (generation, agent) = (security.generation(), agent(member, admin, &security));
        Self { member, admin, security, generation, agent }
    }

    /// One whose connections have shown the newest certificate.
    fn agent(&mut self) -> &ureq::Agent {
        let newest = self.security.generation();
        if newest != self.generation {
            self.generation = newest;
            self.agent = agent(self.member, self.admin, &self.security);
        }
        &self.agent
    }
}

fn agent(member: Member, admin: SocketAddr, security: &Security) -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        // A proxy that the environment names is for the world outside.
        .proxy(None)
        .build();
    let expected = Expected::One(Identity::of(member));
    identity::agent(security, expected, config, Known { admin })
}

/// The address that every request goes to. Without this each one would be looked up, numbers though
/// they are, in a thread of its own for the sake of its timeout: half of what an order costs.
#[derive(Debug)]
struct Known {
    admin: SocketAddr,
}

impl Resolver for Known {
    fn resolve(
        &self,
        _: &Uri,
        _: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut addresses = self.empty();
        addresses.push(self.admin);
        Ok(addresses)
    }
}

fn listen(mut asker: Asker, url: &str) -> Listen {
    let url = format!("{url}/alerts?heard=");
    Box::new(move |heard| {
        let request = asker.agent().get(format!("{url}{heard}"));
        let request = request.config().timeout_global(Some(2 * SILENCE)).build();
        let mut response = request.call().map_err(|error| error.to_string())?;
        if !response.status().is_success() {
            return Err(response.status().to_string());
        }
        response.body_mut().read_json().map_err(|error| format!("not a number: {error}"))
    })
}

fn deliver(mut asker: Asker, url: &str) -> Delivery {
    let url = format!("{url}/order");
    Box::new(move |order| {
        let body = serde_json::to_vec(&order).map_err(failed)?;
        let size = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let request = asker.agent().put(&url).header("content-type", "application/json");
        let wait = PATIENCE + TIME_PER_BYTE * size;
        let request = request.config().timeout_global(Some(wait)).build();
        let mut response = request.send(&body).map_err(failed)?;
        let status = response.status();
        let body = response.body_mut();
        if !status.is_success() {
            let text = body.with_config().limit(REFUSAL_SIZE_MAX).read_to_string();
            let text = text.unwrap_or_else(|error| error.to_string());
            return Err(serde_json::from_str(&text).map_or_else(
                |_| failed(format!("{status}: {text}")),
                |Deposed { newest_term }| Undelivered::Deposed(newest_term),
            ));
        }
        let report = body.with_config().limit(REPORT_SIZE_MAX).read_to_vec();
        let report = report.map_err(|error| failed(format!("half a report: {error}")))?;
        serde_json::from_slice(&report).map_err(|error| failed(format!("not a report: {error}")))
    })
}

/// What an order may take longer for each of its bytes: a large map passes a slow network, and is
/// read by a busy machine, at 10 MB a second.
const TIME_PER_BYTE: Duration = Duration::from_nanos(100);

/// Bytes of a report: counters of `PARTITIONS_MAX` partitions, some 60 bytes each, fit.
const REPORT_SIZE_MAX: u64 = 8 << 20;

/// Bytes of a refusal that are read and logged.
const REFUSAL_SIZE_MAX: u64 = 4 << 10;

/// The thread that delivers to one member. It ends after the order on its way when this is dropped;
/// nobody waits for that.
#[derive(Debug)]
pub(super) struct Courier {
    orders: SyncSender<Order>,
}

impl Courier {
    /// Starts the thread; `answered` is told how each order ended.
    pub(super) fn start(
        member: Member,
        mut deliver: Delivery,
        answered: impl Fn(Result<Report, Undelivered>) + Send + 'static,
    ) -> io::Result<Self> {
        // The controller sends an order when the last is answered; one may wait meanwhile.
        let (sender, receiver): (_, Receiver<Order>) = sync_channel(1);
        let name = format!("courier-{member}").replace(' ', "-");
        Builder::new().name(name).spawn(move || {
            while let Ok(order) = receiver.recv() {
                answered(deliver(order));
            }
        })?;
        Ok(Self { orders: sender })
    }

    /// Takes an order to deliver, unless one waits already.
    pub(super) fn take(&self, order: Order) -> bool {
        self.orders.try_send(order).is_ok()
    }
}

#[cfg(test)]
mod tests;
