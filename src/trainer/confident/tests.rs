use proptest::prelude::*;

use super::*;

fn settings() -> ConfidentSettings {
    ConfidentSettings::default()
}

fn test(items: usize, seed: u64) -> ConfidentTest {
    ConfidentTest::new(items, seed, settings()).unwrap()
}

/// Draws one by one until the test stops.
fn play(test: &mut ConfidentTest, mut difference: impl FnMut(Draw) -> Option<f64>) {
    while let [draw] = test.next(1)[..] {
        test.record(draw, difference(draw)).unwrap();
    }
}

#[test]
fn a_plain_improvement_is_accepted_early() {
    let mut test = test(30, 1);
    play(&mut test, |_| Some(1.0));
    let estimate = test.estimate();
    assert_eq!(test.decision(), Decision::Accept);
    assert!(estimate.draws < 15, "{}", estimate.draws);
    assert!(
        estimate.evidence >= 10.0 && estimate.evidence < 10.1,
        "{}",
        estimate.evidence
    );
    assert!(estimate.interval.0 >= 0.0 && estimate.interval.1 > 0.9);
    assert_eq!((estimate.wins, estimate.losses), (estimate.draws, 0));
}

#[test]
fn a_plain_loss_is_rejected_early() {
    let mut test = test(30, 1);
    play(&mut test, |draw| {
        Some(if draw.item % 2 == 0 { -1.0 } else { 0.0 })
    });
    assert_eq!(test.decision(), Decision::Reject);
    assert!(test.estimate().evidence_against >= 5.0);
    assert!(test.estimate().draws < 40);
}

#[test]
fn a_budget_that_does_not_suffice_is_undecided() {
    // Five points: above nothing, below what matters, and too little to see on five items.
    let mut toggle = 0_u32;
    let mut test = test(5, 3);
    play(&mut test, |_| {
        toggle += 1;
        Some(match toggle % 20 {
            3 | 13 | 18 => 1.0,
            8 | 11 => -1.0,
            _ => 0.0,
        })
    });
    assert_eq!(test.decision(), Decision::Undecided);
    assert_eq!(test.estimate().draws, test.budget());
    assert_eq!(test.budget(), 30);
}

#[test]
fn without_items_nothing_is_decided() {
    let mut test = test(0, 1);
    assert_eq!(test.decision(), Decision::Undecided);
    assert_eq!(test.next(4), []);
    assert_eq!(test.estimate().interval, (-1.0, 1.0));
    assert_eq!(test.estimate().gain, None);
}

#[test]
fn failed_calls_are_missing_and_hold_the_decision_back() {
    let mut calls = 0;
    let mut test = test(30, 1);
    play(&mut test, |_| {
        calls += 1;
        (calls > 4).then_some(1.0)
    });
    let estimate = test.estimate();
    assert_eq!(test.decision(), Decision::Accept);
    assert_eq!(estimate.missing, 4);
    assert_eq!(
        estimate.draws, 20,
        "four missing of twenty are what the floor allows"
    );
    assert_eq!(estimate.gain, Some(1.0));
}

#[test]
fn too_many_failed_calls_are_undecided_at_once() {
    let mut test = test(10, 1);
    play(&mut test, |_| None);
    assert_eq!(test.decision(), Decision::Undecided);
    assert_eq!(
        test.estimate().draws,
        13,
        "one more than a fifth of sixty draws"
    );
    assert_eq!(test.estimate().evidence, 1.0);
}

#[test]
fn results_that_do_not_belong_are_refused() {
    let mut test = test(3, 1);
    let draw = test.next(1)[0];
    let other = Draw { item: 7, repeat: 0 };
    assert_eq!(test.record(other, None), Err(RecordError::NotDrawn(other)));
    assert_eq!(
        test.record(draw, Some(1.5)),
        Err(RecordError::OutOfRange(1.5))
    );
    assert!(test.record(draw, Some(f64::NAN)).is_err());
    test.record(draw, Some(0.5)).unwrap();
    assert_eq!(test.record(draw, None), Err(RecordError::Twice(draw)));
}

#[test]
fn settings_out_of_range_are_refused() {
    for broken in [
        ConfidentSettings {
            alpha: 0.0,
            ..settings()
        },
        ConfidentSettings {
            alpha: f64::NAN,
            ..settings()
        },
        ConfidentSettings {
            reject_level: 0.6,
            ..settings()
        },
        ConfidentSettings {
            smallest_gain: 1.0,
            ..settings()
        },
        ConfidentSettings {
            max_repeats: 0,
            ..settings()
        },
        ConfidentSettings {
            coverage_floor: 1.1,
            ..settings()
        },
    ] {
        assert!(ConfidentTest::new(3, 0, broken).is_err(), "{broken:?}");
    }
}

#[test]
fn repeats_count_the_draws_of_an_item() {
    let mut test = test(4, 9);
    let draws = test.next(usize::MAX);
    assert_eq!(draws.len(), 24);
    let mut counts = [0; 4];
    for draw in draws {
        assert_eq!(draw.repeat, counts[draw.item]);
        counts[draw.item] += 1;
    }
}

#[test]
fn waves_of_the_announced_size_waste_nothing() {
    let mut test = test(30, 5);
    assert_eq!(test.fewest_until_decided(), {
        let mut wins = self::test(30, 5);
        play(&mut wins, |_| Some(1.0));
        wins.estimate().draws.min({
            let mut losses = self::test(30, 5);
            play(&mut losses, |_| Some(-1.0));
            losses.estimate().draws
        })
    });
    play(&mut test, |_| Some(1.0));
    assert_eq!(test.fewest_until_decided(), 0);
}

/// A draw's difference under a noisy candidate, fixed by the draw alone.
fn noisy(draw: Draw, salt: u64) -> Option<f64> {
    let mut random = Mt19937::from_words(&[draw.item as u32 + 1, draw.repeat + 1, salt as u32]);
    match random.below(8) {
        0..=2 => Some(1.0),
        3 => Some(-1.0),
        4 if draw.item.is_multiple_of(3) => None,
        _ => Some(0.0),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_order_of_completion_does_not_matter(
        items in 1..25_usize,
        seed in any::<u64>(),
        waves in prop::collection::vec(1..20_usize, 1..10),
        order in any::<u64>(),
    ) {
        let mut one_by_one = test(items, seed);
        play(&mut one_by_one, |draw| noisy(draw, seed));

        let mut random = Mt19937::from_words(&[order as u32]);
        let mut concurrent = test(items, seed);
        let mut in_flight = Vec::new();
        for wave in waves.iter().cycle() {
            in_flight.extend(concurrent.next(*wave));
            if in_flight.is_empty() {
                break;
            }
            // Some come back, the last ones first or not.
            random.shuffle(&mut in_flight);
            for draw in in_flight.split_off(in_flight.len() / 2) {
                concurrent.record(draw, noisy(draw, seed)).unwrap();
            }
        }
        prop_assert_eq!(concurrent.decision(), one_by_one.decision());
        prop_assert_eq!(concurrent.estimate(), one_by_one.estimate());
    }

    #[test]
    fn interval_and_decision_agree(items in 1..25_usize, seed in any::<u64>()) {
        let mut test = test(items, seed);
        play(&mut test, |draw| noisy(draw, seed));
        let estimate = test.estimate();
        let (lower, upper) = estimate.interval;
        prop_assert!(-1.0 <= lower && lower <= upper && upper <= 1.0);
        if lower >= 0.0 {
            prop_assert!(estimate.evidence >= 10.0);
        }
    }
}

#[test]
fn each_end_of_the_interval_keeps_its_level() {
    // Differences of 1, 0, -1 with mean 0.125 on every item, each test stopped by its own rule.
    let runs = 400;
    let (mut above, mut below) = (0, 0);
    for seed in 0..runs {
        let mut test = test(8, seed);
        let mut random = Mt19937::new(seed as i64);
        play(&mut test, |_| {
            Some(match random.below(8) {
                0 | 1 => 1.0,
                2 => -1.0,
                _ => 0.0,
            })
        });
        let (lower, upper) = test.estimate().interval;
        above += u32::from(lower > 0.125);
        below += u32::from(upper < 0.125);
    }
    // A tenth is allowed; three standard deviations of 400 runs are 4.5 points.
    assert!(above <= 58 && below <= 58, "{above} {below} of {runs}");
}

/// Share of `runs` candidates that are accepted when differences come from `draw`.
fn accepted_share(runs: u64, mut difference: impl FnMut(Draw, &mut Mt19937) -> f64) -> f64 {
    let mut accepted = 0;
    for seed in 0..runs {
        let mut test = test(10, seed);
        let mut random = Mt19937::new(seed as i64 + 1);
        play(&mut test, |draw| Some(difference(draw, &mut random)));
        accepted += u32::from(test.decision() == Decision::Accept);
    }
    f64::from(accepted) / runs as f64
}

#[test]
fn no_shape_of_a_useless_candidate_is_accepted_more_often_than_allowed() {
    // Three standard deviations of 600 runs at a tenth are 3.7 points.
    let allowed = 0.137;
    // Half of the items always gain what the others always lose.
    let split = accepted_share(600, |draw, _| if draw.item < 5 { 1.0 } else { -1.0 });
    // Small wins almost always, a rare large loss.
    let rare_loss = accepted_share(
        600,
        |_, random| {
            if random.below(10) == 0 { -0.9 } else { 0.1 }
        },
    );
    // Small losses almost always, a rare large win.
    let rare_win = accepted_share(
        600,
        |_, random| {
            if random.below(10) == 0 { 0.9 } else { -0.1 }
        },
    );
    // Soft scores of all sizes.
    let soft = accepted_share(600, |_, random| random.next_f64() - random.next_f64());
    // One item gains a lot, the rest lose a little.
    let lopsided = accepted_share(600, |draw, random| {
        let noise = random.next_f64() - 0.5;
        if draw.item == 0 {
            0.9
        } else {
            -0.1 + 0.2 * noise
        }
    });
    for (shape, share) in [
        ("split", split),
        ("rare loss", rare_loss),
        ("rare win", rare_win),
        ("soft", soft),
        ("lopsided", lopsided),
    ] {
        assert!(share <= allowed, "{shape}: {share}");
    }
}
