//! Where values came from, and what can be wrong with a configuration.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// A line of a file; lines count from 1.
    File {
        /// The file, or the name of a built-in one.
        path: PathBuf,
        /// Its line.
        line: usize,
    },
    /// A `--set` or `--cfg-options` of this key; the value is not kept, because it may be a
    /// credential.
    Override(String),
    /// A flag of the command line, such as `--batch_size`; the value is not kept either.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("built-in default"),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Override(key) => write!(f, "--set {key}"),
            Origin::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// A configuration that cannot be used; always a matter for the user (exit code 1).
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read the configuration {path}: {reason}", path = .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A file is not YAML.
    #[error("{path}:{line}: not valid YAML: {reason}", path = .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where the parser stopped.
        line: usize,
        /// What it said.
        reason: String,
    },
    /// A file's top level is a list or a single value.
    #[error("{path}: a configuration is a mapping of keys to values, and this is {found}", path = .path.display())]
    NotAMapping {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        found: &'static str,
    },
    /// `_base_` is not the path of one file.
    #[error("{origin}: `_base_` must be the path of one file, and it is {found}")]
    BaseForm {
        /// Where it stands.
        origin: Origin,
        /// What it is instead.
        found: &'static str,
    },
    /// `_base_` names a file that is not there.
    #[error("{origin}: the base configuration {base} does not exist", base = .base.display())]
    #[diagnostic(help(
        "a relative `_base_` is looked up beside the file that names it; `_base_: default` is built in"
    ))]
    BaseMissing {
        /// Where it is named.
        origin: Origin,
        /// The file that it names.
        base: PathBuf,
    },
    /// A file inherits from itself.
    #[error("{origin}: circular `_base_`: {chain}")]
    BaseCircular {
        /// Where the circle closes.
        origin: Origin,
        /// The files, from the entry on.
        chain: String,
    },
    /// An override of the command line has no meaning.
    #[error("{option} {text}: {reason}")]
    Override {
        /// The option.
        option: &'static str,
        /// As it was typed.
        text: String,
        /// Why it means nothing, and what would.
        reason: String,
    },
    /// A key that nothing reads.
    #[error("{origin}: unknown key `{key}`{}", did_you_mean(nearest.as_deref()))]
    UnknownKey {
        /// Where it is set.
        origin: Origin,
        /// The key, with its section.
        key: String,
        /// The right key that it most resembles.
        nearest: Option<String>,
    },
    /// A value of the wrong type or range.
    #[error("{origin}: `{key}` {reason}")]
    Value {
        /// Where it is set.
        origin: Origin,
        /// The key, with its section.
        key: String,
        /// What it is, and what it must be.
        reason: String,
    },
    /// A value that has no default.
    #[error("`{key}` is not set: {reason}")]
    Missing {
        /// The key, with its section.
        key: String,
        /// What to do.
        reason: String,
    },
    /// No home directory, so no place for configuration or state.
    #[error("cannot tell where {what} should be: there is no home directory; set {variable}")]
    NoHome {
        /// The configuration or the state.
        what: &'static str,
        /// The variable that says it.
        variable: &'static str,
    },
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}

/// The candidate that `name` most resembles, if any is near enough to be meant.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.trim().to_lowercase().replace('-', "_");
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&name, candidate);
            let likeness = strsim::jaro_winkler(&name, candidate);
            (candidate, distance, likeness)
        })
        .filter(|(candidate, distance, likeness)| {
            *likeness > 0.85 || *distance <= 1 + candidate.chars().count() / 5
        })
        .min_by(|left, right| left.1.cmp(&right.1).then(right.2.total_cmp(&left.2)))
        .map(|(candidate, ..)| candidate)
}
