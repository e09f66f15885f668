//! What a run is does not depend on the order in which its calls end.

use super::contents::contents;
use super::world::{MODES, Oracle, Temper, World, everything, train_in};

#[tokio::test(start_paused = true)]
async fn the_order_of_completion_leaves_no_trace() {
    for mode in MODES {
        let mut first = None;
        for disorder in 0..4 {
            let dir = tempfile::tempdir().unwrap();
            let oracle = Oracle {
                temper: Temper::Helpful,
                disorder,
            };
            let world = World::new(disorder);
            train_in(dir.path(), &world, oracle, everything(mode), "# Skill\n")
                .await
                .unwrap();
            let made = contents(dir.path());
            let first = first.get_or_insert_with(|| made.clone());
            for (name, text) in &made {
                assert_eq!(first.get(name), Some(text), "{mode:?}: {name}");
            }
            assert_eq!(first.len(), made.len());
        }
    }
}
