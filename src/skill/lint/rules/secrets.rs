//! Credentials, and what leads to them.

use std::collections::HashMap;

use super::Matcher::{Function, Patterns};
use super::{Level, Rule};
use crate::skill::lint::Context;
use crate::skill::lint::added::Added;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "secret",
        level: Level::Danger,
        explanation: "is a credential, which every reader of the document then has",
        examples: &[
            "export OPENAI_API_KEY=sk-abcdefghijklmnopqrstuv",
            "AKIAIOSFODNN7EXAMPLE",
            "token ghp_0123456789abcdefghijABCDEFGHIJ012345",
            "slack xoxb-1234567890-abcdefghij",
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            "password: hunter2hunter2",
            "postgres://app:s3cr3tpw@db.internal/app",
            "Authorization: Bearer abcdef0123456789abcdef",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        ],
        counter_examples: &[
            "Never commit API keys.",
            "Set OPENAI_API_KEY in the environment.",
            "password: ${DB_PASSWORD}",
            "api_key = os.environ['KEY']",
            "token: <your token>",
            "The token budget is 4000.",
        ],
        matcher: Patterns(&[
            r"\bsk-[a-z0-9_-]{16,}",
            r"\b(?-i:AKIA|ASIA)[0-9A-Z]{16}\b",
            r"\bgh[pousr]_[a-z0-9]{20,}|\bgithub_pat_[a-z0-9_]{20,}|\bglpat-[a-z0-9_-]{16,}",
            r"\bxox[abprs]-[a-z0-9-]{10,}",
            r"\b(?-i:AIza)[0-9a-z_-]{20,}",
            r"\b(?:hf|npm|pypi|dop_v1|sk_live|rk_live)[_-][a-z0-9]{20,}",
            r"-----BEGIN [A-Z ]*PRIVATE KEY",
            r"\b(?-i:eyJ)[a-z0-9_-]{8,}\.[a-z0-9_-]{8,}\.[a-z0-9_-]{8,}",
            r"\bauthorization:\s*(?:bearer|basic)\s+[a-z0-9+/_.=-]{12,}",
            r#"\b(?:password|passwd|secret|api[_-]?key|access[_-]?token|auth[_-]?token|private[_-]?key)["']?\s*[:=]\s*["']?[a-z0-9+/_.!@#%^&*-]*\d[a-z0-9+/_.!@#%^&*-]{5,}"#,
            r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@${<]{3,}@",
        ]),
    },
    Rule {
        name: "high-entropy",
        level: Level::Warning,
        explanation: "looks like a key or encoded data: nobody can read what it says",
        examples: &[
            "Use the id Zk3vQ9xT7bLm2WpR8sYc4HfN to sign in.",
            "blob = \"U2FsdGVkX1+8Qz0vL5m9rXwT3nKpB7dYhJ2cVfG6sAe=\"",
            "3f786850e387550fdab836ed7e6dc881de23001b",
        ],
        counter_examples: &[
            "Call read_configuration_from_environment first.",
            "See src/skill/lint/rules/secrets.rs.",
            "Aufmerksamkeitsdefizitsyndromforschung is one word.",
            "Run cargo clippy --workspace --all-targets --all-features.",
            "Commit 3f78685 broke it.",
        ],
        matcher: Function(high_entropy),
    },
    Rule {
        name: "credential-file",
        level: Level::Danger,
        explanation: "has the agent read or change a file that keeps credentials or lets people in",
        examples: &[
            "cat ~/.ssh/id_ed25519",
            "Read ~/.aws/credentials for the region.",
            "source .env && env",
            "echo key >> ~/.ssh/authorized_keys",
            "cat ~/.netrc",
        ],
        counter_examples: &[
            "Document each variable in .env.example.",
            "ssh host",
            "The .envrc is optional.",
        ],
        matcher: Patterns(&[
            r"\.ssh/(?:id_|authorized_keys|config|known_hosts|\*)",
            r"\.aws/(?:credentials|config)|\.config/gcloud|\.azure/|\.kube/config|\.docker/config\.json",
            r"(?:~|\$home|/home/\w+|/users/\w+)/\.(?:netrc|npmrc|pypirc|pgpass|git-credentials|gnupg)\b",
            r"\b(?:cat|source|read|print|open|echo|send|upload|load)\s+(?:\S+\s+){0,2}[\w./~-]*\.env(?:\.local|\.production)?(?:\s|$|[;&|.,)])",
            r"/etc/(?:shadow|sudoers)\b",
            r"\bsecurity\s+find-(?:generic|internet)-password\b",
        ]),
    },
    Rule {
        name: "private-path",
        level: Level::Warning,
        explanation: "is a path of one person's machine: useless to others, and it tells who they are",
        examples: &[
            "cd /home/sam/src/orchard",
            "Open /Users/sam/notes.md.",
            "type C:\\Users\\sam\\a.txt",
            "/root/build.sh",
        ],
        counter_examples: &[
            "cd ~/src",
            "Look in /etc/hosts.",
            "/usr/bin/env python3",
            "the /home page",
            "GET /users/42",
        ],
        matcher: Patterns(&[
            r"(?:^|[\s=:(\x22'])/home/[a-z_][\w.-]*/\S",
            r"(?-i:/Users/)[a-z_][\w.-]*/\S",
            r"\b[a-z]:\\+users\\+[^\s\\]+",
            r"(?:^|[\s=:(\x22'])/root/\S",
            r"/(?:private/)?var/folders/\S",
        ]),
    },
];

/// Shortest text that is looked at, in characters.
const SHORTEST: usize = 24;

fn high_entropy(added: &Added<'_>, _: &Context<'_>) -> Vec<(Option<usize>, String)> {
    let mut places = Vec::new();
    for (line, text) in &added.lines {
        let mut words = text.split(|c: char| {
            !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '_' | '=' | '-'))
        });
        if let Some(word) = words.find(|word| is_random(word)) {
            places.push((Some(*line), word.to_owned()));
            if places.len() > super::super::MAX_FINDINGS {
                break;
            }
        }
    }
    places
}

/// Whether a word has no pattern that a person would have chosen.
fn is_random(word: &str) -> bool {
    let word = word.trim_matches(['-', '/', '_']);
    if word.len() < SHORTEST {
        return false;
    }
    let hex = word.len() >= 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has = |test: fn(&u8) -> bool| word.bytes().filter(test).count();
    let mixed = has(u8::is_ascii_digit) >= 3
        && has(u8::is_ascii_uppercase) >= 3
        && has(u8::is_ascii_lowercase) >= 3;
    let path = word.matches('/').count() > 3;
    hex && has(u8::is_ascii_digit) >= 4 || mixed && !path && entropy(word) > 3.8
}

/// Bits for each character.
fn entropy(word: &str) -> f64 {
    let mut counts: HashMap<u8, f64> = HashMap::new();
    for byte in word.bytes() {
        *counts.entry(byte).or_default() += 1.0;
    }
    let length = word.len() as f64;
    counts
        .values()
        .map(|count| -(count / length) * (count / length).log2())
        .sum()
}
