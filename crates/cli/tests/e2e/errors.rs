//! What goes wrong, with its exit code and what to do about it.

use testkit::program::{Up, free_addresses, run};

#[test]
fn without_a_cluster_commands_say_how_to_start_one() {
    let free = free_addresses(1)[0].to_string();
    let away = ["--service", &free, "--admin", &free, "--timeout", "300ms"];
    for (command, code) in [
        (&["get", "x"][..], 4),
        (&["put", "x", "y"], 4),
        (&["mget", "x", "y"], 4),
        (&["mset", "x", "1", "y", "2"], 4),
        (&["mdel", "x", "y"], 4),
        (&["scan"], 4),
        (&["bench", "--duration", "1s"], 4),
        (&["status"], 5),
        (&["keyspace", "list"], 5),
        (&["explain", "x"], 5),
        (&["cluster", "drain-node", "1"], 5),
    ] {
        let mut arguments = command.to_vec();
        arguments.extend(away);
        let ran = run(&arguments).expect(code);
        assert!(ran.stderr.contains("keyway up"), "{command:?}: {ran:?}");
        assert!(ran.stderr.contains(&free), "{command:?}: {ran:?}");
    }
    let json = run(&["get", "x", "--json", "--service", &free, "--timeout", "300ms"]).expect(4);
    assert_eq!(json.json()["outcome"], "unknown");
}

#[test]
fn wrong_command_lines_end_with_code_2() {
    for arguments in [
        &[][..],
        &["fetch"],
        &["get"],
        &["get", ""],
        &["get", "--hex", "xyz"],
        &["put", "k", "v", "--ttl", "soon"],
        &["put", "k", "v", "--ttl", "1s", "--keep-expiry"],
        &["put", "k", "@/does/not/exist"],
        &["cas", "k", "v"],
        &["cas", "k", "--expect-absent"],
        &["del", "k", "--expect", "a", "--expect-version", "1"],
        &["get", "k", "--service", "nowhere"],
        &["get", "k", "--timeout", "0s"],
        &["scan", "--from", "a", "--after", "b"],
        &["bench", "--workload", "g"],
        &["bench", "--mix", "get=0.5"],
        &["bench", "--rate", "5", "--in-flight", "5"],
        &["bench", "--threads", "0"],
        &["bench", "--value-size", "1400"],
        &["up", "--nodes", "2", "--replicas", "3"],
        &["up", "--engine", "fjall"],
        &["up", "--data", "/tmp"],
        &["up", "--service", "127.0.0.1:1,127.0.0.1:2"],
        &["get", "k", "--service", "127.0.0.1:1,[::1]:2"],
        &["cluster"],
        &["cluster", "add-node", "4", "--listen", "127.0.0.1:1"],
        &["cluster", "drain-node", "all"],
        &["node", "--config", "/does/not/exist.toml", "--id", "1"],
    ] {
        let ran = run(arguments).expect(2);
        assert!(!ran.stderr.is_empty(), "{arguments:?} says why");
    }
}

#[test]
fn a_missing_keyspace_is_refused_with_the_command_that_makes_it() {
    let up = Up::start(&["--nodes", "1", "--replicas", "1", "--partitions", "2"]);
    let ran = up.run(&["get", "x", "-k", "nowhere"]).expect(3);
    assert!(ran.stderr.contains("keyway keyspace create nowhere"), "{ran:?}");
    let ran = up.run(&["bench", "-k", "nowhere"]).expect(3);
    assert!(ran.stderr.contains("keyway keyspace create nowhere"), "{ran:?}");
    let ran = up.run(&["bench", "--workload", "e"]).expect(2);
    assert!(ran.stderr.contains("keyway keyspace create scans --range"), "{ran:?}");
}

#[test]
fn a_second_cluster_at_the_same_address_is_told_so() {
    let up = Up::start(&["--nodes", "1", "--replicas", "1", "--partitions", "2"]);
    let service = up.service.to_string();
    let size = ["--nodes", "1", "--replicas", "1", "--admin", "127.0.0.1:0"];
    let mut arguments = vec!["up", "--service", &service];
    arguments.extend(size);
    let ran = run(&arguments).expect(5);
    assert!(ran.stderr.contains(&service) && ran.stderr.contains("another process"), "{ran:?}");
}

#[test]
fn mutants_are_for_builds_that_have_them() {
    let arguments = ["sim", "--seed", "1", "--profile", "calm", "--mutant", "ignore-epoch"];
    if cluster::MUTANTS {
        let ran = run(&arguments);
        assert!(matches!(ran.code, Some(0 | 1)), "whether it is seen there or not: {ran:?}");
        assert!(ran.stdout.contains("mutant: IgnoreEpoch"), "{ran:?}");
        return;
    }
    for arguments in [&arguments[..], &["sim", "--mutants"]] {
        let ran = run(arguments).expect(2);
        assert!(ran.stderr.contains("--features mutants"), "{ran:?}");
    }
}
