//! What a process has of descriptors and connections, out of its metrics.

use console::chart::grouped;
use serde::Serialize;

/// Figures of the process that was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ProcessFigures {
    files: Files,
    connections: Vec<Connections>,
}

/// Descriptors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Files {
    open: u64,
    reserved: u64,
    max: u64,
}

/// Connections of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Connections {
    kind: &'static str,
    open: u64,
    max: u64,
}

/// Kinds of connections, and what their metrics are called.
const KINDS: [(&str, &str, &str); 3] = [
    ("admin", "keyway_admin_connections", "{kind=\"other\"}"),
    ("control", "keyway_admin_connections", "{kind=\"control\"}"),
    ("redis", "keyway_gateway_connections", "{}"),
];

impl ProcessFigures {
    /// Reads them; `None` if the process does not tell them.
    pub(crate) fn read(metrics: &str) -> Option<Self> {
        let value = |name: &str, labels: &str| -> Option<u64> {
            let mut lines = metrics.lines();
            let rest = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(labels))?;
            rest.trim().parse().ok()
        };
        let file = |what: &str| value(&format!("keyway_files_{what}"), "{}");
        let files = Files { open: file("open")?, reserved: file("reserved")?, max: file("max")? };
        let connections = KINDS.iter().filter_map(|&(kind, name, labels)| {
            let max = value(&format!("{name}_max"), labels)?;
            Some(Connections { kind, open: value(name, labels)?, max })
        });
        Some(Self { files, connections: connections.collect() })
    }

    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let Files { open, reserved, max } = self.files;
        let [open, reserved, max] = [open, reserved, max].map(grouped);
        let mut text = format!("{open} of {max} files open, {reserved} reserved; connections");
        for Connections { kind, open, max } in &self.connections {
            text.push_str(&format!(" {kind} {} of {},", grouped(*open), grouped(*max)));
        }
        text.trim_end_matches(',').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_metrics_and_told_in_a_line() {
        let metrics = "\
# TYPE keyway_files_open gauge
keyway_files_open{} 83
keyway_files_reserved{} 606
keyway_files_max{} 1024
keyway_admin_connections{kind=\"control\"} 2
keyway_admin_connections{kind=\"other\"} 1
keyway_admin_connections_max{kind=\"control\"} 16
keyway_admin_connections_max{kind=\"other\"} 24
";
        let figures = ProcessFigures::read(metrics).unwrap();
        let line =
            "83 of 1 024 files open, 606 reserved; connections admin 1 of 24, control 2 of 16";
        assert_eq!(figures.line(), line);
        let more = format!(
            "{metrics}keyway_gateway_connections{{}} 7\nkeyway_gateway_connections_max{{}} 142\n"
        );
        let figures = ProcessFigures::read(&more).unwrap();
        assert_eq!(figures.line(), format!("{line}, redis 7 of 142"));
        assert_eq!(ProcessFigures::read("# EOF\n"), None);
    }
}
