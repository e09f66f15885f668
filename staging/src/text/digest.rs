//! Fingerprints of texts.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The SHA-256 of some bytes, as 64 lower-case hexadecimal digits.
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    let digest = Sha256::digest(bytes.as_ref());
    digest
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::sha256;

    #[test]
    fn the_empty_text_has_its_well_known_fingerprint() {
        assert_eq!(
            sha256(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
