//! Paths in patches.

/// The files that a patch adds, updates, deletes or moves to.
pub(super) fn paths(patch: &str) -> Vec<String> {
    const MARKS: &[&str] = &[
        "*** Add File: ",
        "*** Update File: ",
        "*** Delete File: ",
        "*** Move to: ",
    ];
    let mut paths: Vec<String> = Vec::new();
    for line in patch.lines() {
        let path = MARKS
            .iter()
            .find_map(|mark| line.trim_start().strip_prefix(mark));
        if let Some(path) = path.map(str::trim)
            && !path.is_empty()
            && !paths.iter().any(|known| known == path)
        {
            paths.push(path.to_owned());
        }
    }
    paths
}

/// Whether a text holds a patch.
pub(super) fn is_patch(text: &str) -> bool {
    text.contains("*** Begin Patch")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_patches_are_found() {
        let patch =
            "*** Begin Patch\n*** Update File: src/a.py\n*** Move to: ../b.py\n@@\n*** End Patch";
        assert_eq!(paths(patch), ["src/a.py", "../b.py"]);
    }
}
