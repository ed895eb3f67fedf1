//! Checks of the etcd that controllers keep their state in.

use super::finding::Finding;
use runtime::store::{EtcdAccess, EtcdFacts, EtcdMember, EtcdUrl, look_at_members};
use std::time::Duration;

/// Above that, the loss of etcd's leader together with Keyway's is felt: etcd elects another one
/// within twice its election timeout, and a controller is replaced within two seconds.
const ELECTION_TIMEOUT_MAX: Duration = Duration::from_millis(500);

/// The first version that serves what is asked.
const VERSION_MIN: (u32, u32) = (3, 4);

/// What to do about elections that take long.
const FASTER: &str = "start etcd with --heartbeat-interval=50 --election-timeout=500 where a \
                      packet and its answer take less than 10 ms (docs/operating/controllers.md)";

/// All checks.
pub(crate) fn check(url: &EtcdUrl, access: EtcdAccess) -> Vec<Finding> {
    judge(&look_at_members(url, access))
}

fn judge(members: &[EtcdMember]) -> Vec<Finding> {
    let answers = members.iter().filter(|member| member.said.is_ok()).count();
    let has_quorum = answers > members.len() / 2;
    members.iter().map(|member| one(member, has_quorum)).collect()
}

fn one(member: &EtcdMember, has_quorum: bool) -> Finding {
    let at = &member.at;
    match &member.said {
        Ok(facts) => answering(at, facts),
        Err(why) if has_quorum => Finding::warning(
            "etcd",
            format!("{at} does not answer, and the others do: {why}"),
            "start it again: with one more that is lost nobody can lead",
        ),
        Err(why) => Finding::problem(
            "etcd",
            format!("{at}: {why}"),
            "docs/operating/controllers.md: where etcd is, and how it is reached",
        ),
    }
}

fn answering(at: &str, facts: &EtcdFacts) -> Finding {
    let EtcdFacts { version, has_leader, alarms, election_timeout } = facts;
    let found = format!("{at} has version {version}");
    if !alarms.is_empty() {
        return Finding::problem(
            "etcd",
            format!("{at} takes nothing more: {}", alarms.join(", ")),
            "etcdctl compact and defrag, then etcdctl alarm disarm",
        );
    }
    if !has_leader {
        let todo = "start the other members, or look at the network between them";
        return Finding::problem("etcd", format!("{at} knows of no leader"), todo);
    }
    if parse(version).is_some_and(|version| version < VERSION_MIN) {
        let (major, minor) = VERSION_MIN;
        return Finding::problem("etcd", found, format!("install {major}.{minor} or newer"));
    }
    match election_timeout {
        Some(time) if *time > ELECTION_TIMEOUT_MAX => {
            let ms = time.as_millis();
            Finding::warning("etcd", format!("{found}, election timeout {ms} ms"), FASTER)
        }
        Some(time) => {
            Finding::ok("etcd", format!("{found}, election timeout {} ms", time.as_millis()))
        }
        None => Finding::warning(
            "etcd",
            format!(
                "{found}, election timeout not on its command line: 1000 ms, unless its \
                 environment or a file says otherwise"
            ),
            FASTER,
        ),
    }
}

/// Major and minor number.
fn parse(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Grade;
    use super::*;

    fn member(change: impl FnOnce(&mut EtcdFacts)) -> EtcdMember {
        let mut facts = EtcdFacts {
            version: "3.4.23".into(),
            has_leader: true,
            alarms: Vec::new(),
            election_timeout: Some(ELECTION_TIMEOUT_MAX),
        };
        change(&mut facts);
        EtcdMember { at: "10.0.0.1:2379".into(), said: Ok(facts) }
    }

    fn silent() -> EtcdMember {
        EtcdMember { at: "10.0.0.2:2379".into(), said: Err("timeout".into()) }
    }

    #[test]
    fn each_member_is_judged() {
        let grade = |member: EtcdMember| judge(&[member])[0].grade;
        assert_eq!(grade(member(|_| ())), Grade::Ok);
        assert_eq!(grade(member(|it| it.version = "3.5.0-rc.1".into())), Grade::Ok);
        let slow = |it: &mut EtcdFacts| it.election_timeout = Some(Duration::from_secs(1));
        assert_eq!(grade(member(slow)), Grade::Warning);
        assert_eq!(grade(member(|it| it.election_timeout = None)), Grade::Warning);
        assert_eq!(grade(member(|it| it.version = "3.3.27".into())), Grade::Problem);
        assert_eq!(grade(member(|it| it.has_leader = false)), Grade::Problem);
        assert_eq!(grade(member(|it| it.alarms = vec!["NOSPACE".into()])), Grade::Problem);
    }

    #[test]
    fn one_that_does_not_answer_is_a_problem_where_the_others_are_no_majority() {
        let grades = |members: &[EtcdMember]| -> Vec<Grade> {
            judge(members).iter().map(|it| it.grade).collect()
        };
        let well = || member(|_| ());
        assert_eq!(grades(&[well(), silent(), well()]), [Grade::Ok, Grade::Warning, Grade::Ok]);
        assert_eq!(grades(&[silent(), well()]), [Grade::Problem, Grade::Ok]);
        assert_eq!(grades(&[silent()]), [Grade::Problem]);
    }
}
