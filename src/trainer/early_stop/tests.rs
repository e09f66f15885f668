use proptest::prelude::*;

use super::*;
use crate::trainer::gate_rule::{DensityBonus, GateMetric};

const SKILL: &str = "Always verify the answer, then say it.";

fn scored(hard: f64, soft: f64) -> ItemResult {
    ItemResult::Scored(Scores { hard, soft })
}

fn hard() -> GateProjection {
    GateProjection::default()
}

/// The gate's own full scoring.
fn full_scoring_wins(table: &[(f64, f64)], projection: &GateProjection, current: f64) -> bool {
    let scores = mean(table.iter().copied()).unwrap();
    projection.score(scores.hard, scores.soft, SKILL) > current
}

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(1.0),
        (0..=10_u8).prop_map(|tenth| f64::from(tenth) / 10.0),
        0.0..=1.0_f64,
    ]
}

fn projection() -> impl Strategy<Value = GateProjection> {
    let metric = prop_oneof![
        Just(GateMetric::Hard),
        Just(GateMetric::Soft),
        Just(GateMetric::Mixed)
    ];
    let density = proptest::option::of(-0.1..0.1_f64);
    (metric, -0.2..1.2_f64, density).prop_map(|(metric, mixed_weight, weight)| GateProjection {
        metric,
        mixed_weight,
        density: weight.map(|weight| DensityBonus {
            weight,
            words: None,
        }),
    })
}

/// Hard and soft score of each item.
type Table = Vec<(f64, f64)>;

/// Candidate and current scores of the same items, many of them equal.
fn tables() -> impl Strategy<Value = (Table, Table)> {
    prop::collection::vec(((score(), score()), (score(), score()), 0..3_u8), 1..40).prop_map(
        |rows| {
            rows.into_iter()
                .map(|(candidate, current, tie)| match tie {
                    0 => (current, current),
                    _ => (candidate, current),
                })
                .unzip()
        },
    )
}

proptest! {
    #[test]
    fn decisions_are_those_of_full_scoring((candidate, current) in tables(), projection in projection()) {
        let means = mean(current.iter().copied()).unwrap();
        let current_score = projection.score(means.hard, means.soft, SKILL);
        let wins = full_scoring_wins(&candidate, &projection, current_score);
        let stop = EarlyStop::new(&projection, SKILL, current_score);
        let current: Vec<_> =
            current.iter().map(|&(hard, soft)| Some(Scores { hard, soft })).collect();
        let order = scoring_order(&current, &projection);

        let mut results = vec![ItemResult::Pending; candidate.len()];
        let mut scored_items = 0;
        while stop.can_still_win(&results) && scored_items < order.len() {
            let wave = stop.fewest_until_decided(&results, &order[scored_items..]);
            prop_assert!(wave > 0);
            for (place, &item) in order[scored_items..scored_items + wave].iter().enumerate() {
                // Nothing of a wave is wasted: no reject falls before its last result.
                prop_assert!(stop.can_still_win(&results), "decided {place} into a wave of {wave}");
                results[item] = scored(candidate[item].0, candidate[item].1);
            }
            scored_items += wave;
        }
        prop_assert_eq!(stop.can_still_win(&results), wins);
        if wins {
            prop_assert_eq!(scored_items, candidate.len());
        }
    }

    #[test]
    fn the_bound_never_rises_and_ends_at_the_score(
        (candidate, _) in tables(),
        projection in projection(),
    ) {
        let stop = EarlyStop::new(&projection, SKILL, 0.5);
        let mut results = vec![ItemResult::Pending; candidate.len()];
        let mut bound = stop.upper_bound(&results).unwrap();
        for (item, &(hard, soft)) in candidate.iter().enumerate().rev() {
            results[item] = scored(hard, soft);
            let next = stop.upper_bound(&results).unwrap();
            prop_assert!(next <= bound);
            bound = next;
        }
        let means = mean(candidate.into_iter()).unwrap();
        prop_assert_eq!(bound.to_bits(), projection.score(means.hard, means.soft, SKILL).to_bits());
    }

    #[test]
    fn an_item_that_was_not_measured_prevents_stopping(
        (candidate, _) in tables(),
        projection in projection(),
        current in 0.0..2.0_f64,
        missing in any::<prop::sample::Index>(),
    ) {
        let mut results: Vec<_> = candidate.iter().map(|&(hard, soft)| scored(hard, soft)).collect();
        results[missing.index(candidate.len())] = ItemResult::NotMeasured;
        let stop = EarlyStop::new(&projection, SKILL, current);
        prop_assert!(stop.can_still_win(&results));
        prop_assert_eq!(stop.upper_bound(&results), None);
    }
}

#[test]
fn a_tie_is_no_win() {
    let stop = EarlyStop::new(&hard(), SKILL, 0.5);
    assert!(!stop.can_still_win(&[ItemResult::Pending, scored(0.0, 0.0)]));
    assert!(stop.can_still_win(&[ItemResult::Pending, scored(0.1, 0.0)]));
}

#[test]
fn items_that_fail_come_first_and_equals_keep_their_order() {
    let item = |hard, soft| Some(Scores { hard, soft });
    let current = [
        item(1.0, 0.9),
        item(1.0, 0.2),
        None,
        item(0.0, 0.8),
        item(0.0, 0.1),
    ];
    assert_eq!(scoring_order(&current, &hard()), [3, 4, 0, 1, 2]);
    let soft = GateProjection {
        metric: GateMetric::Soft,
        ..hard()
    };
    assert_eq!(scoring_order(&current, &soft), [4, 3, 1, 0, 2]);
}

#[test]
fn waves_are_as_large_as_the_losses_that_it_takes() {
    // 6 of 10 have to be beaten: a reject takes four losses.
    let stop = EarlyStop::new(&hard(), SKILL, 0.6);
    let order: Vec<usize> = (0..10).collect();
    let mut results = vec![ItemResult::Pending; 10];
    assert_eq!(stop.fewest_until_decided(&results, &order), 4);
    results[0] = scored(1.0, 1.0);
    results[1] = scored(0.0, 0.0);
    assert_eq!(stop.fewest_until_decided(&results, &order), 3);
    results[5] = ItemResult::NotMeasured;
    assert_eq!(
        stop.fewest_until_decided(&results, &order),
        7,
        "all that are left"
    );
    // A current score that anything beats is never decided early.
    let open = EarlyStop::new(&hard(), SKILL, f64::NEG_INFINITY);
    assert_eq!(
        open.fewest_until_decided(&[ItemResult::Pending; 3], &[0, 1, 2]),
        3
    );
}
