//! Many commands at once: replies have their order, whatever overlaps.

use crate::raw::{Raw, command, put, start};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn replies_have_the_order_of_commands() {
    for key in 0..100 {
        put(&format!("order-{key}"), &key.to_string());
    }
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    let (mut sent, mut expected) = (Vec::new(), String::new());
    for round in 0..500 {
        let key = round * 7 % 120;
        sent.extend(command(&["GET", &format!("order-{key}")]));
        match key {
            0..100 => expected.push_str(&format!("${}\r\n{key}\r\n", key.to_string().len())),
            _ => expected.push_str("$-1\r\n"),
        }
        if round % 50 == 3 {
            sent.extend(b"PING\r\nNOSUCH\r\n");
            let unknown = "-ERR unknown command 'NOSUCH', with args beginning with: \r\n";
            expected.push_str(&format!("+PONG\r\n{unknown}"));
        }
        // The same key again overlaps with the first.
        if round % 10 == 0 {
            sent.extend(command(&["GET", "order-1"]));
            expected.push_str("$1\r\n1\r\n");
        }
    }
    client.ask(sent, expected);
}

#[test]
fn commands_about_one_key_take_effect_in_their_order() {
    const COMMANDS: u64 = 4_000;
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    let mut keys: [Option<u64>; 3] = [None; 3];
    let (mut sent, mut expected) = (Vec::new(), String::new());
    for number in 0..COMMANDS {
        // No rhythm that the number of commands under way could fall in with.
        let drawn = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let key = usize::try_from(drawn % 3).unwrap();
        let name_of = |key: usize| format!("in-order-{key}");
        let (name, other) = (name_of(key), (key + 1 + usize::from(number % 2 == 0)) % 3);
        let bulk = |value: Option<u64>| match value.map(|it| it.to_string()) {
            Some(text) => format!("${}\r\n{text}\r\n", text.len()),
            None => "$-1\r\n".to_owned(),
        };
        let all = keys;
        let state = &mut keys[key];
        let reply = match drawn / 3 % 12 {
            0 | 1 => {
                sent.extend(command(&["SET", &name, &number.to_string()]));
                *state = Some(number);
                "+OK\r\n".to_owned()
            }
            2 => {
                sent.extend(command(&["SET", &name, "1", "XX"]));
                *state = state.map(|_| 1);
                if state.is_some() { "+OK\r\n".to_owned() } else { bulk(None) }
            }
            3 => {
                sent.extend(command(&["INCR", &name]));
                *state = Some(state.unwrap_or(0) + 1);
                format!(":{}\r\n", state.unwrap())
            }
            4 => {
                sent.extend(command(&["DEL", &name]));
                format!(":{}\r\n", u8::from(state.take().is_some()))
            }
            5 => {
                sent.extend(command(&["MGET", &name, &name_of(other), &name]));
                format!("*3\r\n{0}{1}{0}", bulk(*state), bulk(all[other]))
            }
            6 => {
                let value = number.to_string();
                sent.extend(command(&["MSET", &name_of(other), "0", &name, &value]));
                (keys[key], keys[other]) = (Some(number), Some(0));
                "+OK\r\n".to_owned()
            }
            _ => {
                sent.extend(command(&["GET", &name]));
                bulk(*state)
            }
        };
        expected.push_str(&reply);
    }
    client.ask(sent, expected);
}

#[test]
fn sets_that_wait_for_each_other_are_all_answered_and_the_last_one_stays() {
    let (gateway, other) = (start(), start());
    let mut client = Raw::connect(gateway.local());
    let mut observer = Raw::connect(other.local());
    for round in 0..20 {
        let (mut sent, mut expected) = (Vec::new(), String::new());
        let value = |at: usize| match at % 40 {
            // Some do not fit a datagram, and one is of a key that may not have it.
            17 => format!("{round}-{at}-{}", "x".repeat(3_000)),
            _ => format!("{round}-{at}"),
        };
        for at in 0..200 {
            sent.extend(command(&["SET", "overtaken", &value(at)]));
            expected.push_str("+OK\r\n");
            if at % 50 == 49 {
                sent.extend(command(&["GET", "overtaken"]));
                let value = value(at);
                expected.push_str(&format!("${}\r\n{value}\r\n", value.len()));
            }
        }
        let key = "k".repeat(wire::KEY_MAX);
        sent.extend(command(&["SET", &key, "short"]).repeat(3));
        sent.extend(command(&["SET", &key, &value(17)]));
        client.ask(sent, expected + &"+OK\r\n".repeat(3));
        let refused = client.line();
        assert!(refused.starts_with("-ERR values have at most"), "{refused}");
        let last = value(199);
        let last = format!("${}\r\n{last}\r\n", last.len());
        observer.ask(command(&["GET", "overtaken"]), last);
        observer.ask(command(&["GET", &key]), "$5\r\nshort\r\n");
    }
}

/// Writes a key with growing numbers, and deletes it now and then, until it is told to end.
fn write_on(client: &mut Raw, key: &str, ended: &AtomicBool) {
    for number in 1.. {
        if ended.load(Ordering::Relaxed) {
            return;
        }
        // Mostly values that fit a datagram, and some that do not, or that stream.
        let len = match number % 50 {
            7 | 8 | 20 => 5_000,
            40 => 300_000,
            _ => 10,
        };
        let value = format!("{number:0>10}{}", "x".repeat(len - 10));
        client.ask(command(&["SET", key, &value]), "+OK\r\n");
        if number % 4 == 0 {
            client.ask(command(&["DEL", key]), ":1\r\n");
        }
    }
}

/// Reads the reply of a GET, of which the first bytes are a number.
fn number(client: &mut Raw) -> Option<u64> {
    let head = client.line();
    let len: usize = head.strip_prefix('$')?.parse().ok()?;
    let value = client.bytes(len + 2);
    Some(std::str::from_utf8(&value[..10]).unwrap().parse().unwrap())
}

/// Reads the reply of an MGET of one key, of which the first bytes are a number.
fn number_in_array(client: &mut Raw) -> Option<u64> {
    assert_eq!(client.line(), "*1");
    number(client)
}

#[test]
fn a_pipeline_of_reads_never_goes_back_while_others_write() {
    const GETS: usize = 200;
    const KEY: &str = "forward";
    /// Changes within pipelines, and replies without a value, that say something.
    const ENOUGH: usize = 100;
    /// Far more than there are on a busy machine until then.
    const PIPELINES_MAX: usize = 2_000;
    let (gateway, other) = (start(), start());
    let mut client = Raw::connect(gateway.local());
    let mut writer = Raw::connect(other.local());
    let ended = Arc::new(AtomicBool::new(false));
    let to_end = Arc::clone(&ended);
    let writer = std::thread::spawn(move || write_on(&mut writer, KEY, &to_end));
    let (mut changes, mut absences) = (0, 0);
    // The newest number, and whether it was gone after that.
    let (mut newest, mut gone) = (0, false);
    for _ in 0..PIPELINES_MAX {
        if changes >= ENOUGH && absences >= ENOUGH {
            break;
        }
        let two = [command(&["GET", KEY]), command(&["MGET", KEY])].concat();
        client.send(two.repeat(GETS / 2));
        let mut before = None;
        for at in 0..GETS {
            let read = if at % 2 == 0 { number } else { number_in_array };
            let found = read(&mut client);
            match found {
                Some(number) if gone => assert!(number > newest, "{number} came back"),
                Some(number) => assert!(number >= newest, "{number} after {newest}"),
                None => absences += 1,
            }
            changes += usize::from(at > 0 && found != before);
            gone = found.is_none();
            newest = found.unwrap_or(newest);
            before = found;
        }
    }
    ended.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert!(changes >= ENOUGH && absences >= ENOUGH, "{changes} changes, {absences} absences");
}

#[test]
fn what_was_sent_before_the_end_is_answered() {
    put("half", "open");
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.send([command(&["GET", "half"]), b"*1\r\n$4\r\nPI".to_vec()].concat());
    client.0.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.rest(), "$4\r\nopen\r\n");
}

#[test]
fn nothing_comes_after_quit() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.send("PING\r\nQUIT\r\nPING\r\n");
    assert_eq!(client.rest(), "+PONG\r\n+OK\r\n");
}

#[test]
fn a_client_may_do_without_replies() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.send("CLIENT REPLY OFF\r\nPING\r\nECHO a\r\nCLIENT REPLY ON\r\n");
    client.expect("+OK\r\n");
    client.ask("CLIENT REPLY SKIP\r\nPING\r\nECHO b\r\n", "$1\r\nb\r\n");
}

#[test]
fn a_pause_holds_commands_up_until_it_ends() {
    let gateway = start();
    let (mut one, mut other) = (Raw::connect(gateway.local()), Raw::connect(gateway.local()));
    one.ask("CLIENT PAUSE 600000\r\n", "+OK\r\n");
    other.send("PING\r\nECHO a\r\n");
    one.ask("CLIENT ID\r\n", ":1\r\n");
    one.ask("CLIENT UNPAUSE\r\n", "+OK\r\n");
    other.expect("+PONG\r\n$1\r\na\r\n");
    one.ask("CLIENT PAUSE 50 ALL\r\n", "+OK\r\n");
    other.ask("PING\r\n", "+PONG\r\n");
    one.ask("CLIENT PAUSE 600000 WRITE\r\n", "+OK\r\n");
    other.ask("PING\r\n", "+PONG\r\n");
}

#[test]
fn what_is_under_way_is_finished_when_the_gateway_ends() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    let mut idle = Raw::connect(gateway.local());
    client.ask("PING\r\n", "+PONG\r\n");
    idle.ask("PING\r\n", "+PONG\r\n");
    client.send("DEBUG SLEEP 0.3\r\n");
    crate::raw::eventually(|| idle.text("CLIENT LIST\r\n").contains("cmd=debug|sleep"));
    gateway.stop();
    assert_eq!(client.rest(), "+OK\r\n");
    assert_eq!(idle.rest(), "");
}
