//! An end of a wire that counts the IPv4 packets that arrive, and drops them.

use libbpf_rs::{Link, MapCore as _, MapFlags, Object, ObjectBuilder};

/// `bpf/sink.bpf.c` on an interface, in the driver. It is detached when this is dropped.
pub struct Sink {
    object: Object,
    _link: Link,
}

impl Sink {
    /// Attaches one to an interface of this thread's namespace.
    pub fn attach(interface: &str) -> Result<Self, String> {
        let compiled = include_bytes!(concat!(env!("OUT_DIR"), "/sink.bpf.o"));
        let open = || -> Result<Self, libbpf_rs::Error> {
            let object = ObjectBuilder::default().open_memory(compiled)?.load()?;
            let ifindex = nix::net::if_::if_nametoindex(interface).map_err(std::io::Error::from)?;
            let ifindex = i32::try_from(ifindex).expect("interfaces are few");
            let mut programs = object.progs_mut();
            let link = programs.next().expect("it has one program").attach_xdp(ifindex)?;
            drop(programs);
            Ok(Self { object, _link: link })
        };
        open().map_err(|why| format!("a sink on {interface}: {why}"))
    }

    /// Packets that have arrived.
    pub fn arrived(&self) -> u64 {
        let map = self.object.maps().find(|map| map.name() == "arrived").expect("it has this map");
        let values = map.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let values = values.expect("the map is there").expect("it has one element");
        let count =
            |value: Vec<u8>| value.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        values.into_iter().map(count).sum()
    }
}
