//! Everything switched on at once, and what must survive it.

use super::super::gate_rule::GateAction;
use super::super::update_mode::UpdateMode;
use super::world::{MODES, Oracle, Temper, World, everything, train_in};
use crate::skill::region::{self, RegionKind};

fn helpful() -> Oracle {
    Oracle {
        temper: Temper::Helpful,
        disorder: 0,
    }
}

#[tokio::test(start_paused = true)]
async fn everything_at_once_finishes() {
    for mode in MODES {
        let dir = tempfile::tempdir().unwrap();
        let trained = train_in(
            dir.path(),
            &World::new(0),
            helpful(),
            everything(mode),
            "# Skill\n",
        )
        .await
        .unwrap();
        let state = &trained.state;
        assert_eq!(state.history.len(), 6, "{mode:?}");
        assert_eq!(state.completed_epochs, 3);
        assert!(
            state.best.score > state.baseline.map(|s| s.hard),
            "{mode:?}"
        );
        assert!(state.meta_skill.starts_with("memory meta_skill/epoch_03"));
        assert_eq!(
            region::regions(&state.current.skill).len(),
            2,
            "{mode:?}: one region of each kind in {:?}",
            state.current.skill
        );
        assert!(trained.summary.test_hard.is_some());
        assert!(trained.summary.final_selection.is_some());
        let scores: Vec<f64> = state.history.iter().map(|r| r.best_score).collect();
        assert!(
            scores.windows(2).all(|pair| pair[0] <= pair[1]),
            "{scores:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn protected_regions_survive_whole_runs() {
    let slow = "<!-- SLOW_UPDATE_START -->\nkeep – me\n<!-- SLOW_UPDATE_END -->";
    let notes =
        "<!-- APPENDIX_START -->\n## Execution Notes Appendix\n- kept\n<!-- APPENDIX_END -->";
    let skill = format!("# Skill\n\n{slow}\n\nbody\n\n{notes}\n");
    for mode in MODES {
        let dir = tempfile::tempdir().unwrap();
        let settings = super::Settings {
            batch_size: 2,
            epochs: 2,
            update_mode: mode,
            ..super::Settings::default()
        };
        let trained = train_in(dir.path(), &World::new(0), helpful(), settings, &skill)
            .await
            .unwrap();
        let accepts = |action: GateAction| action.is_accept();
        assert!(
            trained.state.history.iter().any(|r| accepts(r.action)),
            "{mode:?}"
        );
        for step in 0..=trained.state.last_completed_step {
            let path = dir.path().join(format!("skills/skill_v{step:04}.md"));
            let text = std::fs::read_to_string(path).unwrap();
            let found: Vec<&str> = region::regions(&text)
                .into_iter()
                .map(|region| &text[region.span])
                .collect();
            assert_eq!(found, [slow, notes], "{mode:?}, step {step}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_initial_skill_is_kept_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let settings = everything(UpdateMode::Patch);
    let trained = train_in(dir.path(), &World::new(0), helpful(), settings, "# Skill\n")
        .await
        .unwrap();
    let initial = std::fs::read_to_string(dir.path().join("skills/skill_v0000.md")).unwrap();
    assert_eq!(initial, "# Skill\n");
    assert!(region::has(
        &trained.state.current.skill,
        RegionKind::Appendix
    ));
}
