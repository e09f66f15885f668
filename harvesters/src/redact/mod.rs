//! Redaction at the door: no secret leaves a reader.
//!
//! One engine for all text of all sources. A pass over the text finds which rules'
//! keywords occur, and where they can belong to a secret; only those rules' patterns run,
//! where it is known how near around the keyword, else over all of the text; what they find
//! is merged and replaced by `[redacted:kind]`. Names stay (`STRIPE_KEY=[redacted:…]`),
//! so a reader still sees what was there. Redacting twice changes nothing.
//!
//! [`Door`] is what readers use: it redacts and only then cuts to length, since half a
//! key is still a key. What comes out of it is [`Redacted`], the only text that a session can
//! be made of, so no reader can go around it.

mod door;
mod hit;
mod identity;
mod pattern;
mod plausible;
mod redacted;
mod rules;
mod words;

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use regex::bytes::Regex;
use regex_automata::{Anchored, Input};
use serde_json::Value;

use pattern::Pattern;

pub use door::TextLimits;
pub(crate) use door::{Door, cut};
pub use identity::Identity;
pub use redacted::Redacted;
pub use rules::{Rule, built_in};
pub(crate) use words::Words;

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
    rules: Arc<[Prepared]>,
    /// Finds keywords; `None` when there are too many, then all rules run.
    words: Option<Words>,
    /// For each keyword, the rules that it stands for.
    rules_of: Vec<Vec<usize>>,
    /// Rules without keywords, which always run.
    always: Vec<usize>,
}

/// A rule ready to run.
#[derive(Clone, Debug)]
struct Prepared {
    name: Cow<'static, str>,
    pattern: Pattern,
    near: hit::Near,
    reach: Option<usize>,
    /// Words of which one must be in the text as well.
    beside: Option<Words>,
    check: plausible::Check,
}

/// Prepared once for all.
static BUILT_IN: LazyLock<Redactor> = LazyLock::new(|| Redactor::prepare(Vec::new()));

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
                Ok(Prepared {
                    name: Cow::Owned(placeholder_name(&rule.name)),
                    pattern: Pattern::users(pattern),
                    near: hit::anywhere,
                    reach: None,
                    beside: None,
                    check: plausible::any,
                })
            })
            .collect::<Result<Vec<_>, RuleError>>()?;
        extra.extend(identity.into_iter().flat_map(Identity::rules));
        Ok(Self::prepare(extra))
    }

    /// Stands for the rules: equal for redactors that take out the same.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for rule in self.rules.iter() {
            hasher.update(rule.name.as_bytes());
            hasher.update(b"\0");
            hasher.update(rule.pattern.source().as_bytes());
            hasher.update(b"\0");
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Puts rules and their keywords together.
    fn prepare(extra: Vec<Prepared>) -> Self {
        let mut rules = Vec::new();
        let mut words: Vec<&str> = Vec::new();
        let mut rules_of: Vec<Vec<usize>> = Vec::new();
        for rule in built_in() {
            for word in rule.keywords {
                match words.iter().position(|known| known == word) {
                    Some(known) => rules_of[known].push(rules.len()),
                    None => {
                        words.push(word);
                        rules_of.push(vec![rules.len()]);
                    }
                }
            }
            rules.push(Prepared {
                name: Cow::Borrowed(rule.name),
                pattern: Pattern::built_in(rule.pattern),
                near: rule.near,
                reach: rule.reach,
                beside: match rule.beside {
                    [] => None,
                    words => Words::new(words),
                },
                check: rule.check,
            });
        }
        let always = (rules.len()..rules.len() + extra.len()).collect();
        rules.extend(extra);
        Redactor {
            rules: rules.into(),
            words: Words::new(&words),
            rules_of,
            always,
        }
    }

    /// The text without its secrets; borrowed when there were none.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.replaced(text).map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// The text with its secrets replaced; none when it has none.
    fn replaced(&self, text: &str) -> Option<String> {
        let mut redacted = self.pass(text)?;
        for _ in 1..MOST_PASSES {
            match self.pass(&redacted) {
                Some(again) => redacted = again,
                None => break,
            }
        }
        Some(redacted)
    }

    /// One pass over the text; none when nothing was found.
    fn pass(&self, text: &str) -> Option<String> {
        let mut found = self.found(text);
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

    /// All secrets that any rule finds.
    fn found(&self, text: &str) -> Vec<Secret> {
        let mut found = Vec::new();
        match &self.words {
            None => {
                for rule in 0..self.rules.len() {
                    self.find_anywhere(rule, text, &mut found);
                }
            }
            Some(words) => {
                let hits = self.hits(words, text);
                for hits in hits.chunk_by(|(one, _), (other, _)| one == other) {
                    self.find_at(hits, text, &mut found);
                }
                for rule in &self.always {
                    self.find_anywhere(*rule, text, &mut found);
                }
            }
        }
        found
    }

    /// Where keywords stand that can belong to a match: rule and position, by rule.
    fn hits(&self, words: &Words, text: &str) -> Vec<(usize, usize)> {
        let mut hits = Vec::new();
        words.each(text.as_bytes(), |word, start, end| {
            let hit = hit::Hit {
                text: text.as_bytes(),
                start,
                end,
            };
            for rule in &self.rules_of[word] {
                if (self.rules[*rule].near)(hit) {
                    hits.push((*rule, start));
                }
            }
        });
        hits.sort_unstable();
        hits
    }

    /// Runs one rule where its keywords stand.
    fn find_at(&self, hits: &[(usize, usize)], text: &str, found: &mut Vec<Secret>) {
        let Some((rule, _)) = hits.first().copied() else {
            return;
        };
        let prepared = &self.rules[rule];
        let alone = prepared
            .beside
            .as_ref()
            .is_some_and(|words| !words.any(text.as_bytes()));
        match prepared.reach {
            _ if alone => {}
            Some(reach) => {
                let hits = hits.iter().map(|(_, start)| *start);
                self.find_around(rule, reach, hits, text, found);
            }
            None => self.find_anywhere(rule, text, found),
        }
    }

    /// All places where a rule finds a secret that is not redacted yet.
    fn find_anywhere(&self, rule: usize, text: &str, found: &mut Vec<Secret>) {
        let pattern = self.rules[rule].pattern.anywhere();
        for captures in pattern
            .into_iter()
            .flat_map(|pattern| pattern.captures_iter(text.as_bytes()))
        {
            if let Some(span) = captures.name("v").or_else(|| captures.get(0)) {
                found.extend(self.secret(rule, text, span.range()));
            }
        }
    }

    /// The same, for a rule whose matches begin near `hits`: tried is only where one
    /// may begin.
    fn find_around(
        &self,
        rule: usize,
        reach: usize,
        hits: impl Iterator<Item = usize>,
        text: &str,
        found: &mut Vec<Secret>,
    ) {
        let Some(pattern) = self.rules[rule].pattern.here() else {
            return;
        };
        let mut captures = pattern.create_captures();
        let mut start = 0;
        for hit in hits {
            start = start.max(hit.saturating_sub(reach));
            while start <= hit {
                let input = Input::new(text).range(start..).anchored(Anchored::Yes);
                pattern.search_captures(&input, &mut captures);
                let Some(whole) = captures.get_match() else {
                    start += 1;
                    continue;
                };
                let value = captures.get_group_by_name("v").unwrap_or(whole.span());
                found.extend(self.secret(rule, text, value.range()));
                start = whole.end().max(start + 1);
            }
        }
    }

    /// What a pattern found, if it can be a secret and is not redacted yet.
    fn secret(&self, rule: usize, text: &str, span: std::ops::Range<usize>) -> Option<Secret> {
        // The patterns see bytes: a letter of several bytes goes or stays whole.
        let (from, to) = (
            text.floor_char_boundary(span.start),
            text.ceil_char_boundary(span.end),
        );
        let (value, start) = unquote(&text[from..to], from);
        let around = plausible::Found {
            text,
            start: from,
            end: to,
        };
        let fresh = !value.is_empty()
            && (self.rules[rule].check)(around)
            && !value.contains(PLACEHOLDER)
            && !inside_placeholder(text, start);
        fresh.then(|| Secret {
            start,
            end: start + value.len(),
            rule,
        })
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
