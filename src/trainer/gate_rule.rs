//! The gate's rule: a candidate must be strictly better than what is there.
//!
//! The two means of an evaluation become one gate score, and gate scores are compared (engine 13).

use serde::{Deserialize, Serialize};

use crate::skill::density;

/// Which score the gate compares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GateMetric {
    /// The mean hard score.
    #[default]
    Hard,
    /// The mean soft score.
    Soft,
    /// A weighted mean of both.
    Mixed,
}

impl GateMetric {
    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            GateMetric::Hard => "hard",
            GateMetric::Soft => "soft",
            GateMetric::Mixed => "mixed",
        }
    }
}

/// A small bonus for skills whose own words are commands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DensityBonus {
    /// What a density of 1 is worth, in gate score.
    pub weight: f64,
    /// The words that count; `None` for [`density::LEADING_WORDS`].
    pub words: Option<Vec<String>>,
}

/// How the two means of an evaluation become one score.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GateProjection {
    /// Which score counts.
    pub metric: GateMetric,
    /// The soft score's share in [`GateMetric::Mixed`], 0 to 1; anything outside is clamped.
    pub mixed_weight: f64,
    /// The bonus, when it is switched on.
    pub density: Option<DensityBonus>,
}

impl GateProjection {
    /// The gate score of a skill with these mean scores.
    #[must_use]
    pub fn score(&self, hard: f64, soft: f64, skill: &str) -> f64 {
        let weight = self.mixed_weight.clamp(0.0, 1.0);
        let score = match self.metric {
            GateMetric::Hard => hard,
            GateMetric::Soft => soft,
            GateMetric::Mixed => (1.0 - weight) * hard + weight * soft,
        };
        match &self.density {
            Some(bonus) => score + bonus.weight * density::density(skill, bonus.words.as_deref()),
            None => score,
        }
    }
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateAction {
    /// Better than anything before.
    AcceptNewBest,
    /// Better than the current skill.
    Accept,
    /// Not better.
    Reject,
    /// Taken unchecked: the gate is off.
    ForceAccept,
    /// Too little could be measured to say; the candidate is not taken.
    Undecided,
    /// The edits left the document as it was, so there is nothing to score (W-G2).
    SkipNoChange,
    /// Nothing was proposed.
    SkipNoPatches,
    /// No rewrite came about.
    SkipNoRewrite,
}

impl GateAction {
    /// The name, as in the history.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            GateAction::AcceptNewBest => "accept_new_best",
            GateAction::Accept => "accept",
            GateAction::Reject => "reject",
            GateAction::ForceAccept => "force_accept",
            GateAction::Undecided => "undecided",
            GateAction::SkipNoChange => "skip_no_change",
            GateAction::SkipNoPatches => "skip_no_patches",
            GateAction::SkipNoRewrite => "skip_no_rewrite",
        }
    }

    /// Whether there was a candidate to decide about, a changed one or not.
    #[must_use]
    pub fn had_candidate(self) -> bool {
        !matches!(self, GateAction::SkipNoPatches | GateAction::SkipNoRewrite)
    }

    /// Whether the candidate becomes the current skill.
    #[must_use]
    pub fn is_accept(self) -> bool {
        matches!(
            self,
            GateAction::AcceptNewBest | GateAction::Accept | GateAction::ForceAccept
        )
    }
}

/// What a decision changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// What became of the step.
    pub action: GateAction,
    /// Whether the candidate becomes the current skill.
    pub takes_current: bool,
    /// Whether the candidate becomes the best skill.
    pub takes_best: bool,
}

/// Decides about a candidate by gate scores. Every comparison is strict: a tie rejects, and so
/// does a score that is no number. With the gate off (`gated` false) the candidate always becomes
/// the current skill, and the best one only if it is better.
#[must_use]
pub fn decide(candidate: f64, current: f64, best: f64, gated: bool) -> Decision {
    let better = candidate > best;
    let action = match (gated, candidate > current) {
        (false, _) => GateAction::ForceAccept,
        (true, false) => GateAction::Reject,
        (true, true) if better => GateAction::AcceptNewBest,
        (true, true) => GateAction::Accept,
    };
    Decision {
        action,
        takes_current: action.is_accept(),
        takes_best: action.is_accept() && better,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_and_missing_numbers_reject() {
        assert_eq!(decide(0.5, 0.5, 0.5, true).action, GateAction::Reject);
        assert_eq!(decide(f64::NAN, 0.0, 0.0, true).action, GateAction::Reject);
    }

    #[test]
    fn without_the_gate_the_best_still_has_to_be_beaten() {
        let decision = decide(0.2, 0.5, 0.6, false);
        assert_eq!(
            (decision.action, decision.takes_current, decision.takes_best),
            (GateAction::ForceAccept, true, false)
        );
    }

    proptest! {
        #[test]
        fn scores_never_fall_under_the_gate(candidates in prop::collection::vec(0.0..1.0_f64, 0..40)) {
            let (mut current, mut best) = (0.3, 0.5);
            for candidate in candidates {
                let decision = decide(candidate, current, best, true);
                let before = (current, best);
                if decision.takes_current { current = candidate; }
                if decision.takes_best { best = candidate; }
                prop_assert!(current >= before.0 && best >= before.1);
            }
        }

        #[test]
        fn the_best_never_falls_without_the_gate(candidates in prop::collection::vec(0.0..1.0_f64, 0..40)) {
            let mut best = 0.5;
            for candidate in candidates {
                let before = best;
                if decide(candidate, 0.9, best, false).takes_best { best = candidate; }
                prop_assert!(best >= before);
            }
        }
    }
}
