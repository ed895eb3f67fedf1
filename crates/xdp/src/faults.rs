//! Bad links, for experiments: a program at the far end of a link loses, doubles and delays the
//! datagrams that come in there. It stays when the process that attached it has ended, as
//! long as the interface is there or until it is detached.

use crate::program::{Error, log_libbpf};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{
    ErrorKind, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, TC_EGRESS, TC_INGRESS, TcHook,
    TcHookBuilder,
};
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};

pub use crate::layout::{FaultCounts as Counts, Faults};

/// `bpf/faults.bpf.c`, compiled.
static FAULTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/faults.bpf.o"));

impl Faults {
    /// Makes the link bad whose end this interface is, in place of what was there before. Counting
    /// begins anew.
    ///
    /// # Errors
    ///
    /// If there is no such interface, or the kernel does not take the program.
    pub fn attach(self, interface: &str) -> Result<(), Error> {
        let object = self.load()?;
        let program = object.progs().next().expect("bpf/faults.bpf.c has one program");
        let mut hook = hook(program.as_fd(), interface)?;
        let kernel = |why| Error::Kernel { what: format!("attaching to {interface}"), why };
        hook.create().map_err(kernel)?;
        hook.attach().map_err(kernel)?;
        Ok(())
    }

    fn load(self) -> Result<Object, Error> {
        log_libbpf();
        let load = |why: libbpf_rs::Error| Error::Load { why, hint: "; it needs root" };
        let mut open = ObjectBuilder::default().open_memory(FAULTS).map_err(load)?;
        for mut map in open.maps_mut() {
            if map.name().to_string_lossy().ends_with(".rodata.faults") {
                map.set_initial_value(&self.to_bytes()).map_err(load)?;
            }
        }
        open.load().map_err(load)
    }
}

/// Makes the link good again.
///
/// # Errors
///
/// If there is no such interface, or the kernel refuses.
pub fn detach(interface: &str) -> Result<(), Error> {
    let mut hook = hook(std::io::stdin().as_fd(), interface)?;
    match hook.attach_point(TC_INGRESS | TC_EGRESS).destroy() {
        // What is not there need not be removed.
        Err(why) if !is_missing(&why) => {
            Err(Error::Kernel { what: format!("detaching from {interface}"), why })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// What a link has done so far; `None` if it is a good one.
///
/// # Errors
///
/// If there is no such interface, or the kernel does not say.
pub fn counts(interface: &str) -> Result<Option<Counts>, Error> {
    let id = match hook(std::io::stdin().as_fd(), interface)?.query() {
        Ok(id) => id,
        Err(why) if is_missing(&why) => return Ok(None),
        Err(why) => {
            return Err(Error::Kernel { what: format!("asking about {interface}"), why });
        }
    };
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    let info = ProgInfoIter::with_query_opts(options).find(|info| info.id == id);
    let maps = info.into_iter().flat_map(|info| info.map_ids);
    let mut maps = maps.filter_map(|id| MapHandle::from_map_id(id).ok());
    let Some(map) = maps.find(|map| map.name() == OsStr::new(".data.counts")) else {
        // Somebody else's program.
        return Ok(None);
    };
    let value = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
    let value = value.map_err(|why| Error::Kernel { what: "reading counts".into(), why })?;
    Ok(value.as_deref().and_then(Counts::from_bytes))
}

/// Where the program is attached: the first filter on the way in. Only attaching takes a program.
fn hook(program: BorrowedFd<'_>, interface: &str) -> Result<TcHook, Error> {
    log_libbpf();
    let index = nix::net::if_::if_nametoindex(interface);
    let index = index.map_err(|_| Error::NoInterface(interface.to_owned()))?;
    let index = i32::try_from(index).map_err(|_| Error::NoInterface(interface.to_owned()))?;
    let mut builder = TcHookBuilder::new(program);
    builder.ifindex(index).handle(1).priority(1).replace(true);
    Ok(builder.hook(TC_INGRESS))
}

/// Whether that is because nothing is attached.
fn is_missing(why: &libbpf_rs::Error) -> bool {
    matches!(why.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::put;
    use libbpf_rs::ProgramInput;

    const DATAGRAMS: usize = 20_000;

    /// An empty datagram in an Ethernet frame.
    fn frame() -> Vec<u8> {
        let mut frame = vec![0; 64];
        put(&mut frame, 12, &[8, 0, 0x45]);
        put(&mut frame, 16, &[0, 50]);
        put(&mut frame, 22, &[64, 17]);
        frame
    }

    /// Which of a sequence of datagrams are not delivered; `None` if programs may not be loaded.
    fn missing(faults: Faults, test: &str) -> Option<Vec<bool>> {
        let object = match faults.load() {
            Ok(object) => object,
            Err(why) => {
                testkit::skip::report(test, &why.to_string());
                return None;
            }
        };
        let program = object.progs_mut().next().unwrap();
        let run = |_| {
            let frame = frame();
            let input = ProgramInput { data_in: Some(&frame), ..ProgramInput::default() };
            let verdict = program.test_run(input).unwrap().return_value;
            assert!([TC_ACT_OK, TC_ACT_SHOT, TC_ACT_REDIRECT].contains(&verdict), "{verdict}");
            verdict == TC_ACT_SHOT
        };
        Some((0..DATAGRAMS).map(run).collect())
    }

    const TC_ACT_OK: u32 = 0;
    const TC_ACT_SHOT: u32 = 2;
    const TC_ACT_REDIRECT: u32 = 7;

    #[test]
    fn one_seed_is_one_sequence_of_faults() {
        let test = "one_seed_is_one_sequence_of_faults";
        let faults = Faults { seed: 7, lost_ppm: 100_000, ..Faults::default() };
        let Some(first) = missing(faults, test) else { return };
        assert_eq!(missing(faults, test).as_ref(), Some(&first));
        assert_ne!(missing(Faults { seed: 8, ..faults }, test), Some(first.clone()));
        let lost = first.iter().filter(|lost| **lost).count();
        // 2,000 give or take 42, five times.
        assert!((1_790..2_210).contains(&lost), "{lost}");
    }

    #[test]
    fn a_link_without_faults_delivers_everything() {
        let test = "a_link_without_faults_delivers_everything";
        let Some(missing) = missing(Faults::default(), test) else { return };
        assert!(!missing.contains(&true));
    }

    #[test]
    fn of_those_that_are_to_be_overtaken_one_is_kept_at_a_time() {
        let test = "of_those_that_are_to_be_overtaken_one_is_kept_at_a_time";
        let faults = Faults { seed: 7, overtaken_ppm: 1_000_000, ..Faults::default() };
        let Some(missing) = missing(faults, test) else { return };
        let kept: Vec<usize> =
            missing.iter().enumerate().filter(|(_, kept)| **kept).map(|it| it.0).collect();
        let gaps = kept.windows(2).map(|pair| pair[1] - pair[0]);
        // Until it has been released nobody else is, and then the next one is at once.
        assert!(gaps.clone().all(|gap| (2..=17).contains(&gap)), "{kept:?}");
        assert!(gaps.clone().max() == Some(17) && gaps.min() == Some(2));
    }
}
