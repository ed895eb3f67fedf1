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
