//! Names and paths as text: what a skill may be called, what a document's path may look
//! like, and which two names a file system may take for one.
//!
//! Nothing here looks at the disk.

use unicode_normalization::UnicodeNormalization;

use crate::text::display::is_hidden;

/// The longest skill name, in bytes: what a file system takes, less what is put around it.
const SKILL_NAME_LIMIT: usize = 200;

/// The longest name that a document is shown under, in bytes.
const LABEL_LIMIT: usize = 1000;

/// The trimmed name, if a skill may be called so. Refused are names that mean something
/// to a file system (`..`, separators, `~`), that another system cannot store, that hide
/// characters, and that are too long.
pub fn skill_name(name: &str) -> Option<&str> {
    let name = plain_name(name)?;
    let bad = name.ends_with('.')
        || name.contains([':', '*', '?', '"', '<', '>', '|'])
        || name.chars().any(is_hidden)
        || name.len() > SKILL_NAME_LIMIT
        || is_device(name);
    (!bad).then_some(name)
}

/// The trimmed name, if a skill of that name may be looked up. Looser than
/// [`skill_name`], since it only reads what is there already.
pub fn resolvable_name(name: &str) -> Option<&str> {
    plain_name(name)
}

/// Whether a document may be shown under this name: something to see, and nothing hidden, that
/// does not look like a path elsewhere.
pub(crate) fn is_label(name: &str) -> bool {
    trim(name) == name
        && !name.is_empty()
        && name.len() <= LABEL_LIMIT
        && !name.starts_with(['/', '~'])
        && !name.chars().any(is_hidden)
        && name.split(['/', '\\']).all(|part| part != "..")
}

fn plain_name(name: &str) -> Option<&str> {
    let name = trim(name);
    let bad = name.is_empty()
        || name == "."
        || name == ".."
        || name.starts_with('~')
        || name.contains(['/', '\\'])
        || name.chars().any(|c| c < ' ' || c == '\u{7f}');
    (!bad).then_some(name)
}

/// Names that Windows keeps for devices, with any extension.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end();
    let stem = stem.to_ascii_lowercase();
    let numbered = |prefix: &str| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest| rest.len() == 1 && matches!(rest.as_bytes()[0], b'1'..=b'9'))
    };
    matches!(stem.as_str(), "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}

/// The normalised path, if a document may live there as far as its text tells: absolute,
/// ending in `.md`, without `..`, `~` in front, or control characters.
pub fn live_path(path: &str) -> Option<String> {
    let path = trim(path);
    let bad = path.starts_with('~')
        || !path.starts_with('/')
        || path.chars().any(|c| c.is_control())
        || path.split(['/', '\\']).any(|part| part == "..");
    if bad {
        return None;
    }
    let path = normalize(path);
    path.ends_with(".md").then_some(path)
}

/// Whether a path lies in a directory, or is it, going by the text of both.
pub fn within(path: &str, root: &str) -> bool {
    let (path, root) = (normalize(path), normalize(root));
    path == root
        || path
            .strip_prefix(root.trim_end_matches('/'))
            .is_some_and(|rest| rest.starts_with('/'))
}

/// Equal for two names that some file system takes for one: composed and decomposed
/// letters, upper and lower case.
pub fn collision_key(name: &str) -> String {
    let composed: String = name.nfc().collect();
    caseless::default_case_fold_str(&composed)
}

/// Takes `.`, `..` and doubled slashes out of an absolute path. Two slashes in front,
/// which POSIX sets apart, stay.
fn normalize(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let double = path.starts_with("//") && !path.starts_with("///");
    let root = if double { "//" } else { "/" };
    format!("{root}{}", parts.join("/"))
}

/// Trims white space, and the separators that some languages count as such.
fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_taken_and_trimmed() {
        assert_eq!(skill_name(" my-skill "), Some("my-skill"));
        assert_eq!(skill_name("日本 2"), Some("日本 2"));
        assert_eq!(resolvable_name("a:b"), Some("a:b"));
    }

    #[test]
    fn names_that_mean_something_else_are_refused() {
        for name in [
            "",
            ".",
            "..",
            "~a",
            "a/b",
            "a\\b",
            "a\nb",
            "a\0b",
            "c:x",
            "a.",
            "nul",
            "COM1.txt",
            "a\u{202e}b",
            "a\u{200b}",
            "a\u{85}b",
            "a*",
        ] {
            assert_eq!(skill_name(name), None, "{name:?}");
        }
        assert_eq!(skill_name(&"x".repeat(300)), None);
    }

    #[test]
    fn a_label_hides_nothing_and_leads_nowhere() {
        for name in [
            "alpha",
            "日本 2",
            "pack:alpha",
            "alpha/references/x.md",
            "AGENTS.md",
        ] {
            assert!(is_label(name), "{name:?}");
        }
        let long = "x".repeat(2000);
        for name in [
            "",
            " a",
            "../a",
            "a/../b",
            "a\\..\\b",
            "/etc/a",
            "~a",
            "a\0b",
            "a\nb",
            "a\u{1b}[2J",
            "a\u{202e}b",
            "a\u{200b}",
            &long,
        ] {
            assert!(!is_label(name), "{name:?}");
        }
    }

    #[test]
    fn paths_are_normalised_or_refused() {
        assert_eq!(live_path("/a//b/./S.md").as_deref(), Some("/a/b/S.md"));
        for path in [
            "S.md",
            "/a/../S.md",
            "~/S.md",
            "/a/S.txt",
            "/a\n/S.md",
            "/a/\\..\\S.md",
        ] {
            assert_eq!(live_path(path), None, "{path:?}");
        }
    }

    #[test]
    fn containment_goes_by_whole_parts() {
        assert!(within("/a/b", "/a") && within("/a", "/a/") && within("/a", "/"));
        assert!(!within("/ab", "/a") && !within("/a/../b", "/a"));
    }

    #[test]
    fn names_that_a_file_system_confuses_share_a_key() {
        assert_eq!(collision_key("Cafe\u{301}"), collision_key("café"));
        assert_eq!(collision_key("STRASSE"), collision_key("straße"));
        assert_ne!(collision_key("ı"), collision_key("i"));
    }
}
