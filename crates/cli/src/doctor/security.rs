//! What of a cluster is open to others.

use super::finding::Finding;
use controller::Protection;
use runtime::config::Config;
use runtime::identity::{Identity, is_local};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A certificate should be replaced when it is valid for no longer than that.
const DAYS_LEFT_MIN: u64 = 14;

const DAY_SECS: u64 = 86_400;

/// What was seen.
pub(crate) struct Seen<'a> {
    /// What protects the control plane, and whether packets are in envelopes, as the controller
    /// that leads says.
    pub(crate) protection: Protection,
    pub(crate) envelopes: bool,
    /// Where the service is.
    pub(crate) services: &'a [SocketAddr],
    /// Whose certificate this command shows, and for how long it is valid.
    pub(crate) certificate: Option<(&'a Identity, Duration)>,
    /// The key of the authority, if it lies on this machine.
    pub(crate) ca_key: Option<PathBuf>,
    /// The configuration, if it was named.
    pub(crate) config: Option<&'a Config>,
}

/// Judges it.
pub(crate) fn check(seen: &Seen<'_>) -> Vec<Finding> {
    let mut found = vec![control_plane(seen), packets(seen)];
    found.extend(seen.certificate.map(|(identity, left)| certificate(identity, left)));
    found.extend(seen.ca_key.as_ref().map(|path| {
        let shown = path.display();
        let todo = format!("move it to where only you are, and delete it here: rm {shown}");
        Finding::warning("ca.key", format!("{shown} makes certificates for anybody"), todo)
    }));
    found.extend(seen.config.into_iter().flat_map(configured));
    found
}

fn control_plane(seen: &Seen<'_>) -> Finding {
    let check = "control plane";
    match seen.protection {
        Protection::MutualTls => Finding::ok(check, "mutual TLS"),
        Protection::Loopback => {
            Finding::ok(check, "no certificates, and only this machine reaches it")
        }
        Protection::Open => Finding::problem(
            check,
            "whoever reaches a controller or member can change the cluster",
            "keyway certs init --config FILE, with directory in its [security]",
        ),
    }
}

fn packets(seen: &Seen<'_>) -> Finding {
    let check = "packets";
    if seen.envelopes {
        return Finding::ok(check, "in envelopes: only who has keys can send any");
    }
    if seen.services.iter().all(|at| is_local(*at)) {
        return Finding::ok(check, "bare, and the service is on this machine alone");
    }
    let todo = match seen.protection {
        Protection::MutualTls => "remove envelopes = false from [security]",
        Protection::Loopback | Protection::Open => {
            "keyway certs init --config FILE, with directory in its [security]"
        }
    };
    Finding::problem(
        check,
        "bare: whoever reaches the service or a node can read and write all keys",
        todo,
    )
}

fn certificate(identity: &Identity, left: Duration) -> Finding {
    let check = "certificate";
    let days = left.as_secs() / DAY_SECS;
    let found = format!("{identity}, valid for {days} days");
    if days < DAYS_LEFT_MIN {
        return Finding::warning(check, found, "keyway certs rotate");
    }
    Finding::ok(check, found)
}

/// What the configuration leaves open.
fn configured(config: &Config) -> Vec<Finding> {
    let mut found = Vec::new();
    let rights = config.security.as_ref().map(|section| section.rights.len());
    match rights {
        Some(0) => found.push(Finding::warning(
            "rights",
            "each client with a certificate may do everything in all keyspaces",
            "say what they may do in [[security.rights]]",
        )),
        Some(count) => found.push(Finding::ok("rights", format!("{count} sections"))),
        None => {}
    }
    found.extend(config.controller.store.as_ref().map(|etcd| {
        if etcd.is_tls() {
            return Finding::ok("etcd", format!("{etcd} is reached under TLS"));
        }
        let todo = "write etcds://, with ca in [controller.etcd], or keep etcd in a network of its \
                    own";
        Finding::warning("etcd", format!("{etcd} is reached without TLS"), todo)
    }));
    let backends = config.nodes.iter().filter(|node| node.backend.is_some()).count();
    if backends > 0 {
        let what = format!("{backends} nodes keep values in stores that they reach without TLS");
        let todo = "keep those stores on the machines of their nodes, or in a network of their own";
        found.push(Finding::warning("backends", what, todo));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::finding::Grade;
    use super::*;
    use runtime::identity::Role;

    fn seen(services: &[SocketAddr]) -> Seen<'_> {
        Seen {
            protection: Protection::MutualTls,
            envelopes: true,
            services,
            certificate: None,
            ca_key: None,
            config: None,
        }
    }

    fn grades(seen: &Seen<'_>) -> Vec<(&'static str, Grade)> {
        check(seen).iter().map(|it| (it.check, it.grade)).collect()
    }

    #[test]
    fn what_is_open_to_others_is_a_problem_and_what_is_local_is_not() {
        let (here, far) = (["127.0.0.1:7700".parse().unwrap()], ["10.0.0.1:7700".parse().unwrap()]);
        let both = |control, packets| vec![("control plane", control), ("packets", packets)];
        assert_eq!(grades(&seen(&far)), both(Grade::Ok, Grade::Ok));
        let bare = |services| Seen { envelopes: false, ..seen(services) };
        assert_eq!(grades(&bare(&far)), both(Grade::Ok, Grade::Problem));
        let local = Seen { protection: Protection::Loopback, ..bare(&here) };
        assert_eq!(grades(&local), both(Grade::Ok, Grade::Ok));
        let open = Seen { protection: Protection::Open, ..bare(&far) };
        assert_eq!(grades(&open), both(Grade::Problem, Grade::Problem));
    }

    #[test]
    fn what_lies_about_or_ends_soon_is_told() {
        let far = ["10.0.0.1:7700".parse().unwrap()];
        let admin = Identity::new(Role::Admin, "alice").unwrap();
        let days = |days| Duration::from_secs(days * DAY_SECS);
        let shown = |left| Seen { certificate: Some((&admin, days(left))), ..seen(&far) };
        assert_eq!(grades(&shown(20)).last(), Some(&("certificate", Grade::Ok)));
        assert_eq!(grades(&shown(13)).last(), Some(&("certificate", Grade::Warning)));
        let careless = Seen { ca_key: Some("certs/ca.key".into()), ..seen(&far) };
        assert_eq!(grades(&careless).last(), Some(&("ca.key", Grade::Warning)));
    }
}
