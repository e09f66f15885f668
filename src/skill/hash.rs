//! The short fingerprint of a skill document.

use sha2::{Digest, Sha256};

/// The first 16 lower-case hexadecimal digits of the SHA-256 of the text's UTF-8 bytes, exactly as
/// held in memory (engine 2). It names candidates in the history and in caches.
#[must_use]
pub fn skill_hash(document: &str) -> String {
    let digest = Sha256::digest(document.as_bytes());
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_hash_is_the_start_of_sha256() {
        assert_eq!(super::skill_hash(""), "e3b0c44298fc1c14");
        assert_eq!(super::skill_hash("hello"), "2cf24dba5fb0a30e");
    }
}
