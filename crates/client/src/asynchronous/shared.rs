//! The driver, which the task of the face shares with those who begin requests without a future.

use crate::face::Driver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

/// A driver that several may hand requests to. Clones share it. Nobody keeps it over a wait, and
/// those who hold it are on one thread as a rule.
#[derive(Clone)]
pub(super) struct SharedDriver(Arc<Mutex<Inner>>);

struct Inner {
    /// `None` once the task has ended: nobody would answer any more.
    driver: Option<Driver>,
    /// Whether there may be something to send that the task does not know of.
    begun: bool,
    /// The task, when it waits.
    task: Option<Waker>,
}

impl SharedDriver {
    pub(super) fn new(driver: Driver) -> Self {
        Self(Arc::new(Mutex::new(Inner { driver: Some(driver), begun: false, task: None })))
    }

    pub(super) fn lock(&self) -> DriverGuard<'_> {
        DriverGuard(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for SharedDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedDriver")
    }
}

/// The driver, as long as it is held.
pub(super) struct DriverGuard<'a>(MutexGuard<'a, Inner>);

impl DriverGuard<'_> {
    /// `None` if the task has ended.
    pub(super) fn driver(&mut self) -> Option<&mut Driver> {
        self.0.driver.as_mut()
    }

    /// The task has ended, and takes the driver with it.
    pub(super) fn take(&mut self) -> Option<Driver> {
        self.0.driver.take()
    }

    /// Requests were begun: the task has to send them.
    pub(super) fn note_begun(&mut self) {
        if !std::mem::replace(&mut self.0.begun, true)
            && let Some(task) = self.0.task.take()
        {
            task.wake();
        }
    }

    /// Whether requests were begun since this was asked; wakes the task when some are.
    pub(super) fn takes_begun(&mut self, context: &mut Context<'_>) -> bool {
        let begun = std::mem::take(&mut self.0.begun);
        if !begun {
            match &mut self.0.task {
                Some(task) => task.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
        }
        begun
    }
}
