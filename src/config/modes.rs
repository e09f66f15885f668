//! The enumerated settings of the engine and the names that stand for them (engine 3.7).
//!
//! A name that is none of them is an error with the nearest right one; nothing falls back to a
//! default silently (W-C5).

use serde::{Deserialize, Serialize};

use super::nearest;
pub use crate::trainer::gate_rule::GateMetric;
pub use crate::trainer::pairs::PairPolicy;
pub use crate::trainer::schedule::{LrControl, LrScheduler};
pub use crate::trainer::update_mode::UpdateMode;

/// A setting that has a few named values.
pub trait Mode: Sized + Copy + 'static {
    /// Every accepted name; the first of a value's names is the one that is written.
    const NAMES: &'static [(&'static str, Self)];

    /// The value for null and for blank text, where that has one.
    const BLANK: Option<Self>;

    /// Whether case and surrounding blanks matter.
    const EXACT: bool = false;

    /// The value that `text` names.
    ///
    /// # Errors
    /// A clause for an error about the setting: what the text is, and what it could be.
    fn parse(text: &str) -> Result<Self, String> {
        let name = if Self::EXACT {
            text.to_owned()
        } else {
            text.trim().to_lowercase()
        };
        if name.is_empty()
            && let Some(blank) = Self::BLANK
        {
            return Ok(blank);
        }
        if let Some((_, mode)) = Self::NAMES.iter().find(|(known, _)| *known == name) {
            return Ok(*mode);
        }
        let names = || Self::NAMES.iter().map(|(known, _)| *known);
        Err(match nearest(&name, names()) {
            Some(near) => format!("is `{text}`; did you mean `{near}`?"),
            None => format!(
                "is `{text}`; it can be {}",
                names().collect::<Vec<_>>().join(", ")
            ),
        })
    }
}

/// Gives a type of the trainer its names in configuration.
macro_rules! names {
    ($name:ident, blank $blank:expr, exact $exact:expr, { $( $value:ident = $canonical:literal $(| $alias:literal)* ),+ $(,)? }) => {
        impl Mode for $name {
            const NAMES: &'static [(&'static str, $name)] =
                &[$( ($canonical, $name::$value) $(, ($alias, $name::$value))* ),+];
            const BLANK: Option<$name> = $blank;
            const EXACT: bool = $exact;
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $( $name::$value => $canonical ),+ })
            }
        }
    };
}

/// Makes a type with its names in configuration.
macro_rules! mode {
    (
        $(#[$about:meta])*
        $name:ident, blank $blank:expr, exact $exact:expr,
        { $( $(#[$value_about:meta])* $value:ident = $canonical:literal $(| $alias:literal)* ),+ $(,)? }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name {
            $( $(#[$value_about])* #[serde(rename = $canonical)] $value ),+
        }

        names! { $name, blank $blank, exact $exact, { $( $value = $canonical $(| $alias)* ),+ } }
    };
}

names! {
    UpdateMode, blank Some(UpdateMode::Patch), exact false,
    {
        Patch = "patch" | "edits",
        RewriteFromSuggestions = "rewrite_from_suggestions" | "rewrite" | "suggestions" | "rewrite_suggestions",
        FullRewriteMinibatch = "full_rewrite_minibatch" | "full_rewrite" | "minibatch_full_rewrite" | "skill_rewrite_minibatch",
    }
}

names! {
    LrControl, blank Some(LrControl::Fixed), exact false,
    {
        Fixed = "fixed" | "manual" | "scheduler" | "scheduled",
        Autonomous = "autonomous" | "auto" | "optimizer",
        None = "none" | "off" | "no_lr",
    }
}

names! {
    PairPolicy, blank Some(PairPolicy::Mixed), exact false,
    {
        Mixed = "mixed" | "default" | "random" | "all",
        Changed = "changed" | "change" | "delta" | "10_01" | "01_10",
        Unchanged = "unchanged" | "stable" | "same" | "00_11",
    }
}

names! {
    LrScheduler, blank None, exact true,
    {
        Constant = "constant",
        Linear = "linear",
        Cosine = "cosine",
        Autonomous = "autonomous",
    }
}

names! {
    GateMetric, blank None, exact false,
    {
        Hard = "hard",
        Soft = "soft",
        Mixed = "mixed",
    }
}

mode! {
    /// How the gate decides.
    GateRuleName, blank Some(GateRuleName::Strict), exact false,
    {
        /// One scoring each, strictly greater: the paper's rule.
        Strict = "strict",
        /// A sequential test of paired scorings with a bounded error.
        Confident = "confident",
    }
}

mode! {
    /// Whose lessons the skill-aware appendix takes.
    AppendixSource, blank None, exact false,
    {
        /// Those of failures and successes.
        Both = "both",
        /// Those of failures.
        FailureOnly = "failure_only",
    }
}

mode! {
    /// Where items and their splits come from.
    SplitMode, blank None, exact false,
    {
        /// One data file, cut by a ratio.
        Ratio = "ratio",
        /// Folders `train`, `val` and `test`.
        SplitDir = "split_dir",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_stand_for_their_values_in_any_case() {
        assert_eq!(UpdateMode::parse("Patch "), Ok(UpdateMode::Patch));
        assert_eq!(
            UpdateMode::parse("REWRITE"),
            Ok(UpdateMode::RewriteFromSuggestions)
        );
        assert_eq!(UpdateMode::parse(""), Ok(UpdateMode::Patch));
        assert_eq!(LrControl::parse("AUTO"), Ok(LrControl::Autonomous));
        assert_eq!(LrControl::parse("no_lr"), Ok(LrControl::None));
        assert_eq!(PairPolicy::parse(" changed "), Ok(PairPolicy::Changed));
        assert_eq!(PairPolicy::parse("00_11"), Ok(PairPolicy::Unchanged));
        assert_eq!(GateMetric::parse(" Hard"), Ok(GateMetric::Hard));
        assert_eq!(
            UpdateMode::FullRewriteMinibatch.to_string(),
            "full_rewrite_minibatch"
        );
    }

    #[test]
    fn other_names_are_errors_with_the_nearest_right_one() {
        assert_eq!(
            UpdateMode::parse("pach").unwrap_err(),
            "is `pach`; did you mean `patch`?"
        );
        assert!(
            PairPolicy::parse("bogus")
                .unwrap_err()
                .contains("it can be mixed")
        );
        assert!(LrScheduler::parse("Cosine").is_err());
        assert!(LrScheduler::parse("").is_err());
    }
}
