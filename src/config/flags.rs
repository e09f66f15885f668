//! The flags of SkillOpt's own command line, `--<flat name> value`, as one table (engine 4).
//!
//! They stand above the configuration file and above `--set`, wherever they stand on the command
//! line. Everything about one follows from [`SETTINGS`]: its name, and the type of its value.

use serde_json::{Number, Value};

use super::flatten::{COMMON_ENV, Kind, RETIRED, SETTINGS};
use super::roles;

/// One flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flag {
    /// Its name without dashes, which is the flat name of the setting but for `backend`.
    pub name: &'static str,
    /// The flat name of what it sets.
    pub flat: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// The only texts that it takes; empty when there is no such list.
    pub choices: &'static [&'static str],
}

/// Settings that never had a flag, and all whose name begins with `gate_`.
const WITHOUT: [&str; 7] = [
    "slow_update_gate_with_selection",
    "use_semantic_density",
    "semantic_density_weight",
    "leading_words",
    "coverage_floor",
    "meta_edit_budget",
    // It has an option of its own.
    "out_root",
];

/// Flags of benchmarks' own settings.
const BENCHMARK: &[(&str, Kind)] = &[
    ("data_root", Kind::Text),
    ("max_steps", Kind::Integer),
    ("max_api_workers", Kind::Integer),
    ("shuffle_choices", Kind::Switch),
    ("use_theorem", Kind::Switch),
    ("use_sketch", Kind::Switch),
    ("image_detail", Kind::Text),
    ("judge_model", Kind::Text),
    ("judge_max_completion_tokens", Kind::Integer),
    ("judge_retries", Kind::Integer),
    ("mode", Kind::Text),
];

/// The settings that only take some texts.
const CHOICES: &[(&str, &[&str])] = &[
    (
        "lr_scheduler",
        &["constant", "linear", "cosine", "autonomous"],
    ),
    ("model_backend", roles::LABELS),
    ("lr_control_mode", &["fixed", "autonomous", "none"]),
    (
        "skill_update_mode",
        &[
            "patch",
            "rewrite_from_suggestions",
            "rewrite",
            "suggestions",
            "full_rewrite",
            "full_rewrite_minibatch",
            "minibatch_full_rewrite",
        ],
    ),
    (
        "longitudinal_pair_policy",
        &["mixed", "changed", "unchanged"],
    ),
    ("skill_aware_appendix_source", &["both", "failure_only"]),
    (
        "reasoning_effort",
        &["", "low", "medium", "high", "xhigh", "max"],
    ),
    ("split_mode", &["ratio", "split_dir"]),
];

/// Every flag: the settings', the benchmarks' and the retired one.
pub fn all() -> impl Iterator<Item = Flag> {
    let settings = SETTINGS
        .iter()
        .filter(|setting| !WITHOUT.contains(&setting.flat) && !setting.flat.starts_with("gate_"))
        .map(|setting| (setting.flat, setting.kind));
    let retired = [(RETIRED.1, Kind::Integer)];
    settings
        .chain(COMMON_ENV.iter().copied())
        .chain(BENCHMARK.iter().copied())
        .chain(retired)
        .map(|(flat, kind)| Flag {
            name: if flat == "model_backend" {
                "backend"
            } else {
                flat
            },
            flat,
            kind,
            choices: CHOICES
                .iter()
                .find(|(name, _)| *name == flat)
                .map_or(&[], |(_, choices)| choices),
        })
}

impl Flag {
    /// The value that a text stands for. A switch is on for `true`, `1` and `yes` in any case and
    /// off for everything else, as it always was.
    ///
    /// # Errors
    /// What the text should have been.
    pub fn value(&self, text: &str) -> Result<Value, String> {
        match self.kind {
            Kind::Text | Kind::Words => Ok(Value::from(text)),
            Kind::Switch => Ok(Value::from(matches!(
                text.to_lowercase().as_str(),
                "true" | "1" | "yes"
            ))),
            Kind::Integer => text
                .trim()
                .parse::<i64>()
                .map(Value::from)
                .map_err(|_| "it must be a whole number".to_owned()),
            Kind::Number => text
                .trim()
                .parse()
                .ok()
                .and_then(Number::from_f64)
                .map(Value::Number)
                .ok_or_else(|| "it must be a number".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_flag_has_one_meaning_and_its_choices_are_of_a_setting() {
        let names: Vec<&str> = all().map(|flag| flag.name).collect();
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), distinct.len());
        for (flat, _) in CHOICES {
            assert!(all().any(|flag| flag.flat == *flat), "{flat}");
        }
    }

    #[test]
    fn values_have_their_declared_types() {
        let value = |name: &str, text: &str| {
            let flag = all().find(|flag| flag.name == name).unwrap();
            flag.value(text)
        };
        assert_eq!(value("optimizer_model", "12345"), Ok(Value::from("12345")));
        assert_eq!(value("batch_size", " 7 "), Ok(Value::from(7)));
        assert_eq!(value("use_gate", "maybe"), Ok(Value::from(false)));
        assert!(value("batch_size", "many").is_err());
    }
}
