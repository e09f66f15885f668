//! A name that promises a secret, beside a value: `DB_PASSWORD=…`, `"apiKey": "…"`,
//! `password is …`. Broad shapes, so each value is tested for plausibility.

use super::Rule;
use crate::redact::plausible;

/// A name, a separator and a value, in any of the ways that code, configuration and
/// JSON inside JSON write them.
pub(super) const ASSIGNMENTS: &[Rule] = &[
    Rule {
        name: "password",
        keywords: &["pass", "pwd", "passwort"],
        pattern: r#"(?i)(?:^|[^A-Za-z])(?:[A-Za-z0-9]{1,40}[_.-]){0,6}[A-Za-z0-9]{0,40}?(?:password|passwd|passphrase|passwort|pwd|db_pass|dbpass|mysql_pass|pass)\d{0,2}\\{0,3}["']?\]?\s{0,4}(?::=|=>|==|=|:|%3[dD])\s{0,4}(?P<v>\\{0,3}"[^"\r\n]{1,400}|\\{0,3}'[^'\r\n]{1,400}|[^\s"'\\;&,)\]}<>`|]{3,400})"#,
        example: "DB_PASSWORD=hunter2-fake",
        counter_example: "password = getpass.getpass()",
        check: plausible::password,
    },
    Rule {
        name: "secret",
        keywords: &["token", "secret", "key", "credential", "signature", "auth", "conn"],
        pattern: r#"(?i)(?:^|[^A-Za-z])(?:[A-Za-z0-9]{1,40}[_.-]){0,6}[A-Za-z0-9]{0,40}?(?:api[_-]?key|apikey|access[_-]?key|secret[_-]?key|private[_-]?key|signing[_-]?key|encryption[_-]?key|account[_-]?key|auth[_-]?key|shared[_-]?access[_-]?key|master[_-]?key|license[_-]?key|_key|token|secret|credentials?|auth|conn(?:ection)?[_-]?str(?:ing)?|access[_-]?key[_-]?id|client[_-]?secret)\d{0,2}\\{0,3}["']?\]?\s{0,4}(?::=|=>|==|=|:|%3[dD])\s{0,4}(?P<v>\\{0,3}"[^"\r\n]{1,400}|\\{0,3}'[^'\r\n]{1,400}|[^\s"'\\;&,)\]}<>`|]{6,400})"#,
        example: "AWS_SECRET_ACCESS_KEY=FAKE/secret/access/key/FAKEFAKEFAKEFAKE01",
        counter_example: "token: the smallest unit of text",
        check: plausible::secret,
    },
    Rule {
        name: "password",
        keywords: &["passw", "passphrase"],
        pattern: r#"(?i)\b(?:password|passwd|passphrase|passwort|mot de passe|contraseña)\s+(?:is|ist|was|are|lautet|est|es)\s*:?\s+["'`]?(?P<v>[^\s"'`]{4,200})"#,
        example: "the password is s3cr3t-fake",
        counter_example: "the password is wrong",
        check: plausible::spoken,
    },
    Rule {
        name: "secret",
        keywords: &["api", "token", "passw", "secret"],
        pattern: r#"(?i)\b(?:api[_ -]?key|token|password|secret)\s+(?:is\s+)?["'`]?(?P<v>[A-Za-z0-9_./+=:@!#$%^*-]{6,400})"#,
        example: "use token a1b2c3d4-fake-0000",
        counter_example: "the token refresh-flow and password/login pages",
        check: plausible::spoken,
    },
];
