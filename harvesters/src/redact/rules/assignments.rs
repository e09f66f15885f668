//! A name that promises a secret, beside a value: `DB_PASSWORD=…`, `"apiKey": "…"`,
//! `password is …` (sleep-night.md, section 5.9: the names N and the value grammar V).
//! Broad shapes, so each value is tested for plausibility.

use super::Rule;
use crate::redact::{hit, plausible};

/// A name, a separator and a value, in any of the ways that code, configuration and
/// JSON inside JSON write them.
pub(super) const ASSIGNMENTS: &[Rule] = &[
    Rule {
        name: "password",
        keywords: &["pass", "pwd"],
        pattern: r#"(?i)(?:password|passwd|passphrase|passwort|(?:^|[^A-Za-z0-9])(?:pwd|db_?pass|mysql_?pass|pass))\\*["']?\s*(?::=|=>|==|=|:|%3[dD])\s*(?P<v>\\+["'][^"'\r\n\\]+|"(?:\\.|""|[^"\\\r\n])+"?|'(?:\\.|''|[^'\\\r\n])+'?|\{(?:[^}\r\n]|\}\})+|[^\s"'\\;&,)\]}`|]+(?:[)\]}]+[^\s"'\\;&,)\]}`|]+)*)"#,
        example: "DB_PASSWORD=hunter2-fake",
        counter_example: "password = getpass.getpass()",
        near: hit::assigned,
        reach: Some(7),
        beside: &[],
        check: plausible::password,
    },
    Rule {
        name: "secret",
        keywords: &["token", "secret", "key"],
        pattern: r#"(?i)(?:(?:^|[^A-Za-z0-9])(?:api-?key|access-?token|refresh-?token|token|secret|secret[_-]?key|secret[_-]?access[_-]?key|shared[_-]?access[_-]?key|private[_-]?key|account[_-]?key)|api_key|apikey|accesstoken|refreshtoken|authtoken|clientsecret|secretkey|secretaccesskey|sharedaccesskey|privatekey|accountkey)\\*["']?\s*(?::=|=>|==|=|:|%3[dD])\s*(?P<v>\\+["'][^"'\r\n\\]+|"(?:\\.|""|[^"\\\r\n])+"?|'(?:\\.|''|[^'\\\r\n])+'?|\{(?:[^}\r\n]|\}\})+|[^\s"'\\;&,)\]}`|]+(?:[)\]}]+[^\s"'\\;&,)\]}`|]+)*)"#,
        example: "AWS_SECRET_ACCESS_KEY=FAKE/secret/access/key/FAKEFAKEFAKEFAKE01",
        counter_example: "token: the smallest unit of text",
        near: hit::assigned,
        reach: Some(15),
        beside: &[],
        check: plausible::secret,
    },
    Rule {
        name: "credential",
        keywords: &[
            "key",
            "credential",
            "signature",
            "auth",
            "conn",
            "token",
            "secret",
        ],
        pattern: r#"(?i)(?:key|token|secret|credentials?|signature|auth|conn(?:ection)?[_-]?str(?:ing)?|key[_-]?id)\\*["']?\s*(?::=|=>|==|=|:|%3[dD])\s*(?P<v>\\+["'][^"'\r\n\\]+|"(?:\\.|""|[^"\\\r\n])+"?|'(?:\\.|''|[^'\\\r\n])+'?|\{(?:[^}\r\n]|\}\})+|[^\s"'\\;&,)\]}`|]+(?:[)\]}]+[^\s"'\\;&,)\]}`|]+)*)"#,
        example: "signing_key=fake0000FAKE0000fake",
        counter_example: "primary_key: user_id",
        near: hit::assigned,
        reach: Some(0),
        beside: &[],
        check: plausible::random,
    },
    Rule {
        name: "password",
        keywords: &["passw", "passphrase", "contrase", "mot de passe"],
        pattern: r#"(?i)\b(?:password|passwd|passphrase|passwort|mot de passe|contraseña)\s+(?:is|ist|was|are|lautet|est|es)\s*:?\s+["'`]?(?P<v>[^\s"'`]{4,})"#,
        example: "the password is s3cr3t-fake",
        counter_example: "the password is wrong",
        near: hit::anywhere,
        reach: Some(0),
        beside: &[],
        check: plausible::spoken,
    },
    Rule {
        name: "secret",
        keywords: &["api", "token", "passw", "secret"],
        pattern: r#"(?i)\b(?:api[_ -]?key|token|password|secret)\s+(?:is\s+)?["'`]?(?P<v>[A-Za-z0-9_./+=:@!#$%^*-]{6,})"#,
        example: "use token a1b2c3d4-fake-0000",
        counter_example: "the token refresh-flow and password/login pages",
        near: hit::spoken,
        reach: Some(0),
        beside: &[],
        check: plausible::spoken,
    },
];
