//! tests/clients/script.json: what every client has to do, and what must come back.

use crate::reply;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// The whole script.
#[derive(Debug, Deserialize)]
pub(crate) struct Script {
    commands: Vec<Step>,
    pub(crate) pipeline: Vec<Step>,
    /// Names of calls of the library's own methods, and what they return.
    pub(crate) typed: Vec<(String, Value)>,
}

/// One command.
#[derive(Debug, Deserialize)]
pub(crate) struct Step {
    /// Its words; each character stands for the byte with its number.
    pub(crate) send: Vec<String>,
    reply: Value,
    only: Option<Only>,
}

/// Where a step is of any use.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Only {
    /// It is about what differs from Redis 7.
    Keyway,
}

/// Counted up in the pipeline, so that it is longer than the commands that a gateway has under way
/// at once.
const COUNTS: usize = 500;

impl Script {
    pub(crate) fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/script.json");
        let text = std::fs::read_to_string(path).expect("the script");
        let mut script: Self = serde_json::from_str(&text).expect("a script");
        script.pipeline.extend((1..=COUNTS).map(|count| Step {
            send: vec!["INCR".to_owned(), "pipeline:count".to_owned()],
            reply: json!(count),
            only: None,
        }));
        script
    }

    /// What is done with the gateway: all of it.
    pub(crate) fn keyway_steps(&self) -> impl Iterator<Item = &Step> {
        self.commands.iter()
    }

    /// What is done with a Redis server.
    pub(crate) fn redis_steps(&self) -> impl Iterator<Item = &Step> {
        self.commands.iter().filter(|step| step.only != Some(Only::Keyway))
    }

    /// What drivers are given: what to send, and not what to expect.
    pub(crate) fn to_send(&self) -> Value {
        let words = |steps: &[Step]| steps.iter().map(|step| json!(step.send)).collect::<Vec<_>>();
        json!({"commands": words(&self.commands), "pipeline": words(&self.pipeline)})
    }

    /// Checks the replies to the pipeline.
    pub(crate) fn check_pipeline(&self, client: &str, replies: &Value) {
        let replies = replies.as_array().expect("a list of replies");
        assert_eq!(replies.len(), self.pipeline.len(), "{client}: {replies:?}");
        for (step, reply) in self.pipeline.iter().zip(replies) {
            step.check(client, reply);
        }
    }

    /// Checks what the library's own methods returned.
    pub(crate) fn check_typed(&self, client: &str, returned: &Value) {
        let returned = returned.as_object().expect("a value for each name");
        let names = |names: Vec<&String>| names.into_iter().cloned().collect::<BTreeSet<String>>();
        let wanted = names(self.typed.iter().map(|(name, _)| name).collect());
        assert_eq!(names(returned.keys().collect()), wanted, "{client}");
        for (name, wanted) in &self.typed {
            let found = &returned[name];
            assert!(reply::means(wanted, found), "{client}: {name}: {found}, wanted is {wanted}");
        }
    }
}

impl Step {
    /// Checks the reply of the server.
    #[track_caller]
    pub(crate) fn check(&self, client: &str, found: &Value) {
        let (send, wanted) = (&self.send, &self.reply);
        assert!(reply::is(wanted, found), "{client}: {send:?}: {found}, wanted is {wanted}");
    }
}
