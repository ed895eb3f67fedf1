//! Network namespaces and the wires between them. They go when the threads in them end.

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Pid, gettid};
use std::process::Command;
use std::sync::mpsc;
use std::thread::JoinHandle;

/// Moves this thread into a namespace of its own, or says why that is impossible here. What it
/// starts from then on, threads and processes, is in there too.
pub fn enter_own_namespace() -> Result<(), String> {
    Command::new("ip").arg("-V").output().map_err(|e| format!("no program ip: {e}"))?;
    unshare(CloneFlags::CLONE_NEWNET).map_err(|e| format!("no network namespaces: {e}"))?;
    ip("link set lo up");
    Ok(())
}

/// Runs `ip`, which is there and may do what it is told: we are in a namespace of our own.
pub fn ip(line: &str) -> String {
    let output = Command::new("ip").args(line.split(' ')).output().expect("it ran before");
    assert!(output.status.success(), "ip {line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

type Job = Box<dyn FnOnce() + Send>;

/// A namespace with a thread in it that does what it is asked to.
pub struct Room {
    holder: Pid,
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Room {
    /// A namespace beside that of this thread, whose interfaces may be moved.
    pub fn open() -> Result<Self, String> {
        let (says, hears) = mpsc::channel();
        let (jobs, to_do) = mpsc::channel::<Job>();
        let thread = std::thread::spawn(move || {
            let entered = enter_own_namespace();
            let goes_on = entered.is_ok();
            // Whoever asked for the room waits for this.
            let _ = says.send(entered.map(|()| gettid()));
            // The namespace lives as long as somebody is in it.
            to_do.iter().take_while(|_| goes_on).for_each(|job| job());
        });
        let holder = hears.recv().map_err(|e| e.to_string())??;
        Ok(Self { holder, jobs: Some(jobs), thread: Some(thread) })
    }

    /// Moves this thread into a namespace of its own that forwards everything by a wire `near` to a
    /// gateway, 02:00:00:00:01:02, whose end is `far` in the room that is returned.
    pub fn of_gateway() -> Result<Self, String> {
        enter_own_namespace()?;
        let room = Self::open()?;
        room.wire("near", "far", 1);
        for line in [
            "address add 10.255.0.1/24 dev near",
            "neighbour add 10.255.0.2 lladdr 02:00:00:00:01:02 dev near nud permanent",
            "route add default via 10.255.0.2 dev near",
        ] {
            ip(line);
        }
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").map_err(|e| e.to_string())?;
        Ok(room)
    }

    /// Does something in there.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (says, hears) = mpsc::channel();
        let job = move || says.send(job()).expect("whoever asked waits for the answer");
        let jobs = self.jobs.as_ref().expect("the room is open");
        jobs.send(Box::new(job)).expect("the thread waits for jobs");
        hears.recv().expect("the job was done")
    }

    /// Lays a wire from this thread's namespace into the room, up on both sides. Ethernet addresses
    /// are 02:00:00:00:`number`:01 here and :02 there.
    pub fn wire(&self, near: &str, far: &str, number: u8) {
        let mac = |end| format!("02:00:00:00:{number:02x}:{end:02x}");
        let (here, there) = (mac(1), mac(2));
        ip(&format!(
            "link add name {near} address {here} type veth peer name {far} address {there}"
        ));
        ip(&format!("link set {far} netns {}", self.holder));
        let far = far.to_owned();
        self.run(move || ip(&format!("link set {far} up")));
        ip(&format!("link set {near} up"));
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        drop(self.jobs.take());
        let ended = self.thread.take().map(JoinHandle::join);
        debug_assert!(matches!(ended, Some(Ok(()))), "a job in the room failed");
    }
}
