//! Clusters for tests, and requests to their admin servers.

use runtime::config::EngineKind;
use runtime::up::UpOptions;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Three nodes in memory, on ports that are free.
pub(crate) fn in_memory() -> UpOptions {
    UpOptions { shards: 2, switch_threads: 2, ..UpOptions::in_memory(3, 3, 16) }
}

/// The same on disk.
pub(crate) fn on_disk(data: &Path) -> UpOptions {
    UpOptions { engine: EngineKind::Fjall, data: Some(data.into()), ..in_memory() }
}

/// An answer of an admin server.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The message of an error.
    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().expect("errors have a message").to_owned()
    }
}

pub(crate) fn get(admin: SocketAddr, path: &str) -> Answer {
    answer(agent().get(format!("http://{admin}{path}")).call())
}

pub(crate) fn put(admin: SocketAddr, path: &str, body: &str) -> Answer {
    let request = agent().put(format!("http://{admin}{path}"));
    answer(request.header("content-type", "application/json").send(body))
}

pub(crate) fn post(admin: SocketAddr, path: &str, body: &str) -> Answer {
    let request = agent().post(format!("http://{admin}{path}"));
    answer(request.header("content-type", "application/json").send(body))
}

pub(crate) fn delete(admin: SocketAddr, path: &str) -> Answer {
    answer(agent().delete(format!("http://{admin}{path}")).call())
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(10)))
        .http_status_as_error(false)
        .proxy(None)
        .build();
    ureq::Agent::new_with_config(config)
}

fn answer(result: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Answer {
    let mut response = result.unwrap();
    let content_type = response.headers().get("content-type");
    Answer {
        status: response.status().as_u16(),
        content_type: content_type.map(|it| it.to_str().unwrap().to_owned()).unwrap_or_default(),
        body: response.body_mut().read_to_string().unwrap(),
    }
}
