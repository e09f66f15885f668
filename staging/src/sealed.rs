//! Records that nobody but this program wrote.
//!
//! Journals, receipts and decisions make this program write to people's documents. Each
//! carries a keyed fingerprint of its content. The key lies in the state directory, for
//! its owner alone; who can only put files there (a restored backup, a synchronised
//! folder, a sandboxed agent that found a hole) cannot make a record that counts.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use skillopt_files::{Options, Steps, read_bounded, write_atomic, write_atomic_with};

use crate::error::Result;
use crate::refusal::{Refusal, RefusalKind};

/// Largest record that is read, in bytes: a decision holds a whole document.
const RECORD_LIMIT: u64 = 32 * 1024 * 1024;

/// The key's file in the state directory.
const KEY_FILE: &str = "seal.key";

#[derive(Serialize, Deserialize)]
struct Envelope<'t> {
    format: String,
    seal: String,
    #[serde(borrow)]
    body: &'t RawValue,
}

/// The key, and what it is good for.
pub(crate) struct Seal {
    key: [u8; 32],
}

impl Seal {
    /// The state directory's key, made on first use.
    ///
    /// # Errors
    ///
    /// The key cannot be read or made, or others could put one of their own in its place.
    pub(crate) fn open(state: &Path) -> Result<Seal> {
        let path = state.join(KEY_FILE);
        check_directory(state)?;
        match read_key(&path) {
            Ok(Some(key)) => Ok(Seal { key }),
            Ok(None) => {
                let key = fresh_key(&path)?;
                let options = Options {
                    mode: Some(0o600),
                    create_parents: true,
                    ..Options::default()
                };
                write_atomic(&path, format!("{}\n", hex(&key)).as_bytes(), options)?;
                // Two first users at once: both go on with the key that is there now.
                let key = read_key(&path)?.unwrap_or(key);
                Ok(Seal { key })
            }
            Err(error) => Err(error),
        }
    }

    /// Writes a record, private and whole.
    pub(crate) fn write(
        &self,
        path: &Path,
        format: &str,
        body: &impl Serialize,
        steps: &mut dyn Steps,
    ) -> Result<()> {
        let json = |source| skillopt_files::Error::Json {
            path: path.to_path_buf(),
            source,
        };
        let text = serde_json::to_string_pretty(body).map_err(json)?;
        let envelope = Envelope {
            format: format.to_owned(),
            seal: self.mark(format, &text),
            body: serde_json::from_str(&text).map_err(json)?,
        };
        let mut bytes = serde_json::to_vec_pretty(&envelope).map_err(json)?;
        bytes.push(b'\n');
        let options = Options {
            mode: Some(0o600),
            create_parents: true,
            ..Options::default()
        };
        Ok(write_atomic_with(path, &bytes, options, steps)?)
    }

    /// Reads a record; `None` if there is none.
    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        path: &Path,
        format: &str,
        invalid: RefusalKind,
    ) -> Result<Option<T>> {
        let refuse = |reason: String| Refusal::path(invalid, path, reason);
        let bytes = match read_bounded(path, RECORD_LIMIT) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(refuse(error.to_string()).into()),
        };
        let envelope: Envelope<'_> = serde_json::from_slice(&bytes)
            .map_err(|error| refuse(format!("this is not a record of this program ({error})")))?;
        if envelope.format != format {
            return Err(refuse(format!(
                "this record has the format {:?}, and this version reads {format:?}: use the \
                 version of the program that wrote it",
                envelope.format
            ))
            .into());
        }
        if envelope.seal != self.mark(format, envelope.body.get()) {
            return Err(refuse(
                "this record was changed or copied here after this program wrote it: it is not \
                 used; put the original back or remove it"
                    .to_owned(),
            )
            .into());
        }
        let body = serde_json::from_str(envelope.body.get())
            .map_err(|error| refuse(format!("this record cannot be understood ({error})")))?;
        Ok(Some(body))
    }

    fn mark(&self, format: &str, body: &str) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(format.as_bytes());
        hasher.update(&[0]);
        hasher.update(body.as_bytes());
        hasher.finalize().to_hex().to_string()
    }
}

/// Who may write in the directory may replace the key, and then any record.
fn check_directory(state: &Path) -> Result<(), Refusal> {
    use std::os::unix::fs::MetadataExt;
    let Ok(metadata) = std::fs::metadata(state) else {
        // It is made, private, with the key.
        return Ok(());
    };
    let me = rustix::process::geteuid().as_raw();
    let foreign = ![me, 0].contains(&metadata.uid());
    if !foreign && metadata.mode() & 0o002 == 0 {
        return Ok(());
    }
    let (whose, remedy) = if foreign {
        (
            "belongs to another user",
            "take it over (chown) or use another state directory",
        )
    } else {
        ("can be written by everybody", "make it private (chmod 700)")
    };
    Err(Refusal::path(
        RefusalKind::KeyUnusable,
        state,
        format!("the state directory {whose}, so that its records prove nothing: {remedy}"),
    ))
}

fn read_key(path: &Path) -> Result<Option<[u8; 32]>> {
    let unusable = |reason: String| {
        Refusal::path(
            RefusalKind::KeyUnusable,
            path,
            format!(
                "{reason}: restore the key from a backup; without it earlier decisions and adoptions cannot be verified"
            ),
        )
    };
    let bytes = match read_bounded(path, 256) {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(unusable(error.to_string()).into()),
    };
    let text = String::from_utf8_lossy(&bytes);
    blake3::Hash::from_hex(text.trim())
        .map(|hash| Some(*hash.as_bytes()))
        .map_err(|_| unusable("this is not a key of 64 hexadecimal digits".to_owned()).into())
}

fn fresh_key(path: &Path) -> Result<[u8; 32]> {
    use std::io::Read;
    let mut key = [0; 32];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut key))
        .map_err(|error| {
            Refusal::path(
                RefusalKind::KeyUnusable,
                path,
                format!("no random bytes to make a key from ({error})"),
            )
        })?;
    Ok(key)
}

fn hex(key: &[u8; 32]) -> String {
    blake3::Hash::from_bytes(*key).to_hex().to_string()
}
