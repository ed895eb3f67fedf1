//! Real processes and real faults: `kill -9`, SIGSTOP, lost packets and cut links, while clients
//! write down what they see.

#[cfg(test)]
mod appended;
#[cfg(test)]
mod ballast;
#[cfg(test)]
mod cluster;
#[cfg(test)]
mod deposed;
#[cfg(test)]
mod etcd;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod folder;
#[cfg(test)]
mod front;
#[cfg(test)]
mod handover;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod probes;
#[cfg(test)]
mod redis_run;
#[cfg(test)]
mod redis_user;
#[cfg(test)]
mod rotation;
#[cfg(test)]
mod run;
#[cfg(test)]
mod script;
#[cfg(test)]
mod takeover;
#[cfg(test)]
mod uncontrolled;
#[cfg(test)]
mod user;
#[cfg(test)]
mod watch;
#[cfg(test)]
mod watchdog;

#[cfg(test)]
mod tests {
    use crate::cluster::{can_be_in_the_kernel, can_have_a_bridge, has_links};
    use crate::deposed;
    use crate::folder::Folder;
    use crate::handover::{self, Keys};
    use crate::outage;
    use crate::redis_run::{self, Trouble};
    use crate::redis_user::Mutant;
    use crate::run::{Kind, run};
    use crate::takeover;
    use crate::uncontrolled;
    use crate::watchdog::{SETTLING_MAX, Watchdog};
    use lab::plane::Plane;
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;
    use testkit::skip;

    /// One cluster at a time: they would take each other's time.
    static MACHINE: Mutex<()> = Mutex::new(());

    /// Kills of which the outages are measured.
    const KILLS: u8 = 21;
    /// How often the active switch is killed for that.
    const SWITCH_KILLS: u8 = 6;
    /// Half of sixteen nodes, and how often they are killed.
    const HALF: u8 = 8;
    const HALF_KILLS: u8 = 2;
    /// What is measured on an idle machine is well below a second; a busy one is given more.
    const OUTAGE_P99_MAX: Duration = Duration::from_secs(5);

    /// Time of faults of one run.
    const FAULTS_FOR: Duration = Duration::from_secs(45);

    fn setting(name: &str) -> Option<u64> {
        let text = std::env::var(name).ok()?;
        Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text}: give a number")))
    }

    /// `CHAOS_SEED` is the seed of the first run, `CHAOS_RUNS` how many there are, `CHAOS_SECS` the
    /// time of faults of each, if it is not to be the usual.
    fn runs(test: &str, usual: Duration, of: impl Fn(u64) -> Kind) {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let first = setting("CHAOS_SEED").unwrap_or(1);
        let faults_for = setting("CHAOS_SECS").map_or(usual, Duration::from_secs);
        for seed in (first..).take(setting("CHAOS_RUNS").map_or(1, |runs| runs as usize)) {
            println!("seed {seed} ...");
            let _watchdog = Watchdog::start(faults_for + SETTLING_MAX);
            let report = run(test, seed, of(seed), faults_for);
            println!("{report}");
            assert!(report.failures.is_empty(), "CHAOS_SEED={seed} failed:\n{report}");
        }
    }

    /// The same on one plane, if that can be had.
    fn runs_on(
        able: Result<(), String>,
        test: &str,
        usual: Duration,
        (plane, caches): (Plane, u8),
    ) {
        match able {
            Ok(()) => runs(test, usual, |_| Kind { plane, caches, secured: false }),
            Err(why) => skip::report(test, &why),
        }
    }

    #[test]
    fn histories_are_linearizable_and_chains_complete_again_whatever_fails() {
        let test = "histories_are_linearizable_and_chains_complete_again_whatever_fails";
        runs(test, FAULTS_FOR, |_| Kind { plane: Plane::User, caches: 0, secured: false });
    }

    /// The same with switches in the kernel, which go on by themselves while their processes are
    /// stopped, and must end with their leases.
    #[test]
    fn histories_of_switches_in_the_kernel_are_linearizable_too() {
        let test = "histories_of_switches_in_the_kernel_are_linearizable_too";
        runs_on(can_be_in_the_kernel(), test, FAULTS_FOR, (Plane::Xdp, 0));
    }

    /// Time of faults of a run with caches, and how many there are.
    const CACHES_FAULTS_FOR: Duration = Duration::from_secs(30);
    const CACHES: u8 = 2;

    /// Every other seed has its switches in the kernel, if they can be there.
    fn runs_on_both(test: &str, usual: Duration, caches: u8, secured: bool) {
        let in_the_kernel = can_be_in_the_kernel();
        if let Err(why) = &in_the_kernel {
            skip::report(&format!("{test}: switches in the kernel"), why);
        }
        let is_in_the_kernel = |seed: u64| in_the_kernel.is_ok() && seed % 2 == 1;
        let plane = |seed| if is_in_the_kernel(seed) { Plane::Xdp } else { Plane::User };
        runs(test, usual, |seed| Kind { plane: plane(seed), caches, secured });
    }

    #[test]
    fn histories_of_keys_in_caches_are_linearizable_too() {
        let test = "histories_of_keys_in_caches_are_linearizable_too";
        runs_on_both(test, CACHES_FAULTS_FOR, CACHES, false);
    }

    /// The same where everybody has a certificate and packets are in envelopes, while all
    /// certificates, their authority and the secret of packets are replaced.
    #[test]
    fn histories_are_linearizable_too_while_certificates_and_secrets_are_replaced() {
        let test = "histories_are_linearizable_too_while_certificates_and_secrets_are_replaced";
        runs_on_both(test, CACHES_FAULTS_FOR, CACHES, true);
    }

    /// The same where requests come by the addresses of keys, past switches and by a router's
    /// routes, whose agent may be dead.
    #[test]
    fn histories_of_keys_with_routes_are_linearizable_too() {
        let test = "histories_of_keys_with_routes_are_linearizable_too";
        runs_on(has_links(), test, CACHES_FAULTS_FOR, (Plane::Routes, CACHES));
    }

    /// The same by an Open vSwitch's flows, which are lost when it is killed.
    #[test]
    fn histories_of_keys_with_flows_are_linearizable_too() {
        let test = "histories_of_keys_with_flows_are_linearizable_too";
        runs_on(can_have_a_bridge(), test, CACHES_FAULTS_FOR, (Plane::OpenFlow, CACHES));
    }

    /// Time of faults of a run with Redis clients.
    const REDIS_FAULTS_FOR: Duration = Duration::from_secs(25);

    #[test]
    fn redis_clients_of_two_gateways_see_linearizable_histories_whatever_fails() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let first = setting("CHAOS_SEED").unwrap_or(1);
        let lasts = setting("CHAOS_SECS").map_or(REDIS_FAULTS_FOR, Duration::from_secs);
        for seed in (first..).take(setting("CHAOS_RUNS").map_or(1, |runs| runs as usize)) {
            let _watchdog = Watchdog::start(lasts + SETTLING_MAX);
            let report = redis_run::run(seed, Trouble::Faults, lasts);
            println!("{report}");
            assert!(report.failures.is_empty(), "CHAOS_SEED={seed} failed:\n{report}");
        }
    }

    #[test]
    fn bugs_that_a_gateway_might_have_are_found_in_what_its_clients_saw() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        for mutant in [Mutant::CachedReads, Mutant::BlindRetry] {
            let _watchdog = Watchdog::start(SETTLING_MAX);
            let report = redis_run::run(1, Trouble::Mutant(mutant), Duration::from_secs(4));
            println!("{mutant:?}: {:?}", report.failures.first());
            let found = report.failures.iter().filter(|it| it.starts_with("key "));
            assert!(found.count() > 0, "{mutant:?} was not found:\n{report}");
        }
    }

    #[test]
    fn the_keys_of_a_killed_node_soon_answer_again() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let _watchdog = Watchdog::start(SETTLING_MAX);
        let outages = outage::measure(KILLS, Folder::new("outage"));
        println!(
            "{KILLS} nodes killed one after the other; until a key answered again:\n{outages}"
        );
        assert!(outages.p99() < OUTAGE_P99_MAX, "{outages}");
    }

    #[test]
    fn all_keys_answer_again_soon_after_the_active_switch_was_killed() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let _watchdog = Watchdog::start(SETTLING_MAX);
        let kills = setting("CHAOS_KILLS").map_or(SWITCH_KILLS, |it| it as u8);
        let outages = outage::measure_switches(kills, Folder::new("switches"));
        println!("the active switch killed {kills} times; until a key answered again:\n{outages}");
        assert!(outages.p99() < OUTAGE_P99_MAX, "{outages}");
    }

    /// `CHAOS_AT_ONCE` says how many are killed at once, instead of half of all; `CHAOS_KILLS` how
    /// often.
    #[test]
    fn half_of_all_nodes_are_killed_at_once_and_what_has_somebody_left_soon_answers_again() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let _watchdog = Watchdog::start(SETTLING_MAX);
        let at_once = setting("CHAOS_AT_ONCE").map_or(HALF, |it| it as u8);
        let times = setting("CHAOS_KILLS").map_or(HALF_KILLS, |it| it as u8);
        let outages = outage::measure_many(at_once, times, Folder::new("half"));
        println!(
            "{at_once} of 16 nodes killed at once, {times} times; until a key answered \
             again:\n{outages}"
        );
        assert!(outages.p99() < OUTAGE_P99_MAX, "{outages}");
    }

    /// How often a switch is asked to hand over.
    const HAND_OVERS: u8 = 4;

    #[test]
    fn no_request_fails_while_a_switch_hands_over() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let _watchdog = Watchdog::start(SETTLING_MAX);
        let folder = Folder::new("handover");
        let handed = handover::measure(Plane::User, Keys::Home, HAND_OVERS, folder);
        println!("user space: {handed}");
        assert!(handed.failed.is_empty(), "{handed}");
        assert!(handed.requests() > ASKED_MIN, "{handed}");
    }

    #[test]
    fn no_write_of_a_delegated_key_fails_while_a_switch_hands_over() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let _watchdog = Watchdog::start(SETTLING_MAX);
        let folder = Folder::new("handover-hot");
        let handed = handover::measure(Plane::User, Keys::Delegated, HAND_OVERS, folder);
        println!("delegated keys: {handed}");
        assert!(handed.failed.is_empty(), "{handed}");
        assert!(handed.requests() > ASKED_MIN, "{handed}");
    }

    #[test]
    fn no_request_fails_while_a_switch_in_the_kernel_hands_over() {
        let test = "no_request_fails_while_a_switch_in_the_kernel_hands_over";
        if let Err(why) = can_be_in_the_kernel() {
            return skip::report(test, &why);
        }
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let _watchdog = Watchdog::start(SETTLING_MAX);
        let folder = Folder::new("handover-xdp");
        let handed = handover::measure(Plane::Xdp, Keys::Home, HAND_OVERS, folder);
        println!("xdp: {handed}; {} datagrams in the kernel", handed.in_kernel);
        assert!(handed.failed.is_empty(), "{handed}");
        assert!(handed.requests() > ASKED_MIN, "{handed}");
        assert!(handed.in_kernel > 0, "the switches were in the kernel");
    }

    #[test]
    fn no_request_fails_while_there_is_no_controller() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let _watchdog = Watchdog::start(SETTLING_MAX);
        let absences = uncontrolled::measure(Folder::new("uncontrolled"));
        assert_eq!(absences.len(), uncontrolled::REASONS.len());
        for absence in absences {
            println!("no controller for {} s: {absence}", uncontrolled::AWAY.as_secs());
            assert_eq!(absence.failed(), 0, "{absence}");
            assert!(absence.requests() > ASKED_MIN, "{absence}");
        }
    }

    /// `TAKEOVERS` is how often each fault comes; then nobody may take longer than is promised.
    #[test]
    fn another_controller_decides_when_the_leader_fails_and_no_client_notices() {
        let test = "another_controller_decides_when_the_leader_fails_and_no_client_notices";
        if let Err(why) = takeover::can_be() {
            return skip::report(test, &why);
        }
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let asked_for = setting("TAKEOVERS");
        let times = asked_for.map_or(TAKEOVERS, |times| times as usize);
        let _watchdog = Watchdog::start(SETTLING_MAX * u32::try_from(times).expect("not many"));
        let (promised, noise) = match asked_for {
            Some(_) => (TAKEOVER_MAX, P99_NOISE),
            None => (TAKEOVER_MAX_BUSY, P99_NOISE_BUSY),
        };
        for takeovers in takeover::measure(times, Folder::new("takeover")) {
            assert_eq!(takeovers.failed(), 0, "{takeovers}");
            assert!(takeovers.decided.iter().all(|it| *it < promised), "{takeovers}");
            let [before, after] = takeovers.p99();
            assert!(after < before * 2 + noise, "{takeovers}");
        }
    }

    /// How often each fault comes, unless somebody says so.
    const TAKEOVERS: usize = 2;
    /// What is promised, and what a machine is given that has other things to do.
    const TAKEOVER_MAX: Duration = Duration::from_secs(2);
    const TAKEOVER_MAX_BUSY: Duration = Duration::from_secs(5);
    /// By how much requests may take longer because of what else the machine does.
    const P99_NOISE: Duration = Duration::from_millis(20);
    /// The same where all tests run: half of the time in which nobody leads, about, so that
    /// requests that wait for a leader are seen.
    const P99_NOISE_BUSY: Duration = Duration::from_millis(400);

    #[test]
    fn a_deposed_leader_that_wakes_up_gives_orders_and_none_is_obeyed() {
        let test = "a_deposed_leader_that_wakes_up_gives_orders_and_none_is_obeyed";
        if let Err(why) = takeover::can_be().and_then(|()| deposed::can_be()) {
            return skip::report(test, &why);
        }
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let _watchdog = Watchdog::start(SETTLING_MAX);
        let awakening = deposed::measure(Folder::new("deposed"));
        println!("members refused {} orders", awakening.refused);
        assert!(awakening.refused > 0, "{awakening:?}");
        assert!(awakening.terms.iter().all(|it| *it == awakening.term), "{awakening:?}");
        assert_eq!(awakening.failed, 0, "{awakening:?}");
    }

    /// Requests without a controller: few, for a machine that has other things to do.
    const ASKED_MIN: usize = 1_000;
}
