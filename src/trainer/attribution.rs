//! Attribution: what each edit of an accepted batch contributed, and which ones to take out again.
//!
//! A batch is accepted as a whole, so an edit that does nothing, or harm, gets in with one that
//! helps. The gate's question can be asked again about the batch without one edit: where that
//! scores as well or better, the edit was not needed.
//!
//! Two edits that say the same are each not needed as long as the other is there. What remains
//! after dropping several is therefore a new candidate that has to pass the gate; should it fail,
//! dropping the single edit whose absence scored best is safe, for that document has been scored
//! and is no worse than the accepted one.

use serde::{Deserialize, Serialize};

/// What became of scoring the batch without an edit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaveOneOut {
    /// It was not asked: the batch has one edit, or the bound on evaluations came first.
    #[default]
    NotScored,
    /// It was asked, and too little could be measured.
    NotMeasured,
    /// The gate score of the batch without the edit.
    Score(f64),
}

/// One edit of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Contribution {
    /// The edit's place in the batch, from 0, the most important one first.
    pub edit: usize,
    /// The gate score of the whole batch.
    pub with: f64,
    /// The gate score of the batch without the edit; `None` when it is not known.
    pub without: Option<f64>,
    /// `with − without`: what the edit adds to what the others do.
    pub gain: Option<f64>,
    /// Whether it is to be taken out.
    pub dropped: bool,
}

/// What each edit contributed, and what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// One record an edit, in the batch's order.
    pub edits: Vec<Contribution>,
    /// The edit to take out alone when the batch without all dropped ones does not pass the gate.
    /// `None` when nothing is dropped.
    pub fallback: Option<usize>,
}

impl Attribution {
    /// Judges an accepted batch that scored `with`. An edit is dropped when the batch without it
    /// scores at least `with − least`; `least` is the smallest contribution worth keeping, 0 to
    /// keep whatever helps at all. An edit whose contribution is not known, or is no number,
    /// stays. When all edits would go, only the fallback does: together they were accepted, so
    /// something in them helps.
    #[must_use]
    pub fn new(with: f64, without: &[LeaveOneOut], least: f64) -> Self {
        let score = |edit: usize| match without[edit] {
            LeaveOneOut::Score(score) if !score.is_nan() => Some(score),
            _ => None,
        };
        let needless = |edit: usize| score(edit).is_some_and(|score| with - score <= least);
        let fallback = (0..without.len())
            .filter(|&edit| needless(edit))
            // The last of the best: of edits that matter equally little, the least important one.
            .max_by(|&a, &b| {
                let order = |edit| score(edit).unwrap_or(f64::NEG_INFINITY);
                order(a).total_cmp(&order(b))
            });
        let all = (0..without.len()).all(needless);
        let edits = (0..without.len())
            .map(|edit| Contribution {
                edit,
                with,
                without: score(edit),
                gain: score(edit).map(|score| with - score),
                dropped: if all {
                    fallback == Some(edit) && without.len() > 1
                } else {
                    needless(edit)
                },
            })
            .collect();
        Self {
            edits,
            fallback: fallback.filter(|_| without.len() > 1),
        }
    }

    /// The edits to take out, in the batch's order.
    #[must_use]
    pub fn dropped(&self) -> Vec<usize> {
        self.places(true)
    }

    /// The edits that remain, in the batch's order.
    #[must_use]
    pub fn kept(&self) -> Vec<usize> {
        self.places(false)
    }

    /// Whether what remains has been scored already, as the batch without its one dropped edit.
    #[must_use]
    pub fn remainder_is_scored(&self) -> bool {
        self.dropped().len() == 1
    }

    fn places(&self, dropped: bool) -> Vec<usize> {
        self.edits
            .iter()
            .filter(|edit| edit.dropped == dropped)
            .map(|edit| edit.edit)
            .collect()
    }
}

/// Which edits of a batch to leave out, one at a time, in the order in which to score them: the
/// least important first, at most `evaluations` of them. A single edit is its own attribution, so
/// there is nothing to score for fewer than two.
#[must_use]
pub fn plan(edits: usize, evaluations: usize) -> Vec<usize> {
    if edits < 2 {
        return Vec::new();
    }
    (0..edits).rev().take(evaluations).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use LeaveOneOut::{NotMeasured, NotScored, Score};

    #[test]
    fn edits_without_effect_and_harmful_ones_are_dropped() {
        let attribution = Attribution::new(0.6, &[Score(0.4), Score(0.6), Score(0.7)], 0.0);
        assert_eq!(attribution.dropped(), [1, 2]);
        assert_eq!(attribution.kept(), [0]);
        assert_eq!(attribution.fallback, Some(2));
        assert!(!attribution.remainder_is_scored());
        let first = attribution.edits[0];
        assert_eq!((first.with, first.without), (0.6, Some(0.4)));
        assert!((first.gain.unwrap() - 0.2).abs() < 1e-12);
    }

    #[test]
    fn what_is_not_known_stays() {
        let attribution = Attribution::new(
            0.6,
            &[NotScored, NotMeasured, Score(f64::NAN), Score(0.5)],
            0.0,
        );
        assert_eq!(attribution.dropped(), Vec::<usize>::new());
        assert_eq!(attribution.fallback, None);
        assert_eq!(attribution.edits[1].gain, None);
    }

    #[test]
    fn edits_that_replace_each_other_do_not_both_go() {
        let attribution = Attribution::new(0.6, &[Score(0.6), Score(0.6)], 0.0);
        assert_eq!(attribution.dropped(), [1]);
        assert!(attribution.remainder_is_scored());
    }

    #[test]
    fn contributions_below_the_least_are_dropped() {
        let without = [Score(0.40), Score(0.59)];
        assert_eq!(Attribution::new(0.6, &without, 0.0).dropped().len(), 0);
        assert_eq!(Attribution::new(0.6, &without, 0.02).dropped(), [1]);
    }

    #[test]
    fn a_single_edit_is_never_dropped() {
        let attribution = Attribution::new(0.6, &[Score(0.9)], 0.0);
        assert_eq!(attribution.kept(), [0]);
        assert_eq!(attribution.fallback, None);
        assert_eq!(Attribution::new(0.6, &[], 0.0).edits, []);
    }

    #[test]
    fn the_least_important_edits_are_asked_about_first() {
        assert_eq!(plan(4, 2), [3, 2]);
        assert_eq!(plan(3, 10), [2, 1, 0]);
        assert_eq!(plan(1, 10), Vec::<usize>::new());
        assert_eq!(plan(0, 10), Vec::<usize>::new());
    }
}
