//! The body of the fuzz target `resp`, over what it begins with and over random bytes.

use gateway::resp;
use proptest::prelude::*;

mod fuzzed;

#[test]
fn scripts_mean_the_same_in_any_portions() {
    let scripts: [&[u8]; 6] = [
        b"*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING\r\n",
        b"set a \"b\\x00\" 'c'\r\n*0\r\n\r\n*-1\r\n",
        b"*1\r\n$99999\r\n",
        b"*11\r\n$1\r\na\r\n",
        b"*2\r\n$1\r\na\r\n!",
        b"get 'a\n",
    ];
    scripts.iter().for_each(|script| fuzzed::resp(script));
}

proptest! {
    #[test]
    fn bytes_mean_the_same_in_any_portions(
        bytes in prop::collection::vec(
            prop_oneof![Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), b'0'..=b'9', Just(b'"'),
                any::<u8>()], 0..120),
    ) {
        fuzzed::resp(&bytes);
    }
}
