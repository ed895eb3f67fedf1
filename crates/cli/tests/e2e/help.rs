//! What commands say about themselves.

use testkit::program::run;

#[test]
fn every_command_explains_itself_and_gives_an_example() {
    let commands = [
        "up",
        "demo",
        "get",
        "put",
        "del",
        "cas",
        "incr",
        "mget",
        "mset",
        "mdel",
        "scan",
        "export",
        "import",
        "status",
        "keyspace",
        "cluster",
        "certs",
        "hot",
        "top",
        "explain",
        "bench",
        "sim",
        "paper",
        "lab",
        "doctor",
        "placement",
        "switch",
        "node",
        "controller",
        "coordinator",
        "gateway",
        "completion",
    ];
    let overview = run(&["--help"]).expect(0).stdout;
    assert!(overview.contains("Exit codes:"), "{overview}");
    for command in commands {
        assert!(overview.contains(&format!("\n  {command} ")), "{command} is not listed");
        let help = run(&[command, "--help"]).expect(0).stdout;
        assert!(help.contains("Example") && help.contains(&format!("keyway {command}")), "{help}");
    }
}

#[test]
fn every_subcommand_explains_itself_and_gives_an_example() {
    for sub in ["init", "issue", "rotate", "list"] {
        let help = run(&["certs", sub, "--help"]).expect(0).stdout;
        assert!(help.contains(&format!("keyway certs {sub}")), "{help}");
    }
    for sub in
        ["add-node", "drain-node", "keep-node", "remove-node", "pause-copies", "resume-copies"]
    {
        let help = run(&["cluster", sub, "--help"]).expect(0).stdout;
        assert!(help.contains(&format!("keyway cluster {sub}")), "{help}");
    }
    for sub in ["list", "pin", "unpin", "log"] {
        let help = run(&["hot", sub, "--help"]).expect(0).stdout;
        assert!(help.contains(&format!("keyway hot {sub}")), "{help}");
    }
    for sub in ["show", "plan", "log", "pause", "resume", "move", "split", "merge"] {
        let help = run(&["placement", sub, "--help"]).expect(0).stdout;
        assert!(help.contains(&format!("keyway placement {sub}")), "{help}");
    }
    let help = run(&["paper", "pegasus", "--help"]).expect(0).stdout;
    assert!(help.contains("keyway paper pegasus --figure 8"), "{help}");
    let help = run(&["paper", "netmc", "--help"]).expect(0).stdout;
    assert!(help.contains("keyway paper netmc --figure 8"), "{help}");
    for sub in ["up", "run", "status", "faults", "balance", "shift", "soak", "down"] {
        let help = run(&["lab", sub, "--help"]).expect(0).stdout;
        assert!(help.contains(&format!("keyway lab {sub}")), "{help}");
    }
    for sub in ["list", "create", "show"] {
        let help = run(&["keyspace", sub, "--help"]).expect(0).stdout;
        assert!(help.contains(&format!("keyway keyspace {sub}")), "{help}");
    }
}

#[test]
fn every_kind_of_world_is_told_of_with_what_happens_in_it() {
    let help = run(&["sim", "--help"]).expect(0).stdout;
    let page =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/concepts/simulator.md"));
    for profile in sim::Profile::ALL {
        let name = profile.name();
        let of_help =
            help.lines().find(|line| line.trim_start().starts_with(&format!("- {name}:")));
        let said = of_help.and_then(|line| line.split_once(':')).map(|(_, said)| said.trim());
        let is_told =
            said.is_some_and(|said| !said.is_empty() && profile.about().starts_with(said));
        assert!(is_told, "of {name} the help says {said:?}");
        assert!(
            page.contains(&format!("\n| `{name}` | ")),
            "{name} is not in docs/concepts/simulator.md"
        );
    }
}

#[test]
fn shells_complete_commands_and_options() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completion", shell]).expect(0).stdout;
        assert!(script.contains("drain-node") && script.contains("if-absent"), "{shell}");
    }
    run(&["completion", "abacus"]).expect(2);
}

#[test]
fn colours_are_for_those_who_want_them() {
    let machine = |color: &str| {
        let ran = run(&["doctor", "--color", color]);
        ran.stdout
    };
    assert!(machine("always").contains("\u{1b}["));
    assert!(!machine("never").contains("\u{1b}[") && !machine("auto").contains("\u{1b}["));
}
