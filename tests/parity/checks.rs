//! What the deviations refer to: when a vector is of some kind, and what must hold for our result.

use serde_json::Value;

use super::Vector;

/// Whether a file among the vectors is data for other groups rather than a group.
pub(super) fn is_data(group: &str) -> bool {
    group == "bench/officeqa_corpus"
}

/// Whether the named condition holds for a vector and our result.
pub(super) fn holds(name: &str, vector: &Vector, _ours: &Value) -> bool {
    let _ = vector;
    panic!("no such condition: {name}")
}
