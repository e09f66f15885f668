//! A run's results with how sure they are, and what it cost by role and stage.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::evaluation::ItemScore;
use super::interval::{CONFIDENCE, Interval, of_difference, of_mean};
use crate::model::budget::Price;
use crate::model::{Role, Usage};

/// A mean with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// The mean over the measured items, or the mean difference over the pairs.
    pub value: f64,
    /// Its interval; none for fewer than two items.
    pub interval: Option<Interval>,
}

/// One skill on one split.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Mean hard score.
    pub hard: Mean,
    /// Mean soft score.
    pub soft: Mean,
    /// Items with a score.
    pub measured: usize,
    /// Items that were attempted.
    pub items: usize,
    /// The former as a share of the latter.
    pub coverage: f64,
}

/// One skill against another on the items that have scores under both.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Difference of the hard scores.
    pub hard: Mean,
    /// Difference of the soft scores.
    pub soft: Mean,
    /// Items with scores under both.
    pub pairs: usize,
    /// Items whose hard score rose.
    pub wins: usize,
    /// Items whose hard score fell.
    pub losses: usize,
    /// Items whose hard score stayed.
    pub ties: usize,
}

/// The initial and the best skill on one split.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The initial skill.
    pub baseline: Option<Measurement>,
    /// The best skill.
    pub best: Option<Measurement>,
    /// The second against the first.
    pub gain: Option<Gain>,
}

/// The results of a run with how sure they are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// The confidence of every interval, 0 to 1.
    pub confidence: f64,
    /// On the split that decided about candidates. The best of several was picked by it, so its
    /// score there is flattering.
    pub selection: Comparison,
    /// On the split that decided nothing.
    pub test: Comparison,
}

impl Statistics {
    /// Compares item scores on both splits.
    #[must_use]
    pub fn of(selection: [&[ItemScore]; 2], test: [&[ItemScore]; 2]) -> Statistics {
        Statistics {
            confidence: CONFIDENCE,
            selection: Comparison::of(selection),
            test: Comparison::of(test),
        }
    }
}

impl Comparison {
    fn of([before, after]: [&[ItemScore]; 2]) -> Comparison {
        Comparison {
            baseline: Measurement::of(before),
            best: Measurement::of(after),
            gain: Gain::of(before, after),
        }
    }
}

impl Measurement {
    /// Adds item scores up; none when nothing was measured.
    #[must_use]
    pub fn of(items: &[ItemScore]) -> Option<Measurement> {
        let scores: Vec<_> = items.iter().filter_map(|item| item.scores).collect();
        if scores.is_empty() {
            return None;
        }
        let hard: Vec<f64> = scores.iter().map(|scores| scores.hard).collect();
        let soft: Vec<f64> = scores.iter().map(|scores| scores.soft).collect();
        let mean = |values: &[f64]| Mean {
            value: values.iter().sum::<f64>() / values.len() as f64,
            interval: of_mean(values),
        };
        Some(Measurement {
            hard: mean(&hard),
            soft: mean(&soft),
            measured: scores.len(),
            items: items.len(),
            coverage: scores.len() as f64 / items.len() as f64,
        })
    }
}

impl Gain {
    /// Pairs item scores by id; none when no item has both.
    #[must_use]
    pub fn of(before: &[ItemScore], after: &[ItemScore]) -> Option<Gain> {
        let earlier: HashMap<&str, _> = before
            .iter()
            .filter_map(|item| Some((item.id.as_str(), item.scores?)))
            .collect();
        let pairs: Vec<_> = after
            .iter()
            .filter_map(|item| Some((*earlier.get(item.id.as_str())?, item.scores?)))
            .collect();
        if pairs.is_empty() {
            return None;
        }
        let mean = |pairs: Vec<(f64, f64)>| Mean {
            value: pairs
                .iter()
                .map(|(before, after)| after - before)
                .sum::<f64>()
                / pairs.len() as f64,
            interval: of_difference(&pairs),
        };
        let count = |holds: fn(f64, f64) -> bool| {
            let held = |pair: &&(super::evaluation::Scores, super::evaluation::Scores)| {
                holds(pair.0.hard, pair.1.hard)
            };
            pairs.iter().filter(held).count()
        };
        Some(Gain {
            hard: mean(pairs.iter().map(|(b, a)| (b.hard, a.hard)).collect()),
            soft: mean(pairs.iter().map(|(b, a)| (b.soft, a.soft)).collect()),
            pairs: pairs.len(),
            wins: count(|before, after| after > before),
            losses: count(|before, after| after < before),
            ties: count(|before, after| after == before),
        })
    }
}

/// What tokens cost, for each role for which it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Prices {
    /// The optimizer's.
    pub optimizer: Option<Price>,
    /// The target's.
    pub target: Option<Price>,
}

impl Prices {
    /// What usage of a role costs in US dollars, when its price is known.
    #[must_use]
    pub fn usd(&self, role: Role, usage: Usage) -> Option<f64> {
        let price = match role {
            Role::Optimizer => self.optimizer,
            Role::Target => self.target,
        }?;
        let input = price.input * usage.prompt_tokens as f64;
        let output = price.output * usage.completion_tokens as f64;
        Some((input + output) / 1e6)
    }
}

/// What one stage used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Finished calls.
    pub calls: u64,
    /// Tokens sent.
    pub prompt_tokens: u64,
    /// Tokens received.
    pub completion_tokens: u64,
    /// US dollars at the configured prices; none when there are none.
    pub usd: Option<f64>,
}

/// What a run used, by role and stage.
pub type Costs = BTreeMap<Role, BTreeMap<String, Cost>>;

/// The only stage whose calls go to the target.
const TARGET_STAGE: &str = "rollout";

/// Usage by stage as costs by role and stage.
#[must_use]
pub fn costs(usage: &BTreeMap<String, Usage>, prices: &Prices) -> Costs {
    let mut costs = Costs::new();
    for (stage, usage) in usage {
        let role = if stage == TARGET_STAGE {
            Role::Target
        } else {
            Role::Optimizer
        };
        let cost = Cost {
            calls: usage.calls,
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            usd: prices.usd(role, *usage),
        };
        costs.entry(role).or_default().insert(stage.clone(), cost);
    }
    costs
}

/// The sum of costs; its money is known only when that of every part is.
#[must_use]
pub fn total(costs: &Costs) -> Cost {
    let all = costs.values().flat_map(BTreeMap::values);
    let mut sum = Cost {
        usd: Some(0.0),
        ..Cost::default()
    };
    for cost in all {
        sum.calls += cost.calls;
        sum.prompt_tokens += cost.prompt_tokens;
        sum.completion_tokens += cost.completion_tokens;
        sum.usd = sum.usd.zip(cost.usd).map(|(sum, usd)| sum + usd);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::evaluation::Scores;

    fn scored(id: &str, hard: Option<f64>) -> ItemScore {
        ItemScore {
            id: id.to_owned(),
            scores: hard.map(|hard| Scores { hard, soft: 0.5 }),
        }
    }

    #[test]
    fn only_items_measured_under_both_skills_are_compared() {
        let before = [
            scored("a", Some(0.0)),
            scored("b", None),
            scored("c", Some(1.0)),
        ];
        let after = [
            scored("c", Some(1.0)),
            scored("b", Some(1.0)),
            scored("a", Some(1.0)),
        ];
        let gain = Gain::of(&before, &after).unwrap();
        assert_eq!(
            (gain.pairs, gain.wins, gain.losses, gain.ties),
            (2, 1, 0, 1)
        );
        assert!((gain.hard.value - 0.5).abs() < 1e-12);
        let measured = Measurement::of(&before).unwrap();
        assert_eq!((measured.measured, measured.items), (2, 3));
        assert_eq!(Measurement::of(&[scored("a", None)]), None);
    }

    #[test]
    fn money_is_known_only_with_every_price() {
        let usage = |calls| Usage {
            calls,
            prompt_tokens: 1_000_000,
            completion_tokens: 500_000,
            ..Usage::default()
        };
        let used = BTreeMap::from([
            ("rollout".to_owned(), usage(4)),
            ("merge".to_owned(), usage(1)),
        ]);
        let price = Price {
            input: 1.0,
            output: 2.0,
        };
        let known = Prices {
            optimizer: Some(price),
            target: Some(price),
        };
        assert_eq!(total(&costs(&used, &known)).usd, Some(4.0));
        let half = Prices {
            optimizer: None,
            ..known
        };
        let costs = costs(&used, &half);
        assert_eq!(costs[&Role::Target]["rollout"].usd, Some(2.0));
        assert_eq!(total(&costs).usd, None);
        assert_eq!(total(&costs).calls, 5);
    }
}
