//! The view of what a real cluster said, a second apart, while one key was asked for most.

use super::screen::draw;
use super::{View, json, text};
use cluster::Volume;
use controller::{PartitionRate, Status};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

fn recorded() -> (Status, Status) {
    let read = |text| serde_json::from_str(text).expect("it was recorded as JSON");
    (read(include_str!("before.json")), read(include_str!("after.json")))
}

fn view() -> View {
    let (before, after) = recorded();
    View::between(&before, &after)
}

#[test]
fn rates_are_what_happened_in_the_time_between_reports() {
    let (before, mut after) = recorded();
    let view = View::between(&before, &after);
    let node = view.nodes.first().unwrap();
    let of = |status: &Status| {
        let heard = status.members.iter().find(|it| it.member.to_string() == "node 1").unwrap();
        (status.load[0].requests, status.at_ms - heard.heard_ms_ago.unwrap())
    };
    let ((requests, at), (later, later_at)) = (of(&before), of(&after));
    assert_eq!(node.requests, Some((later - requests) * 1_000 / (later_at - at)));
    assert!(node.busy.unwrap() <= 1_000);
    // A node that was started anew counts from nothing.
    after.load[0].requests = 7;
    let view = View::between(&before, &after);
    assert_eq!(view.nodes[0].requests, Some(7_000 / (later_at - at)));
    // Nothing new was heard.
    let still = View::between(&before, &before);
    assert_eq!((still.reads, still.nodes[0].requests, still.imbalance), (None, None, None));
}

#[test]
fn text_lists_nodes_and_the_hottest_keys_first() {
    let text = text(&view());
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("switch: ") && lines[0].contains(" reads/s, "), "{text}");
    let node = lines.iter().position(|it| it.starts_with("node  requests/s")).expect("nodes");
    assert!(lines[node + 1].starts_with("1 ") && lines[node + 1].contains(" % "), "{text}");
    let key = lines.iter().position(|it| it.starts_with("key ")).expect("keys");
    assert!(lines[key + 1].starts_with("front-page "), "{text}");
}

#[test]
fn json_has_every_figure() {
    let line = json(&view()).line();
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    let view = view();
    assert_eq!(value["reads_per_s"], view.reads.unwrap());
    assert_eq!(value["nodes"].as_array().unwrap().len(), view.nodes.len());
    assert_eq!(value["nodes"][0]["requests_per_s"], view.nodes[0].requests.unwrap());
    assert_eq!(value["keys"][0]["key"], "front-page");
    assert_eq!(value["keys"][0]["reads_per_s"], view.keys[0].key.reads);
}

#[test]
fn partitions_are_listed_the_busiest_first_where_there_is_room() {
    let (before, mut after) = recorded();
    let known = after.keyspaces[0].partitions.iter().take(2);
    let rates = known.zip([10, 4_321]).map(|(it, reads)| PartitionRate {
        partition: it.id,
        reads,
        scanned: 5_600,
        bytes_out: 91_000,
        held: Some(Volume { keys: 1, bytes: 77_000 }),
        ..PartitionRate::default()
    });
    after.placement.partitions = rates.collect();
    let view = View::between(&before, &after);
    let busiest = after.keyspaces[0].partitions[1].clone();
    assert_eq!((view.partitions[0].id, &view.partitions[0].chain), (busiest.id, &busiest.chain));
    assert_eq!(view.partitions[1].reads, 10);
    let text = text(&view);
    let line = text.lines().find(|it| it.contains("4 321")).expect("it is listed");
    assert!(line.contains("77 000") && line.contains(" > "), "{text}");
    let value: serde_json::Value = serde_json::from_str(&json(&view).line()).unwrap();
    assert_eq!(value["partitions"][0]["reads_per_s"], 4_321);
    let mut terminal = Terminal::new(TestBackend::new(110, 30)).unwrap();
    terminal.draw(|frame| draw(frame, Some(&view), None)).unwrap();
    let shown = terminal.backend().to_string();
    assert!(shown.contains("4 321") && shown.contains("front-page"), "{shown}");
    assert!(!screen(Some(&view), None).contains("4 321"));
}

fn screen(view: Option<&View>, trouble: Option<&str>) -> String {
    let mut terminal = Terminal::new(TestBackend::new(110, 16)).unwrap();
    terminal.draw(|frame| draw(frame, view, trouble)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn the_screen_shows_all_of_it_and_what_goes_wrong() {
    let view = view();
    let shown = screen(Some(&view), None);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 16);
    assert!(lines[0].contains("the busiest node gets"), "{shown}");
    assert!(lines[2].contains("requests/s") && lines[2].contains("waiting"), "{shown}");
    for (node, line) in view.nodes.iter().zip(&lines[3..]) {
        assert!(line.contains(&format!("\"{} ", node.id)), "{shown}");
    }
    assert!(lines.iter().any(|it| it.contains("front-page") && it.contains("default")), "{shown}");
    assert!(lines[15].contains("q ends"), "{shown}");
    assert!(screen(None, None).contains("looking"));
    assert!(screen(Some(&view), Some("no controller answers")).contains("no controller answers"));
    // A narrow one leaves out what matters least, and the key stays.
    let mut terminal = Terminal::new(TestBackend::new(80, 16)).unwrap();
    terminal.draw(|frame| draw(frame, Some(&view), None)).unwrap();
    let narrow = terminal.backend().to_string();
    let key = narrow.lines().find(|line| line.contains("front-page")).expect("the key is shown");
    assert!(key.contains(&console::chart::grouped(view.keys[0].key.reads)), "{narrow}");
    assert!(narrow.contains("reads/s") && narrow.contains("writes/s"), "{narrow}");
    // The smallest of terminals shows what it can.
    let mut terminal = Terminal::new(TestBackend::new(1, 1)).unwrap();
    terminal.draw(|frame| draw(frame, Some(&view), None)).unwrap();
}
