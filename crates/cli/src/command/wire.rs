//! `keyway wire`: packets for people.

use crate::capture::{self, Captured, Taker};
use crate::packet;
use clap::Subcommand;
use console::answer::Answer;
use console::exit::{Failure, Verdict};
use console::note;
use console::out::Out;
use console::shared::Shared;
use std::io::Write as _;

/// Look at packets.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tcpdump -U -w - udp | keyway wire decode
  keyway wire decode --json < capture.pcapng")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Decode(Decode),
}

/// Print the packets of a capture in the specification's words.
///
/// Reads standard input to its end: a capture (pcap or pcapng: Ethernet with or without VLAN tags,
/// loopback, Linux cooked, or plain IP), or hexadecimal digits, on each line a datagram, an IP
/// packet or an Ethernet frame. Packets are known by how they begin, on any UDP port; all else is
/// counted. Of a packet that a receiver would drop it says under which reason. Exits with 1 if
/// there was no packet of Keyway.
///
/// Which of two fields a reply has in one place depends on whether it has come past the switch.
/// That is seen by where it goes; of bare datagrams it is not known, and both are shown.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tcpdump -i lo -U -w - udp | keyway wire decode
  keyway wire decode --json < capture.pcapng
  xxd -p -c 0 datagram.bin | keyway wire decode

docs/operating/packets.md tells how to capture, and how Wireshark shows the same.")]
struct Decode {}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let What::Decode(Decode {}) = self.what;
        let mut printer = Printer { out: Out::lock(), json: shared.json, packets: 0 };
        let read = capture::read(&mut printer);
        let Printer { mut out, packets, .. } = printer;
        // What was printed is seen, also if the rest cannot be read.
        out.flush().map_err(console::out::failed)?;
        let others = read?;
        if shared.json {
            let answer = Answer::new(if packets > 0 { "done" } else { "not_found" });
            out.line(&answer.with("packets", packets).with("others", &others).line())?;
        }
        out.end()?;
        for (what, count) in &others {
            note!("keyway: passed over {count} {what}");
        }
        if packets == 0 {
            note!("keyway: there is no packet of Keyway in what was captured");
            return Ok(Verdict::No);
        }
        Ok(Verdict::Yes)
    }
}

struct Printer {
    out: Out,
    json: bool,
    packets: u64,
}

impl Taker for Printer {
    fn take(&mut self, captured: Captured<'_>) -> Result<bool, Failure> {
        if !wire::dissect::is_ours(captured.bytes) {
            return Ok(false);
        }
        for datagram in wire::dissect::datagrams(captured.bytes) {
            self.packets += 1;
            let said = if self.json {
                packet::json(&captured, datagram)
            } else {
                packet::text(&captured, datagram)
            };
            self.out.line(&said)?;
        }
        Ok(true)
    }

    fn pause(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(console::out::failed)
    }
}
