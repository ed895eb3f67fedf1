//! Real Redis clients, as they come, against `keyway gateway`: tests/clients/README.md says what
//! each of them has to do.

#[cfg(test)]
mod applications;
#[cfg(test)]
mod driver;
#[cfg(test)]
mod gateway;
#[cfg(test)]
mod redis_cli;
#[cfg(test)]
mod reply;
#[cfg(test)]
mod script;
#[cfg(test)]
mod toolchain;
#[cfg(test)]
mod ycsb;

#[cfg(test)]
mod tests {
    use crate::driver::Driver;
    use crate::gateway::Gateway;
    use crate::script::Script;
    use crate::{applications, redis_cli, toolchain, ycsb};
    use runtime::clock::Clock;
    use std::process::Command;
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use testkit::skip;

    /// One client at a time: they would take each other's time.
    static MACHINE: Mutex<()> = Mutex::new(());

    fn alone() -> MutexGuard<'static, ()> {
        MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a driver do everything; `build` says how it is started, or why it cannot be.
    fn drive(test: &str, build: fn() -> Result<Command, String>) {
        let _alone = alone();
        let command = match build() {
            Ok(command) => command,
            Err(why) => return skip::report(test, &why),
        };
        let script = Script::read();
        let mut gateway = Gateway::start();
        let mut clock = Clock::new();
        let began = clock.now();
        let mut driver = Driver::start(command, gateway.at, &script);
        let client = driver.expect("client");
        let name = client.as_str().expect("a name and a version");
        for step in script.keyway_steps() {
            step.check(name, &driver.expect("reply"));
        }
        script.check_pipeline(name, &driver.expect("pipeline"));
        script.check_typed(name, &driver.expect("typed"));
        outlive_a_restart(driver, &mut gateway);
        println!(
            "{name}: {} commands, a pipeline of {}, {} methods, a restart, {:.1} s",
            script.keyway_steps().count(),
            script.pipeline.len(),
            script.typed.len(),
            clock.now().since(began).as_secs_f64()
        );
    }

    /// Restarts the gateway, after which a driver goes on with what it has, and ends.
    fn outlive_a_restart(mut driver: Driver, gateway: &mut Gateway) {
        driver.expect("waiting");
        gateway.restart();
        driver.go_on();
        let again = driver.expect("again");
        assert!(again == serde_json::json!([true, "1"]) || again == serde_json::json!(["OK", "1"]));
        driver.wait();
    }

    #[test]
    fn redis_py_does_everything() {
        drive("redis_py_does_everything", toolchain::redis_py);
    }

    #[test]
    fn go_redis_does_everything() {
        drive("go_redis_does_everything", toolchain::go_redis);
    }

    #[test]
    fn jedis_does_everything() {
        drive("jedis_does_everything", toolchain::jedis);
    }

    #[test]
    fn lettuce_does_everything() {
        drive("lettuce_does_everything", toolchain::lettuce);
    }

    #[test]
    fn ioredis_does_everything() {
        drive("ioredis_does_everything", toolchain::ioredis);
    }

    /// Lets a driver connect as a client of a cluster, before a gateway that says it is one.
    fn drive_cluster(test: &str, build: fn() -> Result<Command, String>) {
        let _alone = alone();
        let command = match build() {
            Ok(command) => command,
            Err(why) => return skip::report(test, &why),
        };
        let mut gateway = Gateway::start_with(&["--cluster"]);
        let mut driver = Driver::start_as(command, gateway.at, &Script::read(), Some("cluster"));
        let client = driver.expect("client");
        let nodes = [gateway.at.to_string()];
        let expected = serde_json::json!({"nodes": nodes, "found": 200, "tagged": ["1", "2"]});
        assert_eq!(driver.expect("cluster"), expected, "{client}");
        outlive_a_restart(driver, &mut gateway);
        println!("{client}: as a client of a cluster, 200 keys, a restart");
    }

    #[test]
    fn redis_py_finds_a_cluster() {
        drive_cluster("redis_py_finds_a_cluster", toolchain::redis_py);
    }

    #[test]
    fn go_redis_finds_a_cluster() {
        drive_cluster("go_redis_finds_a_cluster", toolchain::go_redis);
    }

    #[test]
    fn jedis_finds_a_cluster() {
        drive_cluster("jedis_finds_a_cluster", toolchain::jedis);
    }

    #[test]
    fn lettuce_finds_a_cluster() {
        drive_cluster("lettuce_finds_a_cluster", toolchain::lettuce);
    }

    #[test]
    fn ioredis_finds_a_cluster() {
        drive_cluster("ioredis_finds_a_cluster", toolchain::ioredis);
    }

    /// The language of applications, the packages that they are, and how their driver is started.
    type Applications = (&'static str, &'static [(&'static str, &'static str)], Starts);
    type Starts = fn() -> Result<Command, String>;

    const PYTHON: Applications = ("Python", &[], toolchain::applications_in_python);
    const JAVASCRIPT: Applications = ("JavaScript", &[], toolchain::applications_in_javascript);
    const JAVA: Applications = ("Java", &[], toolchain::applications_in_java);
    const PHP: Applications = ("PHP", &toolchain::PHP, toolchain::applications_in_php);
    const RUBY: Applications = ("Ruby", &toolchain::RUBY, toolchain::applications_in_ruby);

    fn keep_to_the_page(test: &str, (language, packages, starts): Applications) {
        let _alone = alone();
        let ready = toolchain::packaged(packages);
        if let Err(why) = ready.and_then(|()| applications::check(language, starts)) {
            skip::report(test, &why);
        }
    }

    #[test]
    fn applications_in_python_do_what_the_page_says() {
        keep_to_the_page("applications_in_python_do_what_the_page_says", PYTHON);
    }

    #[test]
    fn applications_in_javascript_do_what_the_page_says() {
        keep_to_the_page("applications_in_javascript_do_what_the_page_says", JAVASCRIPT);
    }

    #[test]
    fn applications_in_java_do_what_the_page_says() {
        keep_to_the_page("applications_in_java_do_what_the_page_says", JAVA);
    }

    #[test]
    fn applications_in_php_do_what_the_page_says() {
        keep_to_the_page("applications_in_php_do_what_the_page_says", PHP);
    }

    #[test]
    fn applications_in_ruby_do_what_the_page_says() {
        keep_to_the_page("applications_in_ruby_do_what_the_page_says", RUBY);
    }

    /// What is refused is refused by the gateway, and not asked for in a wrong way.
    #[test]
    fn applications_do_everything_with_redis() {
        let test = "applications_do_everything_with_redis";
        let _alone = alone();
        if let Err(why) = toolchain::program("redis-server", "redis-server") {
            return skip::report(test, &why);
        }
        for (_, packages, starts) in [PYTHON, JAVASCRIPT, JAVA, PHP, RUBY] {
            let server = redis_cli::Server::start();
            let ready = toolchain::packaged(packages);
            if let Err(why) = ready.and_then(|()| applications::do_everything(server.at, starts)) {
                skip::report(test, &why);
            }
        }
    }

    #[test]
    fn redis_cli_finds_a_cluster() {
        let _alone = alone();
        if let Err(why) = toolchain::program("redis-cli", "redis-tools") {
            return skip::report("redis_cli_finds_a_cluster", &why);
        }
        redis_cli::finds_a_cluster(Gateway::start_with(&["--cluster"]).at);
    }

    #[test]
    fn redis_cli_does_everything() {
        let _alone = alone();
        if let Err(why) = toolchain::program("redis-cli", "redis-tools") {
            return skip::report("redis_cli_does_everything", &why);
        }
        let script = Script::read();
        let mut gateway = Gateway::start();
        let steps: Vec<_> = script.keyway_steps().collect();
        redis_cli::check(gateway.at, &steps);
        redis_cli::pipe(gateway.at, &script.pipeline);
        redis_cli::goes_on(&mut gateway);
    }

    /// What the script expects is not what happens to come back, but what Redis replies.
    #[test]
    fn the_script_is_true_of_redis() {
        let _alone = alone();
        let needed = [("redis-server", "redis-server"), ("redis-cli", "redis-tools")];
        let missing =
            needed.into_iter().find_map(|(it, package)| toolchain::program(it, package).err());
        if let Some(why) = missing {
            return skip::report("the_script_is_true_of_redis", &why);
        }
        let script = Script::read();
        let server = redis_cli::Server::start();
        redis_cli::check(server.at, &script.redis_steps().collect::<Vec<_>>());
        redis_cli::check(server.at, &script.pipeline.iter().collect::<Vec<_>>());
    }

    #[test]
    fn the_script_has_every_command_about_keys() {
        let script = Script::read();
        let missing: Vec<&str> = ::gateway::command::all()
            .filter(|spec| matches!(spec.run, ::gateway::command::Run::Keyed(_)))
            .map(|spec| spec.name)
            .filter(|name| !script.keyway_steps().any(|it| it.send[0].eq_ignore_ascii_case(name)))
            .collect();
        assert_eq!(missing, Vec::<&str>::new(), "not in tests/clients/script.json");
    }

    #[test]
    fn redis_benchmark_runs_its_tests() {
        let _alone = alone();
        if let Err(why) = toolchain::program("redis-benchmark", "redis-tools") {
            return skip::report("redis_benchmark_runs_its_tests", &why);
        }
        redis_cli::benchmark(Gateway::start().at);
    }

    #[test]
    fn ycsb_runs_its_core_workloads() {
        let _alone = alone();
        match toolchain::java() {
            Ok(java) => ycsb::run(Gateway::start().at, &java),
            Err(why) => skip::report("ycsb_runs_its_core_workloads", &why),
        }
    }
}
