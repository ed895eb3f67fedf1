//! What is on its way.

/// A packet. It may arrive late or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Packet {
    /// A read that a switch has sent on.
    Read {
        /// By which switch.
        by: u8,
        /// To which node.
        to: u8,
        /// What is asked.
        question: Question,
        /// The newest version that any client had seen then.
        seen: u8,
    },
    /// A write that a switch has sent to the head.
    Write {
        /// By which switch.
        by: u8,
        /// To which node.
        to: u8,
        /// As stamped.
        epoch: u8,
    },
    /// An ordered write on its way down the chain.
    Forward {
        /// Of the sender's chain.
        epoch: u8,
        /// Sender.
        from: u8,
        /// Receiver.
        to: u8,
        /// Of the write.
        version: u8,
    },
}

/// What a read asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    /// GET: the tail in this epoch.
    Get(u8),
    /// MGET or RANGE: this node, in whatever epoch, if it is the tail. It need not be the tail by
    /// the switch's tables: hints of clients may be wrong. The reply raises no floor by itself.
    Many(u8),
    /// GET of a hot key: a copy that is not below this.
    Copy(u8),
}
