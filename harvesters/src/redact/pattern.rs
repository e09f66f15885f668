//! The pattern of a rule, in the two forms that it is run in.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};
use regex_automata::{meta, util::syntax};

/// A pattern, compiled when it is first run: few ever are, and to compile all of them
/// takes longer than to see that no log has changed.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    source: Cow<'static, str>,
    /// To be run over all of a text.
    anywhere: OnceLock<Option<Regex>>,
    /// To be tried at one place.
    here: OnceLock<Option<meta::Regex>>,
}

impl Pattern {
    /// A built-in pattern; a test compiles all of them.
    pub(super) fn built_in(source: &'static str) -> Self {
        Pattern {
            source: Cow::Borrowed(source),
            anywhere: OnceLock::new(),
            here: OnceLock::new(),
        }
    }

    /// A user's pattern.
    pub(super) fn users(pattern: Regex) -> Self {
        Pattern {
            source: Cow::Owned(pattern.as_str().to_owned()),
            anywhere: OnceLock::from(Some(pattern)),
            here: OnceLock::from(None),
        }
    }

    /// As it is written.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// The pattern, to be run over all of a text. None when it does not compile.
    pub(super) fn anywhere(&self) -> Option<&Regex> {
        let pattern = self.anywhere.get_or_init(|| compile(&self.source).ok());
        pattern.as_ref()
    }

    /// The pattern, to be tried at one place. None when it does not compile.
    pub(super) fn here(&self) -> Option<&meta::Regex> {
        let pattern = self.here.get_or_init(|| compile_here(&self.source));
        pattern.as_ref()
    }
}

/// Compiles a built-in pattern. They are about ASCII: without Unicode classes the
/// engine never leaves its fastest path.
pub(super) fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).unicode(false).build()
}

/// The same pattern, to be tried at one place.
pub(super) fn compile_here(pattern: &str) -> Option<meta::Regex> {
    meta::Regex::builder()
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .configure(meta::Config::new().utf8_empty(false))
        .build(pattern)
        .ok()
}
