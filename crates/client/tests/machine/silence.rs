//! Nothing, or too little, is heard: waits, storms, and other addresses.

use super::*;

/// Two switches, of which some answer, until all requests have ended or a while has passed; when
/// each copy left, and to whom.
fn play(script: &mut Script, answers: impl Fn(Instant, u16) -> bool) -> Vec<(Duration, u16)> {
    let (start, mut copies) = (script.now, Vec::new());
    while script.client.in_flight() > 0 && script.now < start + MS * 4_000 {
        for (to, request) in script.sent_to() {
            copies.push((script.now.since(start), to));
            if answers(script.now, to) {
                script.pass(MS / 10);
                script.reply(&answer(&request, Code::Ok, 1, b""));
                assert!(script.outcome().is_some_and(|it| it.is_done()));
            }
        }
        if script.client.in_flight() > 0 {
            script.next_timer();
        }
    }
    copies
}

fn with_two_switches() -> Script {
    let second = Endpoint { port: 7701, ..SERVICE };
    Script::with(|config| config.services = vec![SERVICE, second])
}

#[test]
fn overload_slows_down_what_is_asked_next_and_answers_speed_it_up_again() {
    let mut script = Script::new();
    for _ in 0..6 {
        script.start(PUT).unwrap();
        while script.client.counters().datagrams == script.client.counters().overloaded {
            script.next_timer();
        }
        for sent in script.sent() {
            script.reply(&answer(&sent, Code::Overloaded, 0, b""));
        }
    }
    let before = script.client.counters().datagrams;
    script.start(PUT).unwrap();
    assert_eq!(script.client.counters().datagrams, before, "it is held back");
    while script.client.in_flight() > 0 {
        script.next_timer();
        for sent in script.sent() {
            script.reply(&answer(&sent, Code::Ok, 1, b""));
        }
        while let Some(outcome) = script.outcome() {
            assert!(outcome.is_done());
        }
    }
    // Nothing holds once answers have come for a while.
    for _ in 0..60 {
        script.pass(MS * 300);
        script.start(GET).unwrap();
        let sent = script.sent_one();
        script.reply(&answer(&sent, Code::NotFound, 0, &[0; 16]));
        assert!(script.outcome().unwrap().is_done());
    }
}

#[test]
fn an_outage_does_not_become_a_storm_and_nobody_starves() {
    let mut script = Script::new();
    let mut copies = vec![0u32; 2_001];
    for _ in 0..2_000 {
        script.start(GET).unwrap();
    }
    while script.client.in_flight() > 0 {
        for sent in script.sent() {
            copies[usize::try_from(header(&sent).seq).unwrap()] += 1;
        }
        script.next_timer();
        while script.outcome().is_some() {}
    }
    assert!(copies[1..].iter().all(|n| *n >= 4), "each is sent, and sent again three times");
    // Three granted retries each; saved up, a tenth, and 100 for each of five seconds.
    let retries: u32 = copies.iter().sum::<u32>() - 2_000;
    assert!(retries <= 3 * 2_000 + 200 + 200 + 500, "{retries}");
}

#[test]
fn sixteen_requests_are_asked_for_all_through_an_outage_of_two_seconds() {
    let mut script = Script::new();
    for _ in 0..100 {
        script.start(PUT).unwrap();
        let sent = script.sent_one();
        script.pass(MS);
        script.reply(&answer(&sent, Code::Ok, 1, b""));
        assert!(script.outcome().unwrap().is_done());
    }
    let outage = script.now + MS * 2_000;
    for _ in 0..16 {
        script.start(PUT).unwrap();
    }
    while script.client.poll_timeout().unwrap() < outage {
        script.next_timer();
        script.sent();
    }
    assert_eq!(script.client.counters().postponed, 0);
    // Whoever is back now hears of all of them within one wait.
    let mut heard = std::collections::BTreeSet::new();
    while script.client.poll_timeout().unwrap() < outage + MS * 125 {
        script.next_timer();
        heard.extend(script.sent().iter().map(|sent| header(sent).seq));
    }
    assert_eq!(heard.len(), 16);
}

#[test]
fn when_nothing_is_heard_everything_goes_to_the_next_address_and_stays_there() {
    let mut script = with_two_switches();
    for _ in 0..5 {
        script.start(PUT).unwrap();
    }
    let copies = play(&mut script, |_, to| to == 7701);
    assert_eq!(script.client.in_flight(), 0);
    let asked_first = copies.iter().filter(|(at, _)| *at < MS * 100);
    assert!(asked_first.into_iter().all(|(_, to)| *to == 7700));
    let (moved, _) = copies.iter().find(|(_, to)| *to == 7701).unwrap();
    assert!(*moved <= MS * 250, "{moved:?}");
    assert!(copies.iter().all(|(at, to)| at < moved || *to == 7701));
    for _ in 0..50 {
        script.pass(MS * 1_000);
        script.start(PUT).unwrap();
        assert!(play(&mut script, |_, to| to == 7701).iter().all(|(_, to)| *to == 7701));
    }
    assert_eq!(script.client.counters().moves, 1);
}

#[test]
fn after_the_last_address_comes_the_first_again_and_each_is_asked_in_turn() {
    let mut script = with_two_switches();
    script.start(PUT).unwrap();
    let copies = play(&mut script, |_, _| false);
    let moves = copies.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    assert!(moves >= 20, "{moves} moves");
    // Whichever of them is back, it is asked within two waits.
    for address in [7700, 7701] {
        let asked = copies.iter().filter(|(_, to)| *to == address).map(|(at, _)| *at);
        let asked: Vec<Duration> = asked.collect();
        assert!(asked.windows(2).all(|pair| pair[1] - pair[0] <= MS * 260), "{asked:?}");
    }
}

#[test]
fn while_any_answer_comes_nothing_moves_however_long_one_request_waits() {
    let mut script = with_two_switches();
    script.start(PUT).unwrap();
    let stuck = header(&script.sent_one()).seq;
    for _ in 0..300 {
        script.start(GET).unwrap();
        for (to, request) in script.sent_to() {
            assert_eq!(to, 7700);
            if header(&request).seq != stuck {
                script.reply(&answer(&request, Code::NotFound, 0, &[0; 16]));
            }
        }
        let until = script.now + MS * 10;
        while script.client.poll_timeout().is_some_and(|at| at <= until) {
            script.next_timer();
        }
        script.now = until;
    }
    assert_eq!(script.client.counters().moves, 0);
}

#[test]
fn an_idle_hour_is_no_silence() {
    let mut script = with_two_switches();
    for _ in 0..20 {
        script.start(PUT).unwrap();
        let sent = script.sent_one();
        script.reply(&answer(&sent, Code::Ok, 1, b""));
        assert!(script.outcome().unwrap().is_done());
        script.pass(Duration::from_secs(3_600));
    }
    // Two copies are lost after all that quiet.
    script.start(PUT).unwrap();
    let asked_at = script.now;
    let copies = play(&mut script, |now, _| now.since(asked_at) >= MS * 12);
    assert!(copies.len() >= 3 && copies.iter().all(|(_, to)| *to == 7700), "{copies:?}");
}

/// One that was answered so a few times in a row ends, with the words of the store.
#[test]
fn a_request_that_a_store_refuses_ends_soon_and_says_what_the_store_said() {
    let mut script = Script::new();
    script.start(PUT).unwrap();
    let began = script.now;
    let mut copies = 0;
    let outcome = loop {
        for sent in script.sent() {
            copies += 1;
            script.reply(&answer(&sent, Code::StoreRefuses, 0, b"OOM no\r\nroom"));
            // A second answer to the same copy says nothing new.
            if script.client.in_flight() > 0 {
                script.reply(&answer(&sent, Code::StoreRefuses, 0, b"OOM no\r\nroom"));
            }
        }
        if let Some(outcome) = script.outcome() {
            break outcome;
        }
        script.next_timer();
    };
    assert_eq!(copies, 4);
    assert!(script.now < began + MS * 500, "long before its deadline");
    let Outcome::Unknown(why) = outcome else { panic!("{outcome:?}") };
    assert!(why.to_string().ends_with("takes no changes for now: OOM no  room"), "{why}");
    // One that is taken in the meantime is as any other.
    script.start(PUT).unwrap();
    let sent = script.sent_one();
    script.reply(&answer(&sent, Code::StoreRefuses, 0, b"OOM"));
    let outcome = loop {
        script.next_timer();
        for sent in script.sent() {
            script.reply(&answer(&sent, Code::Ok, 1, b""));
        }
        if let Some(outcome) = script.outcome() {
            break outcome;
        }
    };
    assert!(outcome.is_done(), "{outcome:?}");
}
