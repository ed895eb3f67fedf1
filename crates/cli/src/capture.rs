//! Captured packets from standard input, one after the other and never all at once: pcap, pcapng,
//! or hexadecimal digits. What the packets say is others' affair.

mod frame;
mod hex;
mod pcap;
mod reading;

use console::exit::Failure;
use console::file;
use reading::{Reading, read_up_to};
use std::io::{IsTerminal as _, Read};

pub(crate) use reading::{Captured, Others, Taker};

/// Reads standard input to its end. Gives what was found there besides.
pub(crate) fn read(taker: &mut dyn Taker) -> Result<Others, Failure> {
    let stdin = file::stdin()?;
    if stdin.is_terminal() {
        return Err(Failure::usage(
            "there is no capture on standard input: pipe one in, as in \
             `tcpdump -U -w - udp | keyway wire decode`",
        ));
    }
    read_from(Box::new(stdin), taker)
}

/// The first bytes say which form a capture has.
fn read_from(mut input: Box<dyn Read>, taker: &mut dyn Taker) -> Result<Others, Failure> {
    let mut reading = Reading { taker, others: Others::new() };
    let head = read_up_to(&mut input, 4)?;
    if pcap::is_pcap(&head) {
        pcap::read(head, input, &mut reading)?;
    } else if head.starts_with(&[0x1f, 0x8b]) || head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let why =
            "the capture is compressed: unpack it first, as in `zcat FILE | keyway wire decode`";
        return Err(Failure::usage(why));
    } else {
        hex::read(head, input, &mut reading)?;
    }
    Ok(reading.others)
}
