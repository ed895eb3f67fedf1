//! `bench` and `demo`.

use serde_json::Value;
use testkit::program::{Daemon, Up, free_addresses, keyway, run};

fn bench(arguments: &[&str]) -> Value {
    let mut all = vec![
        "bench",
        "--embedded",
        "--json",
        "--nodes",
        "3",
        "--partitions",
        "16",
        "--keys",
        "2000",
        "--duration",
        "1s",
    ];
    all.extend(arguments);
    let result = run(&all).expect(0).json();
    let run = &result["run"];
    assert_eq!(run["wrong_values"], 0, "{result:#}");
    assert!(run["summary"]["all"]["ops"].as_u64().unwrap() > 100, "{result:#}");
    assert_eq!(result["parameters"]["keys"], 2000);
    result
}

#[test]
fn whoever_coordinates_finds_all_keys_and_says_what_it_took() {
    let took = |who: &str| {
        let mix = "get=0.5,put=0.3,scan:20=0.2";
        let result = bench(&["--mix", mix, "--coordination", who]);
        let coordination = result["parameters"]["coordination"].as_str().expect("a name");
        assert!(coordination.starts_with(who), "{coordination}");
        let endings = &result["run"]["summary"]["all"]["endings"];
        assert_eq!(
            (&endings["refused"], &endings["unknown"]),
            (&0.into(), &0.into()),
            "{result:#}"
        );
        let time = &result["run"]["processor"];
        ["clients_us", "switch_us", "nodes_us", "coordinators_us"]
            .map(|whose| time[whose].as_f64().expect("a number"))
    };
    let [clients, switch, nodes, coordinators] = took("switch");
    assert!(clients > 0.0 && switch > 0.0 && nodes > 0.0 && coordinators == 0.0);
    let [_, past, nodes, coordinators] = took("client");
    assert!(past < switch / 2.0 && nodes > 0.0 && coordinators == 0.0, "{past} {switch}");
    let [_, past, nodes, coordinators] = took("server");
    assert!(past < switch / 2.0 && nodes > 0.0 && coordinators > 0.0, "{past} {switch}");
}

#[test]
fn multigets_can_be_taken_apart_by_others_than_the_switch() {
    let mix = "mget:100=1";
    let by_switch = bench(&["--mix", mix]);
    assert_eq!(by_switch["parameters"]["multigets"], "switch");
    let assisted = bench(&["--mix", mix, "--multigets", "assisted"]);
    assert_eq!(assisted["parameters"]["multigets"], "assisted");
    let by_clients = bench(&["--mix", mix, "--multigets", "client"]);
    assert_eq!(by_clients["parameters"]["multigets"], "client");

    let up = Up::start(&["--nodes", "3", "--partitions", "16"]);
    let listen = free_addresses(1).first().expect("one address").to_string();
    let admin = up.admin.to_string();
    let mut command = keyway();
    let command = command.args(["coordinator", "--listen", &listen, "--admin", &admin]);
    let (coordinator, line) = Daemon::start(command);
    assert!(line.contains(&listen), "{line}");
    let size = ["--keys", "2000", "--duration", "1s", "--json"];
    let mut arguments = vec!["bench", "--load", "--mix", mix, "--multigets", &listen];
    arguments.extend(size);
    let result = up.run(&arguments).expect(0).json();
    assert_eq!(result["parameters"]["multigets"], format!("coordinator at {listen}"));
    assert_eq!(result["run"]["wrong_values"], 0, "{result:#}");
    let endings = &result["run"]["summary"]["all"]["endings"];
    assert!(endings["done"].as_u64().unwrap() > 10, "{result:#}");
    assert_eq!((&endings["refused"], &endings["unknown"]), (&0.into(), &0.into()), "{result:#}");
    // Without it, multigets that should go there have no answer.
    coordinator.kill();
    let mut arguments = vec!["bench", "--mix", mix, "--multigets", &listen, "--timeout", "200ms"];
    arguments.extend(size);
    up.run(&arguments).expect(4);
}

fn shares(result: &Value) -> Vec<(String, f64)> {
    let kinds = result["run"]["summary"]["kinds"].as_array().unwrap();
    let all = result["run"]["summary"]["all"]["ops"].as_f64().unwrap();
    let share = |kind: &Value| {
        let name = kind["kind"].as_str().unwrap().to_owned();
        (name, kind["ops"].as_f64().unwrap() / all)
    };
    kinds.iter().map(share).collect()
}

#[test]
fn the_core_workloads_run_with_their_shares() {
    for (letter, expected) in [
        ("a", vec![("get", 0.5), ("put", 0.5)]),
        ("d", vec![("get", 0.95), ("insert", 0.05)]),
        ("e", vec![("insert", 0.05), ("scan", 0.95)]),
        ("f", vec![("get", 0.5), ("rmw", 0.5)]),
    ] {
        let result = bench(&["--workload", letter]);
        let found = shares(&result);
        let ops = result["run"]["summary"]["all"]["ops"].as_f64().unwrap();
        let near = |((name, share), (expected_name, expected)): (&(String, f64), &(&str, f64))| {
            // Five standard errors.
            let error = 5.0 * (expected * (1.0 - expected) / ops).sqrt();
            name == expected_name && (share - expected).abs() < error
        };
        assert!(
            found.len() == expected.len() && found.iter().zip(&expected).all(near),
            "{letter}: {found:?}"
        );
        let endings = &result["run"]["summary"]["all"]["endings"];
        assert_eq!((&endings["refused"], &endings["unknown"]), (&0.into(), &0.into()), "{letter}");
    }
}

#[test]
fn a_mix_of_everything_runs_on_several_threads() {
    let mix = "get=0.2,put=0.1,insert=0.1,del=0.1,cas=0.1,incr=0.1,mget:8=0.1,scan:20=0.1,rmw=0.1";
    let result = bench(&["--mix", mix, "--threads", "2", "--shift", "hot-in:100/0.2"]);
    assert_eq!(shares(&result).len(), 9, "{result:#}");
    assert_eq!(result["parameters"]["threads"], 2);
    assert!(result["run"]["summary"]["intervals"].as_array().is_some_and(|it| !it.is_empty()));
}

#[test]
fn an_open_loop_keeps_to_its_rate() {
    let result = bench(&["--workload", "c", "--rate", "1000", "--distribution", "uniform"]);
    let ops = result["run"]["summary"]["all"]["ops"].as_u64().unwrap();
    let never = result["run"]["never_started"].as_u64().unwrap();
    // Poisson: 1000 give or take 32, five times.
    assert!((840..1_160).contains(&(ops + never)), "{result:#}");
    assert_eq!(result["parameters"]["pace"]["open"], 1000.0);
}

#[test]
fn the_demo_ends_by_itself_and_shows_all_nodes() {
    let result = run(&["demo", "--json"]).expect(0).json();
    assert_eq!(result["mget"]["keys"], 32);
    assert_eq!(result["mget"]["parts"], 8);
    assert_eq!(result["scan"]["keys"], 10_000);
    let load = result["node_load"].as_array().unwrap();
    assert_eq!(load.len(), 8);
    assert!(load.iter().all(|node| node["reads"].as_u64() > Some(0)), "{load:#?}");
    let text = run(&["demo"]).expect(0).stdout;
    assert!(text.contains("p99") && text.contains('█') && text.contains("keyway up"), "{text}");
}
