//! What a training run would take, before it is begun: steps, calls, tokens, money.
//!
//! Calls are upper bounds that follow from the settings. Tokens are guesses: prompts are measured
//! on the data and taken at four characters a token, replies are assumed to be as long as such
//! replies usually are. They tell a dollar from a hundred, not a dollar from two.

use serde::Serialize;

use crate::model::{Role, Usage};
use crate::trainer::settings::Settings;

/// Characters of English text in a token.
const CHARS_PER_TOKEN: f64 = 4.0;

/// Tokens of a target's reply.
const TARGET_REPLY: u64 = 150;

/// Tokens of an optimizer's reply.
const OPTIMIZER_REPLY: u64 = 700;

/// Tokens of an optimizer's instructions and the edits that it is shown.
const OPTIMIZER_PROMPT: u64 = 2500;

/// How many items a run has of each split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Items that are reflected on.
    pub train: usize,
    /// Items that decide.
    pub selection: usize,
    /// Items that are measured at the end.
    pub test: usize,
}

/// What one role would be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// At most so many calls.
    pub calls: u64,
    /// About so many tokens sent.
    pub prompt_tokens: u64,
    /// About so many tokens received.
    pub completion_tokens: u64,
}

/// What a run would take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Its data.
    pub items: Sizes,
    /// Its steps.
    pub steps: u64,
    /// Its epochs.
    pub epochs: u32,
    /// The target's calls.
    pub target: Calls,
    /// The optimizer's calls.
    pub optimizer: Calls,
    /// US dollars at the configured prices; none unless both roles have them.
    pub usd: Option<f64>,
}

impl Estimate {
    /// Estimates a run over `items` whose rollout prompts have `prompt_chars` characters on
    /// average.
    #[must_use]
    pub fn of(settings: &Settings, items: Sizes, prompt_chars: f64) -> Estimate {
        let limited = |count: usize, limit: usize| match limit {
            0 => count,
            limit => count.min(limit),
        };
        let selection = limited(items.selection, settings.selection_items) as u64;
        let test = limited(items.test, settings.test_items) as u64;
        let epochs = u64::from(settings.epochs);
        let steps = u64::from(settings.steps_per_epoch(items.train)) * epochs;
        let batch = (settings.batch_size.max(1) * settings.accumulation.max(1)) as u64;
        let compared = if settings.use_slow_update || settings.use_meta_skill {
            let sample = items.train.min(settings.slow_update_samples) as u64;
            2 * sample * epochs.saturating_sub(1)
        } else {
            0
        };
        // The initial and the best skill, and the final one when it is another.
        let tested = if settings.eval_test { 3 * test } else { 0 };
        let attempts =
            selection + epochs * items.train as u64 + steps * selection + compared + tested;
        let prompt = (prompt_chars / CHARS_PER_TOKEN).ceil() as u64;
        let target = Calls {
            calls: attempts,
            prompt_tokens: attempts * prompt,
            completion_tokens: attempts * TARGET_REPLY,
        };

        let minibatch = settings.minibatch_size.max(1) as u64;
        // A batch of failures and successes fills one group more than one of either.
        let microbatches = settings.accumulation.max(1) as u64;
        let analysts = steps * (batch.div_ceil(minibatch) + microbatches);
        let groups = analysts.div_ceil(steps.max(1));
        let others = steps * (merges(groups, settings.merge_batch_size as u64) + 2);
        let epoch_ends = epochs * u64::from(settings.use_slow_update)
            + epochs * u64::from(settings.use_meta_skill);
        let calls = analysts + others + epoch_ends;
        let optimizer = Calls {
            calls,
            prompt_tokens: calls * OPTIMIZER_PROMPT
                + analysts * minibatch * (prompt + TARGET_REPLY),
            completion_tokens: calls * OPTIMIZER_REPLY,
        };
        let usd = |role: Role, calls: Calls| settings.prices.usd(role, calls.usage());
        let (for_target, for_optimizer) =
            (usd(Role::Target, target), usd(Role::Optimizer, optimizer));
        Estimate {
            items,
            steps,
            epochs: settings.epochs,
            target,
            optimizer,
            usd: for_target
                .zip(for_optimizer)
                .map(|(one, other)| one + other),
        }
    }
}

impl Calls {
    fn usage(self) -> Usage {
        Usage {
            calls: self.calls,
            prompt_tokens: self.prompt_tokens,
            completion_tokens: self.completion_tokens,
            ..Usage::default()
        }
    }
}

/// Calls that unite so many patches, so many at once, level by level.
fn merges(patches: u64, at_once: u64) -> u64 {
    let at_once = at_once.max(2);
    let (mut left, mut calls) = (patches, 0);
    while left > 1 {
        left = left.div_ceil(at_once);
        calls += left;
    }
    // Failures and successes are merged apart, and then together.
    calls + 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::budget::Price;
    use crate::trainer::statistics::Prices;

    #[test]
    fn an_estimate_counts_every_stage_and_knows_money_only_with_prices() {
        let sizes = Sizes {
            train: 24,
            selection: 8,
            test: 4,
        };
        let mut settings = Settings {
            batch_size: 6,
            minibatch_size: 3,
            eval_test: true,
            ..Settings::default()
        };
        let estimate = Estimate::of(&settings, sizes, 400.0);
        assert_eq!(estimate.steps, 4);
        assert_eq!(estimate.target.calls, 8 + 24 + 4 * 8 + 3 * 4);
        assert_eq!(estimate.target.prompt_tokens, 76 * 100);
        assert_eq!(estimate.usd, None);
        let price = Some(Price {
            input: 1.0,
            output: 0.0,
        });
        settings.prices = Prices {
            optimizer: price,
            target: price,
        };
        let usd = Estimate::of(&settings, sizes, 400.0).usd.unwrap();
        let tokens = estimate.target.prompt_tokens + estimate.optimizer.prompt_tokens;
        assert!((usd - tokens as f64 / 1e6).abs() < 1e-9);
    }
}
