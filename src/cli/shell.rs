//! Paths in commands that are printed to be pasted into a shell.

use std::path::Path;

use skillopt_staging::display_safe;

/// A path as one word for a POSIX shell.
///
/// Characters that a terminal would act on or not show appear as their code points: what cannot be
/// seen shall not be pasted either.
#[must_use]
pub fn quoted(path: &Path) -> String {
    let path = display_safe(&path.to_string_lossy()).replace(['\n', '\t'], " ");
    match shlex::try_quote(&path) {
        Ok(word) => word.into_owned(),
        // Only for a zero byte, which is shown as its code point by now.
        Err(_) => String::from("''"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word() {
        for (path, word) in [
            ("/home/sam/state", "/home/sam/state"),
            ("/home/sam/my state", "'/home/sam/my state'"),
            ("$(id)", "'$(id)'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(Path::new(path)), word);
        }
    }

    #[test]
    fn what_is_not_seen_is_not_pasted() {
        assert_eq!(quoted(Path::new("a\u{1b}[2Jb")), "'a<U+001B>[2Jb'");
        assert!(!quoted(Path::new("a\nb")).contains('\n'));
    }
}
