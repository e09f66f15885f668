//! What can be wrong with split data, looked for all at once.
//!
//! A finding either makes the data useless for training (ids missing or twice, nothing to train or
//! to decide on), or makes results mean less than they seem to (the same content in two splits, an
//! answer that stands in its own question). Training refuses the first kind and mentions the
//! second; `data check` reports both.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::layout::{self, Counts, NAMES, Rows};
use super::searchqa::score::normalise;

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A split that cannot be read.
    Unreadable,
    /// A split without items (W-D1).
    EmptySplit,
    /// An item without an id.
    MissingId,
    /// An id that stands twice in one split (W-D6).
    DuplicateId,
    /// An id that stands in two splits (W-D6).
    OverlappingId,
    /// Two splits with the same item under different ids.
    OverlappingContent,
    /// An item whose answer stands in its question.
    LeakedAnswer,
    /// A manifest whose counts are not those of the files.
    Manifest,
}

impl Kind {
    /// Whether no training is possible.
    #[must_use]
    pub fn is_fatal(self) -> bool {
        !matches!(
            self,
            Kind::OverlappingContent | Kind::LeakedAnswer | Kind::Manifest
        )
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Of which kind.
    pub kind: Kind,
    /// In which split: `train`, `val` or `test`.
    pub split: &'static str,
    /// About which item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// One sentence about it.
    pub message: String,
    /// Whether training is refused.
    pub fatal: bool,
}

impl Finding {
    fn new(kind: Kind, split: &'static str, id: Option<&str>, message: String) -> Finding {
        Finding {
            kind,
            split,
            id: id.map(str::to_owned),
            message,
            // A run that measures nothing at the end is possible.
            fatal: kind.is_fatal() && !(kind == Kind::EmptySplit && split == "test"),
        }
    }
}

/// The shortest answer, in characters, whose appearance in the question is no coincidence.
const SHORTEST_LEAK: usize = 4;

/// Everything that is wrong with these items, split by split.
#[must_use]
pub fn check(rows: &Rows) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (split, rows) in rows.splits() {
        if rows.is_empty() {
            let message = format!("the {split} split has no items");
            findings.push(Finding::new(Kind::EmptySplit, split, None, message));
        }
    }
    ids(rows, &mut findings);
    contents(rows, &mut findings);
    for (split, rows) in rows.splits() {
        findings.extend(rows.iter().filter_map(|row| leak(split, row)));
    }
    findings
}

/// The same for a folder, with splits that cannot be read and a manifest that says otherwise.
#[must_use]
pub fn check_dir(dir: &Path) -> (Counts, Vec<Finding>) {
    #[derive(Deserialize)]
    struct Manifest {
        counts: Option<Counts>,
    }
    let mut unreadable = Vec::new();
    let mut read = |name: &'static str| {
        layout::read_split(&dir.join(name)).unwrap_or_else(|error| {
            let message = error.to_string();
            unreadable.push(Finding::new(Kind::Unreadable, name, None, message));
            Vec::new()
        })
    };
    let rows = Rows {
        train: read("train"),
        val: read("val"),
        test: read("test"),
    };
    let counts = rows.counts();
    let mut findings = check(&rows);
    // A split that cannot be read is not empty besides.
    findings.retain(|finding| {
        finding.kind != Kind::EmptySplit || unreadable.iter().all(|u| u.split != finding.split)
    });
    match layout::read_manifest::<Manifest>(dir) {
        Ok(manifest) => {
            let stated = manifest.and_then(|manifest| manifest.counts);
            if unreadable.is_empty()
                && let Some(stated) = stated
            {
                findings.extend(miscounted(stated, counts));
            }
        }
        Err(error) => {
            let [train, ..] = NAMES;
            let message = error.to_string();
            findings.push(Finding::new(Kind::Manifest, train, None, message));
        }
    }
    unreadable.append(&mut findings);
    (counts, unreadable)
}

fn miscounted(stated: Counts, found: Counts) -> impl Iterator<Item = Finding> {
    let pairs = [
        (stated.train, found.train),
        (stated.val, found.val),
        (stated.test, found.test),
    ];
    NAMES
        .into_iter()
        .zip(pairs)
        .filter(|(_, (stated, found))| stated != found)
        .map(|(split, (stated, found))| {
            let message =
                format!("the manifest counts {stated} items in {split}, there are {found}");
            Finding::new(Kind::Manifest, split, None, message)
        })
}

/// An item's id as text; none when it is missing or blank.
pub(super) fn id_of(row: &Value) -> Option<String> {
    match row.get("id") {
        Some(Value::String(id)) if !id.trim().is_empty() => Some(id.clone()),
        Some(Value::Number(id)) => Some(id.to_string()),
        _ => None,
    }
}

fn ids(rows: &Rows, findings: &mut Vec<Finding>) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for (split, rows) in rows.splits() {
        for (index, row) in rows.iter().enumerate() {
            let Some(id) = id_of(row) else {
                let message = format!("item {} of {split} has no `id`", index + 1);
                findings.push(Finding::new(Kind::MissingId, split, None, message));
                continue;
            };
            match seen.get(&id) {
                Some(earlier) if *earlier == split => {
                    let message = format!("item {id} stands twice in {split}");
                    findings.push(Finding::new(Kind::DuplicateId, split, Some(&id), message));
                }
                Some(earlier) => {
                    let message = format!("item {id} stands in {earlier} and again in {split}");
                    findings.push(Finding::new(Kind::OverlappingId, split, Some(&id), message));
                }
                None => {
                    seen.insert(id, split);
                }
            }
        }
    }
}

/// Items that are the same but for their ids; within a split they only weigh more, across splits
/// they have been seen in training.
fn contents(rows: &Rows, findings: &mut Vec<Finding>) {
    let mut seen: HashMap<blake3::Hash, (&str, String)> = HashMap::new();
    for (split, rows) in rows.splits() {
        for row in rows {
            let (Some(id), Some(content)) = (id_of(row), content_of(row)) else {
                continue;
            };
            match seen.get(&content) {
                // The id itself was reported already.
                Some((_, other)) if *other == id => {}
                Some((earlier, other)) if *earlier != split => {
                    let message = format!("item {id} of {split} is item {other} of {earlier}");
                    let kind = Kind::OverlappingContent;
                    findings.push(Finding::new(kind, split, Some(&id), message));
                }
                Some(_) => {}
                None => {
                    seen.insert(content, (split, id));
                }
            }
        }
    }
}

/// What an item is without its id; none when nothing is left.
fn content_of(row: &Value) -> Option<blake3::Hash> {
    let mut fields = row.as_object()?.clone();
    fields.remove("id");
    (!fields.is_empty()).then(|| {
        let mut fields: Vec<_> = fields.into_iter().collect();
        fields.sort_by(|(left, _), (right, _)| left.cmp(right));
        blake3::hash(format!("{fields:?}").as_bytes())
    })
}

fn leak(split: &'static str, row: &Value) -> Option<Finding> {
    let id = id_of(row)?;
    let question = ["question", "instruction", "task"]
        .iter()
        .find_map(|key| row.get(*key).and_then(Value::as_str))?;
    let words = format!(" {} ", normalise(question));
    let answer = answers(row).into_iter().find(|answer| {
        let answer = normalise(answer);
        answer.chars().count() >= SHORTEST_LEAK && words.contains(&format!(" {answer} "))
    })?;
    let message = format!("item {id} of {split} has its answer `{answer}` in the question");
    Some(Finding::new(Kind::LeakedAnswer, split, Some(&id), message))
}

fn answers(row: &Value) -> Vec<&str> {
    ["answers", "answer", "ground_truth"]
        .iter()
        .filter_map(|key| row.get(*key))
        .flat_map(|value| match value {
            Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
            other => other.as_str().into_iter().collect::<Vec<_>>(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows(train: Value, val: Value, test: Value) -> Rows {
        let list = |value: Value| value.as_array().cloned().unwrap_or_default();
        Rows {
            train: list(train),
            val: list(val),
            test: list(test),
        }
    }

    #[test]
    fn every_kind_is_found_once() {
        let found = check(&rows(
            json!([{"id": "a", "q": 1}, {"id": "a", "q": 2}, {"q": 3}]),
            json!([{"id": "a", "q": 4}, {"id": "b", "q": 1}, {"id": " "}]),
            json!([]),
        ));
        let kinds: Vec<Kind> = found.iter().map(|finding| finding.kind).collect();
        assert_eq!(
            kinds,
            [
                Kind::EmptySplit,
                Kind::DuplicateId,
                Kind::MissingId,
                Kind::OverlappingId,
                Kind::MissingId,
                Kind::OverlappingContent,
            ]
        );
        assert!(!found[0].fatal && found[1].fatal && !found[5].fatal);
        assert_eq!(found[5].message, "item b of val is item a of train");
    }

    #[test]
    fn an_answer_in_the_question_is_a_leak_only_as_whole_words() {
        let item = |question: &str, answer: &str| json!({"id": 1, "question": question, "answers": [answer]});
        assert!(
            leak(
                "train",
                &item("Who was the King of France?", "king of france")
            )
            .is_some()
        );
        assert!(leak("train", &item("Who was the Kingpin?", "king")).is_none());
        assert!(leak("train", &item("Is it on or off?", "on")).is_none());
    }
}
