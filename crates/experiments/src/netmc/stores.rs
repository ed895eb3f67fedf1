//! What stores behind the nodes are asked for: a node reads for all datagrams of a batch at once.

use crate::figure::Section;
use crate::netmc::arm::Splitter;
use crate::netmc::design::Point;
use crate::netmc::look::{Look, Looks};
use crate::paper::{Cell, Column, Table};
use std::collections::BTreeMap;

const COLUMNS: [Column; 8] = [
    Column { head: "load", key: "point" },
    Column { head: "at", key: "at" },
    Column { head: "arm", key: "arm" },
    Column { head: "parts", key: "requests_at_nodes" },
    Column { head: "MGETs", key: "mgets" },
    Column { head: "keys of one", key: "mget_keys" },
    Column { head: "cpu us of a key", key: "cpu_us_of_key" },
    Column { head: "stores", key: "cpu_us_stores" },
];

/// What was found about stores.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    rows: Vec<Vec<Cell>>,
}

impl Stores {
    /// Trials of all arms.
    pub(crate) fn add(&mut self, point: &Point, at: &str, looks: &BTreeMap<Splitter, Looks>) {
        for (arm, looks) in looks {
            let number = |of: fn(&Look) -> f64, digits| Cell::number(looks.median(of), digits);
            self.rows.push(vec![
                Cell::text(&point.name),
                Cell::text(at),
                Cell::text(arm.name()),
                number(|it| it.parts, 2),
                number(|it| it.mgets, 2),
                number(|it| it.mget_keys / it.mgets, 1),
                number(|it| it.cost_us.of_guests() / it.mget_keys, 2),
                number(|it| it.cost_us.of_guests(), 1),
            ]);
        }
    }

    /// As a table.
    pub(crate) fn section(&self) -> Section {
        let title = "Stores: MGETs that they were sent for a request, where nodes were sent so \
                     many parts; how many keys were in one, and processor time of a store for a \
                     key, writes included";
        let table = Table { columns: COLUMNS.to_vec(), rows: self.rows.clone() };
        Section { title: title.to_owned(), key: "stores", table }
    }
}
