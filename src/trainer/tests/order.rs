//! What a run is does not depend on the order in which its calls end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::world::{MODES, Oracle, Temper, World, everything, train_in};

/// Fields that say how long something took.
const TIMES: [&str; 5] = ["timing", "wall_time_s", "time_s", "total_wall_time_s", "at"];

fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !TIMES.contains(&key.as_str()));
            fields.values_mut().for_each(without_times);
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        _ => {}
    }
}

/// Every file below `dir` by its path, times taken out. Events are told as they happen, so of their
/// log only what happened counts.
fn contents(dir: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let plain = |text: &str| {
                serde_json::from_str(text).map_or_else(
                    |_| text.to_owned(),
                    |mut value: Value| {
                        without_times(&mut value);
                        value.to_string()
                    },
                )
            };
            let name = path.strip_prefix(dir).unwrap().display().to_string();
            let text = if name == "events.jsonl" {
                let mut lines: Vec<String> = text.lines().map(plain).collect();
                lines.sort();
                lines.join("\n")
            } else {
                plain(&text)
            };
            found.insert(name, text);
        }
    }
    found
}

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
