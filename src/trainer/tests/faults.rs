//! Models that fail, and what a run makes of it: a clear end or a fallback, never a wrong score.

use super::super::error::TrainError;
use super::super::gate_rule::GateAction;
use super::super::run_dir::RunDir;
use super::world::{MODES, Oracle, Temper, World, everything, train_in};

fn oracle(temper: Temper) -> Oracle {
    Oracle {
        temper,
        disorder: 0,
    }
}

#[tokio::test(start_paused = true)]
async fn an_optimizer_that_is_away_stops_the_run_where_it_can_go_on() {
    for mode in MODES {
        let dir = tempfile::tempdir().unwrap();
        let settings = everything(mode);
        let world = World::new(0);
        let error = train_in(
            dir.path(),
            &world,
            oracle(Temper::Away),
            settings.clone(),
            "# S\n",
        )
        .await
        .unwrap_err();
        assert!(matches!(error, TrainError::Optimizer(_)), "{error}");
        let state = RunDir::open(dir.path()).unwrap().load().unwrap().unwrap();
        assert_eq!(state.last_completed_step, 0);
        assert!(state.current.score.is_some(), "the baseline is kept");
        let trained = train_in(
            dir.path(),
            &world,
            oracle(Temper::Helpful),
            settings,
            "# S\n",
        )
        .await
        .unwrap();
        assert_eq!(trained.state.history.len(), 6);
    }
}

#[tokio::test(start_paused = true)]
async fn useless_replies_change_nothing_and_end_nothing() {
    for mode in MODES {
        for temper in [Temper::Prose, Temper::Wrong] {
            let dir = tempfile::tempdir().unwrap();
            let mut settings = everything(mode);
            settings.slow_update_gated = false;
            let trained = train_in(
                dir.path(),
                &World::new(0),
                oracle(temper),
                settings,
                "# S\n",
            )
            .await
            .unwrap();
            for record in &trained.state.history {
                assert!(
                    !record.action.is_accept(),
                    "{mode:?} {temper:?}: {record:?}"
                );
                assert_ne!(record.action, GateAction::Undecided);
            }
            assert_eq!(trained.state.best.skill, "# S\n");
            assert_eq!(trained.state.meta_skill, "");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_measures_nothing_says_so_and_concludes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::new(0);
    world.dark = true;
    let settings = everything(MODES[0]);
    let error = train_in(
        dir.path(),
        &world,
        oracle(Temper::Helpful),
        settings,
        "# S\n",
    )
    .await
    .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("selection_eval_baseline") && text.contains("no light"),
        "{text}"
    );
    assert_eq!(RunDir::open(dir.path()).unwrap().load().unwrap(), None);
}
