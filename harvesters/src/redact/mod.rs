//! Redaction at the door: no secret leaves a reader.
//!
//! One engine for all text of all sources. A pass over the text finds which rules'
//! keywords occur, and where they can belong to a secret; only those rules' patterns run, each in linear time; what they find
//! is merged and replaced by `[redacted:kind]`. Names stay (`STRIPE_KEY=[redacted:…]`),
//! so a reader still sees what was there. Redacting twice changes nothing.
//!
//! [`Door`] is what readers use: it redacts and only then cuts to length, since half a
//! key is still a key.

mod door;
mod hit;
mod identity;
mod plausible;
mod rules;

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;

pub use door::TextLimits;
pub(crate) use door::{Door, cut};
pub use identity::Identity;
pub use rules::{Rule, built_in};

/// How every placeholder begins.
pub(crate) const PLACEHOLDER: &str = "[redacted:";
/// What one pass uncovers the next one redacts; more passes are never needed.
const MOST_PASSES: usize = 4;

/// A rule of the user's own.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct UserRule {
    /// Name of the kind, used in the placeholder.
    pub name: String,
    /// Regular expression; the group `v`, if any, is the secret.
    pub pattern: String,
}

/// A user's rule that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("redaction rule `{name}` has a pattern that cannot be used")]
pub struct RuleError {
    /// The rule's name.
    pub name: String,
    /// What is wrong with the pattern.
    #[source]
    pub source: regex::Error,
}

/// Replaces secrets in text by placeholders.
#[derive(Clone, Debug)]
pub struct Redactor {
    rules: Vec<Compiled>,
    /// Finds keywords; `None` when the automaton could not be built, then all rules run.
    keywords: Option<AhoCorasick>,
    /// For each keyword, the rules that it stands for.
    keyword_rules: Vec<usize>,
    /// Rules without keywords, which always run.
    always: Vec<usize>,
}

/// A rule ready to run.
#[derive(Clone, Debug)]
struct Compiled {
    name: Cow<'static, str>,
    pattern: Regex,
    near: hit::Near,
    check: plausible::Check,
}

/// The built-in patterns are tested to compile; compiling them once is enough.
static BUILT_IN: LazyLock<Redactor> = LazyLock::new(|| Redactor::compile(&[]));

impl Default for Redactor {
    fn default() -> Self {
        BUILT_IN.clone()
    }
}

impl Redactor {
    /// The built-in rules.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The built-in rules and the user's.
    ///
    /// # Errors
    /// When a user's pattern is no regular expression.
    pub fn with_rules(user_rules: &[UserRule]) -> Result<Self, RuleError> {
        Self::with(user_rules, None)
    }

    /// The built-in rules, the user's, and those that mask who the user is.
    ///
    /// # Errors
    /// When a user's pattern is no regular expression.
    pub fn with(user_rules: &[UserRule], identity: Option<&Identity>) -> Result<Self, RuleError> {
        let mut extra = user_rules
            .iter()
            .map(|rule| {
                let pattern = Regex::new(&rule.pattern).map_err(|source| RuleError {
                    name: rule.name.clone(),
                    source,
                })?;
                Ok(Compiled {
                    name: Cow::Owned(placeholder_name(&rule.name)),
                    pattern,
                    near: hit::anywhere,
                    check: plausible::any,
                })
            })
            .collect::<Result<Vec<_>, RuleError>>()?;
        extra.extend(identity.into_iter().flat_map(Identity::rules));
        Ok(Self::compile(&extra))
    }

    /// Stands for the rules: equal for redactors that take out the same.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for rule in &self.rules {
            hasher.update(rule.name.as_bytes());
            hasher.update(b"\0");
            hasher.update(rule.pattern.as_str().as_bytes());
            hasher.update(b"\0");
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Puts rules and the keyword automaton together.
    fn compile(extra: &[Compiled]) -> Self {
        let mut rules = Vec::new();
        let mut words: Vec<&str> = Vec::new();
        let mut keyword_rules = Vec::new();
        for rule in built_in() {
            let Ok(pattern) = compile(rule.pattern) else {
                tracing::error!(rule = rule.name, "built-in redaction rule does not compile");
                continue;
            };
            for word in rule.keywords {
                words.push(word);
                keyword_rules.push(rules.len());
            }
            rules.push(Compiled {
                name: Cow::Borrowed(rule.name),
                pattern,
                near: rule.near,
                check: rule.check,
            });
        }
        let always = (rules.len()..rules.len() + extra.len()).collect();
        rules.extend_from_slice(extra);
        let keywords = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(aho_corasick::AhoCorasickKind::DFA))
            .build(&words)
            .ok();
        Redactor {
            rules,
            keywords,
            keyword_rules,
            always,
        }
    }

    /// The text without its secrets; borrowed when there were none.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(mut redacted) = self.pass(text) else {
            return Cow::Borrowed(text);
        };
        for _ in 1..MOST_PASSES {
            match self.pass(&redacted) {
                Some(again) => redacted = again,
                None => break,
            }
        }
        Cow::Owned(redacted)
    }

    /// One pass over the text; none when nothing was found.
    fn pass(&self, text: &str) -> Option<String> {
        let mut found = Vec::new();
        for rule in self.candidates(text) {
            self.find(rule, text, &mut found);
        }
        if found.is_empty() {
            return None;
        }
        found.sort_unstable_by_key(|secret| (secret.start, secret.rule));
        let mut out = String::with_capacity(text.len());
        let mut copied = 0;
        for secret in merge(found) {
            out.push_str(&text[copied..secret.start]);
            out.push_str(PLACEHOLDER);
            out.push_str(&self.rules[secret.rule].name);
            out.push(']');
            copied = secret.end;
        }
        out.push_str(&text[copied..]);
        Some(out)
    }

    /// The rules of which a keyword occurs where it can belong to a match, in the order of the table.
    fn candidates(&self, text: &str) -> Vec<usize> {
        let Some(keywords) = &self.keywords else {
            return (0..self.rules.len()).collect();
        };
        let mut wanted = vec![false; self.rules.len()];
        for found in keywords.find_overlapping_iter(text) {
            let rule = self.keyword_rules[found.pattern().as_usize()];
            wanted[rule] = wanted[rule]
                || (self.rules[rule].near)(hit::Hit {
                    text: text.as_bytes(),
                    start: found.start(),
                    end: found.end(),
                });
        }
        for rule in &self.always {
            wanted[*rule] = true;
        }
        (0..self.rules.len()).filter(|rule| wanted[*rule]).collect()
    }

    /// All places where a rule finds a secret that is not redacted yet.
    fn find(&self, rule: usize, text: &str, found: &mut Vec<Secret>) {
        let compiled = &self.rules[rule];
        for captures in compiled.pattern.captures_iter(text.as_bytes()) {
            let Some(span) = captures.name("v").or_else(|| captures.get(0)) else {
                continue;
            };
            // The patterns see bytes: a letter of several bytes goes or stays whole.
            let (from, to) = (
                text.floor_char_boundary(span.start()),
                text.ceil_char_boundary(span.end()),
            );
            let (value, start) = unquote(&text[from..to], from);
            let around = plausible::Found {
                text,
                start: from,
                end: to,
            };
            let fresh = !value.is_empty()
                && (compiled.check)(around)
                && !value.contains(PLACEHOLDER)
                && !inside_placeholder(text, start);
            if fresh {
                found.push(Secret {
                    start,
                    end: start + value.len(),
                    rule,
                });
            }
        }
    }

    /// Redacts all texts in a JSON value. A member whose name promises a secret loses
    /// its value whatever its type (sleep-night.md, section 5.9, last paragraph).
    #[must_use]
    pub fn redact_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.redact(text).into_owned()),
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.redact_value(item)).collect())
            }
            Value::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(key, member)| {
                        (
                            self.redact(key).into_owned(),
                            self.redact_member(key, member),
                        )
                    })
                    .collect(),
            ),
            other => other.clone(),
        }
    }

    /// Redacts the member of that name.
    fn redact_member(&self, key: &str, member: &Value) -> Value {
        if hides(key, member) {
            return hidden();
        }
        self.redact_value(member)
    }
}

/// Whether a member is hidden whole: its name promises a secret, and it is not hidden yet.
fn hides(key: &str, member: &Value) -> bool {
    promises_secret(key) && !member.as_str().is_some_and(is_placeholder)
}

/// What stands for a member that is hidden whole.
fn hidden() -> Value {
    Value::String(format!("{PLACEHOLDER}secret]"))
}

/// Whether a text is a placeholder and nothing more.
fn is_placeholder(text: &str) -> bool {
    text.strip_prefix(PLACEHOLDER)
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|name| {
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
}

/// Compiles a built-in pattern. They are about ASCII: without Unicode classes the
/// engine never leaves its fastest path.
fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).unicode(false).build()
}

/// A found secret: byte range and rule.
struct Secret {
    start: usize,
    end: usize,
    rule: usize,
}

/// Joins overlapping secrets; the earliest rule of the table names the kind.
fn merge(sorted: Vec<Secret>) -> Vec<Secret> {
    let mut merged: Vec<Secret> = Vec::with_capacity(sorted.len());
    for secret in sorted {
        match merged.last_mut() {
            Some(last) if secret.start < last.end => {
                last.end = last.end.max(secret.end);
                last.rule = last.rule.min(secret.rule);
            }
            _ => merged.push(secret),
        }
    }
    merged
}

/// Leaves the quotes around a value alone, also escaped ones.
fn unquote(value: &str, start: usize) -> (&str, usize) {
    let lead = value.len() - value.trim_start_matches('\\').len();
    let Some(quote) = value[lead..]
        .chars()
        .next()
        .filter(|quote| matches!(quote, '"' | '\''))
    else {
        return (value, start);
    };
    let inner = &value[lead + 1..];
    let inner = inner.strip_suffix(quote).unwrap_or(inner);
    (inner.trim_end_matches('\\'), start + lead + 1)
}

/// Whether the position lies within a placeholder.
fn inside_placeholder(text: &str, position: usize) -> bool {
    // No name of a kind has brackets in it: the nearest one decides.
    memchr::memrchr2(b'[', b']', &text.as_bytes()[..position])
        .is_some_and(|bracket| text[bracket..].starts_with(PLACEHOLDER))
}

/// A name as it may stand in a placeholder.
fn placeholder_name(name: &str) -> String {
    name.chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect()
}

/// Endings of names that hold secrets, without case and punctuation.
const SECRET_NAMES: &[&str] = &[
    "apikey",
    "accesstoken",
    "refreshtoken",
    "token",
    "password",
    "passwd",
    "passphrase",
    "clientsecret",
    "secret",
    "secretkey",
    "secretaccesskey",
    "sharedaccesskey",
    "privatekey",
    "accountkey",
];

/// Whether a member of this name holds a secret.
fn promises_secret(key: &str) -> bool {
    if key.trim() == "PWD" {
        return false;
    }
    let plain: String = key
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    matches!(plain.as_str(), "pwd" | "sig" | "authorization")
        || SECRET_NAMES.iter().any(|name| plain.ends_with(name))
}

#[cfg(test)]
mod tests;
