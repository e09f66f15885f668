//! Paths as logs spell them.

use crate::redact::PLACEHOLDER;

/// A path relative to a folder made absolute, `.` and `..` resolved by spelling.
pub(crate) fn absolute(path: &str, folder: Option<&str>) -> String {
    let path = path.strip_prefix("file://").unwrap_or(path);
    // A masked home directory begins with its placeholder.
    let is_absolute = path.starts_with('/')
        || path.starts_with(PLACEHOLDER)
        || path
            .get(1..3)
            .is_some_and(|drive| drive == ":\\" || drive == ":/");
    let Some(folder) = folder.filter(|_| !is_absolute) else {
        return path.to_owned();
    };
    let mut parts: Vec<&str> = folder.trim_end_matches('/').split('/').collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.len() > 1 {
                    parts.pop();
                }
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// A path without `.`, `..` and doubled slashes, resolved by spelling.
pub(crate) fn normal(path: &str) -> String {
    absolute(path.trim_start_matches('/'), Some("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_made_absolute_by_spelling() {
        assert_eq!(
            absolute("src/./a.py", Some("/home/dev/x")),
            "/home/dev/x/src/a.py"
        );
        assert_eq!(absolute("../b.py", Some("/home/dev/x/")), "/home/dev/b.py");
        assert_eq!(absolute("/abs/a", Some("/x")), "/abs/a");
        assert_eq!(absolute("a", None), "a");
        assert_eq!(normal("/a//b/../c"), "/a/c");
    }
}
