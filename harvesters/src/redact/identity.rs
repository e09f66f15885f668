//! Masking who the user is: the home directory, and names.
//!
//! Off unless asked for. The rest of a path stays, so that a reader still sees which file
//! of the project it was; a placeholder says what stood there.

use std::borrow::Cow;

use regex::bytes::{Regex, RegexBuilder};

use super::pattern::Pattern;
use super::{Prepared, hit, plausible};

/// Who the user is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The home directory.
    pub home: Option<String>,
    /// The name that they log in with.
    pub user: Option<String>,
    /// The name of their machine.
    pub host: Option<String>,
}

/// Names that many machines and users have, and words of code and prose: masking them would
/// hide nobody.
const COMMON: &[&str] = &[
    "admin",
    "build",
    "code",
    "dev",
    "developer",
    "guest",
    "home",
    "host",
    "local",
    "localhost",
    "main",
    "node",
    "redacted",
    "root",
    "runner",
    "test",
    "tester",
    "ubuntu",
    "user",
    "vscode",
    "work",
    "www",
];
/// A shorter name is in too many words' company.
const SHORTEST_NAME: usize = 4;

impl Identity {
    /// The rules: the home directory first, because the user's name is part of it.
    pub(super) fn rules(&self) -> Vec<Prepared> {
        // Ends where a component of a path ends.
        const END: &str = r#"(?:[/\\"'`\s:;,)\]}>]|$)"#;
        let home = self
            .home
            .as_deref()
            .map(|home| home.trim_end_matches(['/', '\\']));
        let home = home.filter(|home| home.len() > 1).map(|home| {
            // JSON inside JSON doubles what separates folders on Windows.
            let path = regex::escape(home).replace(r"\\", r"\\+");
            ("home", format!("(?P<v>{path}){END}"))
        });
        // Other people's homes: their names alone.
        let others = r"(?:/home/|/Users/|[A-Za-z]:\\+Users\\+)(?P<v>[A-Za-z0-9._-]+)";
        let name = |kind: &'static str, name: &Option<String>| {
            let name = name.as_deref().filter(|name| is_telling(name))?;
            Some((kind, format!(r"(?i)(?P<v>\b{}\b)", regex::escape(name))))
        };
        home.into_iter()
            .chain([("user", others.to_owned())])
            .chain(name("user", &self.user))
            .chain(name("host", &self.host))
            .filter_map(|(name, pattern)| {
                let pattern: Regex = RegexBuilder::new(&pattern).unicode(false).build().ok()?;
                Some(Prepared {
                    name: Cow::Borrowed(name),
                    pattern: Pattern::users(pattern),
                    near: hit::anywhere,
                    reach: None,
                    beside: None,
                    check: plausible::any,
                })
            })
            .collect()
    }
}

fn is_telling(name: &str) -> bool {
    name.len() >= SHORTEST_NAME && !COMMON.contains(&name.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use crate::Redactor;

    use super::*;

    fn redactor(home: &str, user: &str) -> Redactor {
        let identity = Identity {
            home: Some(home.to_owned()),
            user: Some(user.to_owned()),
            host: Some("lilac-laptop".to_owned()),
        };
        Redactor::with(&[], Some(&identity)).unwrap()
    }

    #[test]
    fn homes_and_names_are_masked_once_and_the_rest_of_a_path_stays() {
        let redactor = redactor("/home/mara.quill", "mara.quill");
        for (text, masked) in [
            (
                "cd /home/mara.quill/src/shop && ls",
                "cd [redacted:home]/src/shop && ls",
            ),
            ("HOME=/home/mara.quill", "HOME=[redacted:home]"),
            (
                r#"{"cwd":"/home/mara.quill"}"#,
                r#"{"cwd":"[redacted:home]"}"#,
            ),
            ("/home/other/x", "/home/[redacted:user]/x"),
            (
                "by Mara.Quill, on lilac-laptop",
                "by [redacted:user], on [redacted:host]",
            ),
            ("C:\\Users\\tom\\x", "C:\\Users\\[redacted:user]\\x"),
            ("a /home/mara.quilling b", "a /home/[redacted:user] b"),
            ("npm run dev", "npm run dev"),
        ] {
            let once = redactor.redact(text).into_owned();
            assert_eq!(once, masked);
            assert_eq!(redactor.redact(&once), once, "again");
        }
    }

    #[test]
    fn common_names_are_words() {
        let redactor = redactor("/home/dev", "dev");
        assert_eq!(redactor.redact("npm run dev"), "npm run dev");
        assert_eq!(redactor.redact("ls /home/dev/x"), "ls [redacted:home]/x");
    }
}
