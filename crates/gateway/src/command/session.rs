//! Commands about the connection and the server, which the session carries out.

pub(super) mod table;

/// What a session can do. The help of a command is made from the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Session {
    /// ACL, of which only subcommands do something.
    Acl(AclCommand),
    /// AUTH.
    Auth,
    /// READONLY, READWRITE and ASKING, which say where a command may be carried out.
    Anywhere,
    /// CLIENT.
    Client(Client),
    /// CLUSTER.
    Cluster(ClusterCommand),
    /// COMMAND.
    Command(Command),
    /// CONFIG.
    Config(Config),
    /// A command without the subcommand that it needs; the table does not let that through.
    Container,
    /// DEBUG SLEEP.
    DebugSleep,
    /// ECHO.
    Echo,
    /// FUNCTION FLUSH.
    FunctionFlush,
    /// HELLO.
    Hello,
    /// The HELP of a command with subcommands.
    Help,
    /// HOTKEYS.
    HotKeys(HotKeysCommand),
    /// INFO.
    Info,
    /// LATENCY.
    Latency(Latency),
    /// PING.
    Ping,
    /// QUIT.
    Quit,
    /// RESET.
    Reset,
    /// SCRIPT.
    Script(Script),
    /// SELECT.
    Select,
    /// SLOWLOG.
    Slowlog(Slowlog),
    /// TIME.
    Time,
    /// MULTI and its kin.
    Transaction(Transaction),
    /// WAIT.
    Wait,
}

/// Commands about transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// DISCARD.
    Discard,
    /// EXEC.
    Exec,
    /// MULTI.
    Multi,
    /// UNWATCH.
    Unwatch,
    /// WATCH.
    Watch,
}

/// Subcommands of ACL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AclCommand {
    /// ACL CAT.
    Cat,
    /// ACL GETUSER.
    GetUser,
    /// ACL LIST.
    List,
    /// ACL USERS.
    Users,
    /// ACL WHOAMI.
    WhoAmI,
}

/// Subcommands of CLIENT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// CLIENT GETNAME.
    GetName,
    /// CLIENT ID.
    Id,
    /// CLIENT INFO.
    Info,
    /// CLIENT KILL.
    Kill,
    /// CLIENT LIST.
    List,
    /// CLIENT NO-EVICT.
    NoEvict,
    /// CLIENT NO-TOUCH.
    NoTouch,
    /// CLIENT PAUSE.
    Pause,
    /// CLIENT REPLY.
    Reply,
    /// CLIENT SETINFO.
    SetInfo,
    /// CLIENT SETNAME.
    SetName,
    /// CLIENT UNBLOCK.
    Unblock,
    /// CLIENT UNPAUSE.
    Unpause,
}

/// Subcommands of CLUSTER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterCommand {
    /// CLUSTER INFO.
    Info,
    /// CLUSTER KEYSLOT.
    KeySlot,
    /// CLUSTER MYID.
    MyId,
    /// CLUSTER NODES.
    Nodes,
    /// CLUSTER SHARDS.
    Shards,
    /// CLUSTER SLOTS.
    Slots,
}

/// COMMAND and its subcommands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// COMMAND.
    All,
    /// COMMAND COUNT.
    Count,
    /// COMMAND DOCS.
    Docs,
    /// COMMAND GETKEYS.
    GetKeys,
    /// COMMAND INFO.
    Info,
    /// COMMAND LIST.
    List,
}

/// Subcommands of CONFIG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Config {
    /// CONFIG GET.
    Get,
    /// CONFIG RESETSTAT.
    ResetStat,
    /// CONFIG SET.
    Set,
}

/// Subcommands of HOTKEYS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotKeysCommand {
    /// HOTKEYS GET.
    Get,
    /// HOTKEYS RESET.
    Reset,
    /// HOTKEYS START.
    Start,
    /// HOTKEYS STOP.
    Stop,
}

/// Subcommands of LATENCY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// LATENCY HISTOGRAM.
    Histogram,
    /// LATENCY LATEST.
    Latest,
    /// LATENCY RESET.
    Reset,
}

/// Subcommands of SLOWLOG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slowlog {
    /// SLOWLOG GET.
    Get,
    /// SLOWLOG LEN.
    Len,
    /// SLOWLOG RESET.
    Reset,
}

/// Subcommands of SCRIPT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// SCRIPT EXISTS.
    Exists,
    /// SCRIPT FLUSH.
    Flush,
    /// SCRIPT KILL.
    Kill,
    /// SCRIPT LOAD.
    Load,
}
