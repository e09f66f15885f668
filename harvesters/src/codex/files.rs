//! Rollout files, grouped by thread.

use std::collections::{BTreeMap, HashMap};
use std::io::BufRead as _;
use std::path::Path;

use rayon::prelude::*;

use crate::lines;
use crate::redact::Door;
use crate::report::{Report, SkipReason};
use crate::stamp::FileMemory;
use crate::tape::Json;
use crate::walk::Found;

/// One rollout file.
pub(super) struct RolloutFile {
    pub(super) found: Found,
    pub(super) archived: bool,
    /// A later part of the thread, after going back.
    is_segment: bool,
}

/// The files of one thread.
pub(super) struct ThreadFiles {
    pub(super) id: String,
    pub(super) files: Vec<RolloutFile>,
    head: Head,
}

/// What the first line of a thread says about its place among others.
#[derive(Default)]
struct Head {
    sub_agent: bool,
    parent: Option<String>,
}

impl Head {
    /// Stands before the parent of a sub-agent in what is remembered of a file.
    const SUB_AGENT: &str = "sub-agent of ";

    /// As it is remembered with the file.
    fn to_kin(&self) -> String {
        match self.sub_agent {
            true => format!(
                "{}{}",
                Self::SUB_AGENT,
                self.parent.as_deref().unwrap_or_default()
            ),
            false => String::new(),
        }
    }

    /// From what is remembered. Only of sub-agents anybody asks for the parent.
    fn from_kin(kin: &str) -> Self {
        let parent = kin.strip_prefix(Self::SUB_AGENT);
        Head {
            sub_agent: parent.is_some(),
            parent: parent.filter(|id| !id.is_empty()).map(str::to_owned),
        }
    }

    /// Of an unchanged file what is remembered, else what is read now.
    fn of(file: &mut Found, known: &FileMemory, door: Door<'_>) -> Self {
        let remembered = known
            .get(&file.path)
            .filter(|stamp| stamp.is_unchanged(&file.stamp))
            .and_then(|stamp| stamp.kin.as_deref())
            .map(Head::from_kin);
        let head = remembered.unwrap_or_else(|| read_head(&file.path, door));
        file.stamp.kin = Some(head.to_kin());
        head
    }
}

/// All threads below a root.
pub(super) struct Threads {
    threads: Vec<ThreadFiles>,
    by_id: HashMap<String, usize>,
    twins: Vec<Found>,
    /// Sub-agents by the thread that started them.
    children: HashMap<String, Vec<usize>>,
}

/// Whether a file name can be a rollout's: they are called `rollout-…`, unless somebody
/// renamed them. Temporary files of packing are none.
pub(super) fn is_rollout(name: &str) -> bool {
    !name.starts_with('.') && (name.ends_with(".jsonl") || name.ends_with(".jsonl.zst"))
}

impl Threads {
    /// Groups files by thread and drops twins: plain over packed, live over archived.
    /// What unchanged files say about their place is `known`.
    pub(super) fn group(
        found: Vec<(Found, bool)>,
        known: &FileMemory,
        door: Door<'_>,
        report: &mut Report,
    ) -> Threads {
        let mut by_name: BTreeMap<String, Vec<(Found, bool)>> = BTreeMap::new();
        for (file, archived) in found {
            by_name
                .entry(base_name(&file.path))
                .or_default()
                .push((file, archived));
        }
        let mut by_thread: BTreeMap<String, Vec<RolloutFile>> = BTreeMap::new();
        let mut dropped = Vec::new();
        for (name, mut twins) in by_name {
            twins.sort_by_key(|(file, archived)| (is_packed(&file.path), *archived));
            let mut twins = twins.into_iter();
            let Some((file, archived)) = twins.next() else {
                continue;
            };
            for (twin, _) in twins {
                report.skip(&twin.path, SkipReason::Twin, "");
                dropped.push(twin);
            }
            let (thread, is_segment) = thread_of(&name);
            by_thread.entry(thread).or_default().push(RolloutFile {
                found: file,
                archived,
                is_segment,
            });
        }
        let threads: Vec<ThreadFiles> = by_thread
            .into_par_iter()
            .map(|(id, mut files)| {
                // Names begin with the time: the order of names is the order of writing.
                files.sort_by(|one, other| {
                    (one.is_segment, base_name(&one.found.path))
                        .cmp(&(other.is_segment, base_name(&other.found.path)))
                });
                let head = files
                    .first_mut()
                    .map(|file| Head::of(&mut file.found, known, door))
                    .unwrap_or_default();
                ThreadFiles { id, files, head }
            })
            .collect();
        let by_id = threads
            .iter()
            .enumerate()
            .map(|(index, thread)| (thread.id.clone(), index))
            .collect();
        let mut children: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, thread) in threads.iter().enumerate() {
            if let Some(parent) = thread.head.parent.clone().filter(|_| thread.head.sub_agent) {
                children.entry(parent).or_default().push(index);
            }
        }
        Threads {
            threads,
            by_id,
            twins: dropped,
            children,
        }
    }

    /// Threads that are sessions of their own.
    pub(super) fn sessions(&self) -> impl Iterator<Item = &ThreadFiles> {
        self.threads.iter().filter(|thread| !thread.head.sub_agent)
    }

    /// The thread of that id.
    pub(super) fn get(&self, id: &str) -> Option<&ThreadFiles> {
        self.by_id.get(id).map(|index| &self.threads[*index])
    }

    /// Files of the sub-agents that a thread started, directly or through others.
    pub(super) fn sub_agents_of(&self, id: &str) -> Vec<&Found> {
        let mut files = Vec::new();
        let mut wanted = vec![id];
        let mut seen = vec![id];
        while let Some(parent) = wanted.pop() {
            let children = self.children.get(parent).map(Vec::as_slice);
            for thread in children
                .unwrap_or_default()
                .iter()
                .map(|at| &self.threads[*at])
            {
                if !seen.contains(&thread.id.as_str()) {
                    seen.push(&thread.id);
                    wanted.push(&thread.id);
                    files.extend(thread.files.iter().map(|file| &file.found));
                }
            }
        }
        files
    }

    /// All files of sub-agents.
    pub(super) fn sub_agent_files(&self) -> impl Iterator<Item = &Found> {
        self.threads
            .iter()
            .filter(|thread| thread.head.sub_agent)
            .flat_map(|thread| thread.files.iter().map(|file| &file.found))
    }

    /// Files that repeat another one in a second form or place.
    pub(super) fn twins(&self) -> &[Found] {
        &self.twins
    }
}

fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

/// A file's name without its endings.
fn base_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.trim_end_matches(".zst")
        .trim_end_matches(".jsonl")
        .to_owned()
}

/// The thread id in a name `rollout-<time>-<thread>[_<segment>]`; the whole name when
/// it has another shape.
fn thread_of(name: &str) -> (String, bool) {
    const UUID: usize = 36;
    let (body, is_segment) = match name.rsplit_once('_') {
        Some((body, segment)) if segment.len() == UUID => (body, true),
        _ => (name, false),
    };
    let id = body
        .len()
        .checked_sub(UUID)
        .and_then(|from| body.get(from..))
        .filter(|id| id.bytes().filter(|byte| *byte == b'-').count() == 4);
    (id.unwrap_or(body).to_owned(), is_segment)
}

/// Reads the first line of a file for what it says about sub-agents. The file is read
/// and reported on later; here anything wrong just means that nothing is known.
fn read_head(path: &Path, door: Door<'_>) -> Head {
    const LONGEST: u64 = 1 << 20;
    const USUAL: usize = 16 << 10;
    let Ok(metadata) = std::fs::symlink_metadata(path) else {
        return Head::default();
    };
    if !metadata.is_file() {
        return Head::default();
    }
    let Ok(reader) = lines::open(path, metadata.len()) else {
        return Head::default();
    };
    let mut line = Vec::new();
    let reader = std::io::BufReader::with_capacity(USUAL, reader);
    let read = std::io::Read::take(reader, LONGEST).read_until(b'\n', &mut line);
    let text = read.ok().and_then(|_| std::str::from_utf8(&line).ok());
    let Some(value) = text.and_then(|text| Json::parse(text).ok()) else {
        return Head::default();
    };
    let meta = value.node().get("payload");
    let spawned = meta.at(&["source", "subagent"]);
    Head {
        sub_agent: spawned.is_some() || meta.get("thread_source").str() == Some("subagent"),
        parent: spawned
            .at(&["thread_spawn", "parent_thread_id"])
            .text()
            .or_else(|| meta.get("parent_thread_id").text())
            .or_else(|| meta.get("session_id").text())
            .map(|id| door.id(id).into_string()),
    }
}
