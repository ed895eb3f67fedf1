//! The body of the fuzz target `openflow`, over what a switch says and over random bytes.

mod fuzzed;

use fuzzed::{CHANGE, CLEAR, DEFAULTS, LIST, LIST_PREFIXES, SWEEP, WAIT};
use openflow::Stage;
use proptest::prelude::*;

/// What the switch says.
const SAYS: u8 = 0;

fn item(what: u8, bytes: &[u8]) -> Vec<u8> {
    [&[what, u8::try_from(bytes.len()).expect("a short item")], bytes].concat()
}

/// A switch that speaks 1.3 and has said what it is.
fn greeting() -> Vec<u8> {
    let hello = [4, 0, 0, 16, 0, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0x10];
    let features = [&[4, 6, 0, 32, 0, 0, 0, 2][..], &[7; 8], &[0, 0, 0, 0, 254], &[0; 11]].concat();
    [item(SAYS, &hello), item(SAYS, &features)].concat()
}

fn barrier() -> Vec<u8> {
    item(SAYS, &[4, 21, 0, 8, 0, 0, 0, 3])
}

#[test]
fn a_switch_does_what_it_is_asked_in_any_portions() {
    let greeting = greeting();
    assert_eq!(fuzzed::openflow(&greeting), (Stage::Ready, 0));
    let to_member = [&[1, 65][..], &[0xfd; 16]].concat();
    for asked in [item(CHANGE, &to_member), item(SWEEP, &[]), item(CLEAR, &[])] {
        let input = [&greeting[..], &asked, &barrier()].concat();
        assert_eq!(fuzzed::openflow(&input), (Stage::Ready, 1), "{asked:?}");
    }
    for asked in [item(LIST, &[]), item(LIST_PREFIXES, &[]), item(DEFAULTS, &[])] {
        let input = [&greeting[..], &asked, &barrier()].concat();
        assert_eq!(fuzzed::openflow(&input), (Stage::Ready, 0), "{asked:?}");
    }
    let silent = [&greeting[..], &item(WAIT, &[0; 3]), &item(WAIT, &[0; 6])].concat();
    assert_eq!(fuzzed::openflow(&silent).0, Stage::Ready);
}

proptest! {
    #[test]
    fn bytes_mean_the_same_in_any_portions(
        items in prop::collection::vec((0..8u8, prop::collection::vec(any::<u8>(), 0..80)), 0..12),
        begins in any::<bool>(),
    ) {
        let items = items.iter().flat_map(|(what, bytes)| item(*what, bytes));
        let begin = if begins { greeting() } else { Vec::new() };
        fuzzed::openflow(&begin.into_iter().chain(items).collect::<Vec<u8>>());
    }
}
