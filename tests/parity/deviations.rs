//! What differs from the original on purpose.

use std::fs;
use std::path::Path;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::{Vector, checks, checks_harvest};

/// One deliberate difference: which vectors it covers, and what must hold for our result there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Deviation {
    /// The group.
    group: String,
    /// Why ours is better.
    reason: String,
    /// Covers vectors of these names.
    #[serde(default)]
    names: Vec<String>,
    /// Covers vectors whose name matches.
    name_matches: Option<String>,
    /// Covers vectors recorded as this defect.
    defect: Option<String>,
    /// Covers vectors of these classes.
    #[serde(default)]
    classes: Vec<String>,
    /// Covers vectors for whose input this holds (see `checks.rs`).
    when: Option<String>,
    /// What must hold for our result (see `checks.rs`).
    check: Option<String>,
}

/// All of them.
pub(super) struct Deviations(Vec<Deviation>);

#[derive(Deserialize)]
struct File {
    deviation: Vec<Deviation>,
}

impl Deviations {
    pub(super) fn load(file: &Path) -> Deviations {
        let text = fs::read_to_string(file).expect("deviations.toml is beside the vectors");
        let file: File = toml::from_str(&text).expect("deviations.toml lists deviations");
        for deviation in &file.deviation {
            assert!(
                !deviation.reason.trim().is_empty(),
                "a deviation of {} has no reason",
                deviation.group
            );
            assert!(
                deviation.is_bounded(),
                "a deviation of {} covers everything",
                deviation.group
            );
        }
        Deviations(file.deviation)
    }

    /// Whether a difference is one of these, and our result is what it should then be.
    pub(super) fn covers(&self, group: &str, vector: &Vector, ours: &Value) -> bool {
        let of_group = self.0.iter().filter(|deviation| deviation.group == group);
        let conditions: Vec<&str> = of_group
            .clone()
            .filter_map(|deviation| deviation.when.as_deref())
            .collect();
        let mut covering = of_group.filter(|deviation| deviation.covers(vector, ours));
        covering.any(|deviation| match deviation.check.as_deref() {
            None => true,
            // Several reasons at once may explain a vector of logs.
            Some(checks_harvest::CHECK) => checks_harvest::explained(&conditions, vector, ours),
            Some(check) => checks::holds(check, vector, ours),
        })
    }

    /// The groups that have deviations.
    pub(super) fn groups(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|deviation| deviation.group.as_str())
    }
}

impl Deviation {
    fn is_bounded(&self) -> bool {
        !self.names.is_empty()
            || self.name_matches.is_some()
            || self.defect.is_some()
            || !self.classes.is_empty()
            || self.when.is_some()
    }

    /// Whether a vector is one of those that are meant; what must hold for it is checked apart.
    fn covers(&self, vector: &Vector, ours: &Value) -> bool {
        let named = |pattern: &String| {
            Regex::new(pattern)
                .expect("a name pattern compiles")
                .is_match(&vector.name)
        };
        (self.names.is_empty() || self.names.contains(&vector.name))
            && self.name_matches.as_ref().is_none_or(named)
            && self
                .defect
                .as_ref()
                .is_none_or(|defect| vector.upstream_defect.as_ref() == Some(defect))
            && (self.classes.is_empty()
                || vector
                    .class
                    .as_ref()
                    .is_some_and(|class| self.classes.contains(class)))
            && self
                .when
                .as_ref()
                .is_none_or(|when| checks::holds(when, vector, ours))
            && ours.get("panicked").is_none()
    }
}
