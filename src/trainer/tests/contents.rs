//! What a run directory holds, for comparing two of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

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
pub(super) fn contents(dir: &Path) -> BTreeMap<String, String> {
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
