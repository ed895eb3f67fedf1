//! The keys of envelopes, and passes: what the controllers hand out where the network is not to be
//! trusted (protocol, section 14).

use crate::identity::SecretSource;
use cluster::{EnvelopeOrder, KeysNumber, Map, Member};
use envelope::{
    Allowed, Key, KeySet, Pass, PassNumber, Period, Rights, RightsTable, RingPorts, Secrets,
};
use machine::UnixMs;
use std::collections::BTreeMap;
use std::net::SocketAddrV6;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use wire::Revision;

/// What keys are made of and for whom.
#[derive(Clone)]
pub struct KeyPlan {
    /// The secrets.
    pub secrets: SecretSource,
    /// What clients may do of whom something is said.
    pub classes: Vec<ClassRights>,
    /// Where switches and caches are. Nodes are in the map.
    pub fixed: Vec<RingPorts>,
    /// A content address, if keys have some.
    pub content: Option<SocketAddrV6>,
}

/// What a class of clients may do, by the names of keyspaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassRights {
    /// The name of the class: whose rights these are.
    pub whose: String,
    /// In keyspaces that are not named.
    pub elsewhere: Allowed,
    /// By name. One that does not exist yet counts from when it does.
    pub keyspaces: BTreeMap<String, Allowed>,
}

/// Somebody asks for a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassWish {
    /// Who, as the certificate says, and for whom if that is somebody else.
    pub whose: String,
    /// Which class of rights that is, by name; without one it is all rights.
    pub class: Option<String>,
    /// The pass that is to be renewed, and its ticket; a new one if there is none.
    pub renew: Option<(PassNumber, Key)>,
}

/// Why there is no pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PassError {
    /// It was given to somebody else, or under a secret that is long gone.
    #[error("this pass cannot be renewed: ask for a new one")]
    NotRenewable,
    /// Another section of the configuration fits the client than when the pass was given.
    #[error("the rights of this client are in another section now: start the process again")]
    OtherRights,
    /// Passes have no room for more classes of rights.
    #[error(
        "there is no class left for the rights of {0}: all that passes have room for have been \
         given to names that some [[security.rights]] has had"
    )]
    NoClass(String),
    /// There are no numbers left.
    #[error("all numbers of passes have been given")]
    NoNumbers,
}

/// The number of each class of rights, by name, as the controllers have it on record.
type ClassNumbers = BTreeMap<String, u16>;

/// Hands keys and passes out.
pub(super) struct KeyOffice {
    plan: KeyPlan,
    made: Option<Made>,
    /// The keys that each member has, as it said last.
    held: BTreeMap<Member, KeysNumber>,
    /// Numbers of passes that are this leader's to give.
    numbers: Range<u64>,
}

/// Orders, and of what they were made.
struct Made {
    period: Period,
    map: Revision,
    secrets: Arc<Secrets>,
    for_switches: Arc<EnvelopeOrder>,
    for_others: Arc<EnvelopeOrder>,
}

impl KeyOffice {
    pub(super) fn new(plan: KeyPlan) -> Self {
        Self { plan, made: None, held: BTreeMap::new(), numbers: 0..0 }
    }

    /// The names of all classes of rights.
    pub(super) fn class_names(&self) -> impl Iterator<Item = &str> {
        self.plan.classes.iter().map(|it| it.whose.as_str())
    }

    /// A member has said which keys it has.
    pub(super) fn hear(&mut self, member: Member, held: Option<KeysNumber>) {
        match held {
            Some(number) => drop(self.held.insert(member, number)),
            None => drop(self.held.remove(&member)),
        }
    }

    /// The keys that a member is to be told at this time of the cluster; none if it has them.
    /// Whenever a class gets a number, the map gets another revision.
    pub(super) fn for_member(
        &mut self,
        member: Member,
        map: &Map,
        classes: &ClassNumbers,
        time: UnixMs,
    ) -> Option<Arc<EnvelopeOrder>> {
        self.make(map, classes, Period::at(time.0));
        let made = self.made.as_ref()?;
        let order = match member {
            Member::Switch(_) => &made.for_switches,
            Member::Node(_) | Member::Cache(_) => &made.for_others,
        };
        let has = self.held.get(&member) == Some(&order.number);
        (!has).then(|| Arc::clone(order))
    }

    /// Makes orders, if what they are made of has changed.
    fn make(&mut self, map: &Map, classes: &ClassNumbers, period: Period) {
        let secrets = self.plan.secrets.get();
        let is_made = |made: &Made| {
            made.period == period && made.map == map.revision && made.secrets == secrets
        };
        if self.made.as_ref().is_some_and(is_made) {
            return;
        }
        let rights = self.rights(map, classes);
        let order = |with_ends| {
            let set = secrets.key_set(period, with_ends);
            Arc::new(self.order(map, &secrets, set, rights.clone()))
        };
        let (for_switches, for_others) = (order(false), order(true));
        let map = map.revision;
        self.made = Some(Made { period, map, secrets, for_switches, for_others });
    }

    fn order(
        &self,
        map: &Map,
        secrets: &Secrets,
        set: KeySet,
        rights: RightsTable,
    ) -> EnvelopeOrder {
        let nodes = map.nodes.iter();
        let nodes = nodes.map(|it| RingPorts { first: it.endpoint.into(), ports: it.shards });
        let content = self.plan.content;
        let mut order = EnvelopeOrder {
            number: KeysNumber::default(),
            set,
            rights,
            members: self.plan.fixed.iter().copied().chain(nodes).collect(),
            content,
        };
        let text = serde_json::to_vec(&order).expect("an order is JSON");
        order.number = KeysNumber(secrets.number(&text));
        order
    }

    /// What each class may do. One that is of nobody any more may nothing.
    fn rights(&self, map: &Map, classes: &ClassNumbers) -> RightsTable {
        let mut table = RightsTable::default();
        for it in &self.plan.classes {
            if let Some(class) = number_of(&it.whose, classes) {
                table.set(class, it.by_id(map));
            }
        }
        table
    }

    /// Whether a number has to be reserved before this is granted.
    pub(super) fn lacks_number(&self, wish: &PassWish) -> bool {
        wish.renew.is_none() && self.numbers.is_empty()
    }

    /// These numbers are this leader's to give, once that is on record.
    pub(super) fn take_numbers(&mut self, numbers: Range<u64>) {
        self.numbers = numbers;
    }

    /// Gives a pass, or renews one, at this time of the cluster.
    pub(super) fn grant(
        &mut self,
        wish: &PassWish,
        classes: &ClassNumbers,
        time: UnixMs,
    ) -> Result<Pass, PassError> {
        let class = match &wish.class {
            None => RightsTable::ALL_RIGHTS,
            Some(name) => {
                number_of(name, classes).ok_or_else(|| PassError::NoClass(name.clone()))?
            }
        };
        let secrets = self.plan.secrets.get();
        let number = match wish.renew {
            None => {
                let next = self.numbers.next().ok_or(PassError::NoNumbers)?;
                PassNumber::new(class, next).ok_or(PassError::NoNumbers)?
            }
            Some((number, _)) if number.class() != class => {
                return Err(PassError::OtherRights);
            }
            Some((number, ticket)) => {
                let is_his = secrets.is_ticket(ticket, number, &wish.whose);
                if is_his { number } else { return Err(PassError::NotRenewable) }
            }
        };
        let current = Period::at(time.0);
        let set = secrets.key_set(current, true);
        let periods = set.periods.iter().filter_map(|it| it.of_client(number)).collect();
        let ticket = secrets.ticket(number, &wish.whose);
        // Members know the next period's keys by then, and one that is late is asked again.
        let renew_in = Period::left_at(time.0) + RENEW_LATER;
        let renew_in_ms = u64::try_from(renew_in.as_millis()).unwrap_or(u64::MAX);
        Ok(Pass { number, ticket, current, periods, renew_in_ms })
    }
}

/// The number of a class, if passes have room for it.
fn number_of(name: &str, classes: &ClassNumbers) -> Option<u16> {
    classes.get(name).copied().filter(|class| *class < PassNumber::CLASSES)
}

/// How long after the beginning of a period a pass is renewed that has its keys: when the leader,
/// whoever that is then, is sure to have the next ones.
const RENEW_LATER: Duration = Duration::from_secs(5);

impl ClassRights {
    fn by_id(&self, map: &Map) -> Rights {
        let id = |name: &str| map.keyspace(name).map(|keyspace| keyspace.id.0);
        let named = self.keyspaces.iter().filter_map(|(name, it)| Some((id(name)?, *it)));
        Rights { elsewhere: self.elsewhere, keyspaces: named.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{CacheId, NodeId, NodeSpec};
    use envelope::Secret;
    use wire::Op;

    const PERIOD_MS: u64 = 180_000;
    const FIRST: UnixMs = UnixMs(PERIOD_MS);
    const SECOND: UnixMs = UnixMs(2 * PERIOD_MS);
    const ANN: &str = "client/ann";

    fn classes() -> ClassNumbers {
        [(ANN.to_owned(), 3), ("client/*".to_owned(), 2)].into()
    }

    fn office() -> KeyOffice {
        let secrets = Arc::new(Secrets::new(Secret::new([3; 32])));
        let read = Allowed { read: true, ..Allowed::default() };
        let keyspaces = [("users".to_owned(), read), ("missing".to_owned(), Allowed::ALL)].into();
        let service = RingPorts { first: "10.0.0.1:7700".parse().unwrap(), ports: 1 };
        KeyOffice::new(KeyPlan {
            secrets: SecretSource::new(move || Arc::clone(&secrets)),
            classes: vec![ClassRights {
                whose: ANN.to_owned(),
                elsewhere: Allowed::default(),
                keyspaces,
            }],
            fixed: vec![service],
            content: None,
        })
    }

    fn map() -> Map {
        let at: std::net::SocketAddr = "10.0.0.2:7710".parse().unwrap();
        let node = NodeSpec { id: NodeId(3), endpoint: at.into(), shards: 2 };
        Map { nodes: vec![node], revision: Revision::new(5), ..Map::default() }
    }

    #[test]
    fn members_are_told_keys_until_they_have_them() {
        let (mut office, mut map) = (office(), map());
        let (switch, node) = (Member::Switch(0), Member::Node(NodeId(3)));
        let to_switch = office.for_member(switch, &map, &classes(), FIRST).unwrap();
        let to_node = office.for_member(node, &map, &classes(), FIRST).unwrap();
        assert_eq!(to_node.members.len(), 2);
        assert!(to_switch.set.periods.iter().all(|it| it.end.is_none()));
        assert!(to_node.set.periods.iter().all(|it| it.end.is_some()));
        assert_ne!(to_switch.number, to_node.number);
        office.hear(node, Some(to_node.number));
        assert_eq!(office.for_member(node, &map, &classes(), UnixMs(2 * PERIOD_MS - 1)), None);
        assert!(office.for_member(Member::Cache(CacheId(1)), &map, &classes(), FIRST).is_some());
        // Another period, another map, and one that has forgotten.
        let next = office.for_member(node, &map, &classes(), SECOND).unwrap();
        assert_eq!(next.set.current, Period(2));
        office.hear(node, Some(next.number));
        assert_eq!(office.for_member(node, &map, &classes(), SECOND), None);
        map.revision = Revision::new(6);
        map.nodes.clear();
        assert!(office.for_member(node, &map, &classes(), SECOND).is_some());
        office.hear(node, None);
        assert!(office.for_member(node, &map, &classes(), SECOND).is_some());
    }

    #[test]
    fn a_pass_is_given_once_and_renewed_for_whom_it_is() {
        let mut office = office();
        let wish = PassWish { whose: ANN.to_owned(), class: Some(ANN.to_owned()), renew: None };
        assert!(office.lacks_number(&wish));
        assert_eq!(office.grant(&wish, &classes(), FIRST), Err(PassError::NoNumbers));
        office.take_numbers(8..10);
        let one = office.grant(&wish, &classes(), FIRST).unwrap();
        let other = office.grant(&wish, &classes(), FIRST).unwrap();
        assert_eq!(
            (one.number, other.number),
            (PassNumber::new(3, 8).unwrap(), PassNumber::new(3, 9).unwrap())
        );
        assert!(office.lacks_number(&wish));
        assert_eq!(one.renew_in(), Duration::from_secs(185));
        let renew = PassWish { renew: Some((one.number, one.ticket)), ..wish.clone() };
        assert!(!office.lacks_number(&renew));
        let newer = office.grant(&renew, &classes(), SECOND).unwrap();
        assert_eq!((newer.number, newer.current), (one.number, Period(2)));
        assert_eq!(newer.periods[..2], one.periods[1..]);
        let stolen = PassWish { whose: "client/bob".to_owned(), ..renew.clone() };
        assert_eq!(office.grant(&stolen, &classes(), FIRST), Err(PassError::NotRenewable));
        for class in [None, Some("client/*".to_owned())] {
            let moved = PassWish { class, ..renew.clone() };
            assert_eq!(office.grant(&moved, &classes(), FIRST), Err(PassError::OtherRights));
        }
        let bob = "client/bob".to_owned();
        let of_bob = PassWish { class: Some(bob.clone()), ..wish };
        for number in [None, Some(PassNumber::CLASSES)] {
            let classes = number.map(|number| (bob.clone(), number)).into_iter().collect();
            let refused = office.grant(&of_bob, &classes, FIRST);
            assert_eq!(refused, Err(PassError::NoClass(bob.clone())));
        }
    }

    #[test]
    fn a_class_has_the_rights_of_its_name_and_others_have_none() {
        let mut office = office();
        let mut classes = classes();
        let rights = |office: &mut KeyOffice, classes: &ClassNumbers, revision| {
            let map = Map { revision: Revision::new(revision), ..map() };
            let order = office.for_member(Member::Switch(0), &map, classes, FIRST);
            order.unwrap().rights.clone()
        };
        office.plan.classes[0].elsewhere = Allowed::ALL;
        let table = rights(&mut office, &classes, 5);
        let may = |class| table.allow(class, Op::Get, 1);
        assert_eq!([0, 1, 2, 3, 4].map(may), [true, false, false, true, false]);
        // Somebody has been given rights before the others in the configuration.
        let bob = ClassRights { whose: "client/bob".to_owned(), ..ClassRights::default() };
        office.plan.classes.insert(0, bob);
        classes.insert("client/bob".to_owned(), 4);
        let table = rights(&mut office, &classes, 6);
        let may = |class| table.allow(class, Op::Get, 1);
        assert_eq!([3, 4].map(may), [true, false]);
    }
}
