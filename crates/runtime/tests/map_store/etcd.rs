//! The store in etcd.

use super::*;

/// An etcd, unless there is none here.
fn etcd(what: &str, options: &[&str]) -> Option<Server> {
    let server = Server::etcd(options);
    if server.is_none() {
        skip::report(what, "there is no etcd: apt-get install etcd-server etcd-client");
    }
    server
}

fn candidate(server: &Server) -> Candidate {
    let url = format!("{}/keyway", server.url());
    Candidate::new(url.parse().expect("a URL"), None).expect("random numbers")
}

/// Stands until it leads.
fn lead(candidate: &Candidate) -> Box<dyn MapStore> {
    for _ in 0..500 {
        if let Ok(Candidacy::Leads(store)) = candidate.stand() {
            return store;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    panic!("it does not lead");
}

fn waits(candidate: &Candidate) -> bool {
    matches!(candidate.stand(), Ok(Candidacy::Waits(_)))
}

#[track_caller]
fn comes(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    panic!("it does not come: {what}");
}

#[test]
fn etcd_does_what_a_store_must() {
    let Some(server) = etcd("the conformance of etcd as a store", &[]) else { return };
    let candidate = candidate(&server);
    check(|| lead(&candidate));
}

#[test]
fn one_leads_and_who_ends_lets_others_lead_at_once() {
    let Some(server) = etcd("one leader in etcd", &[]) else { return };
    let [one, other] = [candidate(&server), candidate(&server)];
    let store = lead(&one);
    for _ in 0..100 {
        assert!(waits(&other), "somebody leads");
        assert_eq!(store.leadership(), Leadership::Certain);
        std::thread::park_timeout(Duration::from_millis(30));
    }
    drop(store);
    assert!(matches!(other.stand(), Ok(Candidacy::Leads(_))));
}

#[test]
fn a_map_larger_than_a_request_is_cut_and_nothing_is_left_of_the_one_before() {
    let Some(server) = etcd("a large map in etcd", &[]) else { return };
    let candidate = candidate(&server);
    let mut store = lead(&candidate);
    let large = large(16_384);
    let bytes = serde_json::to_vec(&large).unwrap().len();
    assert!(bytes > 2 << 20, "{bytes}");
    save(&mut *store, &large).unwrap();
    assert_eq!(store.load().unwrap(), Some(large));
    save(&mut *store, &saved(2)).unwrap();
    assert_eq!(store.load().unwrap(), Some(saved(2)));
    drop(store);
    let mut store = lead(&candidate);
    assert_eq!(store.load().unwrap(), Some(saved(2)));
}

#[test]
fn who_has_been_deposed_changes_nothing() {
    let Some(server) = etcd("a deposed leader and etcd", &[]) else { return };
    let [one, other] = [candidate(&server), candidate(&server)];
    let mut deposed = lead(&one);
    save(&mut *deposed, &saved(1)).unwrap();
    // As if it had not been heard of for long: its key goes, and it does not know.
    assert!(server.etcdctl(&["del", "/keyway/leader"]).unwrap().success());
    let Ok(Candidacy::Leads(mut leader)) = other.stand() else { panic!("nobody leads") };
    assert_eq!(leader.load().unwrap(), Some(saved(1)));
    assert_eq!(save(&mut *deposed, &saved(2)), Err(SaveError::Deposed));
    assert_eq!(deposed.leadership(), Leadership::Lost);
    assert_eq!(leader.load().unwrap(), Some(saved(1)));
    save(&mut *leader, &saved(3)).unwrap();
    drop(deposed);
    assert_eq!(leader.leadership(), Leadership::Certain, "what it gives back is its own");
}

#[test]
fn an_etcd_that_stands_still_ends_the_leadership_in_time_and_what_was_asked_is_found_out() {
    let Some(server) = etcd("an etcd that stands still", &[]) else { return };
    let [one, other] = [candidate(&server), candidate(&server)];
    let mut store = lead(&one);
    save(&mut *store, &saved(1)).unwrap();
    server.pause();
    store.save(&saved(2));
    comes("doubt", || store.leadership() == Leadership::Doubtful);
    assert!(matches!(other.stand(), Err(StoreError::Etcd { .. })));
    comes("trouble", || store.status().trouble.is_some());
    assert!(store.status().silent_ms.unwrap() >= 500, "{:?}", store.status());
    assert_eq!(store.poll_saved(), None, "nobody knows");
    server.resume();
    // It is found out, or somebody else may lead by now: what it did is then of no use.
    comes("an end", || {
        store.poll_saved().is_some_and(|ended| ended.is_ok())
            || store.leadership() == Leadership::Lost
    });
}

#[test]
fn a_full_etcd_takes_nothing_says_so_and_goes_on_when_there_is_room() {
    // Room for a few maps of a megabyte.
    let quota = ["--quota-backend-bytes", "4000000"];
    let Some(server) = etcd("a full etcd", &quota) else { return };
    let candidate = candidate(&server);
    let mut store = lead(&candidate);
    save(&mut *store, &saved(1)).unwrap();
    let large = large(4_000);
    let refused = (0..20).find_map(|_| save(&mut *store, &large).err());
    let Some(SaveError::NotNow(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("space"), "{why}");
    assert!(store.status().trouble.unwrap().contains("space"));
    // The lease is kept all the same.
    std::thread::park_timeout(Duration::from_secs(3));
    assert_eq!(store.leadership(), Leadership::Certain);
    assert!(store.load().unwrap().is_some());
}
