//! The example can be used, and every mistake is found.

use super::*;
use controller::{LEASE, POLL_INTERVAL};

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
    let config = example().controller_config(ClusterId(1));
    let now = machine::Instant(0);
    assert!(controller::Controller::new(config, None, now).is_ok());
}

#[test]
fn all_problems_are_told_at_once() {
    let found = problems_with(|config| {
        config.switches[0].threads = 0;
        config.nodes[0].data = None;
        config.nodes[1].id = 3;
        config.keyspaces[0].replicas = 4;
    });
    assert_eq!(found.len(), 4, "{found:#?}");
    assert!(found[0].contains("threads of [switch]"));
    assert!(found[1].contains("node 1") && found[1].contains("add data"));
    assert!(found[2].contains("node 3 is there more than once"));
    assert!(found[3].contains("replicas is 4: choose 1 to 3"));
}

/// The example over IPv6, with content addresses.
fn with_content() -> Config {
    let mut config = example();
    let content = "prefix = \"fd00:6b77:1::/48\"\nport = 7800";
    config.content = Some(toml::from_str(content).unwrap());
    config.switches[0].service = "[fd00:1::1]:7700".parse().unwrap();
    for (last, node) in (2_u16..).zip(&mut config.nodes) {
        node.listen = format!("[fd00:1::{last}]:7800").parse().unwrap();
        node.shards = 1;
    }
    config.keyspaces.retain(|it| it.kind == KeyspaceForm::Hash);
    config
}

#[test]
fn content_addresses_can_be_had() {
    let config = with_content();
    assert_eq!(config.check().0, [""; 0]);
    assert_eq!(config.controller_config(ClusterId(1)).content, config.content);
}

#[test]
fn members_ask_for_cookies_at_the_content_addresses_of_the_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let secret = crate::identity::secret_in(directory.path());
    crate::identity::make_secret(&secret).unwrap();
    let mut config = with_content();
    config.security = security(&format!("directory = {:?}", directory.path()));
    let plan = config.key_plan().unwrap().unwrap();
    let first = plan.content.unwrap();
    assert_eq!((first.ip().to_string(), first.port()), ("fd00:6b77:1::".to_owned(), 7800));
}

#[test]
fn each_mistake_about_content_addresses_is_found() {
    type Change = fn(&mut Config);
    let range = || example().keyspaces.into_iter().find(|it| it.kind == KeyspaceForm::Range);
    let mistakes: [(Change, &str); 6] = [
        (|it| it.nodes[1].listen.set_port(7801), "receives at the port that is there, 7800"),
        (|it| it.nodes[1].listen = "10.0.0.1:7800".parse().unwrap(), "need IPv6"),
        (|it| it.nodes[1].listen = "[fd00:6b77:1::5]:7800".parse().unwrap(), "outside of"),
        (|it| it.nodes[0].shards = 2, "it has one, since"),
        (|it| it.keyspaces[0].partitions = Some(12), "a power of two"),
        (|it| it.content.as_mut().unwrap().port = 0, "choose a port"),
    ];
    for (change, word) in mistakes {
        let mut config = with_content();
        change(&mut config);
        let found = config.check().0;
        assert!(found.iter().any(|it| it.contains(word)), "{word}: {found:#?}");
    }
    let mut config = with_content();
    config.keyspaces.extend(range());
    let found = config.check().0;
    assert!(found.iter().any(|it| it.contains("kept in order")), "{found:#?}");
}

/// The same, with a switch that speaks OpenFlow.
fn with_openflow() -> Config {
    let mut config = with_content();
    let mut section = "listen = \"[::]:6653\"\n\n[exits]\n".to_owned();
    for (port, node) in (3..).zip(&config.nodes) {
        let address = node.listen.ip();
        let exit = format!("{{ mac = \"02:00:00:00:00:0{port}\", port = {port} }}");
        section.push_str(&format!("\"{address}\" = {exit}\n"));
    }
    config.switches[0].openflow = Some(toml::from_str(&section).unwrap());
    config
}

#[test]
fn a_switch_that_speaks_openflow_can_be_had() {
    let config = with_openflow();
    assert_eq!(config.check().0, [""; 0]);
    let section = config.switches[0].openflow.as_ref().unwrap();
    assert_eq!(section.rules_per_second.get(), 1_000);
    assert_eq!(section.exits.len(), config.nodes.len());
    for (wrong, says) in [
        ("mac = \"02:00:00:00:00\", port = 3", "a hardware address is like"),
        ("mac = \"02:00:00:00:00:03\", port = 0", "nonzero"),
        ("port = 3", "missing field `mac`"),
    ] {
        let text = format!("listen = \"[::]:6653\"\n[exits]\n\"fd00:1::2\" = {{ {wrong} }}\n");
        let why = toml::from_str::<OpenFlowSection>(&text).unwrap_err().to_string();
        assert!(why.contains(says), "{why}");
    }
}

#[test]
fn each_mistake_about_a_switch_that_speaks_openflow_is_found() {
    type Change = fn(&mut Config);
    let mistakes: [(Change, &str); 3] = [
        (|it| it.content = None, "is for content addresses"),
        (
            |it| it.switches[0].openflow.as_mut().unwrap().listen.set_port(0),
            "choose a port, as 6653",
        ),
        (
            |it| _ = it.switches[0].openflow.as_mut().unwrap().exits.pop_first(),
            "[switch.openflow.exits] does not say where that is",
        ),
    ];
    for (change, word) in mistakes {
        let mut config = with_openflow();
        change(&mut config);
        let found = config.check().0;
        assert!(found.iter().any(|it| it.contains(word)), "{word}: {found:#?}");
    }
}

#[test]
fn each_mistake_is_found() {
    type Change = fn(&mut Config);
    let mistakes: [(Change, &str); 46] = [
        (|it| it.switches[0].service.set_port(0), "port 0"),
        (|it| it.switches[0].service.set_ip([0; 4].into()), "wildcard"),
        (|it| it.switches.clear(), "describe 1 to 64"),
        (|it| it.switches.push(it.switches[0].clone()), "another switch's"),
        (|it| it.switches.push(it.switches[0].clone()), "switch 0 and switch 1 share the admin"),
        (|it| it.switches.push(second_switch("[::1]:7701")), "switch 1 is at [::1]:7701"),
        (|it| it.controller.lease_ms = 10, "choose 50 to 60000"),
        (|it| it.controller.lease_ms = 100_000, "choose 50 to 60000"),
        (|it| it.controller.copy_bytes_per_s = 0, "pause-copies"),
        (|it| it.controller.standby_admin = Some(it.controller.admin), "share the admin address"),
        (|it| it.controller.data = PathBuf::new(), "has no store"),
        (|it| it.controller.other_admins.push(it.nodes[0].listen), "set store"),
        (|it| it.nodes.clear(), "add at least one"),
        (|it| it.nodes[0].id = 1024, "choose an id from 0 to 1023"),
        (|it| it.nodes[0].shards = 0, "do not fit"),
        (|it| (it.nodes[0].shards = 2, it.nodes[0].listen.set_port(65535)).1, "do not fit"),
        (|it| it.nodes[0].engine = EngineKind::Memory, "keeps nothing"),
        (|it| it.nodes[0].engine = EngineKind::Redis, "keeps nothing in a directory"),
        (|it| it.nodes[0].engine = EngineKind::Redis, "add backend = \"redis://"),
        (|it| it.nodes[0].engine = EngineKind::Memcached, "give all nodes one, or none"),
        (|it| it.nodes[0].backend = backend(), "no store for the engine \"fjall\""),
        (|it| it.nodes.iter_mut().for_each(|it| it.backend = backend()), "share a backend"),
        (|it| it.nodes[0].shards = 2, "another node's"),
        (|it| it.nodes[0].listen = it.switches[0].service, "a switch share port"),
        (|it| it.nodes[0].listen = "[::1]:7801".parse().unwrap(), "choose IPv4 or IPv6"),
        (|it| it.nodes[0].listen.set_ip([10, 0, 0, 1].into()), "loopback"),
        (|it| it.nodes[0].admin = it.switches[0].admin, "share the admin address"),
        (|it| it.nodes[0].data = it.nodes[1].data.clone(), "share the directory"),
        (|it| it.caches = (0..17).map(cache).collect(), "describe 16 or fewer"),
        (|it| it.caches = vec![cache(1), CacheSection { id: 1, ..cache(2) }], "cache 1 is there"),
        (
            |it| it.caches = vec![cache(1), CacheSection { id: 2, ..cache(1) }],
            "cache 1 share a port",
        ),
        (|it| it.caches = vec![CacheSection { shards: 0, ..cache(1) }], "do not fit"),
        (|it| it.caches = vec![CacheSection { shards: 257, ..cache(1) }], "1 to 256 shards"),
        (|it| it.caches = vec![cache_at(it.nodes[0].listen)], "a port of node 1"),
        (|it| it.caches = vec![cache_at(it.switches[0].service)], "cache 7 and a switch share"),
        (|it| it.caches = vec![cache_at("0.0.0.0:9".parse().unwrap())], "wildcard"),
        (|it| it.caches = vec![cache_at("127.0.0.1:0".parse().unwrap())], "port 0"),
        (|it| it.caches = vec![cache_at("[::1]:9000".parse().unwrap())], "choose IPv4 or IPv6"),
        (
            |it| it.caches = vec![CacheSection { admin: it.nodes[0].admin, ..cache(1) }],
            "node 1 and cache 1 share the admin address",
        ),
        (|it| it.caches = vec![cache(16)], "cache 16: choose an id from 0 to 15"),
        (|it| it.keyspaces[0].hot = HotPolicy::Cache, "there is no cache to hold its hot keys"),
        (|it| it.keyspaces[0].name = "a b".into(), "choose a name"),
        (|it| it.keyspaces[0].name = "users".into(), "more than once"),
        (|it| it.keyspaces[0].prefix = "x".into(), "are for kind"),
        (|it| it.keyspaces[1].splits.reverse(), "sort the split keys"),
        (|it| it.keyspaces[1].partitions = Some(6), "4 split keys make 5 partitions"),
    ];
    for (change, expected) in mistakes {
        let found = problems_with(change);
        assert!(found.iter().any(|it| it.contains(expected)), "{expected:?} not in {found:#?}");
    }
}

#[test]
fn what_is_said_of_an_etcd_must_go_with_where_it_is() {
    let problems = |store: &str, section: &str| {
        problems_with(|config| {
            config.controller.store = Some(store.parse().unwrap());
            config.controller.etcd = Some(toml::from_str(section).unwrap());
        })
    };
    let (plain, secure) = ("etcd://10.0.0.1:2379/k", "etcds://10.0.0.1:2379/k");
    let user = "user = \"keyway\"\npassword_file = \"/word\"";
    let (ca, both) = ("ca = \"/ca\"", "certificate = \"/c\"\nkey = \"/k\"");
    assert_eq!(problems(secure, &format!("{ca}\n{both}\n{user}")), Vec::<String>::new());
    assert_eq!(problems(plain, ""), Vec::<String>::new());
    for (section, what) in [(ca, "a ca"), (both, "a certificate"), (user, "a user")] {
        let found = problems(plain, section);
        assert!(found[0].contains(what) && found[0].contains("write etcds://"), "{found:?}");
    }
    for half in ["key = \"/k\"", "certificate = \"/c\""] {
        assert!(problems(secure, half)[0].contains("certificate and key: name both"));
    }
    for half in ["user = \"u\"", "password_file = \"/p\""] {
        assert!(problems(secure, half)[0].contains("user and password_file: name both"));
    }
    let mut config = example();
    let url = secure.parse().unwrap();
    let error = config.etcd_access(&url).unwrap_err().to_string();
    assert!(error.contains("ca in [controller.etcd]"), "{error}");
    config.controller.etcd = Some(toml::from_str(user).unwrap());
    let plainly = config.etcd_access(&plain.parse().unwrap()).unwrap();
    assert!(plainly.user.is_none(), "no password goes there");
    config.controller.etcd = Some(toml::from_str("ca = \"/nowhere/ca.crt\"").unwrap());
    let error = config.etcd_access(&url).unwrap_err().to_string();
    assert!(error.contains("/nowhere/ca.crt"), "{error}");
}

fn cache(id: u16) -> CacheSection {
    let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port + id));
    CacheSection {
        id,
        listen: at(9_000),
        shards: 1,
        admin: at(9_100),
        entries: 10_000,
        memory: CacheMemory::default(),
        rules_per_second: 12_000,
    }
}

fn cache_at(listen: SocketAddr) -> CacheSection {
    CacheSection { listen, ..cache(7) }
}

#[test]
fn caches_are_tables_like_nodes() {
    let text = fs::read_to_string(EXAMPLE).unwrap();
    let ours = text.replace("# [[cache]]\n# id = 1\n# listen", "[[cache]]\nid = 1\nlisten");
    let ours = ours.replace("# shards = 1            # threads, on", "shards = 2 # threads, on");
    let ours = ours.replace("# admin = \"127.0.0.1:7871\"", "admin = \"127.0.0.1:7871\"");
    let config: Config = toml::from_str(&ours).unwrap();
    assert_eq!(config.check().0, Vec::<String>::new());
    assert_eq!((config.caches.len(), config.members()), (1, 5));
    assert_eq!(config.caches[0].spec().shards, 2);
    let controller = config.controller_config(ClusterId(1));
    assert_eq!(controller.caches, [config.cache(CacheId(1)).unwrap().spec()]);
    assert_eq!(config.cache(CacheId(2)), None);
    let now = machine::Instant(0);
    assert_eq!(controller::Controller::new(controller, None, now).unwrap().map().caches.len(), 1);
    let wrong = ours.replace("id = 1\nlisten = \"127.0.0.1:7851\"", "id = 1");
    let error = toml::from_str::<Config>(&wrong).unwrap_err();
    assert!(error.to_string().contains("listen"), "{error}");
}

fn backend() -> Option<BackendUrl> {
    Some("redis://127.0.0.1:6379".parse().unwrap())
}

#[test]
fn a_backend_goes_with_its_engine() {
    let text = fs::read_to_string(EXAMPLE).unwrap();
    let text = (1..=3).fold(text, |text, id| {
        let ours = format!("engine = \"fjall\"\ndata = \"/var/lib/keyway/node-{id}\"");
        let theirs = format!("engine = \"redis\"\nbackend = \"redis://127.0.0.1:637{id}\"");
        assert!(text.contains(&ours));
        text.replace(&ours, &theirs)
    });
    let config: Config = toml::from_str(&text).unwrap();
    assert_eq!(config.check().0, Vec::<String>::new());
    let wrong = toml::from_str::<Config>(&text.replace("redis://", "reddis://")).unwrap_err();
    assert!(wrong.to_string().contains("no address of a backend"), "{wrong}");
}

fn second_switch(service: &str) -> SwitchSection {
    let service = service.parse().unwrap();
    SwitchSection { service, threads: 1, admin: "127.0.0.1:7791".parse().unwrap(), openflow: None }
}

#[test]
fn switches_may_be_one_table_or_several() {
    let one = fs::read_to_string(EXAMPLE).unwrap();
    let second = "[[switch]]\nservice = \"127.0.0.1:7701\"\nadmin = \"127.0.0.1:7791\"\n";
    let two = one.replace("\n[switch]\n", "\n[[switch]]\n") + second;
    let config: Config = toml::from_str(&two).unwrap();
    assert_eq!(config.check().0, Vec::<String>::new());
    let services: Vec<u16> = config.switches.iter().map(|it| it.service.port()).collect();
    assert_eq!(services, [7700, 7701]);
    let controller = config.controller_config(ClusterId(1));
    assert_eq!(controller.switches.len(), 2);
    assert_eq!((controller.lease, controller.poll_interval), (LEASE, POLL_INTERVAL));
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

/// Moves every admin address to another machine.
fn spread(config: &mut Config) {
    let at = |last: u8| SocketAddr::from(([10, 0, 0, last], 7780));
    config.controller.admin = at(1);
    config.controller.standby_admin = None;
    config.switches[0].admin = at(2);
    for (node, last) in config.nodes.iter_mut().zip(3..) {
        node.admin = at(last);
    }
}

fn security(text: &str) -> Option<SecuritySection> {
    Some(toml::from_str(text).unwrap())
}

#[test]
fn a_control_plane_that_others_reach_is_protected_or_said_to_be_open() {
    let found = problems_with(spread);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains("10.0.0.1:7780") && found[0].contains("keyway certs init"));
    assert!(found[0].contains("open = true"), "{found:#?}");
    let one = problems_with(|config| config.nodes[1].admin = "[fd00::1]:7892".parse().unwrap());
    assert!(one.iter().any(|it| it.contains("[fd00::1]:7892")), "{one:#?}");
    let good = [
        "open = true",
        "directory = '/etc/keyway'",
        "directory = '/etc/keyway'\nca = 'ca.crt'",
        "ca = 'a'\ncertificate = 'b'\nkey = 'c'",
    ];
    for text in good {
        let found = problems_with(|config| {
            spread(config);
            config.security = security(text);
        });
        assert_eq!(found, Vec::<String>::new(), "{text}");
    }
    let rights = "[[rights]]\nidentity = 'client/a'";
    let bad = [
        ("", "[security] says nothing"),
        ("directory = 'a'\n[[rights]]\nidentity = 'node/1'", "nobody who reads"),
        (&format!("directory = 'a'\nenvelopes = false\n{rights}"), "remove the rights"),
        (&format!("open = true\n{rights}"), "remove the rights"),
        (&format!("directory = 'a'\n{rights}\n{rights}"), "more than one"),
        ("open = true\ndirectory = 'a'", "remove open"),
        ("directory = 'a'\nkey = 'b'", "name both"),
        ("certificate = 'a'\nkey = 'b'", "has no ca"),
        ("ca = 'a'", "has no certificate and no key"),
    ];
    for (text, why) in bad {
        let found = problems_with(|config| config.security = security(text));
        assert!(found.len() == 1 && found[0].contains(why), "{text}: {found:#?}");
    }
}

#[test]
fn everybody_in_a_configuration_has_a_name_and_files() {
    let config = example();
    let names = config.identities().unwrap();
    let names: Vec<String> = names.iter().map(|(identity, _)| identity.to_string()).collect();
    assert_eq!(names, ["controller/0", "switch/0", "node/1", "node/2", "node/3"]);
    let mut config = example();
    config.security = security("directory = '/nowhere'");
    let member = cluster::Member::Node(NodeId(2));
    let why = config.security_of(member).unwrap_err().to_string();
    assert!(why.contains("/nowhere/ca.crt") && why.contains("keyway certs init"), "{why}");
    config.security = security("open = true");
    assert!(matches!(config.security_of(member), Ok(crate::identity::Security::Open)));
    config.security = None;
    assert!(matches!(config.security_of(member), Ok(crate::identity::Security::Loopback)));
}
