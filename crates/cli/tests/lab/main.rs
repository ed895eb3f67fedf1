//! `keyway lab`: racks in named network namespaces, what runs in them, and that nothing of them is
//! left, however they end. Takes root.

#[cfg(test)]
mod caches;
#[cfg(test)]
mod delegations;
#[cfg(test)]
mod frr;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod openflow;
#[cfg(test)]
mod rack;
#[cfg(test)]
mod routes;

#[cfg(test)]
mod tests {
    use crate::rack::{
        DownInTheEnd, Lab, can_build, can_load_programs, traces, wait_until_gone, wait_until_inside,
    };
    use serde_json::Value;
    use std::process::Command;
    use std::sync::{Mutex, PoisonError};
    use testkit::program::{Ran, run};
    use testkit::skip;

    /// One rack at a time: they would take each other's time.
    pub(crate) static MACHINE: Mutex<()> = Mutex::new(());

    /// Far more than a rack takes on a machine that has nothing else to do.
    const READY_MS_MAX: u64 = 20_000;

    #[test]
    fn a_rack_of_sixteen_nodes_is_soon_up_serves_and_leaves_nothing() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        if !can_build("a_rack_of_sixteen_nodes_is_soon_up_serves_and_leaves_nothing") {
            return;
        }
        serve_on("user");
    }

    #[test]
    fn a_rack_whose_switch_is_in_the_kernel_does_the_same() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let test = "a_rack_whose_switch_is_in_the_kernel_does_the_same";
        if can_build(test) && can_load_programs(test) {
            serve_on("xdp");
        }
    }

    fn serve_on(plane: &str) {
        let lab = Lab::up(&["--nodes", "16", "--clients", "2", "--plane", plane]);
        let ready_ms = lab.ready["ready_ms"].as_u64().unwrap();
        println!("{plane} plane, 16 nodes, 2 clients: ready after {ready_ms} ms");
        assert!(ready_ms < READY_MS_MAX, "{ready_ms} ms");
        // The switch, 16 nodes and the controller; the clients' hosts have nothing to run.
        assert_eq!(lab.ready["processes"].as_array().map(Vec::len), Some(18));
        assert_eq!(lab.ready["namespaces"].as_array().map(Vec::len), Some(20));

        lab.run(0, &["keyway", "put", "greeting", "hello"]).expect(0);
        assert_eq!(lab.run(1, &["keyway", "get", "greeting"]).expect(0).stdout.trim(), "hello");
        let fruits = ["apple", "banana", "cherry", "date"];
        for (index, fruit) in fruits.iter().enumerate() {
            lab.run(0, &["keyway", "put", fruit, &index.to_string()]).expect(0);
            lab.run(0, &["keyway", "put", "-k", "ordered", fruit, &index.to_string()]).expect(0);
        }
        let mut mget = vec!["keyway", "mget", "--json"];
        mget.extend(fruits);
        let found = lab.run(1, &mget).expect(0);
        let found: Vec<Value> = found.json_lines();
        let values: Vec<&str> = found.iter().filter_map(|it| it["value"].as_str()).collect();
        assert_eq!(values, ["0", "1", "2", "3"], "{found:?}");
        let scan = lab.run(1, &["keyway", "scan", "-k", "ordered", "--json"]).expect(0);
        let lines = scan.json_lines();
        let keys: Vec<&str> = lines.iter().filter_map(|it| it["key"].as_str()).collect();
        assert_eq!(keys, fruits);
        let status = lab.run(0, &["keyway", "status", "--json"]).expect(0).json();
        assert_eq!(status["replicated"], true, "{status:#}");

        assert_eq!(lab.run(0, &["sh", "-c", "exit 7"]).code, Some(7));
        assert_eq!(lab.run(2, &["true"]).code, Some(2), "there is no third client");
        let again = run(&["lab", "up", "--name", lab.name()]).expect(2);
        assert!(again.stderr.contains("is up"), "{again:?}");
        let status = run(&["lab", "status", "--json", "--name", lab.name()]).expect(0).json();
        assert_eq!(status["processes"].as_array().map(Vec::len), Some(18));

        let name = lab.name().to_owned();
        assert_eq!(lab.interrupt(), Some(0));
        assert_eq!(traces(&name), Vec::<String>::new());
    }

    #[test]
    fn packets_of_a_secured_lab_are_in_envelopes() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let test = "packets_of_a_secured_lab_are_in_envelopes";
        if !can_build(test) {
            return;
        }
        let planes = ["user", "routes", "xdp"];
        let planes = if can_load_programs(test) { &planes[..] } else { &planes[..2] };
        for plane in planes {
            let size = ["--nodes", "3", "--caches", "1", "--secured", "--plane", plane];
            let lab = Lab::up(&size);
            lab.run(0, &["keyway", "put", "greeting", "hello"]).expect(0);
            assert_eq!(lab.run(0, &["keyway", "get", "greeting"]).expect(0).stdout, "hello");
            let status = lab.run(0, &["keyway", "status", "--json"]).expect(0).json();
            assert_eq!(status["envelopes"], true, "{status:#}");
            // A cookie that a client takes for nothing is waited for with each request.
            let bench = ["keyway", "bench", "--load", "--keys", "100", "--duration", "1s"];
            let bench = lab.run(0, &[&bench[..], &["--in-flight", "4", "--json"]].concat());
            let did = bench.expect(0).json();
            let (sent, again) = (&did["run"]["datagrams"], &did["run"]["retransmits"]);
            assert!(again.as_u64() < sent.as_u64().map(|sent| sent / 10), "{plane}: {did:#}");
            let bare = ["env", "-u", "KEYWAY_CERTS", "keyway", "get", "greeting"];
            let bare = lab.run(0, &[&bare[..], &["--timeout", "300ms"]].concat());
            assert_ne!(bare.code, Some(0), "{plane}: {bare:?}");
            assert_eq!(lab.interrupt(), Some(0));
        }
    }

    #[test]
    fn the_kernel_of_a_lab_is_explained_and_its_switch_examined() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let test = "the_kernel_of_a_lab_is_explained_and_its_switch_examined";
        if !can_build(test) || !can_load_programs(test) {
            return;
        }
        let lab = Lab::up(&["--nodes", "3", "--replicas", "3", "--plane", "xdp"]);
        for keyspace in ["default", "ordered"] {
            for key in ["apple", "banana", "cherry", "date"] {
                let words = ["explain", key, "-k", keyspace, "--plane", "xdp", "--json"];
                let said = lab.run(0, &[&["keyway"][..], &words].concat()).expect(0).json();
                assert_eq!(said["in_kernel_agrees"], true, "{said:#}");
                let kernel = &said["in_kernel"];
                assert_eq!(kernel["read"]["to"], said["read_goes_to"], "{said:#}");
                assert_eq!(kernel["write"]["to"], said["write_goes_to"], "{said:#}");
                assert_eq!(kernel["write"]["chain"].as_array().map(Vec::len), Some(3));
            }
        }
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &format!("keyway-{}-sw", lab.name())]);
        inside.arg(env!("CARGO_BIN_EXE_keyway")).args(["doctor", "--json", "--service"]);
        inside.args(["10.77.255.1:7700", "--ports", "p-c0,p-n1,p-ctl"]);
        let output = inside.output().unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &found["problems"]), (Some(0), &0.into()), "{found:#}");
        let native = |port: usize| {
            let checks = found["ports"][port]["checks"].as_array().unwrap();
            let check = checks.iter().find(|check| check["check"] == "native xdp").unwrap();
            check["found"].as_str().unwrap().to_owned()
        };
        assert!(native(0).contains("a Keyway switch is attached"), "{}", native(0));
        assert!(native(2).contains("the driver runs the program"), "{}", native(2));

        // Without it the packets that the program sends to the node vanish.
        let node = format!("keyway-{}-n1", lab.name());
        let off = ["netns", "exec", &node, "ethtool", "-K", "eth0", "gro", "off"];
        assert!(Command::new("ip").args(off).status().unwrap().success());
        let output = inside.output().unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &found["problems"]), (Some(1), &1.into()), "{found:#}");
        let remedy = format!("sudo ip netns exec {node} ethtool -K eth0 gro on");
        assert!(found.to_string().contains(&remedy), "{found:#}");
        assert_eq!(lab.interrupt(), Some(0));
    }

    #[test]
    fn of_a_lab_whose_process_is_killed_nothing_is_left() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        if !can_build("of_a_lab_whose_process_is_killed_nothing_is_left") {
            return;
        }
        let lab = Lab::up(&["--nodes", "2", "--replicas", "2"]);
        // What somebody has left running on a client's host is part of it.
        let name = lab.name().to_owned();
        let mut left_running = Command::new(env!("CARGO_BIN_EXE_keyway"));
        left_running.args(["lab", "run", "--name", &name, "--", "sleep", "600"]);
        let mut left_running = left_running.spawn().unwrap();
        wait_until_inside(left_running.id());
        assert!(!traces(&name).is_empty());
        lab.kill();
        wait_until_gone(&name);
        assert!(!left_running.wait().unwrap().success());
    }

    #[test]
    fn what_killed_processes_have_left_is_taken_down_by_the_next_command() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        if !can_build("what_killed_processes_have_left_is_taken_down_by_the_next_command") {
            return;
        }
        let one = ["--nodes", "1", "--replicas", "1"];
        let lab = Lab::up(&one);
        let name = lab.name().to_owned();
        let _down = DownInTheEnd(&name);
        lab.kill_with_guard();
        assert!(!traces(&name).is_empty(), "nobody was there to take it down");
        let mut arguments = vec!["lab", "up", "--detach", "--json", "--name", &name];
        arguments.extend(one);
        let ran: Ran = run(&arguments).expect(0);
        assert!(ran.stderr.contains("has left"), "{ran:?}");
        assert_eq!(ran.json()["keeper"], Value::Null);
        run(&["lab", "run", "--name", &name, "--", "keyway", "put", "a", "1"]).expect(0);
        run(&["lab", "up", "--name", &name]).expect(2);
        let down = run(&["lab", "down", "--json", "--name", &name]).expect(0).json();
        assert_eq!(down["was_there"], true);
        assert_eq!(traces(&name), Vec::<String>::new());

        let lab = Lab::up_as(&name, &one);
        lab.kill_with_guard();
        run(&["lab", "down", "--name", &name]).expect(0);
        assert_eq!(traces(&name), Vec::<String>::new());
        let down = run(&["lab", "down", "--json", "--name", &name]).expect(0).json();
        assert_eq!(down["was_there"], false);
    }

    #[test]
    fn a_namespace_that_is_no_labs_is_not_touched() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        if !can_build("a_namespace_that_is_no_labs_is_not_touched") {
            return;
        }
        let name = Lab::free_name();
        let other = format!("keyway-{name}-n1");
        let netns = |what: &str| {
            let status = Command::new("ip").args(["netns", what, &other]).status();
            assert!(status.expect("there is an ip").success());
        };
        netns("add");
        let ran = run(&["lab", "up", "--name", &name]);
        run(&["lab", "down", "--name", &name]).expect(0);
        assert_eq!(traces(&name), [format!("namespace {other}")]);
        netns("del");
        assert!(ran.expect(2).stderr.contains(&other));
    }

    #[test]
    fn a_limited_node_serves_at_its_rate() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        if !can_build("a_limited_node_serves_at_its_rate") {
            return;
        }
        let lab = Lab::up(&["--nodes", "1", "--replicas", "1", "--node-rate", "2k"]);
        // So many wait at the node that it has work while the client waits for a processor.
        let bench = "keyway bench --json --load --keys 1000 --workload a --duration 4s \
                     --in-flight 200";
        let bench: Vec<&str> = bench.split_ascii_whitespace().collect();
        let result = lab.run(0, &bench).expect(0).json();
        let served = result["run"]["summary"]["all"]["ops"].as_f64().unwrap() / 4.0;
        println!("a node of 2000 requests per second has served {served} per second");
        // Never faster. A busy machine may keep it from its work; how exactly it keeps to its rate
        // if not is tested with a clock that is no machine's.
        assert!((1_400.0..2_100.0).contains(&served), "{served} per second: {result:#}");
    }

    #[test]
    fn experiments_with_hot_keys_make_a_table_and_a_plot_and_leave_nothing() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let test = "experiments_with_hot_keys_make_a_table_and_a_plot_and_leave_nothing";
        if !can_build(test) {
            return;
        }
        let (folder, name) = (tempfile::tempdir().unwrap(), Lab::free_name());
        let out = folder.path().to_str().unwrap();
        let measure = |words: &str, plot: &str| {
            let rack = "--nodes 4 --node-rate 2k --keys 500 --json";
            let mut arguments: Vec<&str> = words.split(' ').chain(rack.split(' ')).collect();
            arguments.extend(["--name", &name, "--out", out]);
            let rows = run(&arguments).expect(0).json_lines();
            assert!(std::fs::read_to_string(folder.path().join(plot)).unwrap().contains("<svg"));
            assert_eq!(traces(&name), Vec::<String>::new());
            rows
        };
        let latency = "lab latency --nodes 4 --keys 2k --rounds 2 --seconds 500ms --json";
        let mut arguments: Vec<&str> = latency.split(' ').collect();
        arguments.extend(["--name", &name, "--out", out]);
        // A busy machine may let leases of the cache end: then it is not asked, now and then all
        // the time.
        let hits_often = (0..3).any(|_| {
            let rows = run(&arguments).expect(0).json_lines();
            let hits = rows.iter().filter_map(|row| row["hits_percent"].as_f64());
            let hits: Vec<f64> = hits.collect();
            let [straight, without, miss, hit] = hits[..] else { panic!("four kinds: {rows:?}") };
            assert!(straight == 0.0 && without == 0.0, "{rows:?}");
            assert_eq!(traces(&name), Vec::<String>::new());
            miss * 4.0 < hit && hit > 20.0
        });
        assert!(hits_often);

        // A busy machine may let no rate hold: there are rows in any case.
        let balance = "lab balance --replicas 1 --theta 1.2 --reads 100 --arm hashing,anywhere \
                       --seconds 300ms";
        let rows = measure(balance, "lab-balance.svg");
        let arms: Vec<&str> = rows.iter().skip(1).filter_map(|it| it["arm"].as_str()).collect();
        assert_eq!(arms.len(), 3, "{rows:?}");
        assert!(rows.iter().skip(1).all(|it| it["cap"] == 8_000.0), "{rows:?}");

        let ran = run(&["lab", "balance", "--arm", "cached", "--name", &name]).expect(2);
        assert!(ran.stderr.contains("--caches"), "{}", ran.stderr);

        let shift = "lab shift --arm copies --load 0.3 --every 1s --seconds 3s --reads 95";
        let rows = measure(shift, "lab-shift.svg");
        let shifts: Vec<&str> = rows.iter().skip(1).filter_map(|it| it["shift"].as_str()).collect();
        assert_eq!(shifts, ["hot-in", "random", "none"]);
        let changes = |row: &Value| row["back_after_ms"].as_str().unwrap().split(", ").count();
        assert_eq!(changes(&rows[1]), 2, "{rows:?}");
        assert!(rows[3]["answered"].as_f64().unwrap() > 0.5, "{rows:?}");
    }

    #[test]
    fn who_takes_multigets_apart_is_compared_in_a_rack_of_which_nothing_is_left() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let test = "who_takes_multigets_apart_is_compared_in_a_rack_of_which_nothing_is_left";
        if !(can_build(test) && can_load_programs(test)) {
            return;
        }
        let (folder, name) = (tempfile::tempdir().unwrap(), Lab::free_name());
        let out = folder.path().to_str().unwrap();
        let measure = |figure: &str, more: &[&str]| {
            let words = ["paper", "netmc", "--figure", figure, "--keys", "1k", "--json", "--out"];
            let small = [out, "--name", &name, "--seconds", "100ms", "--rounds", "1"];
            let ran = run(&[&words[..], &small, more].concat()).expect(0);
            every_trial_is_told(&ran.stderr);
            let rows = ran.json_lines();
            let plot = folder.path().join(format!("netmc-{figure}.svg"));
            assert!(std::fs::read_to_string(plot).unwrap().contains("<svg"));
            assert_eq!(traces(&name), Vec::<String>::new());
            rows
        };
        let skewed = |rows: &[Value]| {
            let arms = ["switch", "assisted", "client", "coordinator"];
            assert_eq!(rows.len(), 1 + 4 * arms.len(), "a head and four loads: {rows:?}");
            for (row, arm) in rows.iter().skip(1).zip(arms.iter().cycle()) {
                assert_eq!(row["arm"], *arm);
                let number = |key: &str| row[key].as_f64().unwrap();
                assert!(number("requests") > 0.0 && number("switch_over") > 0.0, "{row}");
                assert!(number("cpu_us") > number("cpu_us_nodes"), "{row}");
                // While it has nothing to take apart it looks after its map, now and then.
                assert_eq!(number("cpu_us_coordinator") > 2.0, *arm == "coordinator", "{row}");
            }
        };
        skewed(&measure("8", &[]));
        let course = measure("17", &["--arm", "switch"]);
        assert_eq!(course.len(), 2, "{course:?}");
        assert!(course[1]["before"].as_f64().unwrap() > 0.0, "{course:?}");
        assert_eq!(course[1]["while_down"], 0.0, "nothing passes a switch that is stopped");
        if Command::new("redis-server").arg("--version").output().is_err() {
            skip::report(test, "there is no redis-server: apt-get install redis-server");
            return;
        }
        let rows = measure("11", &[]);
        let (stores, rows): (Vec<Value>, Vec<Value>) =
            rows.into_iter().partition(|row| row["table"] == "stores");
        skewed(&rows);
        assert!(rows.iter().skip(1).all(|it| it["cpu_us_stores"].as_f64().unwrap() > 0.0));
        assert_eq!(stores.len(), rows.len() - 1, "{stores:?}");
        for row in &stores {
            let number = |key: &str| row[key].as_f64().unwrap();
            assert!(number("mgets") < number("requests_at_nodes"), "parts share MGETs: {row}");
            assert!(number("mget_keys") > 1.0 && number("cpu_us_of_key") > 0.0, "{row}");
        }
        equal_load(&measure("9", &["--arm", "switch,client"]));
    }

    /// Who waits sees how far it is: each trial says which it is, of how many.
    fn every_trial_is_told(stderr: &str) {
        let counts = stderr.lines().filter_map(|line| line.strip_prefix('[')?.split_once("] "));
        let counts: Vec<&str> = counts.map(|(count, _)| count).collect();
        let of = counts.len();
        let wanted: Vec<String> = (1..=of).map(|index| format!("{index}/{of}")).collect();
        assert!(of > 0 && counts == wanted, "{stderr}");
    }

    /// Both arms are asked for the same, at each of six rates.
    fn equal_load(rows: &[Value]) {
        let rows: Vec<&Value> = rows.iter().filter(|row| row["table"] == "equal_load").collect();
        assert_eq!(rows.len(), 6 * 2, "{rows:?}");
        for pair in rows.chunks(2) {
            let [switch, client] = pair else { panic!("two arms: {pair:?}") };
            assert_eq!([&switch["arm"], &client["arm"]], ["switch", "client"]);
            assert_eq!(switch["asked"], client["asked"]);
            let over = |key: &str| switch[key].as_f64().unwrap();
            assert!(over("p50_over_client") > 0.0 && over("p99_over_client") > 0.0, "{switch}");
            let (least, most) = (over("p99_over_client_least"), over("p99_over_client_most"));
            assert!(least <= over("p99_over_client") && over("p99_over_client") <= most);
            assert!(client["p99_over_client"].is_null(), "{client}");
        }
    }

    #[test]
    fn bad_links_lose_double_and_delay_as_much_as_asked_and_nothing_goes_wrong() {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let test = "bad_links_lose_double_and_delay_as_much_as_asked_and_nothing_goes_wrong";
        if !(can_build(test) && can_load_programs(test)) {
            return;
        }
        for plane in ["user", "xdp"] {
            let lab = Lab::up(&["--nodes", "3", "--plane", plane]);
            let faults = |options: &[&str]| {
                let mut arguments = vec!["lab", "faults", "--json", "--name", lab.name()];
                arguments.extend(options);
                run(&arguments).expect(0).json()
            };
            assert_eq!(
                faults(&["--lost", "2%", "--doubled", "2%", "--overtaken", "4%"])["hosts"],
                4
            );
            let bench = "keyway bench --json --load --keys 1000 --workload a --duration 2s";
            let bench: Vec<&str> = bench.split(' ').collect();
            let result = lab.run(0, &bench).expect(0).json();
            assert_eq!(result["run"]["wrong_values"], 0);
            assert_eq!(result["run"]["summary"]["all"]["endings"]["unknown"], 0, "{result:#}");
            let counted = faults(&[]);
            let links = counted["links"].as_array().unwrap();
            assert_eq!(links.len(), 4);
            for link in links {
                let count = |name: &str| link[name].as_f64().unwrap();
                let came = count("datagrams");
                assert!(came > 1_000.0, "{counted:#}");
                for fault in ["lost", "doubled"] {
                    // Five standard errors.
                    let error = 5.0 * (0.02 * 0.98 / came).sqrt();
                    assert!((count(fault) / came - 0.02).abs() < error, "{fault}: {counted:#}");
                }
                // Not those that came while another was kept back.
                assert!((0.01..0.04).contains(&(count("overtaken") / came)), "{counted:#}");
            }
            faults(&["--off"]);
            assert_eq!(faults(&[])["links"].as_array().map(Vec::len), Some(0));
        }
    }
}
