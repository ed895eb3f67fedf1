//! Figure 17: throughput while the switch stops and is started again.

use crate::median::median;
use crate::netmc::arm::Splitter;
use crate::netmc::design::{Point, Terms};
use crate::netmc::figures::default_point;
use crate::netmc::load::MultigetLoad;
use crate::netmc::progress::Progress;
use crate::netmc::stage::{Filled, Stage};
use crate::paper::{Cell, Column, Figure, Panel, Table};
use anyhow::anyhow;
use bench::Pace;
use console::exit::Failure;
use console::note;
use lab::process::pause;
use runtime::clock::Clock;
use std::thread;
use std::time::Duration;
use workload::IntervalSummary;

/// When the switch stops, when it is started, and when it is over.
const STOP: Duration = Duration::from_secs(4);
const START: Duration = Duration::from_secs(6);
const END: Duration = Duration::from_secs(14);

/// How long the pieces are of which throughput is shown.
const PIECE: Duration = Duration::from_millis(100);

/// What it was before is the median of the pieces from here to the stop.
const BEFORE_FROM: Duration = Duration::from_secs(1);

/// It is back when so many pieces in a row have this share of what it was.
const BACK_SHARE: f64 = 0.9;
const BACK_PIECES: usize = 3;

const COLUMNS: [Column; 6] = [
    Column { head: "arm", key: "arm" },
    Column { head: "before/s", key: "before" },
    Column { head: "while down/s", key: "while_down" },
    Column { head: "first answer ms", key: "first_answer_ms" },
    Column { head: "back after ms", key: "back_after_ms" },
    Column { head: "afterwards/s", key: "afterwards" },
];

/// Throughput over time, with when the switch stopped and was started, in seconds.
struct Course {
    pieces: Vec<IntervalSummary>,
    stopped: f64,
    started: f64,
}

/// Measures it.
pub(crate) fn run(terms: &Terms) -> Result<Figure, Failure> {
    let point = default_point();
    let (mut rows, mut panel) = (Vec::new(), panel());
    let progress = Progress::new(u32::try_from(terms.arms.len()).unwrap_or(u32::MAX));
    Stage::with(&terms.setup(point.nodes, false), |stage| {
        let filled = stage.fill("keys", terms.keys, point.sizes)?;
        for arm in &terms.arms {
            stage.wait_served(&filled)?;
            let course = course(stage, *arm, &filled, &load(&point, terms.in_flight))?;
            for piece in &course.pieces {
                panel.add(arm.name(), piece.second, done(piece));
            }
            let Course { stopped, started, .. } = course;
            let name = arm.name();
            progress.tell(&format!("{name}: no switch from {stopped:.1} s to {started:.1} s"));
            rows.push(course.row(*arm));
        }
        Ok(())
    })?;
    let mut notes = terms.notes();
    notes.push(format!(
        "the switch's process is killed {} s after the start, nothing passes between hosts, and \
         {} s later it is started again",
        STOP.as_secs(),
        (START - STOP).as_secs()
    ));
    notes.push(format!(
        "back after: from the start of the switch until {BACK_PIECES} pieces of {} ms in a row \
         have {BACK_SHARE} of the median before",
        PIECE.as_millis()
    ));
    let title = "Figure 17: throughput while the switch is restarted".to_owned();
    let table = Table { columns: COLUMNS.to_vec(), rows };
    Ok(Figure { title, notes, table, panels: vec![panel] })
}

fn load(point: &Point, in_flight: usize) -> MultigetLoad {
    let pace = Pace::Closed(in_flight);
    let (mix, distribution) = (point.mix(), point.distribution);
    MultigetLoad { mix, distribution, pace, time: END, piece: PIECE, seed: 1 }
}

/// Stops and starts the switch under load.
fn course(
    stage: &mut Stage,
    arm: Splitter,
    on: &Filled,
    load: &MultigetLoad,
) -> Result<Course, Failure> {
    note!("{}: takes {} s", arm.name(), END.as_secs());
    let plan = stage.plan(arm, on, load);
    let mut clock = Clock::new();
    thread::scope(|scope| {
        let measuring = scope.spawn(|| bench::measure(&plan, |_| ()));
        let began = clock.now();
        let mut act = |at: Duration, act: &mut dyn FnMut() -> Result<(), Failure>| {
            pause(at.saturating_sub(clock.now().since(began)));
            let now = clock.now().since(began).as_secs_f64();
            act().map(|()| now)
        };
        let stopped = act(STOP, &mut || stage.stop_switch());
        let started = act(START, &mut || stage.start_switch());
        let panicked = |_| Err(Failure::Other(anyhow!("the load panicked")));
        let measured = measuring.join().unwrap_or_else(panicked)?;
        let pieces = measured.summary.intervals.into_iter();
        let pieces = pieces.filter(|piece| piece.second <= END.as_secs_f64() + 1e-3).collect();
        Ok(Course { pieces, stopped: stopped?, started: started? })
    })
}

/// Requests done per second.
fn done(piece: &IntervalSummary) -> f64 {
    piece.endings.done as f64 / PIECE.as_secs_f64()
}

impl Course {
    fn between(&self, from: f64, to: f64) -> impl Iterator<Item = &IntervalSummary> {
        let piece = PIECE.as_secs_f64();
        self.pieces.iter().filter(move |it| it.second - piece >= from - 1e-6 && it.second <= to)
    }

    fn row(&self, arm: Splitter) -> Vec<Cell> {
        let Self { stopped, started, .. } = *self;
        let rate = |from: f64, to: f64| median(self.between(from, to).map(done).collect());
        let before = rate(BEFORE_FROM.as_secs_f64(), stopped);
        let after: Vec<f64> = self.between(started, f64::MAX).map(done).collect();
        let piece_ms = PIECE.as_secs_f64() * 1e3;
        let ms = |pieces: Option<usize>| pieces.map(|pieces| (pieces as f64) * piece_ms);
        let enough = |pieces: &[f64]| pieces.iter().all(|it| *it >= before * BACK_SHARE);
        let back = ms(after.windows(BACK_PIECES).position(enough));
        let settled = back.map(|ms| rate(started + ms / 1e3, f64::MAX));
        let down = started.min(stopped + (START - STOP).as_secs_f64());
        vec![
            Cell::text(arm.name()),
            Cell::number(before, 0),
            Cell::number(rate(stopped + PIECE.as_secs_f64(), down), 0),
            Cell::number(ms(after.iter().position(|it| *it > 0.0)), 0),
            Cell::number(back, 0),
            Cell::number(settled, 0),
        ]
    }
}

fn panel() -> Panel {
    Panel {
        title: "zipf 0.99".to_owned(),
        x: "time (s)",
        places: Vec::new(),
        y: "requests/s",
        logarithmic: false,
        curves: Vec::new(),
    }
}
