//! The example can be used, and every mistake is found.

use super::*;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operating/keyway.toml");

fn example() -> Config {
    Config::load(Path::new(EXAMPLE)).unwrap()
}

/// The problems of the example after a change.
fn problems_with(change: impl FnOnce(&mut Config)) -> Vec<String> {
    let mut config = example();
    change(&mut config);
    config.check().0
}

#[test]
fn the_example_can_be_used() {
    let config = example();
    assert_eq!(config.nodes.len(), 3);
    assert_eq!(config.nodes[1].shards, 1, "what is left out has a default");
    assert_eq!(config.nodes[1].sync, SyncPolicy::Always);
    let specs = config.keyspace_specs();
    assert_eq!(specs[0].kind, KeyspaceKind::Hash);
    assert_eq!(specs[1].kind, KeyspaceKind::Range { prefix: b"user".to_vec() });
}

#[test]
fn the_controller_can_work_with_the_example() {
    let config = example().controller_config();
    let now = machine::Instant(0);
    assert!(controller::Controller::new(config, None, now).is_ok());
}

#[test]
fn all_problems_are_told_at_once() {
    let found = problems_with(|config| {
        config.switch.threads = 0;
        config.nodes[0].data = None;
        config.nodes[1].id = 3;
        config.keyspaces[0].replicas = 4;
    });
    assert_eq!(found.len(), 4, "{found:#?}");
    assert!(found[0].contains("threads in [switch]"));
    assert!(found[1].contains("node 1") && found[1].contains("add data"));
    assert!(found[2].contains("node 3 is there more than once"));
    assert!(found[3].contains("replicas is 4: choose 1 to 3"));
}

#[test]
fn each_mistake_is_found() {
    type Change = fn(&mut Config);
    let mistakes: [(Change, &str); 18] = [
        (|it| it.switch.service.set_port(0), "port 0"),
        (|it| it.switch.service.set_ip([0; 4].into()), "wildcard"),
        (|it| it.nodes.clear(), "add at least one"),
        (|it| it.nodes[0].id = 1024, "choose an id from 0 to 1023"),
        (|it| it.nodes[0].shards = 0, "do not fit"),
        (|it| (it.nodes[0].shards = 2, it.nodes[0].listen.set_port(65535)).1, "do not fit"),
        (|it| it.nodes[0].engine = EngineKind::Memory, "keeps nothing"),
        (|it| it.nodes[0].shards = 2, "another node's"),
        (|it| it.nodes[0].listen = it.switch.service, "the switch share port"),
        (|it| it.nodes[0].listen = "[::1]:7801".parse().unwrap(), "choose IPv4 or IPv6"),
        (|it| it.nodes[0].listen.set_ip([10, 0, 0, 1].into()), "loopback"),
        (|it| it.nodes[0].admin = it.switch.admin, "share the admin address"),
        (|it| it.nodes[0].data = it.nodes[1].data.clone(), "share the directory"),
        (|it| it.keyspaces[0].name = "a b".into(), "choose a name"),
        (|it| it.keyspaces[0].name = "users".into(), "more than once"),
        (|it| it.keyspaces[0].prefix = "x".into(), "are for kind"),
        (|it| it.keyspaces[1].splits.reverse(), "sort the split keys"),
        (|it| it.keyspaces[1].partitions = 6, "4 split keys make 5 partitions"),
    ];
    for (change, expected) in mistakes {
        let found = problems_with(change);
        assert!(found.iter().any(|it| it.contains(expected)), "{expected:?} not in {found:#?}");
    }
}

#[test]
fn an_unknown_field_is_an_error_that_names_it() {
    let text = fs::read_to_string(EXAMPLE).unwrap().replace("threads", "treads");
    let error = toml::from_str::<Config>(&text).unwrap_err();
    assert!(error.to_string().contains("treads"), "{error}");
}

#[test]
fn a_missing_file_is_named() {
    let error = Config::load(Path::new("/nowhere/keyway.toml")).unwrap_err();
    assert!(error.to_string().contains("/nowhere/keyway.toml"), "{error}");
}
