//! The store in etcd.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use runtime::identity::{OutsideFiles, OutsideUser};
use runtime::store::{EtcdAccess, EtcdUrl, look_at_members};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// An etcd, unless there is none here.
fn etcd(what: &str, options: &[&str]) -> Option<Server> {
    let server = Server::etcd(options);
    if server.is_none() {
        skip::report(what, "there is no etcd: apt-get install etcd-server etcd-client");
    }
    server
}

fn candidate(server: &Server) -> Candidate {
    candidate_by(server, EtcdAccess::default())
}

fn candidate_by(server: &Server, access: EtcdAccess) -> Candidate {
    Candidate::new(url(server), access, None).expect("random numbers")
}

fn url(server: &Server) -> EtcdUrl {
    format!("{}/keyway", server.url()).parse().expect("a URL")
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

/// Certificates as an operator has them from an authority of their own.
struct Made {
    directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Made {
    fn new() -> Self {
        let directory = TempDir::new().expect("a directory");
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let own = params.self_signed(&key).expect("a certificate");
        std::fs::write(directory.path().join("ca.crt"), own.pem()).expect("a file of ours");
        let made = Self { directory, issuer: Issuer::new(params, key) };
        made.issue("server", "127.0.0.1");
        made.issue("client", "controller");
        made
    }

    /// A certificate for this host or address, and its key.
    fn issue(&self, name: &str, host: &str) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("a name");
        // An etcd asks itself on behalf of those who speak JSON.
        let uses = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.extended_key_usages = uses.to_vec();
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        std::fs::write(self.file(&format!("{name}.crt")), certificate.pem())
            .expect("a file of ours");
        self.write_secret(&format!("{name}.key"), &key.serialize_pem());
    }

    fn write_secret(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        std::fs::write(&path, text).expect("a file of ours");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a file of ours");
        path
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn tls(&self, shown: bool) -> EtcdAccess {
        let shown = shown.then(|| (self.file("client.crt"), self.file("client.key")));
        let files = OutsideFiles { ca: self.file("ca.crt"), shown };
        EtcdAccess { tls: Some(files.open().expect("sound files")), user: None }
    }
}

/// Why it does not lead.
fn refusal(candidate: &Candidate) -> String {
    match candidate.stand() {
        Err(StoreError::Etcd { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_etcd_under_tls_is_reached_by_those_whom_it_takes_and_believed_if_it_is_the_right_one() {
    let made = Made::new();
    let Some(server) = Server::etcd_under_tls(made.directory.path()) else {
        return skip::report("an etcd under TLS", "there is none: apt-get install etcd-server");
    };
    let known = candidate_by(&server, made.tls(true));
    let mut store = lead(&known);
    save(&mut *store, &saved(1)).unwrap();
    assert_eq!(store.load().unwrap(), Some(saved(1)));
    assert!(store.status().at.starts_with("etcds://"));

    // It says why when the handshake is over, and the connection may be gone before that is read.
    let nameless = refusal(&candidate_by(&server, made.tls(false)));
    assert!(!nameless.is_empty(), "it wants a certificate");
    let stranger = Made::new();
    std::fs::copy(made.file("client.crt"), stranger.file("client.crt")).unwrap();
    std::fs::copy(made.file("client.key"), stranger.file("client.key")).unwrap();
    let impostor = refusal(&candidate_by(&server, stranger.tls(true)));
    assert!(impostor.contains("invalid peer certificate"), "{impostor}");
    assert!(!refusal(&candidate(&server)).is_empty(), "it does not speak plainly");
    assert_eq!(store.leadership(), Leadership::Certain);

    let members = look_at_members(&url(&server), made.tls(true));
    let facts = members[0].said.as_ref().unwrap();
    assert!(facts.has_leader && facts.alarms.is_empty(), "{facts:?}");
}

#[test]
fn a_key_of_another_certificate_is_refused_before_anything_is_asked() {
    let made = Made::new();
    let shown = Some((made.file("client.crt"), made.file("server.key")));
    let error = OutsideFiles { ca: made.file("ca.crt"), shown }.open().unwrap_err().to_string();
    assert!(error.contains("does not go with"), "{error}");
}

#[test]
fn an_etcd_with_users_takes_whoever_has_the_password_and_tokens_are_renewed() {
    let Some(server) = etcd("an etcd with users", &[]) else { return };
    let control = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        assert!(server.etcdctl(&words).unwrap().success(), "{words:?}");
    };
    control("user add root:secret");
    control("user grant-role root root");
    control("user add keyway:word");
    control("role add keyway");
    control("role grant-permission keyway readwrite --prefix=true /keyway/");
    control("user grant-role keyway keyway");
    control("auth enable");
    let made = Made::new();
    let user = |word: &str| {
        let path = made.write_secret(&format!("password-{}", word.len()), word);
        EtcdAccess { tls: None, user: Some(OutsideUser::open("keyway".into(), path).unwrap()) }
    };
    let mut store = lead(&candidate_by(&server, user("word\n")));
    save(&mut *store, &saved(1)).unwrap();
    let nobody = refusal(&candidate(&server));
    assert!(nobody.contains("user name is empty"), "{nobody}");
    let wrong = refusal(&candidate_by(&server, user("another")));
    assert!(wrong.contains("authentication failed"), "{wrong}");

    // All tokens end when users change.
    control("--user=root:secret user add other:x");
    save(&mut *store, &saved(2)).unwrap();
    assert_eq!(store.load().unwrap(), Some(saved(2)));
    assert_eq!(store.leadership(), Leadership::Certain);
}
