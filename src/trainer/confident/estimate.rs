//! What a test has found out so far.

use serde::{Deserialize, Serialize};

/// One item's draws.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ItemTally {
    /// Draws that the candidate won.
    pub wins: u32,
    /// Draws that it lost.
    pub losses: u32,
    /// Draws on which both scored the same.
    pub ties: u32,
    /// Draws that could not be measured.
    pub missing: u32,
    /// Sum of the differences over measured draws.
    pub sum: f64,
}

impl ItemTally {
    /// Counts one draw.
    pub(super) fn take(&mut self, difference: Option<f64>) {
        match difference {
            None => self.missing += 1,
            Some(d) => {
                self.sum += d;
                match d {
                    d if d > 0.0 => self.wins += 1,
                    d if d < 0.0 => self.losses += 1,
                    _ => self.ties += 1,
                }
            }
        }
    }

    /// Measured draws.
    #[must_use]
    pub fn measured(&self) -> u32 {
        self.wins + self.losses + self.ties
    }

    /// The item's mean difference; `None` when it was not measured.
    #[must_use]
    pub fn gain(&self) -> Option<f64> {
        let measured = self.measured();
        (measured > 0).then(|| self.sum / f64::from(measured))
    }

    fn add(mut self, other: &ItemTally) -> Self {
        self.wins += other.wins;
        self.losses += other.losses;
        self.ties += other.ties;
        self.missing += other.missing;
        self.sum += other.sum;
        self
    }
}

/// What the results that count say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Mean difference over measured draws, −1 to 1; `None` before there are any. A test that
    /// stops when it looks good stops on a high: read it together with the interval.
    pub gain: Option<f64>,
    /// The gain lies between these; each end is wrong with probability at most `alpha`, at
    /// whatever moment the test stops.
    pub interval: (f64, f64),
    /// Evidence for a gain above 0, as an e-value: 10 is ten times as much as chance is expected
    /// to yield. `1/alpha` accepts.
    pub evidence: f64,
    /// Evidence for a gain below what matters; `1/reject_level` rejects.
    pub evidence_against: f64,
    /// Draws that count, measured or not. Each took one attempt under either skill.
    pub draws: usize,
    /// Draws that the candidate won.
    pub wins: usize,
    /// Draws that it lost.
    pub losses: usize,
    /// Draws on which both scored the same.
    pub ties: usize,
    /// Draws that could not be measured.
    pub missing: usize,
    /// Every item, in the items' order.
    pub per_item: Vec<ItemTally>,
}

impl Estimate {
    pub(super) fn new(
        per_item: Vec<ItemTally>,
        interval: (f64, f64),
        evidence: f64,
        evidence_against: f64,
    ) -> Self {
        let total = per_item.iter().fold(ItemTally::default(), ItemTally::add);
        Self {
            gain: total.gain(),
            interval,
            evidence,
            evidence_against,
            draws: (total.measured() + total.missing) as usize,
            wins: total.wins as usize,
            losses: total.losses as usize,
            ties: total.ties as usize,
            missing: total.missing as usize,
            per_item,
        }
    }

    /// The measured share of the draws, 0 to 1; 1 before there are any.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        if self.draws == 0 {
            return 1.0;
        }
        (self.draws - self.missing) as f64 / self.draws as f64
    }
}
