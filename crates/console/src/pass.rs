//! The passes of this process, where packets are in envelopes: asked for once, and renewed for as
//! long as the process runs.

use crate::admin::Admin;
use crate::exit::Failure;
use crate::shared::Shared;
use anyhow::Context as _;
use envelope::{Pass, Passes};
use runtime::admin::{AskPass, Renewal};
use std::thread::Builder;
use std::time::Duration;

/// How long it is until a pass that could not be renewed is tried again, and until one that was is
/// renewed because nobody answers.
const AGAIN: Duration = Duration::from_secs(5);

/// Asks for a pass, or for one that takes the place of another; none where packets are in no
/// envelopes.
pub type Ask = Box<dyn Fn(&AskPass) -> Result<Option<Pass>, Failure> + Send>;

/// The pass of this process; none if the command line names no certificate, or if the cluster has
/// no envelopes.
pub fn passes(shared: &Shared) -> Result<Option<Passes>, Failure> {
    of(shared, None)
}

/// The same, or the pass by which a gateway acts for this client.
pub fn of(shared: &Shared, act_for: Option<&str>) -> Result<Option<Passes>, Failure> {
    if shared.certs.is_none() {
        return Ok(None);
    }
    let admin = Admin::of(shared, shared.timeout)?;
    kept(Box::new(move |asked| admin.pass(asked)), act_for)
}

/// A pass that is asked for so, and renewed for as long as the process runs.
pub fn kept(ask: Ask, act_for: Option<&str>) -> Result<Option<Passes>, Failure> {
    let asked = AskPass { renew: None, act_for: act_for.map(str::to_owned) };
    let Some(pass) = ask(&asked)? else { return Ok(None) };
    let passes = Passes::new(pass);
    let to_keep = passes.clone();
    let keeper = Builder::new().name("pass".into());
    let keeper = keeper.spawn(move || keep(&ask, &to_keep, asked.act_for.as_deref()));
    keeper.context("cannot start a thread")?;
    Ok(Some(passes))
}

/// Renews a pass for ever: when it is time, and when a client is answered by nobody. Its machine
/// may have been suspended while its keys ended.
fn keep(ask: &Ask, passes: &Passes, act_for: Option<&str>) {
    let mut wait = passes.pass().renew_in();
    loop {
        // Whatever else wakes the thread: a pass may be renewed early.
        std::thread::park_timeout(AGAIN);
        passes.wait_unheard(wait.saturating_sub(AGAIN));
        let pass = passes.pass();
        let renew = Some(Renewal { number: pass.number, ticket: pass.ticket });
        let asked = AskPass { renew, act_for: act_for.map(str::to_owned) };
        wait = match ask(&asked) {
            Ok(Some(newer)) => {
                let next = newer.renew_in();
                if passes.renew(newer) { next } else { AGAIN }
            }
            Ok(None) => AGAIN,
            Err(failure) => {
                let (why, act_for) = (failure.message(), act_for.unwrap_or("itself"));
                tracing::warn!(why, act_for, "the pass of this process was not renewed");
                AGAIN
            }
        };
    }
}
