use serde_json::json;

use super::*;
use crate::trainer::evaluation::{ItemScore, Scores};
use crate::trainer::gate_rule::{GateMetric, GateProjection};
use crate::trainer::statistics::Prices;
use crate::trainer::summary::Measured;

fn record(step: u32, action: &str, scores: [f64; 3]) -> StepRecord {
    let [candidate, current, best] = scores;
    serde_json::from_value(json!({
        "step": step, "epoch": 1, "step_in_epoch": step - 1,
        "timing": {"rollout_s": 1.0, "reflect_s": 2.0, "aggregate_s": 0.5, "select_s": 0.1, "update_s": 0.0, "evaluate_s": 1.5},
        "tokens": {}, "rollout_hard": 0.4, "rollout_soft": 0.5, "rollout_n": 4, "accumulation_batches": [],
        "n_patches": 2, "n_failure_patches": 1, "n_success_patches": 1, "n_edits_merged": 3, "n_edits_ranked": 2,
        "candidate_gate_score": candidate, "action": action, "current_score": current, "best_score": best,
        "best_step": 1, "current_origin": "step_0001", "best_origin": "step_0001", "skill_len": 3, "wall_time_s": 5.1,
    }))
    .unwrap()
}

fn scored(passed: usize) -> Vec<ItemScore> {
    (0..20)
        .map(|n| ItemScore {
            id: n.to_string(),
            scores: Some(Scores {
                hard: f64::from(u8::from(n < passed)),
                soft: 0.5,
            }),
        })
        .collect()
}

fn page(history: Vec<StepRecord>, best: &str) -> String {
    let mut state = State::new("keep\nold rule\n".to_owned());
    best.clone_into(&mut state.best.skill);
    state.history = history;
    let gate = GateProjection {
        metric: GateMetric::Hard,
        mixed_weight: 0.5,
        density: None,
    };
    let measured = Measured {
        test_baseline: scored(5),
        test_best: scored(17),
        ..Measured::default()
    };
    let summary = Summary::of(&state, &gate, &measured, &Prices::default(), 12.0);
    render(
        "toy <b>",
        &state,
        &summary,
        &json!({"seed": 1, "x": "</script>"}),
    )
    .unwrap()
}

#[test]
fn everything_from_outside_is_escaped_and_nothing_is_loaded() {
    let html = page(
        vec![record(1, "accept_new_best", [0.6, 0.6, 0.6])],
        "keep\n<script>alert(1)</script> & more\n",
    );
    assert!(html.contains("toy &lt;b&gt;"));
    assert!(html.contains("&lt;script&gt;alert(1)&lt;") && !html.contains("<script"));
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn results_decisions_and_the_difference_are_there() {
    let html = page(
        vec![
            record(1, "accept_new_best", [0.6, 0.6, 0.6]),
            record(2, "reject", [0.5, 0.6, 0.6]),
            record(3, "undecided", [0.55, 0.6, 0.6]),
        ],
        "keep\nnew rule\n",
    );
    assert!(html.contains("0.250 → <b>0.850</b>"), "{html}");
    assert!(html.contains("20 of 20 items measured; 12 won, 0 lost, 8 even"));
    assert!(html.contains("<b>+</b><span>new rule</span>"));
    assert!(html.contains("<b>-</b><span>old rule</span>"));
    for title in [
        "step 1: candidate 0.600, accepted",
        "step 2: candidate 0.500, rejected",
        "step 3: 2 kept",
    ] {
        assert!(html.contains(title), "{title}");
    }
}

#[test]
fn a_run_without_steps_has_a_page_too() {
    let html = page(Vec::new(), "keep\nold rule\n");
    assert!(html.contains("The best skill is the initial one."));
}
