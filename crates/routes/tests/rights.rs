//! A process without rights: one of its own, for it gives up those of all its threads.

#[cfg(test)]
mod tests {
    use nix::sched::{CloneFlags, unshare};
    use nix::unistd::setresuid;
    use routes::{Error, Fib};
    use testkit::skip;

    #[test]
    fn who_may_not_change_routes_is_told_so() {
        let service = "fd00:6b77:1::/48".parse().expect("a service prefix");
        let nobody = 65_534.into();
        // Whoever has no rights anyway has none to give up.
        if unshare(CloneFlags::CLONE_NEWNET).is_ok() {
            Fib::open(service).expect("root may");
            if let Err(why) = setresuid(nobody, nobody, nobody) {
                let test = "who_may_not_change_routes_is_told_so";
                return skip::report(test, &format!("rights cannot be given up: {why}"));
            }
        }
        let refused = Fib::open(service);
        assert!(matches!(refused, Err(Error::NoRight)), "{refused:?}");
    }
}
