//! Where a night's events go: several watchers at once, and the database among them.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::event::{NightEvent, Watch};
use crate::store::Store;
use crate::trainer::event::{Event, Observer};

/// Passes a trainer's events on to a night's watchers, with the document's name.
pub struct Relay {
    /// The document that is being trained.
    pub document: String,
    /// Who is told.
    pub watch: Arc<dyn Watch>,
}

impl Observer for Relay {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.watch.watch(&NightEvent::Training {
            document: &self.document,
            training: event,
        });
        Ok(())
    }
}

/// Tells several watchers.
pub struct All(pub Vec<Arc<dyn Watch>>);

impl Watch for All {
    fn watch(&self, event: &NightEvent<'_>) {
        for watch in &self.0 {
            watch.watch(event);
        }
    }
}

/// Keeps a night's events in the database. Single attempts are left out: they are in the run
/// directory, and there may be thousands.
pub struct Recorder {
    store: Mutex<Store>,
    night: i64,
}

impl Recorder {
    /// A recorder with a connection of its own.
    #[must_use]
    pub fn new(store: Store, night: i64) -> Self {
        Self {
            store: Mutex::new(store),
            night,
        }
    }
}

impl Watch for Recorder {
    fn watch(&self, event: &NightEvent<'_>) {
        if let NightEvent::Training {
            training: Event::RolloutFinished { .. },
            ..
        } = event
        {
            return;
        }
        let value = serde_json::to_value(event).unwrap_or(Value::Null);
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = store.append_event(self.night, &value) {
            // The run directory has the same events; a night does not end for want of a copy.
            tracing::warn!("{error}");
        }
    }
}
