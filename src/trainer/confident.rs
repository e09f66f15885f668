//! The confident gate: is the candidate better than the current skill, or was it lucky?
//!
//! Items are drawn uniformly at random **with replacement**. On each draw both skills are scored
//! afresh, and `d` = candidate − current, between −1 and 1, is recorded. Whatever was seen before,
//! the mean of the next `d` is then exactly the mean gain over the items, so a gambler who stakes
//! a share of their wealth on `d` before seeing it cannot expect to get richer while the gain is
//! at most 0: by Ville's inequality the wealth ever reaches `1/alpha` with probability at most
//! `alpha`, however often one looks and whenever one stops (A. Waudby-Smith and A. Ramdas,
//! *Estimating means of bounded random variables by betting*, JRSS B 2024). Reaching it accepts.
//! A second account, staked against "the gain is at least what matters", rejects.
//!
//! How much to stake is free as long as it is fixed before the draw; `account` says how it is done
//! here. The test is pure and deterministic for a seed. Draws may finish in any order: only the
//! unbroken run of results from the first draw on is looked at, so decisions do not depend on which
//! call was answered first.
//!
//! A draw that failed is missing and stakes nothing. The guarantee is about *these* items under
//! the model's noise, as far as they can be measured; whether other items would gain as much is
//! another question.

mod account;
mod estimate;
mod interval;
mod settings;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::mt19937::Mt19937;
use account::Account;
pub use estimate::{Estimate, ItemTally};
pub use settings::{ConfidentSettings, SettingsError};

/// Rounding that a difference of two scores may carry beyond −1 or 1.
const ROUNDING: f64 = 1e-9;

/// One pair of attempts to make: the item under the candidate and under the current skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Draw {
    /// Position of the item in the selection split, from 0.
    pub item: usize,
    /// How often this test had drawn the item before. As a sample label it lets tests of other
    /// candidates reuse the current skill's results: each test uses each stored result once.
    pub repeat: u32,
}

/// What the test says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// More draws are needed.
    Continue,
    /// The gain is above 0.
    Accept,
    /// The gain is below what matters.
    Reject,
    /// The draws are used up, or too many failed.
    Undecided,
}

/// A result that does not belong to the test.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RecordError {
    /// The draw was not handed out by this test.
    #[error("repeat {} of item {} was not drawn by this test", .0.repeat, .0.item)]
    NotDrawn(Draw),
    /// The draw has a result.
    #[error("repeat {} of item {} has a result already", .0.repeat, .0.item)]
    Twice(Draw),
    /// The difference is no number from −1 to 1.
    #[error("the difference {0} is not between -1 and 1: scores are from 0 to 1")]
    OutOfRange(f64),
}

/// A running test of one candidate against the current skill.
#[derive(Debug, Clone)]
pub struct ConfidentTest {
    settings: ConfidentSettings,
    budget: usize,
    random: Mt19937,
    draws: Vec<Draw>,
    /// `None` while the draw is in flight; `Some(None)` when it was not measured.
    results: Vec<Option<Option<f64>>>,
    /// For each item, the positions of its draws; a draw's repeat is the place in this list.
    of_item: Vec<Vec<usize>>,
    /// Results looked at: the first `seen` draws.
    seen: usize,
    missing: usize,
    gain: Account,
    shortfall: Account,
    /// What the evidence says, which the coverage may still hold back.
    crossed: Option<Decision>,
    decision: Decision,
}

impl ConfidentTest {
    /// A test over this many items. Without items it is undecided from the start.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub fn new(
        items: usize,
        seed: u64,
        settings: ConfidentSettings,
    ) -> Result<Self, SettingsError> {
        settings.check()?;
        let least = settings.smallest_gain;
        let budget = settings.budget(items);
        Ok(Self {
            budget,
            random: Mt19937::from_words(&[seed as u32, (seed >> 32) as u32]),
            draws: Vec::new(),
            results: Vec::new(),
            of_item: vec![Vec::new(); items],
            seen: 0,
            missing: 0,
            gain: Account::new(1.0, 1.0, settings.alpha),
            shortfall: Account::new(1.0 - least, 1.0 + least, settings.reject_level),
            crossed: None,
            decision: if budget == 0 {
                Decision::Undecided
            } else {
                Decision::Continue
            },
            settings,
        })
    }

    /// The next draws to make, at most `wanted`; none once the test has decided or every draw of
    /// the budget is handed out. The sequence of draws depends on the seed alone.
    pub fn next(&mut self, wanted: usize) -> Vec<Draw> {
        if self.decision != Decision::Continue {
            return Vec::new();
        }
        let first = self.draws.len();
        let count = wanted.min(self.budget - first);
        let items = u32::try_from(self.of_item.len()).unwrap_or(u32::MAX);
        for position in first..first + count {
            let item = self.random.below(items) as usize;
            let repeats = &mut self.of_item[item];
            let repeat = u32::try_from(repeats.len()).unwrap_or(u32::MAX);
            repeats.push(position);
            self.draws.push(Draw { item, repeat });
            self.results.push(None);
        }
        self.draws[first..].to_vec()
    }

    /// Takes the result of a draw: candidate − current, or `None` when either was not measured.
    /// Results that come in after the decision change nothing.
    ///
    /// # Errors
    /// When the draw is not one of this test's, has a result already, or the difference is no
    /// number from −1 to 1. The test is then as it was.
    pub fn record(&mut self, draw: Draw, difference: Option<f64>) -> Result<(), RecordError> {
        if let Some(d) = difference
            && (d.is_nan() || d.abs() > 1.0 + ROUNDING)
        {
            return Err(RecordError::OutOfRange(d));
        }
        let position = self
            .of_item
            .get(draw.item)
            .and_then(|repeats| repeats.get(draw.repeat as usize))
            .ok_or(RecordError::NotDrawn(draw))?;
        let result = &mut self.results[*position];
        if result.is_some() {
            return Err(RecordError::Twice(draw));
        }
        *result = Some(difference.map(|d| d.clamp(-1.0, 1.0)));
        self.look();
        Ok(())
    }

    /// What the test says now.
    #[must_use]
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// The most draws that this test may take: items × repeats.
    #[must_use]
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// How many more results it takes at least before a decision can fall, when each of them is
    /// as extreme as can be; 0 when it has fallen. Draws handed out in waves of this size are all
    /// needed, apart from those that are in flight already.
    #[must_use]
    pub fn fewest_until_decided(&self) -> usize {
        if self.decision != Decision::Continue {
            return 0;
        }
        let left = self.budget - self.seen;
        if self.crossed.is_some() {
            return 1;
        }
        let (mut gain, mut shortfall) = (self.gain.clone(), self.shortfall.clone());
        for taken in 0..left {
            gain.take(1.0, left - taken);
            shortfall.take(self.settings.smallest_gain + 1.0, left - taken);
            if gain.reached() || shortfall.reached() {
                return taken + 1;
            }
        }
        left
    }

    /// Everything the results that count so far say; valid at any moment, also the one at which
    /// the test stops.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let measured: Vec<(usize, f64)> = (0..self.seen)
            .filter_map(|position| Some((position, self.results[position]??)))
            .collect();
        let mut per_item = vec![ItemTally::default(); self.of_item.len()];
        for position in 0..self.seen {
            let tally = &mut per_item[self.draws[position].item];
            tally.take(self.results[position].flatten());
        }
        Estimate::new(
            per_item,
            interval::bounds(&measured, self.budget, self.settings.alpha),
            self.gain.wealth(),
            self.shortfall.wealth(),
        )
    }

    /// Looks at results in the order of draws, as far as they are complete.
    fn look(&mut self) {
        while self.decision == Decision::Continue
            && let Some(Some(result)) = self.results.get(self.seen).copied()
        {
            let left = self.budget - self.seen;
            self.seen += 1;
            match result {
                None => self.missing += 1,
                Some(d) if self.crossed.is_none() => {
                    self.gain.take(d, left);
                    self.shortfall.take(self.settings.smallest_gain - d, left);
                    self.crossed = if self.gain.reached() {
                        Some(Decision::Accept)
                    } else if self.shortfall.reached() {
                        Some(Decision::Reject)
                    } else {
                        None
                    };
                }
                Some(_) => {}
            }
            self.decision = self.decide();
        }
    }

    /// Wealth that has crossed its line stays crossed, so waiting for coverage costs no validity:
    /// acceptance is still part of the event that Ville's inequality bounds.
    fn decide(&self) -> Decision {
        let floor = self.settings.coverage_floor;
        let allowed = |draws: usize| (1.0 - floor) * draws as f64 + ROUNDING;
        let missing = self.missing as f64;
        match self.crossed {
            Some(decision) if missing <= allowed(self.seen) => decision,
            _ if self.seen == self.budget || missing > allowed(self.budget) => Decision::Undecided,
            _ => Decision::Continue,
        }
    }
}

#[cfg(test)]
mod tests;
