//! Files that repeat each other: forks and resumed copies (session-logs.md, 2.7).

use std::collections::{HashMap, HashSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::harvest::Run;
use crate::report::SkipReason;
use crate::stamp::{FileMemory, HEAD_BYTES, head_hash};
use crate::walk::Found;

use super::row::{Row, key};
use super::transcript::Transcript;

/// A conversation and what it shares with older files.
pub(super) struct Related {
    pub(super) transcript: Transcript,
    /// Record ids and message ids that an older file has.
    pub(super) inherited: HashSet<u64>,
    /// The file that the shared records come from.
    pub(super) forked_from: Option<PathBuf>,
    /// Older files that this one repeats whole.
    pub(super) superseded: Vec<PathBuf>,
}

/// How much of a file's beginning is searched for ids.
const HEAD: u64 = 128 * 1024;

/// Groups files that share a record id or a message id near their beginning: copies
/// always repeat the conversation from its start. Where all files of a folder are known
/// and at most went on, nobody joined a family, and none of them is opened.
pub(super) fn families(files: Vec<Found>, known: &FileMemory) -> Vec<Vec<Found>> {
    let remembered = files.iter().map(|file| remembered_family(file, known));
    let heads = match remembered.collect::<Option<Vec<u64>>>() {
        Some(families) => families.into_iter().map(|family| vec![family]).collect(),
        None if files.len() < 2 => vec![Vec::new(); files.len()],
        None => files
            .par_iter()
            .map_init(Vec::new, |head, file| head_ids(&file.path, head))
            .collect::<Vec<_>>(),
    };
    let mut group: Vec<usize> = (0..files.len()).collect();
    let mut owner: HashMap<u64, usize> = HashMap::new();
    for (index, ids) in heads.into_iter().enumerate() {
        for id in ids {
            let other = *owner.entry(id).or_insert(index);
            let (one, other) = (root_of(&mut group, index), root_of(&mut group, other));
            group[one.max(other)] = one.min(other);
        }
    }
    let mut families: Vec<Vec<Found>> = (0..files.len()).map(|_| Vec::new()).collect();
    for (index, file) in files.into_iter().enumerate() {
        families[root_of(&mut group, index)].push(file);
    }
    families.retain(|family| !family.is_empty());
    for family in &mut families {
        let name = family.first().and_then(|file| file.path.file_name());
        let kin = name.map(|name| name.to_string_lossy().into_owned());
        for file in family {
            file.stamp.kin.clone_from(&kin);
        }
    }
    families
}

/// The family that a file was in when it was last read. None when it may be in another
/// one by now: when it is new, was written anew, or its beginning was not complete.
fn remembered_family(file: &Found, known: &FileMemory) -> Option<u64> {
    let stamp = known.get(&file.path)?;
    let same = stamp.is_unchanged(&file.stamp)
        || stamp.may_have_grown(&file.stamp)
            && stamp.read_to >= HEAD
            && head_of(&file.path).is_ok_and(|head| head == stamp.head);
    stamp.kin.as_deref().filter(|_| same).map(key)
}

/// The hash of a file's beginning.
fn head_of(path: &Path) -> std::io::Result<String> {
    let mut head = Vec::new();
    regular_file(path)?
        .take(HEAD_BYTES as u64)
        .read_to_end(&mut head)?;
    Ok(head_hash(&head))
}

/// Opens a file that is neither a link nor a pipe.
fn regular_file(path: &Path) -> std::io::Result<fs_err::File> {
    if !std::fs::symlink_metadata(path)?.is_file() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    fs_err::File::open(path)
}

/// The representative of a group, with the path to it shortened.
fn root_of(group: &mut [usize], index: usize) -> usize {
    let mut root = index;
    while group[root] != root {
        root = group[root];
    }
    let mut at = index;
    while group[at] != root {
        at = std::mem::replace(&mut group[at], root);
    }
    root
}

/// Ids in the first part of a file, found without parsing it. `head` is room for that part.
fn head_ids(path: &Path, head: &mut Vec<u8>) -> Vec<u64> {
    head.clear();
    let read = regular_file(path).and_then(|file| file.take(HEAD).read_to_end(head));
    if read.is_err() {
        return Vec::new();
    }
    let mut ids = Vec::new();
    for field in [&b"\"uuid\":\""[..], b"\"id\":\"msg_"] {
        let prefix = if field.ends_with(b"msg_") {
            field.len() - 4
        } else {
            field.len()
        };
        for at in memchr::memmem::find_iter(head, field) {
            let value = &head[at + prefix..];
            if let Some(end) = memchr::memchr(b'"', value)
                && let Ok(id) = std::str::from_utf8(&value[..end])
                && id.len() >= 8
            {
                ids.push(key(id));
            }
        }
    }
    // A message is written down block by block, with its id each time.
    ids.dedup();
    ids
}

/// Decides within a family who owns what is shared. Copies with new record ids and the
/// same message ids are resumed copies: the older file is superseded. Copies with the
/// same record ids are forks: the younger file inherits.
pub(super) fn relate(mut family: Vec<Transcript>, run: &mut Run<'_>) -> Vec<Related> {
    // A copy shows itself: its first line is younger than the records that it repeats.
    family.sort_by_key(|transcript| (transcript.written_from, transcript.own_from()));
    let superseded_by: Vec<Option<usize>> = (0..family.len())
        .map(|older| {
            (older + 1..family.len())
                .rev()
                .find(|younger| repeats_whole(&family[*younger], &family[older]))
        })
        .collect();
    let mut owned: HashMap<u64, PathBuf> = HashMap::new();
    let mut related: Vec<Related> = Vec::new();
    let mut superseded: HashMap<usize, Vec<PathBuf>> = HashMap::new();
    for (index, transcript) in family.into_iter().enumerate() {
        if let Some(by) = superseded_by[index] {
            run.report
                .skip(&transcript.path, SkipReason::Superseded, "");
            superseded.entry(by).or_default().push(transcript.path);
            continue;
        }
        let inherited: HashSet<u64> = transcript
            .ids()
            .filter(|id| owned.contains_key(id))
            .collect();
        // Of a fork's fork, the oldest records are the first one's: the last tell the parent.
        let newest_first = transcript.rows.iter().rev().flat_map(Row::ids);
        let forked_from = newest_first.filter_map(|id| owned.get(&id)).next().cloned();
        for id in transcript.ids() {
            owned.entry(id).or_insert_with(|| transcript.path.clone());
        }
        related.push(Related {
            transcript,
            inherited,
            forked_from,
            superseded: superseded.remove(&index).unwrap_or_default(),
        });
    }
    related
}

/// Whether a younger file has all messages of an older one and goes on in its place: under
/// new record ids, or under the same ones where the release knew no forks.
fn repeats_whole(younger: &Transcript, older: &Transcript) -> bool {
    !older.message_ids.is_empty()
        && older.message_ids.is_subset(&younger.message_ids)
        && (older.record_ids.is_disjoint(&younger.record_ids)
            || younger.resumes_by_copy() && has_new_times(younger, older))
}

/// Whether the records that two files share were dated anew in the younger one. A fork by a
/// later release that old records are found in keeps their times.
fn has_new_times(younger: &Transcript, older: &Transcript) -> bool {
    younger.rows.iter().any(|row| {
        let first = row.id.and_then(|id| older.row_of(id));
        first.is_some_and(|first| older.rows[first].at != row.at)
    })
}

/// Sub-agent files by the id of the session that they belong to: the folder that they
/// lie in, or the session named in their first record.
pub(super) fn owners(files: &[Found]) -> HashMap<String, Vec<String>> {
    let mut owners: HashMap<String, Vec<String>> = HashMap::new();
    for file in files {
        let session = folder_owner(&file.path).or_else(|| named_owner(&file.path));
        if let Some(session) = session {
            owners
                .entry(session)
                .or_default()
                .push(file.path.to_string_lossy().into_owned());
        }
    }
    owners
}

/// `<session>/subagents/…`: the session.
fn folder_owner(path: &Path) -> Option<String> {
    let folder = path
        .ancestors()
        .find(|folder| folder.file_name().is_some_and(|name| name == "subagents"))?;
    folder.parent()?.file_name()?.to_str().map(str::to_owned)
}

/// The `sessionId` in the beginning of a sub-agent's file.
fn named_owner(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    fs_err::File::open(path)
        .ok()?
        .take(HEAD)
        .read_to_end(&mut head)
        .ok()?;
    let field = b"\"sessionId\":\"";
    let at = memchr::memmem::find(&head, field)? + field.len();
    let end = memchr::memchr(b'"', &head[at..])?;
    std::str::from_utf8(&head[at..at + end])
        .ok()
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::FileStamp;

    /// A log with records of these ids, long enough for its beginning to be complete.
    fn log(folder: &Path, name: &str, ids: &[&str]) -> Found {
        let path = folder.join(name);
        let mut text: String = ids
            .iter()
            .map(|id| format!("{{\"uuid\":\"{id}-with-a-tail\"}}\n"))
            .collect();
        while (text.len() as u64) < HEAD {
            text.push_str("{\"type\":\"mode\"}\n");
        }
        fs_err::write(&path, text).unwrap();
        found(&path)
    }

    fn found(path: &Path) -> Found {
        let metadata = std::fs::symlink_metadata(path).unwrap();
        Found {
            stamp: FileStamp {
                read_to: metadata.len(),
                head: head_of(path).unwrap(),
                ..FileStamp::of(&metadata)
            },
            path: path.to_owned(),
        }
    }

    /// The names in each family.
    fn names(families: &[Vec<Found>]) -> Vec<Vec<String>> {
        let name = |file: &Found| {
            file.path
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        };
        families
            .iter()
            .map(|family| family.iter().map(name).collect())
            .collect()
    }

    fn remembered(families: &[Vec<Found>]) -> FileMemory {
        let files = families.iter().flatten();
        files
            .map(|file| (file.path.clone(), file.stamp.clone()))
            .collect()
    }

    #[test]
    fn a_file_that_went_on_stays_in_its_family_and_no_neighbour_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let logs = [("a", "one"), ("b", "two"), ("c", "one")];
        let files: Vec<Found> = logs
            .iter()
            .map(|(name, id)| log(folder, name, &[id]))
            .collect();
        let first = families(files.clone(), &FileMemory::default());
        assert_eq!(names(&first), [vec!["a", "c"], vec!["b"]]);
        let known = remembered(&first);

        let grown = fs_err::read_to_string(folder.join("a")).unwrap() + "{}\n";
        fs_err::write(folder.join("a"), grown).unwrap();
        let mut files = files;
        files[0] = found(&folder.join("a"));
        // A look into it would not find its id any more.
        fs_err::write(folder.join("c"), "").unwrap();
        assert_eq!(
            names(&families(files.clone(), &known)),
            [vec!["a", "c"], vec!["b"]]
        );

        // A new file may be a copy of any: now all are looked at.
        files.push(log(folder, "d", &["two"]));
        assert_eq!(
            names(&families(files, &known)),
            [vec!["a"], vec!["b", "d"], vec!["c"]]
        );
    }

    #[test]
    fn a_file_that_was_written_anew_is_looked_at_again() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let files = vec![log(folder, "a", &["one"]), log(folder, "b", &["two"])];
        let known = remembered(&families(files, &FileMemory::default()));
        let files = vec![
            log(folder, "a", &["two", "three"]),
            found(&folder.join("b")),
        ];
        assert_eq!(names(&families(files, &known)), [vec!["a", "b"]]);
    }
}
