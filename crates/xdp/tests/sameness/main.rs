//! The program in the kernel does what the pipeline does: the same vectors, and a million random
//! packets, byte for byte and count for count.

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the kernel lets go in its own time")]
mod attached;
#[cfg(test)]
mod caches;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the kernel's ticks are real time")]
mod choice;
#[cfg(test)]
mod delegations;
#[cfg(test)]
mod fresh;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "orders take real time")]
mod hot;
#[cfg(test)]
mod large;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "leases end by real clocks")]
mod lasting;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod sealed;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "frames come out in their own time")]
mod stand;
#[cfg(test)]
mod untouched;
#[cfg(test)]
mod wrapped;

#[cfg(test)]
mod tests {
    use crate::fresh::Fresh;
    use crate::large::{crowded, near_a_bound};
    use crate::reference::Reference;
    use crate::stand::{Outcome, SERVICE, ready};
    use cluster::{Capabilities, SwitchControl as _};
    use machine::Rng;
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    use std::path::Path;
    use testkit::draw::{any_draw, any_tables, datagram};
    use testkit::frame;
    use testkit::vector::file::{self, Change, File};
    use testkit::vector::shown;
    use wire::{DropReason, Op};
    use xdp::{Fate, Program};

    /// Tables and datagrams for each of them: a million in all.
    const TABLES: u64 = 1_000;
    const DATAGRAMS: usize = 1_000;

    #[test]
    fn vectors() {
        let Some((stand, program)) = ready("vectors in the kernel") else { return };
        let fresh = Fresh::new(program);
        let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let (mut dealt, mut left, mut passed_over) = (0, Vec::new(), Vec::new());
        let (mut shown, mut says) = (Capabilities::default(), Capabilities::default());
        for path in file::paths(repository).unwrap() {
            let file = File::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
            // The socket takes rules, and the kernel goes by them: `caches` runs both together.
            if file.tables.as_ref().is_some_and(|tables| !tables.caches.is_empty()) {
                continue;
            }
            for case in &file.cases {
                let mut switch = stand.switch(fresh.program(), file.leased);
                let changes = file.changes(case).unwrap();
                let mut last = (switch.counts(), Outcome::Left);
                let mut left_before = 0;
                for (changes, (from, datagram)) in changes.iter().zip(case.arrivals().unwrap()) {
                    for change in changes {
                        match change {
                            Change::Tables(tables) => switch.install(tables),
                            Change::Hot(order) => switch.plane.install_hot(order).unwrap(),
                        }
                    }
                    let before = switch.counts();
                    last = (before, switch.process(from, &datagram));
                    left_before += usize::from(last.1 == Outcome::Left);
                }
                let (before, outcome) = last;
                let left_before = left_before > usize::from(outcome == Outcome::Left);
                let wanted = case.sent().unwrap();
                // A reader to which the kernel knows no way is passed over.
                let passes = file.hot.is_some()
                    && wanted.iter().any(|(to, _)| frame::v4(*to).is_none())
                    && outcome != Outcome::Left;
                match outcome {
                    _ if left_before || passes => passed_over.push(case.name.clone()),
                    Outcome::Dealt(sent) => {
                        assert_eq!(sent, wanted, "{path:?}: {}", case.name);
                        let (counts, arrivals) = (switch.counts(), case.arrivals().unwrap());
                        assert_eq!(counts, case.counters, "{path:?}: {}", case.name);
                        let (tables, came) = (file.tables.as_ref(), &arrivals.last().unwrap().1);
                        shown = shown.or(shown::capabilities(tables, came, &sent, &counts));
                        says = switch.plane.counters().capabilities;
                        dealt += 1;
                    }
                    Outcome::Left => {
                        assert_eq!(switch.counts(), before, "left is not counted");
                        left.push(case.name.clone());
                    }
                }
            }
        }
        println!("not the kernel's: {passed_over:#?}");
        println!("{dealt} vectors in the kernel, {} left to the socket: {left:#?}", left.len());
        assert!(dealt > 0 && passed_over.len() < dealt / 20);
        let shown = Capabilities { rules: true, sizes: says.sizes, ..shown };
        assert_eq!(shown, says, "what the kernel has shown, and what it says");
    }

    #[test]
    fn a_million_random_packets() {
        let Some((stand, program)) = ready("a million random packets in the kernel") else {
            return;
        };
        let mut switch = stand.switch(program, true);
        // The reference sees only what the programs deal with, so that all counts can be compared.
        let mut reference = Reference::new();
        let mut other = Reference::new();
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let (mut dealt, mut sent_in_all) = (0, 0);
        for revision in 1..=TABLES {
            let mut tables = any_tables().new_tree(&mut runner).unwrap().current();
            tables.revision = wire::Revision::new(revision);
            tables.active = revision % 50 != 0;
            switch.install(&tables);
            reference.pipeline.install(&tables).unwrap();
            other.pipeline.install(&tables).unwrap();
            for _ in 0..DATAGRAMS {
                let draw = any_draw().new_tree(&mut runner).unwrap().current();
                let (from, bytes) = datagram(&tables, &draw);
                if let Outcome::Dealt(sent) = switch.process(from, &bytes) {
                    let wanted = reference.process(from, &bytes);
                    assert_eq!(sent, wanted, "revision {revision}: {from} {bytes:02x?} {tables:?}");
                    dealt += 1;
                    sent_in_all += sent.len();
                } else {
                    // Replies to addresses without a route, and nothing else.
                    let sent = other.process(from, &bytes);
                    assert!(sent.len() == 1 && bytes[92] & 0x80 != 0, "{from} {bytes:02x?}");
                }
            }
            assert_eq!(switch.counts(), reference.counts(), "revision {revision}");
        }
        println!("{dealt} packets dealt with in the kernel, {sent_in_all} sent");
    }

    /// As many partitions as there are in large clusters, spread evenly and crowded together.
    #[test]
    fn large_tables() {
        let Some((stand, program)) = ready("large tables in the kernel") else { return };
        let mut switch = stand.switch(program, true);
        let mut reference = Reference::new();
        let mut rng = Rng::new(1);
        for (revision, count) in (1..).zip([4_096, 65_536, 1]) {
            let tables = crowded(&mut rng, revision, count);
            switch.install(&tables);
            reference.pipeline.install(&tables).unwrap();
            for _ in 0..20_000 {
                let (from, bytes) = near_a_bound(&mut rng, &tables);
                let sent = reference.process(from, &bytes);
                assert_eq!(switch.process(from, &bytes), Outcome::Dealt(sent), "{bytes:02x?}");
            }
            assert_eq!(switch.counts(), reference.counts());
        }
    }

    #[test]
    fn a_shadow_says_what_the_pipeline_would_and_is_not_counted() {
        let Some((stand, program)) = ready("asking the kernel about keys") else { return };
        let mut switch = stand.switch(program, true);
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let mut sent = 0;
        for revision in 1..=20 {
            let mut tables = any_tables().new_tree(&mut runner).unwrap().current();
            (tables.revision, tables.active) = (wire::Revision::new(revision), true);
            switch.install(&tables);
            let compiled = switch::Tables::compile(&tables).unwrap();
            let shadow = switch.plane.loader().shadow().unwrap();
            for partition in &tables.partitions {
                let (keyspace, at) = (partition.keyspace, partition.last);
                let wanted = switch::explain(&compiled, keyspace, at).unwrap();
                let tail: Vec<_> = partition.tail().into_iter().collect();
                let ways = [(Op::Get, wanted.read, tail), (Op::Cas, wanted.write, wanted.chain)];
                for (op, to, stamped) in ways {
                    let is_v4 = to.is_some_and(|it| std::net::SocketAddr::from(it).is_ipv4());
                    match shadow.ask(op, keyspace, at).unwrap() {
                        Fate::Sent { to: said, port, partition: of, epoch, chain } => {
                            assert_eq!(Some(std::net::SocketAddr::V4(said).into()), to);
                            assert_eq!((port.as_str(), of), ("near", partition.id));
                            assert_eq!((epoch, chain), (partition.epoch, stamped));
                            sent += 1;
                        }
                        Fate::Dropped { reason } => {
                            assert_eq!((reason.as_str(), to), (DropReason::NoNode.name(), None));
                        }
                        Fate::Left => assert!(!is_v4, "{op:?} {at} {tables:?}"),
                        Fate::Lost => panic!("{op:?} {at} {tables:?}"),
                    }
                }
            }
            assert_eq!(switch.counts(), Reference::new().counts(), "revision {revision}");
        }
        assert!(sent > 0);
    }

    #[test]
    fn the_verifier_has_little_to_do() {
        let Some((_stand, program)) = ready("loading the program") else { return };
        let bench = Program::load_bench(SERVICE).expect("the kernel takes the benchmark's, too");
        for programs in [program.instructions(), bench.instructions()] {
            println!("instructions that the verifier went through: {programs:?}");
            assert!(programs.iter().any(|(name, _)| name == "keyway_one"));
            assert!(programs.iter().all(|(_, count)| *count < 500_000), "half of its limit");
        }
    }
}
