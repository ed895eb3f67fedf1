//! Goal: who waits at a terminal sees how far it is, and no other output is disturbed by that.
//! Method: commands that take long run with standard error at a terminal, and with none.

use std::fs;
use std::process::{Command, Stdio};
use testkit::program::{Ran, Up, keyway, run};
use testkit::skip;

/// What wipes a line before the next is written over it.
const WIPE: &str = "\r\u{1b}[2K";

/// Runs a command whose standard error is a terminal. Its output goes into a file.
fn on_terminal(up: Option<&Up>, arguments: &[&str]) -> Option<Ran> {
    if Command::new("script").arg("--version").output().is_err() {
        skip::report("progress on a terminal", "there is no `script`");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("output");
    let quote = |text: &str| format!("'{text}'");
    let words: Vec<String> = arguments.iter().map(|word| quote(word)).collect();
    let program = keyway().get_program().to_string_lossy().into_owned();
    let to = output.to_string_lossy();
    let line = format!("stty cols 100; {} {} > {}", quote(&program), words.join(" "), quote(&to));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
    if let Some(up) = up {
        command.env("KEYWAY_SERVICE", up.service.to_string());
        command.env("KEYWAY_ADMIN", up.admin.to_string());
    }
    let ran = Ran::from(command.output().unwrap());
    // What the terminal shows is all that `script` says.
    Some(Ran { stderr: ran.stdout, stdout: fs::read_to_string(output).unwrap(), ..ran })
}

const WORLDS: [&str; 6] = ["sim", "--seeds", "1..40", "--profile", "calm", "--json"];

#[test]
fn worlds_are_counted_on_a_terminal_and_nowhere_else() {
    let piped = run(&WORLDS).expect(0);
    assert_eq!((piped.json_lines().len(), piped.stderr.as_str()), (40, ""));
    let Some(ran) = on_terminal(None, &WORLDS) else { return };
    let ran = ran.expect(0);
    assert!(ran.stderr.contains("worlds [") && ran.stderr.contains("/40, "), "{:?}", ran.stderr);
    assert_eq!(ran.stdout, piped.stdout, "the same worlds, and nothing between them");
}

#[test]
fn a_load_tells_every_second_how_fast_it_is() {
    let load = ["bench", "--embedded", "--load", "--json", "--keys", "20000", "--duration", "3s"];
    let piped = run(&load).expect(0);
    assert!(piped.json()["run"].is_object());
    assert!(piped.stderr.contains("running    1 s"), "{:?}", piped.stderr);
    assert!(!piped.stderr.contains(['\r', '\u{1b}']), "lines, for a log: {:?}", piped.stderr);
    let Some(ran) = on_terminal(None, &load) else { return };
    let ran = ran.expect(0);
    assert!(ran.json()["run"].is_object());
    let over = format!("{WIPE}running    1 s");
    assert!(ran.stderr.contains(&over), "one line, again and again: {:?}", ran.stderr);
    assert!(ran.stderr.ends_with(WIPE), "it leaves none behind: {:?}", ran.stderr);
}

#[test]
fn exports_and_imports_show_how_much_is_done() {
    let up = Up::start(&["--nodes", "1", "--replicas", "1", "--partitions", "2"]);
    let entries: String = (0..2_000).map(|n| format!("key{n}\tvalue\n")).collect();
    up.run_with_input(&["mset", "-"], entries.as_bytes()).expect(0);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all").to_string_lossy().into_owned();
    for (arguments, shows) in
        [(["export", "--out", &file], "exporting ["), (["import", "--json", &file], "importing [")]
    {
        let piped = up.run(&arguments).expect(0);
        assert!(!piped.stderr.contains(['\r', '\u{1b}', '[']), "{:?}", piped.stderr);
        let Some(ran) = on_terminal(Some(&up), &arguments) else { return };
        let ran = ran.expect(0);
        assert!(ran.stderr.contains(shows), "{:?}", ran.stderr);
        assert_eq!(ran.stdout, piped.stdout);
    }
}

#[test]
fn a_comparison_shows_how_far_it_is() {
    let up = Up::start(&["--nodes", "2", "--replicas", "2", "--partitions", "4"]);
    let entries: String = (0..20_000).map(|n| format!("key{n}\tvalue\n")).collect();
    up.run_with_input(&["mset", "-"], entries.as_bytes()).expect(0);
    let piped = up.run(&["cluster", "verify"]).expect(0);
    assert_eq!(piped.stderr, "");
    let Some(ran) = on_terminal(Some(&up), &["cluster", "verify"]) else { return };
    let ran = ran.expect(0);
    assert!(ran.stderr.contains("comparing [") && ran.stderr.contains(" %, "), "{:?}", ran.stderr);
    assert_eq!(ran.stdout, piped.stdout);
}
