//! The table of commands about the connection and the server.

use super::{
    AclCommand, Client, ClusterCommand, Command, Config, HotKeysCommand, Latency, Script, Session,
    Slowlog, Transaction,
};
use crate::command::spec::{Access, Keys, Run, Spec};

/// Who may use what: categories of Redis.
type Categories = &'static [&'static str];

/// What every client needs.
const CONNECTION: Categories = &["fast", "connection"];
/// What every client may ask, and takes longer.
const SLOW_CONNECTION: Categories = &["connection"];
/// What only operators do.
const ADMIN: Categories = &["admin", "dangerous"];
/// What only operators do to clients.
const CLIENT_ADMIN: Categories = &["admin", "dangerous", "connection"];
/// What tells everybody something.
const PLAIN: Categories = &[];

const fn entry(
    (name, arity): (&'static str, i32),
    run: Session,
    categories: Categories,
    (group, since): (&'static str, &'static str),
    summary: &'static str,
) -> Spec {
    let (keys, access, run) = (Keys::None, Access::None, Run::Session(run));
    Spec { name, arity, keys, access, categories, summary, since, group, run }
}

const fn connection(
    name: (&'static str, i32),
    run: Session,
    since: &'static str,
    summary: &'static str,
) -> Spec {
    entry(name, run, CONNECTION, ("connection", since), summary)
}

const fn slow(
    name: (&'static str, i32),
    run: Session,
    since: &'static str,
    summary: &'static str,
) -> Spec {
    entry(name, run, SLOW_CONNECTION, ("connection", since), summary)
}

const fn server(
    name: (&'static str, i32),
    run: Session,
    categories: Categories,
    since: &'static str,
    summary: &'static str,
) -> Spec {
    entry(name, run, categories, ("server", since), summary)
}

const fn scripting(
    name: (&'static str, i32),
    run: Session,
    since: &'static str,
    summary: &'static str,
) -> Spec {
    entry(name, run, &["scripting"], ("scripting", since), summary)
}

const fn transaction(
    (name, arity): (&'static str, i32),
    run: Transaction,
    since: &'static str,
    summary: &'static str,
) -> Spec {
    let fast: Categories = &["fast", "transaction"];
    let slow: Categories = &["transaction"];
    let categories = if matches!(run, Transaction::Exec) { slow } else { fast };
    let keys = match run {
        Transaction::Watch => Keys::Range { first: 1, last: -1, step: 1 },
        _ => Keys::None,
    };
    let spec = entry(
        (name, arity),
        Session::Transaction(run),
        categories,
        ("transactions", since),
        summary,
    );
    Spec { keys, ..spec }
}

/// Commands about the connection and the server.
pub(in crate::command) static TABLE: &[Spec] = &[
    server(("acl", -2), Session::Container, PLAIN, "6.0.0", "Tells who may do what."),
    connection(
        ("asking", 1),
        Session::Anywhere,
        "3.0.0",
        "Means nothing: no gateway sends clients to another.",
    ),
    connection(("auth", -2), Session::Auth, "1.0.0", "Authenticates the connection."),
    slow(("client", -2), Session::Container, "2.4.0", "Asks of and changes connections."),
    server(("cluster", -2), Session::Container, PLAIN, "3.0.0", "Tells where slots are."),
    server(
        ("command", -1),
        Session::Command(Command::All),
        SLOW_CONNECTION,
        "2.8.13",
        "Returns detailed information about all commands.",
    ),
    server(("config", -2), Session::Container, PLAIN, "2.0.0", "Asks of and changes parameters."),
    server(("debug", -2), Session::Container, ADMIN, "1.0.0", "Makes tests possible."),
    transaction(("discard", 1), Transaction::Discard, "2.0.0", "Discards a transaction."),
    connection(("echo", 2), Session::Echo, "1.0.0", "Returns the given string."),
    transaction(
        ("exec", 1),
        Transaction::Exec,
        "1.2.0",
        "Carries out a transaction: at one instant or, if its keys lie apart and INFO says \
         keyway_multi:ordered, one command after the other.",
    ),
    entry(
        ("function", -2),
        Session::Container,
        &["scripting"],
        ("scripting", "7.0.0"),
        "Deletes functions, of which there are none.",
    ),
    connection(("hello", -1), Session::Hello, "6.0.0", "Begins a conversation."),
    server(
        ("info", -1),
        Session::Info,
        &["dangerous"],
        "1.0.0",
        "Returns information and statistics about the server.",
    ),
    server(("hotkeys", -2), Session::Container, PLAIN, "8.6.0", "Tells which keys are hot."),
    server(("latency", -2), Session::Container, PLAIN, "2.8.13", "Tells how long commands take."),
    transaction(("multi", 1), Transaction::Multi, "1.2.0", "Starts a transaction."),
    connection(("ping", -1), Session::Ping, "1.0.0", "Returns the server's liveliness response."),
    connection(("quit", -1), Session::Quit, "1.0.0", "Closes the connection."),
    connection(
        ("readonly", 1),
        Session::Anywhere,
        "3.0.0",
        "Means nothing: reads are never old, whatever answers them.",
    ),
    connection(("readwrite", 1), Session::Anywhere, "3.0.0", "Means nothing, as READONLY."),
    connection(("reset", 1), Session::Reset, "6.2.0", "Resets the connection."),
    scripting(
        ("script", -2),
        Session::Container,
        "2.6.0",
        "Asks of and changes the known scripts.",
    ),
    connection(("select", 2), Session::Select, "1.0.0", "Changes the selected database."),
    server(("slowlog", -2), Session::Container, PLAIN, "2.2.12", "Tells which commands were slow."),
    server(("time", 1), Session::Time, &["fast"], "2.6.0", "Returns the server time."),
    transaction(
        ("unwatch", 1),
        Transaction::Unwatch,
        "2.2.0",
        "Forgets about watched keys of a transaction.",
    ),
    entry(
        ("wait", 3),
        Session::Wait,
        &["blocking"],
        ("generic", "3.0.0"),
        "Tells on how many replicas the writes of this connection are.",
    ),
    transaction(
        ("watch", -2),
        Transaction::Watch,
        "2.2.0",
        "Has the next transaction done only if keys have not changed till then.",
    ),
];

/// Subcommands, each under its full name.
pub(in crate::command) fn subcommands() -> impl Iterator<Item = &'static Spec> {
    ACL.iter().chain(CLIENT).chain(CLUSTER).chain(COMMAND).chain(CONFIG).chain(OTHERS)
}

static ACL: &[Spec] = &[
    server(("acl|cat", -2), Session::Acl(AclCommand::Cat), PLAIN, "6.0.0", "Lists categories."),
    server(
        ("acl|getuser", 3),
        Session::Acl(AclCommand::GetUser),
        ADMIN,
        "6.0.0",
        "Tells a user's rules.",
    ),
    server(("acl|help", 2), Session::Help, PLAIN, "6.0.0", "Shows this help."),
    server(
        ("acl|list", 2),
        Session::Acl(AclCommand::List),
        ADMIN,
        "6.0.0",
        "Tells all users' rules.",
    ),
    server(("acl|users", 2), Session::Acl(AclCommand::Users), ADMIN, "6.0.0", "Lists all users."),
    server(
        ("acl|whoami", 2),
        Session::Acl(AclCommand::WhoAmI),
        PLAIN,
        "6.0.0",
        "Tells the own name.",
    ),
];

static CLIENT: &[Spec] = &[
    slow(
        ("client|getname", 2),
        Session::Client(Client::GetName),
        "2.6.9",
        "Returns the name of the connection.",
    ),
    slow(("client|help", 2), Session::Help, "5.0.0", "Shows this help."),
    slow(
        ("client|id", 2),
        Session::Client(Client::Id),
        "5.0.0",
        "Returns the unique number of the connection.",
    ),
    slow(
        ("client|info", 2),
        Session::Client(Client::Info),
        "6.2.0",
        "Returns information about the connection.",
    ),
    operator(("client|kill", -3), Client::Kill, "2.4.0", "Ends connections."),
    operator(("client|list", -2), Client::List, "2.4.0", "Lists open connections."),
    operator(
        ("client|no-evict", 3),
        Client::NoEvict,
        "7.0.0",
        "Taken note of: no connection is ended for want of memory.",
    ),
    slow(
        ("client|no-touch", 3),
        Session::Client(Client::NoTouch),
        "7.2.0",
        "Taken note of: no key is evicted, touched or not.",
    ),
    operator(("client|pause", -3), Client::Pause, "3.0.0", "Suspends commands of all clients."),
    slow(
        ("client|reply", 3),
        Session::Client(Client::Reply),
        "3.2.0",
        "Tells the server whether to reply.",
    ),
    slow(
        ("client|setinfo", 4),
        Session::Client(Client::SetInfo),
        "7.2.0",
        "Tells the server about the client's library.",
    ),
    slow(("client|setname", 3), Session::Client(Client::SetName), "2.6.9", "Names the connection."),
    operator(
        ("client|unblock", -3),
        Client::Unblock,
        "5.0.0",
        "Unblocks a connection; none is blocked.",
    ),
    operator(("client|unpause", 2), Client::Unpause, "6.2.0", "Resumes commands of all clients."),
];

const fn operator(
    name: (&'static str, i32),
    run: Client,
    since: &'static str,
    summary: &'static str,
) -> Spec {
    entry(name, Session::Client(run), CLIENT_ADMIN, ("connection", since), summary)
}

const fn about_commands(
    name: (&'static str, i32),
    run: Command,
    since: &'static str,
    summary: &'static str,
) -> Spec {
    server(name, Session::Command(run), SLOW_CONNECTION, since, summary)
}

static COMMAND: &[Spec] = &[
    about_commands(("command|count", 2), Command::Count, "2.8.13", "Counts commands."),
    about_commands(("command|docs", -2), Command::Docs, "7.0.0", "Tells what commands do."),
    about_commands(
        ("command|getkeys", -3),
        Command::GetKeys,
        "2.8.13",
        "Extracts the keys of a command.",
    ),
    server(("command|help", 2), Session::Help, SLOW_CONNECTION, "5.0.0", "Shows this help."),
    about_commands(("command|info", -2), Command::Info, "2.8.13", "Tells about some commands."),
    about_commands(("command|list", -2), Command::List, "7.0.0", "Lists names of commands."),
];

const fn about_slots(
    name: (&'static str, i32),
    run: ClusterCommand,
    since: &'static str,
    summary: &'static str,
) -> Spec {
    server(name, Session::Cluster(run), PLAIN, since, summary)
}

static CLUSTER: &[Spec] = &[
    server(("cluster|help", 2), Session::Help, PLAIN, "5.0.0", "Shows this help."),
    about_slots(("cluster|info", 2), ClusterCommand::Info, "3.0.0", "Tells how the cluster is."),
    about_slots(
        ("cluster|keyslot", 3),
        ClusterCommand::KeySlot,
        "3.0.0",
        "Returns the slot of a key.",
    ),
    about_slots(("cluster|myid", 2), ClusterCommand::MyId, "3.0.0", "Returns the id of this node."),
    about_slots(
        ("cluster|nodes", 2),
        ClusterCommand::Nodes,
        "3.0.0",
        "Lists nodes and their slots.",
    ),
    about_slots(
        ("cluster|shards", 2),
        ClusterCommand::Shards,
        "7.0.0",
        "Lists slots and their nodes.",
    ),
    about_slots(
        ("cluster|slots", 2),
        ClusterCommand::Slots,
        "3.0.0",
        "Lists slots and their nodes.",
    ),
];

static CONFIG: &[Spec] = &[
    server(("config|get", -3), Session::Config(Config::Get), ADMIN, "2.0.0", "Tells parameters."),
    server(("config|help", 2), Session::Help, PLAIN, "5.0.0", "Shows this help."),
    server(
        ("config|resetstat", 2),
        Session::Config(Config::ResetStat),
        ADMIN,
        "2.0.0",
        "Sets statistics to zero.",
    ),
    server(("config|set", -4), Session::Config(Config::Set), ADMIN, "2.0.0", "Sets parameters."),
];

static OTHERS: &[Spec] = &[
    server(("debug|sleep", 3), Session::DebugSleep, ADMIN, "1.0.0", "Replies after some seconds."),
    entry(
        ("function|flush", -2),
        Session::FunctionFlush,
        &["write", "scripting"],
        ("scripting", "7.0.0"),
        "Deletes all functions, of which there are none.",
    ),
    server(
        ("hotkeys|get", 2),
        Session::HotKeys(HotKeysCommand::Get),
        ADMIN,
        "8.6.0",
        "Lists the keys that clients of the whole cluster ask for most.",
    ),
    server(("hotkeys|help", 2), Session::Help, PLAIN, "8.6.0", "Shows this help."),
    server(
        ("hotkeys|reset", 2),
        Session::HotKeys(HotKeysCommand::Reset),
        ADMIN,
        "8.6.0",
        "Forgets what START has said.",
    ),
    server(
        ("hotkeys|start", -2),
        Session::HotKeys(HotKeysCommand::Start),
        ADMIN,
        "8.6.0",
        "Says from when on GET is to tell, and how many keys; requests are always counted.",
    ),
    server(
        ("hotkeys|stop", 2),
        Session::HotKeys(HotKeysCommand::Stop),
        ADMIN,
        "8.6.0",
        "Says until when GET is to tell.",
    ),
    server(("latency|help", 2), Session::Help, PLAIN, "2.8.13", "Shows this help."),
    latency(
        ("latency|histogram", -2),
        Latency::Histogram,
        "7.0.0",
        "Tells how long commands took.",
    ),
    latency(("latency|latest", 2), Latency::Latest, "2.8.13", "Lists events, which none are."),
    latency(("latency|reset", -2), Latency::Reset, "2.8.13", "Forgets events, which none are."),
    scripting(
        ("script|exists", -3),
        Session::Script(Script::Exists),
        "2.6.0",
        "Tells which scripts are known.",
    ),
    scripting(
        ("script|flush", -2),
        Session::Script(Script::Flush),
        "2.6.0",
        "Forgets all scripts.",
    ),
    scripting(("script|help", 2), Session::Help, "5.0.0", "Shows this help."),
    scripting(
        ("script|kill", 2),
        Session::Script(Script::Kill),
        "2.6.0",
        "Ends the scripts that run at this gateway; nothing of them takes effect.",
    ),
    scripting(
        ("script|load", 3),
        Session::Script(Script::Load),
        "2.6.0",
        "Makes a script known, and tells the SHA-1 of its text.",
    ),
    server(("slowlog|get", -2), Session::Slowlog(Slowlog::Get), ADMIN, "2.2.12", "Lists them."),
    server(("slowlog|help", 2), Session::Help, PLAIN, "6.2.0", "Shows this help."),
    server(("slowlog|len", 2), Session::Slowlog(Slowlog::Len), ADMIN, "2.2.12", "Counts them."),
    server(
        ("slowlog|reset", 2),
        Session::Slowlog(Slowlog::Reset),
        ADMIN,
        "2.2.12",
        "Forgets them.",
    ),
];

const fn latency(
    name: (&'static str, i32),
    run: Latency,
    since: &'static str,
    summary: &'static str,
) -> Spec {
    server(name, Session::Latency(run), ADMIN, since, summary)
}
