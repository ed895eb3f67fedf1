//! Files of users, and what they may do.

use super::user::Denied;
use super::*;
use crate::command::{Found, find, number_of, resolve};

fn args(words: &[&str]) -> Vec<Bytes> {
    words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

fn check(acl: &Acl, name: &str, words: &[&str]) -> Result<(), Denied> {
    let args = args(words);
    acl.get(name).unwrap().check(resolve(&args).unwrap(), &args)
}

/// What GET would be checked as, if it wrote.
fn check_write(acl: &Acl, name: &str, key: &str) -> Result<(), Denied> {
    let get = find(b"get").unwrap();
    let spec = Box::leak(Box::new(crate::command::Spec {
        access: crate::command::Access::Write,
        name: "put",
        ..copy(get)
    }));
    let found = Found { spec, number: number_of("get").unwrap() };
    acl.get(name).unwrap().check(found, &args(&["put", key]))
}

fn copy(spec: &crate::command::Spec) -> crate::command::Spec {
    let crate::command::Spec { name, arity, keys, access, categories, summary, since, group, run } =
        *spec;
    crate::command::Spec { name, arity, keys, access, categories, summary, since, group, run }
}

#[test]
fn whoever_knows_the_password_is_let_in() {
    let acl = Acl::with_password(b"secret");
    assert!(!acl.is_open());
    let default = b"default".as_slice();
    assert!(acl.authenticate(default, &"secret".into()).is_some());
    assert!(acl.authenticate(default, &"Secret".into()).is_none());
    assert!(acl.authenticate(b"alice", &"secret".into()).is_none());
    assert!(acl.authenticate(b"\xff", &"secret".into()).is_none());
    let acl = Acl::open();
    assert!(acl.is_open() && acl.authenticate(default, &"anything".into()).is_some());
}

#[test]
fn a_file_says_who_may_do_what() {
    let text = "\
# people\n\n\
user default off\n\
user alice on >secret >other ~app:* %R~shared:* +@read +ping\n\
user bob on nopass allkeys +@all -config|set -@dangerous +config|get\n\
user carol off >secret +@all ~*\n\
user dave on >x %W~log:* +get\n";
    let acl = Acl::parse(text).unwrap();
    assert!(!acl.is_open());
    for password in ["secret", "other"] {
        assert!(acl.authenticate(b"alice", &password.into()).is_some());
    }
    assert!(acl.authenticate(b"carol", &"secret".into()).is_none(), "she is off");
    assert_eq!(check(&acl, "alice", &["get", "app:1"]), Ok(()));
    assert_eq!(check(&acl, "alice", &["get", "shared:1"]), Ok(()));
    assert_eq!(check(&acl, "alice", &["get", "else"]), Err(Denied::Key));
    assert_eq!(check(&acl, "alice", &["ping"]), Ok(()));
    assert_eq!(check(&acl, "alice", &["echo", "x"]), Err(Denied::Command));
    assert_eq!(check_write(&acl, "alice", "app:1"), Ok(()));
    assert_eq!(check_write(&acl, "alice", "shared:1"), Err(Denied::Key));
    assert_eq!(check(&acl, "bob", &["config", "get", "x"]), Ok(()));
    assert_eq!(check(&acl, "bob", &["config", "set", "x", "y"]), Err(Denied::Command));
    assert_eq!(check(&acl, "bob", &["client", "list"]), Err(Denied::Command));
    assert_eq!(check(&acl, "dave", &["get", "log:1"]), Err(Denied::Key));
    assert_eq!(check_write(&acl, "dave", "log:1"), Ok(()));
}

#[test]
fn a_user_is_told_as_it_could_stand_in_a_file() {
    let line = |rules: &str| {
        let acl = Acl::parse(&format!("user a {rules}")).unwrap();
        acl.get("a").unwrap().line()
    };
    let none = "user a off sanitize-payload resetchannels -@all";
    assert_eq!(line(""), none);
    assert_eq!(line("on nopass ~* &* +@all reset"), none);
    let all = "user a on nopass sanitize-payload ~* &* +@all";
    assert_eq!(line("on nopass ~* &* +@all"), all);
    assert_eq!(line("on nopass allkeys allchannels allcommands"), all);
    let rules = "on %R~a:* ~b +@read -get +config|get";
    let told = "user a on sanitize-payload %R~a:* ~b resetchannels -@all +@read -get +config|get";
    assert_eq!(line(rules), told);
    assert_eq!(line(told.strip_prefix("user a ").unwrap()), told);
    let hash = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    assert!(line("on >secret").contains(&format!("#{hash}")));
    assert_eq!(line(&format!("on #{hash}")), line("on >secret"));
    assert_eq!(line(">secret <secret"), none);
}

#[test]
fn what_is_no_user_is_refused_with_its_line_and_without_its_password() {
    let error = |text: &str| Acl::parse(text).unwrap_err().to_string();
    assert_eq!(error("\nusers"), "line 2: a line begins with the word user");
    assert_eq!(error("user"), "line 1: a user has a name");
    assert_eq!(error("user a\nuser a"), "line 2: the user a is there twice");
    let unknown = "Unknown command or category name in ACL";
    assert_eq!(error("user a +gte"), format!("line 1: +gte: {unknown}"));
    assert_eq!(error("user a -@raed"), format!("line 1: -@raed: {unknown}"));
    // What has no mark may be a password that lacks one.
    assert_eq!(error("user a maybe"), "line 1: a rule that begins with no mark: Syntax error");
    assert!(error("user a #secret").starts_with("line 1: #: The password hash must be exactly 64"));
    assert!(error("user a <secret").starts_with("line 1: <: The password you are trying"));
    assert!(error("user a ~* ~b").contains("Adding a pattern after the * pattern"));
    assert!(error("user a (~b)").contains("selectors"));
}
