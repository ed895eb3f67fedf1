//! The incarnation of a lab in the process that keeps it: claimed, started, watched, taken down or
//! left.

use crate::certs;
use crate::cluster::Cluster;
use crate::guard::Guard;
use crate::openvswitch::{self, OpenVSwitch, Part};
use crate::process::{self, Launch, Process};
use crate::rack::{LabHost, name_option};
use crate::ready::{self, Progress};
use crate::state::{self, HeldLab, State};
use crate::{network, plane};
use anyhow::{Context, Result, anyhow, bail};
use console::exit::Failure;
use console::note;
use machine::Instant;
use nix::sys::signal::Signal;
use runtime::clock::Clock;
use runtime::signals::Signals;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::Duration;

/// A lab that this process has.
#[derive(Debug)]
pub struct Lab {
    cluster: Cluster,
    held: HeldLab,
    state: State,
    guard: Option<Guard>,
    sender: Sender<Event>,
    events: Receiver<Event>,
}

/// Something that happens while there is a lab.
#[derive(Debug)]
enum Event {
    /// It is to be taken down.
    Signal(&'static str),
    /// A process has ended.
    Ended(String, ExitStatus),
}

impl Lab {
    /// Makes sure that there is no other lab of this name, and removes what a killed one has left.
    /// To be called before any thread is started, so that none of them takes a signal.
    pub fn claim(cluster: Cluster) -> Result<Self, Failure> {
        let lab = &cluster.rack.lab;
        let (sender, events) = channel();
        listen(sender.clone()).context("cannot wait for signals")?;
        let held = loop {
            let Some(held) = HeldLab::take(lab)? else { return Err(is_up(lab)) };
            match state::read(lab)? {
                Some(state) if state.is_wanted() => return Err(is_up(lab)),
                Some(_) => {
                    note!("keyway: lab {lab}: taking down what a killed process has left");
                    held.take_down()?;
                }
                None => break held,
            }
        };
        let others = network::existing(&cluster.rack);
        let state = State::new(&cluster);
        let mut lab = Self { cluster, held, state, guard: None, sender, events };
        if let Some(other) = others.first() {
            lab.take_down()?;
            let why =
                format!("there is a namespace {other} that is no lab's: choose another --name");
            return Err(Failure::usage(why));
        }
        lab.held.write(&lab.state)?;
        let guard = Guard::set(&lab.cluster.rack.lab);
        match guard {
            Ok(guard) => {
                lab.state.guard = guard.identity();
                lab.guard = Some(guard);
                Ok(lab)
            }
            Err(error) => {
                lab.take_down()?;
                Err(error.into())
            }
        }
    }

    /// Builds the rack, starts all processes and waits until a request is answered. `tell` is told
    /// how far that has come.
    pub fn start(&mut self, stays: bool, tell: impl Fn(&str)) -> Result<(), Failure> {
        let path = self.held.path().to_owned();
        let config = path.join(CONFIG);
        fs::write(&config, self.cluster.config(&path)).context("cannot write cluster.toml")?;
        if self.cluster.secured {
            let mut keyway = Command::new(process::this_binary()?);
            process::without_settings(&mut keyway);
            certs::make(keyway, &config)?;
        }
        fs::create_dir_all(path.join(LOGS)).context("cannot create a directory for logs")?;
        network::build(&self.cluster.rack, self.cluster.plane)?;
        tell(&format!("{} hosts are linked", self.state.namespaces.len()));
        if self.cluster.plane.has_bridge() {
            let bridge = OpenVSwitch::new(&path)?;
            self.run_part(bridge.database(), !stays)?;
            bridge.add_bridge(&openvswitch::ports(&self.cluster.rack))?;
            self.run_part(bridge.switch(), !stays)?;
        }
        for (place, mut arguments) in self.roles() {
            arguments.extend(["--config".to_owned(), config.display().to_string()]);
            self.run(place, arguments, !stays)?;
        }
        self.held.write(&self.state)?;
        tell(&format!("{} processes are started", self.state.processes.len()));
        self.wait_ready(tell)
    }

    /// Runs this program on a host, with what a role is told or with something else. If it is tied,
    /// it ends with this process.
    pub fn run(&mut self, on: LabHost, arguments: Vec<String>, tied: bool) -> Result<()> {
        self.run_as(on.to_string(), on, arguments, tied)
    }

    /// The same beside what runs there already, under a name of its own; it ends with this process.
    pub fn run_beside(&mut self, on: LabHost, name: &str, arguments: Vec<String>) -> Result<()> {
        self.run_as(beside(on, name), on, arguments, true)
    }

    fn run_as(
        &mut self,
        place: String,
        on: LabHost,
        arguments: Vec<String>,
        tied: bool,
    ) -> Result<()> {
        self.start_process(Launch {
            namespace: self.cluster.rack.namespace(on),
            program: None,
            arguments,
            variables: Vec::new(),
            log: self.log_of(&place),
            place,
            tied,
        })
    }

    /// Runs a process of an Open vSwitch where the switch is.
    fn run_part(&mut self, part: Part, tied: bool) -> Result<()> {
        let Part { name, program, arguments, variables } = part;
        self.start_process(Launch {
            place: name.to_owned(),
            namespace: self.cluster.rack.namespace(LabHost::Switch),
            program: Some(program),
            arguments,
            variables,
            log: self.log_of(name),
            tied,
        })
    }

    fn log_of(&self, place: &str) -> PathBuf {
        self.held.path().join(LOGS).join(format!("{place}.log"))
    }

    fn start_process(&mut self, plan: Launch) -> Result<()> {
        let sender = self.sender.clone();
        // Nobody listens any more once the lab is being taken down.
        let ended = move |place: &str, status| {
            sender.send(Event::Ended(place.to_owned(), status)).ok();
        };
        self.state.processes.push(process::start(plan, ended)?);
        Ok(())
    }

    /// Kills what runs on a host, of which nobody is told: [`restart`](Self::restart) follows.
    pub fn kill(&mut self, on: LabHost) -> Result<()> {
        let place = on.to_string();
        let runs = self.state.processes.iter().position(|process| process.place == place);
        let process = self.state.processes.remove(runs.context("nothing runs there")?);
        process.identity.signal(Signal::SIGKILL);
        match self.events.recv_timeout(KILL_WAIT_MAX) {
            Ok(Event::Ended(it, _)) if it == place => Ok(()),
            Ok(Event::Ended(it, status)) => bail!("{it} has ended, {status}"),
            Ok(Event::Signal(signal)) => bail!("{signal}: ended before it was through"),
            Err(_) => bail!("{place} cannot be killed"),
        }
    }

    /// Starts a role again that was killed.
    pub fn restart(&mut self, on: LabHost) -> Result<()> {
        let config = self.held.path().join(CONFIG);
        let role = self.roles().into_iter().find(|(place, _)| *place == on);
        let (_, mut arguments) = role.context("no role is there")?;
        arguments.extend(["--config".to_owned(), config.display().to_string()]);
        self.run(on, arguments, true)
    }

    /// Each role's host, and how it is started.
    fn roles(&self) -> Vec<(LabHost, Vec<String>)> {
        let Cluster { rack, plane, .. } = &self.cluster;
        let mut switch = vec!["switch".to_owned()];
        switch.extend(plane.arguments(&plane::ports(rack)));
        let mut roles = vec![(LabHost::Switch, switch)];
        for (id, place) in (1..=rack.nodes).zip(rack.nodes()) {
            let mut node = vec!["node".to_owned(), "--id".to_owned(), id.to_string()];
            if let Some(rate) = self.cluster.rate_of(id) {
                node.splice(..0, ["lab".to_owned()]);
                node.extend(["--max-rate".to_owned(), rate.to_string()]);
            }
            roles.push((place, node));
        }
        for (id, place) in (1..=rack.caches).zip(rack.caches()) {
            roles.push((place, vec!["cache".to_owned(), "--id".to_owned(), id.to_string()]));
        }
        roles.push((LabHost::Controller, vec!["controller".to_owned()]));
        roles
    }

    fn wait_ready(&self, tell: impl Fn(&str)) -> Result<(), Failure> {
        let mut clock = Clock::new();
        let give_up: Instant = clock.now() + READY_WAIT_MAX;
        let mut told = String::new();
        let certs = self.state.certs(&self.cluster.rack.lab);
        let shared = ready::settings(self.cluster.plane, certs);
        loop {
            match ready::look(&self.cluster.rack, &shared)? {
                Progress::Serving => return ready::try_out(&self.cluster.rack, &shared),
                Progress::Missing(what) if clock.now() >= give_up => {
                    let after = READY_WAIT_MAX.as_secs();
                    return Err(anyhow!("not ready after {after} s: {what}").into());
                }
                Progress::Missing(what) if what != told => {
                    tell(&what);
                    told = what;
                }
                Progress::Missing(_) => {}
            }
            match self.events.recv_timeout(LOOK_INTERVAL) {
                Ok(Event::Signal(signal)) => {
                    return Err(anyhow!("{signal}: taken down before it was ready").into());
                }
                Ok(Event::Ended(place, status)) => {
                    let last = self.last_lines(&place);
                    return Err(anyhow!("{place} has ended, {status}:{last}").into());
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    fn last_lines(&self, place: &str) -> String {
        let process = self.state.processes.iter().find(|process| process.place == place);
        process.map_or_else(String::new, |Process { log, .. }| process::last_lines(log))
    }

    /// What there is.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Waits until the lab is to be taken down, and says why. A process that ends meanwhile is
    /// missed by nobody but the cluster: `tell` is told.
    pub fn wait(&self, tell: impl Fn(&str)) -> &'static str {
        loop {
            match self.events.recv().expect("we have a sender ourselves") {
                Event::Signal(signal) => return signal,
                Event::Ended(place, status) => tell(&format!("{place} has ended, {status}")),
            }
        }
    }

    /// Fails if the lab is to be taken down, or a process has ended: to be asked now and then by
    /// whoever does not [`wait`](Self::wait).
    pub fn check(&self) -> Result<()> {
        match self.events.try_recv() {
            Ok(Event::Signal(signal)) => bail!("{signal}: ended before it was through"),
            Ok(Event::Ended(place, status)) => {
                let last = self.last_lines(&place);
                bail!("{place} has ended, {status}:{last}")
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => Ok(()),
        }
    }

    /// Ends everything and removes all traces.
    pub fn take_down(self) -> Result<()> {
        let down = self.held.take_down();
        if let Some(guard) = self.guard {
            guard.dismiss();
        }
        down.map(|_| ())
    }

    /// From now on nobody keeps it: it stays when this process ends.
    pub fn leave(&mut self) -> Result<()> {
        (self.state.keeper, self.state.guard) = (None, None);
        self.held.write(&self.state)?;
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
        Ok(())
    }
}

/// What lies in the directory of a lab.
const CONFIG: &str = "cluster.toml";
const LOGS: &str = "logs";

/// More than the kernel needs on a machine that is busy.
const KILL_WAIT_MAX: Duration = Duration::from_secs(10);

/// Far more than a rack takes, even on a machine that does other things.
const READY_WAIT_MAX: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// What is called `name` and runs beside a host's role.
pub fn beside(on: LabHost, name: &str) -> String {
    format!("{on}-{name}")
}

/// Turns the signals to end into events. A second one ends this process at once.
fn listen(sender: Sender<Event>) -> Result<()> {
    let signals = Signals::hold()?;
    let body = move || {
        match signals.wait() {
            // Whoever has begun to take the lab down does not listen.
            Ok(signal) => drop(sender.send(Event::Signal(signal))),
            Err(error) => note!("keyway: signals are not heard: {error}"),
        }
        // The next signal is delivered to this thread, the only one that does not hold it back.
        loop {
            thread::park();
        }
    };
    thread::Builder::new().name("signals".into()).spawn(body)?;
    Ok(())
}

fn is_up(lab: &str) -> Failure {
    let option = name_option(lab);
    Failure::usage(format!("lab {lab} is up; to take it down:  keyway lab down{option}"))
}
