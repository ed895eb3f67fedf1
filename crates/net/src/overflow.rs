//! What the kernel dropped because a socket's receive buffer was full.

use super::Socket;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// Some sockets of this process, to ask the kernel about.
///
/// Its tables of UDP sockets tell the drops of each since it was opened; a socket is known there by
/// its inode. Reading them takes a fraction of a millisecond: right for a scrape, not for a batch.
#[derive(Clone, Debug)]
pub struct Overflow {
    inodes: Arc<BTreeSet<u64>>,
}

impl Overflow {
    /// For these sockets.
    ///
    /// # Errors
    ///
    /// If the system does not tell a socket's inode.
    pub fn of<'a>(sockets: impl IntoIterator<Item = &'a Socket>) -> io::Result<Self> {
        let inode = |socket: &Socket| {
            Ok(fs::metadata(format!("/proc/self/fd/{}", socket.as_raw_fd()))?.ino())
        };
        let inodes = sockets.into_iter().map(inode).collect::<io::Result<_>>()?;
        Ok(Self { inodes: Arc::new(inodes) })
    }

    /// Datagrams dropped so far, of which the kernel counts a bundle as one; those of a socket that
    /// is closed by now are not in it.
    #[must_use]
    pub fn count(&self) -> u64 {
        let tables = ["/proc/self/net/udp", "/proc/self/net/udp6"];
        // A kernel without IPv6 has no second table.
        let texts = tables.into_iter().filter_map(|table| fs::read_to_string(table).ok());
        texts.map(|text| drops_in(&text, &self.inodes)).sum()
    }
}

/// Sums the last column (drops) of the rows whose tenth (inode) is one of these.
fn drops_in(table: &str, inodes: &BTreeSet<u64>) -> u64 {
    let drops = |row: &str| {
        let inode: u64 = row.split_whitespace().nth(9)?.parse().ok()?;
        inodes.contains(&inode).then_some(row.split_whitespace().last()?.parse::<u64>().ok()?)
    };
    table.lines().skip(1).filter_map(drops).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn rows_are_found_by_inode() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt \
                     uid  timeout inode ref pointer drops\n\
                     1: 0100007F:1E14 00000000:0000 07 0:0 00:0 0 0 0 77 2 0000000000000000 5\n\
                     2: 0100007F:1E15 00000000:0000 07 0:0 00:0 0 0 0 78 2 0000000000000000 9\n";
        // The queues and timers are one column each, as the kernel prints them.
        assert_eq!(drops_in(table, &[77].into()), 5);
        assert_eq!(drops_in(table, &[77, 78, 79].into()), 14);
    }

    #[test]
    fn a_buffer_that_overflows_is_seen() {
        let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let overflow = Overflow::of([&socket]).unwrap();
        assert_eq!(overflow.count(), 0);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        // More than any buffer that the socket can have been given; nobody receives.
        for _ in 0..20_000 {
            sender.send_to(&[0; 1_400], socket.local()).unwrap();
        }
        assert!(overflow.count() > 0);
    }
}
