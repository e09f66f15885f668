//! Usage by stage over a whole run, over restarts too.

use std::collections::BTreeMap;

use crate::model::Usage;
use crate::model::meter::{Meter, Tally};

/// What earlier processes of a run have used, and where this one began to count.
///
/// Calls answered from the journal count like fresh ones, so a resumed run has the numbers of an
/// undisturbed one.
#[derive(Default)]
pub(super) struct UsageClock {
    before: BTreeMap<String, Usage>,
    start: Tally,
}

impl UsageClock {
    /// Starts from what the last committed state has.
    pub(super) fn start(meter: &Meter, before: &BTreeMap<String, Usage>) -> Self {
        Self {
            before: before.clone(),
            start: meter.snapshot(),
        }
    }

    /// The usage of the run until now.
    pub(super) fn now(&self, meter: &Meter) -> BTreeMap<String, Usage> {
        let mut usage = self.before.clone();
        for (stage, spent) in meter.snapshot().since(&self.start).by_stage() {
            *usage.entry(stage).or_default() += spent;
        }
        usage
    }
}

/// What `after` has over `before`, stage by stage; stages without a call are left out.
pub(super) fn usage_since(
    before: &BTreeMap<String, Usage>,
    after: &BTreeMap<String, Usage>,
) -> BTreeMap<String, Usage> {
    after
        .iter()
        .map(|(stage, usage)| {
            let earlier = before.get(stage).copied().unwrap_or_default();
            (stage.clone(), *usage - earlier)
        })
        .filter(|(_, usage)| usage.calls > 0)
        .collect()
}
