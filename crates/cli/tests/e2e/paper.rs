//! `keyway paper`: a table and a plot.

use tempfile::TempDir;
use testkit::program::run;

#[test]
fn an_experiment_prints_its_table_and_writes_its_plot() {
    let home = TempDir::new().expect("a temporary directory");
    let out = home.path().join("plots");
    let directory = out.to_str().expect("a plain name");
    let words = ["paper", "pegasus", "--figure", "9", "--nodes", "4", "--keys", "1k"];
    let words = [&words[..], &["--arm", "hashing,copies", "--arm", "anywhere"]].concat();
    let words = [&words[..], &["--theta", "0.99,1.2"]].concat();
    let words = [&words[..], &["--seconds", "0.1", "--out", directory]].concat();

    let ran = run(&words).expect(0);
    for text in ["Figure 9", "4 nodes", "consistent hashing", "uniform", "zipf 0.99", "gain max"] {
        assert!(ran.stdout.contains(text), "{text} in {}", ran.stdout);
    }
    let svg = std::fs::read_to_string(out.join("pegasus-9.svg")).expect("a plot");
    assert!(svg.starts_with("<svg") && svg.contains("p99 (us)"), "{svg}");

    let lines = run(&[&words[..], &["--json"]].concat()).expect(0).json_lines();
    let (head, rows) = lines.split_first().expect("a head and rows");
    assert!(head["title"].as_str().is_some_and(|title| title.contains("Figure 9")), "{head}");
    assert_eq!(rows.len(), 9, "three ways to spread load, uniform and two skews: {rows:?}");
    for row in rows {
        assert!(row["p99_us"].as_f64().is_some_and(|p99_us| p99_us > 200.0), "two hops: {row}");
        assert!(row["answered"].as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)));
        assert!(row["gain_max"].as_f64().is_some_and(|gain| gain >= 1.0), "{row}");
    }
}

#[test]
fn what_cannot_be_made_is_refused_with_a_reason() {
    let refused = |more: &[&str]| {
        let words = [&["paper", "pegasus"], more].concat();
        run(&words).expect(2).stderr
    };
    assert!(refused(&["--figure", "7"]).contains("[8, 9, 10, 11, 12, 13, 14]"));
    assert!(refused(&["--figure", "8", "--nodes", "1"]).contains("2..=1024"));
    assert!(refused(&["--figure", "8", "--nodes", "4", "--replicas", "5"]).contains("1 to 4"));
    assert!(refused(&["--figure", "10", "--reads", "95"]).contains("all shares of reads"));
    assert!(refused(&["--figure", "8", "--reads", "101"]).contains("0..=100"));
    assert!(refused(&["--figure", "10", "--theta", "0.99"]).contains("--theta: figure 10 is at"));
    assert!(refused(&["--figure", "8", "--theta", "11"]).contains("between 0 and 10"));
    assert!(refused(&["--figure", "12", "--arm", "hashing"]).contains("either copies or anywhere"));
    assert!(refused(&["--figure", "8", "--keys", "0"]).contains("at least 1"));
    assert!(refused(&["--figure", "8", "--out", "/dev/null/x"]).contains("--out DIR"));
}

#[test]
fn a_comparison_of_multigets_that_cannot_be_made_is_refused_with_a_reason() {
    let refused = |more: &[&str]| {
        let words = [&["paper", "netmc"], more].concat();
        run(&words).expect(2).stderr
    };
    assert!(refused(&["--figure", "7"]).contains("8..=17, and all"));
    assert!(refused(&["--figure", "every"]).contains("8..=17, and all"));
    assert!(refused(&["--figure", "8", "--keys", "10"]).contains("at least 1000"));
    assert!(
        refused(&["--figure", "8", "--arm", "router"])
            .contains("switch, assisted, client, coordinator")
    );
    assert!(refused(&["--figure", "8", "--rounds", "0"]).contains("1..=100"));
    assert!(refused(&["--figure", "8", "--out", "/dev/null/x"]).contains("--out DIR"));
}

#[test]
fn a_comparison_of_coordination_is_a_table_and_a_plot() {
    let home = TempDir::new().expect("a temporary directory");
    let out = home.path().join("plots");
    let directory = out.to_str().expect("a plain name");
    let words = ["paper", "turbokv", "--nodes", "4", "--keys", "64", "--partitions", "16"];
    let words =
        [&words[..], &["--replicas", "2", "--scan-keys", "8", "--seconds", "0.05"]].concat();
    let words = [&words[..], &["--forward", "0.5", "--out", directory]].concat();

    let ran = run(&[&words[..], &["--table", "1"]].concat()).expect(0);
    for text in ["Table 1", "4 nodes", "in-switch", "client-driven", "server-driven", "0.5 of a"] {
        assert!(ran.stdout.contains(text), "{text} in {}", ran.stdout);
    }
    let svg = std::fs::read_to_string(out.join("turbokv-table-1.svg")).expect("a plot");
    assert!(svg.starts_with("<svg") && svg.contains("latency (us)"), "{svg}");

    let more = ["--figure", "15", "--coordination", "switch,server", "--json"];
    let lines = run(&[&words[..], &more].concat()).expect(0).json_lines();
    let (head, rows) = lines.split_first().expect("a head and rows");
    assert!(head["title"].as_str().is_some_and(|title| title.contains("Figure 15")), "{head}");
    assert_eq!(rows.len(), 6, "two ways to coordinate, three kinds of requests: {rows:?}");
    for row in rows {
        assert!(row["p50_us"].as_f64().is_some_and(|p50_us| p50_us > 400.0), "four hops: {row}");
    }
    assert!(out.join("turbokv-figure-15.svg").exists());

    let more = ["--figure", "migration", "--seconds", "1", "--slowed", "200", "--json"];
    let words = ["paper", "turbokv", "--nodes", "4", "--keys", "1k", "--out", directory];
    let lines = run(&[&words[..], &more].concat()).expect(0).json_lines();
    let (_, rows) = lines.split_first().expect("a head and rows");
    assert_eq!(rows.len(), 8, "two ways to place, four places: {rows:?}");
    let svg = std::fs::read_to_string(out.join("turbokv-figure-migration.svg")).expect("a plot");
    assert!(svg.contains("load of the busiest node"), "{svg}");

    let more = ["--figure", "filling", "--seconds", "9", "--json"];
    let lines = run(&[&words[..], &more].concat()).expect(0).json_lines();
    let (_, rows) = lines.split_first().expect("a head and rows");
    assert_eq!(rows.len(), 9, "three ways to place, three phases: {rows:?}");
    let svg = std::fs::read_to_string(out.join("turbokv-figure-filling.svg")).expect("a plot");
    assert!(svg.contains("the fullest node"), "{svg}");
}

#[test]
fn a_small_cache_before_slow_nodes_is_a_table_and_a_plot() {
    let home = TempDir::new().expect("a temporary directory");
    let out = home.path().join("plots");
    let directory = out.to_str().expect("a plain name");
    let words = ["paper", "switchkv", "--nodes", "8", "--items", "200", "--seconds", "0.05"];
    let words = [&words[..], &["--out", directory]].concat();

    let ran = run(&[&words[..], &["--figure", "10", "--theta", "0.99"]].concat()).expect(0);
    for text in ["Figure 10", "8 nodes", "10000000000 keys", "zipf 0.99", "200 keys cached"] {
        assert!(ran.stdout.contains(text), "{text} in {}", ran.stdout);
    }
    let svg = std::fs::read_to_string(out.join("switchkv-10.svg")).expect("a plot");
    assert!(svg.starts_with("<svg") && svg.contains("requests per second"), "{svg}");

    let more = ["--figure", "11", "--keys", "1m", "--json"];
    let lines = run(&[&words[..], &more].concat()).expect(0).json_lines();
    let (head, rows) = lines.split_first().expect("a head and rows");
    assert!(head["title"].as_str().is_some_and(|title| title.contains("Figure 11")), "{head}");
    assert_eq!(rows.len(), 4, "no cache, and 10, 30 and 100 keys: {rows:?}");
    let times = rows.last().and_then(|row| row["times_no_cache"].as_f64());
    assert!(times.is_some_and(|times| times > 1.0), "{rows:?}");
}

#[test]
fn an_experiment_with_a_cache_that_cannot_be_made_is_refused_with_a_reason() {
    let refused = |more: &[&str]| {
        let words = [&["paper", "switchkv"], more].concat();
        run(&words).expect(2).stderr
    };
    assert!(refused(&[]).contains("--figure"));
    assert!(refused(&["--figure", "8"]).contains("[9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]"));
    assert!(refused(&["--figure", "10", "--nodes", "4"]).contains("8..=1024"));
    assert!(refused(&["--figure", "10", "--items", "0"]).contains("1..=65536"));
    assert!(refused(&["--figure", "10", "--keys", "1k"]).contains("--items: no more than --keys"));
    assert!(refused(&["--figure", "14", "--theta", "0.9"]).contains("--theta: figure 14 is at"));
    assert!(refused(&["--figure", "15", "--rules", "9"]).contains("--rules: figure 15 takes none"));
    assert!(refused(&["--figure", "9", "--out", "/dev/null/x"]).contains("--out DIR"));
}

#[test]
fn a_comparison_of_coordination_that_cannot_be_made_is_refused_with_a_reason() {
    let refused = |more: &[&str]| {
        let words = [&["paper", "turbokv"], more].concat();
        run(&words).expect(2).stderr
    };
    assert!(refused(&[]).contains("--figure"));
    assert!(refused(&["--figure", "13", "--table", "1"]).contains("cannot be used with"));
    assert!(refused(&["--figure", "8"]).contains("[13, 14, 15], migration and filling"));
    let arms = ["--figure", "migration", "--coordination", "switch"];
    assert!(refused(&arms).contains("--coordination: figure migration is about placement"));
    let popular = ["--figure", "filling", "--theta", "0.9"];
    assert!(refused(&popular).contains("--theta: figure filling writes each key once"));
    assert!(refused(&["--table", "3"]).contains("[1, 2]"));
    assert!(refused(&["--table", "1", "--theta", "0.9"]).contains("--theta: table 1 is about one"));
    assert!(refused(&["--figure", "13", "--forward=-1"]).contains("0 to 10 services"));
    assert!(refused(&["--figure", "13", "--replicas", "9"]).contains("--replicas: 1 to"));
    assert!(refused(&["--figure", "13", "--partitions", "0"]).contains("--partitions: 1 to"));
    assert!(refused(&["--figure", "13", "--keys", "10"]).contains("no more than --keys"));
    assert!(refused(&["--figure", "13", "--scan-keys", "0"]).contains("--scan-keys: 1 to"));
    assert!(refused(&["--figure", "14", "--coordination", "nobody"]).contains("server"));
    assert!(refused(&["--table", "2", "--out", "/dev/null/x"]).contains("--out DIR"));
}
