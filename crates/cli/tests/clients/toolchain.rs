//! What drivers need on this machine: `sh tools/prerequisites.sh clients` installs it, and what is
//! missing is told, so that a test can say why it was skipped.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How to get everything.
const INSTALL: &str = "sh tools/prerequisites.sh clients";

/// Whether a program is there.
pub(crate) fn program(name: &str, package: &str) -> Result<(), String> {
    // Go has a command instead of the option, and to be there is enough.
    let mut asked = Command::new(name);
    match asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("there is no {name}: apt-get install {package}")),
    }
}

/// What applications in PHP are made of: Debian's packages, and the series of versions that the
/// page is about. No registry has a lock file for these.
pub(crate) const PHP: [(&str, &str); 5] = [
    ("php-redis", "5.3"),
    ("php-symfony-cache", "5.4"),
    ("php-symfony-lock", "5.4"),
    ("php-illuminate-cache", "8.83"),
    ("php-illuminate-redis", "8.83"),
];

/// The same of applications in Ruby.
pub(crate) const RUBY: [(&str, &str); 2] = [("ruby-redis", "4.8"), ("ruby-activesupport", "6.1")];

/// Whether these packages are there, in a version of the series that is asked for. Prints which.
pub(crate) fn packaged(packages: &[(&str, &str)]) -> Result<(), String> {
    for (package, series) in packages {
        let mut query = Command::new("dpkg-query");
        query.args(["--show", "--showformat=${db:Status-Status} ${Version}", package]);
        let output = query.output().map_err(|_| "there is no dpkg-query".to_owned())?;
        let said = String::from_utf8_lossy(&output.stdout);
        let Some(version) = said.strip_prefix("installed ") else {
            return Err(format!("there is no {package}: apt-get install {package}"));
        };
        let upstream = version.split_once(':').map_or(version, |(_epoch, upstream)| upstream);
        if !upstream.starts_with(&format!("{series}.")) {
            return Err(format!("{package} is {version}, and the page is about {series}"));
        }
        println!("{package} {version}");
    }
    Ok(())
}

/// Where the prerequisites were installed, below the build's folder.
fn installed(what: &str) -> Result<PathBuf, String> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../clients").join(what);
    path.canonicalize().map_err(|_| format!("target/clients/{what} is missing: {INSTALL}"))
}

/// Our own part, which is under version control.
fn source(what: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients").join(what)
}

/// Runs a compiler to its end.
fn build(command: &mut Command) {
    let output = command.output().expect("it was there a moment ago");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

pub(crate) fn redis_py() -> Result<Command, String> {
    python("driver.py")
}

pub(crate) fn applications_in_python() -> Result<Command, String> {
    python("applications.py")
}

fn python(program: &str) -> Result<Command, String> {
    // Written last, so that all of it is there.
    installed("python.lock")?;
    let mut command = Command::new(installed("python")?.join("bin/python"));
    // The library says of methods that are asked for here that there are newer ones.
    command.args(["-W", "ignore::DeprecationWarning"]).arg(source("python").join(program));
    Ok(command)
}

pub(crate) fn ioredis() -> Result<Command, String> {
    node("driver.cjs")
}

pub(crate) fn applications_in_javascript() -> Result<Command, String> {
    node("applications.cjs")
}

fn node(script: &str) -> Result<Command, String> {
    program("node", "nodejs")?;
    installed("node.lock")?;
    let mut command = Command::new("node");
    command.env("NODE_PATH", installed("node/node_modules")?).arg(source("node").join(script));
    Ok(command)
}

pub(crate) fn applications_in_php() -> Result<Command, String> {
    // The one that Debian's packages are for, whatever else goes by the name.
    let interpreter = "/usr/bin/php";
    program(interpreter, "php-cli")?;
    let mut command = Command::new(interpreter);
    // phpredis waits as long as it may when EXEC replies an error.
    let settings = ["default_socket_timeout=2", "display_errors=stderr", "log_errors=0"];
    command.args(settings.map(|setting| format!("-d{setting}")));
    command.arg(source("php/applications.php"));
    Ok(command)
}

pub(crate) fn applications_in_ruby() -> Result<Command, String> {
    let interpreter = "/usr/bin/ruby";
    program(interpreter, "ruby")?;
    let mut command = Command::new(interpreter);
    command.arg(source("ruby/applications.rb"));
    Ok(command)
}

pub(crate) fn applications_in_java() -> Result<Command, String> {
    Ok(compiled(&["Checks", "Applications"])?.command("Applications"))
}

pub(crate) fn go_redis() -> Result<Command, String> {
    program("go", "golang-go")?;
    installed("go.lock")?;
    let modules = installed("go")?;
    let driver = modules.with_file_name("go-driver");
    let mut go = Command::new("go");
    go.args(["build", "-buildvcs=false", "-o"]).arg(&driver).arg(".");
    go.current_dir(source("go")).env("GOMODCACHE", modules).env("GOPROXY", "off");
    build(&mut go);
    Ok(Command::new(driver))
}

pub(crate) fn jedis() -> Result<Command, String> {
    Ok(java()?.command("JedisDriver"))
}

pub(crate) fn lettuce() -> Result<Command, String> {
    Ok(java()?.command("LettuceDriver"))
}

/// Our classes, and the libraries that they use.
#[derive(Debug)]
pub(crate) struct Java {
    class_path: String,
}

/// Compiles the drivers, and what YCSB is run with.
pub(crate) fn java() -> Result<Java, String> {
    compiled(&["Script", "JedisDriver", "LettuceDriver", "StringClient"])
}

fn compiled(sources: &[&str]) -> Result<Java, String> {
    program("javac", "default-jdk-headless")?;
    installed("java.lock")?;
    let libraries = installed("java/lib")?;
    let classes = libraries.with_file_name("classes");
    let libraries = format!("{}/*", libraries.display());
    let mut javac = Command::new("javac");
    javac.args(["-proc:none", "-Xlint:-deprecation", "-cp", &libraries, "-d"]).arg(&classes);
    for name in sources {
        javac.arg(source("java").join(name).with_extension("java"));
    }
    build(&mut javac);
    Ok(Java { class_path: format!("{}:{libraries}", classes.display()) })
}

impl Java {
    /// Runs a class.
    pub(crate) fn command(&self, class: &str) -> Command {
        let mut command = Command::new("java");
        // Programs of a few seconds are done before the best compiler would be.
        command.args(["-XX:TieredStopAtLevel=1", "-cp", &self.class_path, class]);
        command
    }
}
