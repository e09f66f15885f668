//! Edits: bounded changes of a skill document, applied one after another.
//!
//! An edit comes from a model, so nothing about it is trusted. It is parsed leniently, applied by
//! exact text, refused when it touches a protected region in any way, and reported either way: the
//! report has one entry per edit, in order, and says what became of it (engine 12.1).

use serde_json::{Map, Value};

use super::edit_report::{EditReport, EditStatus};
use super::region::{self, RegionKind};
use super::text::{clip, strip, strip_end};

/// How many code points of target and content a report shows.
const PREVIEW: usize = 200;

/// What an edit does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditOp {
    /// Adds the content at the end of the body.
    Append,
    /// Adds the content after the line that holds the target.
    InsertAfter,
    /// Puts the content in place of the target.
    Replace,
    /// Removes the target.
    Delete,
    /// Anything else, as it was written.
    Unknown(String),
}

impl EditOp {
    /// The operation of this name; names are exact and lower case.
    #[must_use]
    pub fn from_name(name: &str) -> EditOp {
        match name {
            "append" => EditOp::Append,
            "insert_after" => EditOp::InsertAfter,
            "replace" => EditOp::Replace,
            "delete" => EditOp::Delete,
            other => EditOp::Unknown(other.to_owned()),
        }
    }

    /// The name, as in [`EditOp::from_name`].
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            EditOp::Append => "append",
            EditOp::InsertAfter => "insert_after",
            EditOp::Replace => "replace",
            EditOp::Delete => "delete",
            EditOp::Unknown(name) => name,
        }
    }
}

/// One change of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What to do.
    pub op: EditOp,
    /// The exact text to look for; empty when there is none.
    pub target: String,
    /// The new text.
    pub content: String,
}

/// Why a model's edit is no edit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MalformedEdit {
    /// The item is not an object.
    #[error("the edit is {0}, not an object")]
    NotAnObject(&'static str),
    /// A field holds something other than text.
    #[error("the edit's `{field}` is {found}, not text")]
    NotText {
        /// The field.
        field: &'static str,
        /// What it holds.
        found: &'static str,
    },
}

impl Edit {
    /// Reads an edit from a model's reply. A missing or null `target` or `content` is empty
    /// (W-E2); a missing or null `op` appends, as the record type of engine 19 does.
    ///
    /// # Errors
    /// [`MalformedEdit`] when the value is no object, or a field is not text.
    pub fn from_value(value: &Value) -> Result<Edit, MalformedEdit> {
        match value {
            Value::Object(fields) => Edit::from_fields(fields),
            other => Err(MalformedEdit::NotAnObject(kind_of(other))),
        }
    }

    /// Like [`Edit::from_value`], from the fields of an object.
    ///
    /// # Errors
    /// [`MalformedEdit::NotText`] when a field is not text.
    pub fn from_fields(fields: &Map<String, Value>) -> Result<Edit, MalformedEdit> {
        let text = |field: &'static str| match fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(MalformedEdit::NotText {
                field,
                found: kind_of(other),
            }),
        };
        Ok(Edit {
            op: text("op")?.map_or(EditOp::Append, |name| EditOp::from_name(&name)),
            target: text("target")?.unwrap_or_default(),
            content: text("content")?.unwrap_or_default(),
        })
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Applies edits one after another, each to the result of the one before.
///
/// Every item gets an entry in the report; an item that is no edit changes nothing.
#[must_use]
pub fn apply_patch(
    document: &str,
    edits: impl IntoIterator<Item = Result<Edit, MalformedEdit>>,
) -> (String, Vec<EditReport>) {
    let mut document = document.to_owned();
    let mut report = Vec::new();
    for (position, edit) in edits.into_iter().enumerate() {
        let mut entry = match edit {
            Ok(edit) => {
                let (next, entry) = apply_edit(&document, &edit);
                document = next;
                entry
            }
            Err(error) => EditReport {
                index: 0,
                op: String::new(),
                target: String::new(),
                content_preview: String::new(),
                status: EditStatus::Error,
                changed: false,
                error: Some(error.to_string()),
            },
        };
        entry.index = position + 1;
        report.push(entry);
    }
    (document, report)
}

/// Applies one edit. The content is stripped and loses every region marker first; the entry's
/// index is 1.
#[must_use]
pub fn apply_edit(document: &str, edit: &Edit) -> (String, EditReport) {
    let content = region::without_markers(strip(&edit.content));
    let (mut next, mut status) = change(document, edit, &content);
    if next != document && !keeps_regions(document, &next) {
        next = document.to_owned();
        status = EditStatus::SkippedProtectedRegion;
    }
    let entry = EditReport {
        index: 1,
        op: edit.op.name().to_owned(),
        target: clip(&edit.target, PREVIEW).to_owned(),
        content_preview: clip(&content, PREVIEW).to_owned(),
        status,
        changed: next != document,
        error: None,
    };
    (next, entry)
}

fn change(document: &str, edit: &Edit, content: &str) -> (String, EditStatus) {
    let target = edit.target.as_str();
    let found = if target.is_empty() {
        None
    } else {
        document.find(target)
    };
    let unchanged = |status| (document.to_owned(), status);
    if found.is_some_and(|at| touches_region(document, at, at + target.len())) {
        return unchanged(EditStatus::SkippedProtectedRegion);
    }
    match (&edit.op, found) {
        (EditOp::Append, _) => tail(
            document,
            content,
            EditStatus::AppliedAppend,
            EditStatus::AppliedAppendBeforeProtectedRegion,
        ),
        (EditOp::InsertAfter, None) => tail(
            document,
            content,
            EditStatus::AppliedInsertAfterFallbackAppend,
            EditStatus::AppliedInsertAfterFallbackBeforeProtectedRegion,
        ),
        (EditOp::InsertAfter, Some(at)) => {
            let after = at + target.len();
            let at = document[after..]
                .find('\n')
                .map_or(document.len(), |newline| after + newline + 1);
            if splits_region(document, at) {
                return unchanged(EditStatus::SkippedProtectedRegion);
            }
            let next = format!("{}\n{content}\n{}", &document[..at], &document[at..]);
            (next, EditStatus::AppliedInsertAfter)
        }
        (EditOp::Replace, Some(at)) => (
            spliced(document, at, target, content),
            EditStatus::AppliedReplace,
        ),
        (EditOp::Delete, Some(at)) => {
            (spliced(document, at, target, ""), EditStatus::AppliedDelete)
        }
        (EditOp::Replace, None) if target.is_empty() => {
            unchanged(EditStatus::SkippedReplaceMissingTarget)
        }
        (EditOp::Replace, None) => unchanged(EditStatus::SkippedReplaceTargetNotFound),
        (EditOp::Delete, None) if target.is_empty() => {
            unchanged(EditStatus::SkippedDeleteMissingTarget)
        }
        (EditOp::Delete, None) => unchanged(EditStatus::SkippedDeleteTargetNotFound),
        (EditOp::Unknown(_), _) => unchanged(EditStatus::SkippedUnknownOp),
    }
}

/// Adds `content` at the end of the body: before the first region, or at the end of the text.
fn tail(
    document: &str,
    content: &str,
    at_end: EditStatus,
    before_region: EditStatus,
) -> (String, EditStatus) {
    match region::first_start(document) {
        Some(at) => (
            format!(
                "{}\n\n{content}\n\n{}",
                strip_end(&document[..at]),
                &document[at..]
            ),
            before_region,
        ),
        None => (format!("{}\n\n{content}\n", strip_end(document)), at_end),
    }
}

fn spliced(document: &str, at: usize, target: &str, content: &str) -> String {
    format!(
        "{}{content}{}",
        &document[..at],
        &document[at + target.len()..]
    )
}

fn touches_region(document: &str, start: usize, end: usize) -> bool {
    region::regions(document)
        .iter()
        .any(|region| start < region.span.end && region.span.start < end)
}

fn splits_region(document: &str, at: usize) -> bool {
    region::regions(document)
        .iter()
        .any(|region| region.span.start < at && at < region.span.end)
}

/// Whether both documents hold the same regions, byte for byte and in the same order, and the
/// second has no marker that the first did not have. Text around a deletion can meet to form a
/// marker; this is the check that no such trick gets past.
fn keeps_regions(before: &str, after: &str) -> bool {
    let texts = |document: &str| -> Vec<(RegionKind, String)> {
        region::regions(document)
            .into_iter()
            .map(|region| (region.kind, document[region.span].to_owned()))
            .collect()
    };
    let markers = |document: &str| {
        RegionKind::ALL.map(|kind| {
            (
                document.matches(kind.start()).count(),
                document.matches(kind.end()).count(),
            )
        })
    };
    let grew = markers(before)
        .iter()
        .zip(markers(after))
        .any(|(old, new)| new.0 > old.0 || new.1 > old.1);
    !grew && texts(before) == texts(after)
}

#[cfg(test)]
mod tests {
    use super::super::edit_report::EditSummary;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn edit(op: &str, target: &str, content: &str) -> Edit {
        Edit {
            op: EditOp::from_name(op),
            target: target.to_owned(),
            content: content.to_owned(),
        }
    }

    const GUARDED: &str =
        "# S\nrule A <!-- SLOW_UPDATE_START -->\nguide\n<!-- SLOW_UPDATE_END -->\nend\n";

    #[test]
    fn a_target_that_reaches_into_a_region_is_refused() {
        for target in ["rule A <!--", "SLOW_UPDATE_END -->\nend", "guide"] {
            let (next, entry) = apply_edit(GUARDED, &edit("delete", target, ""));
            assert_eq!(next, GUARDED);
            assert_eq!(entry.status, EditStatus::SkippedProtectedRegion);
        }
    }

    #[test]
    fn an_insertion_that_would_land_in_a_region_is_refused() {
        let (next, entry) = apply_edit(GUARDED, &edit("insert_after", "rule A", "NEW"));
        assert_eq!(next, GUARDED);
        assert_eq!(entry.status, EditStatus::SkippedProtectedRegion);
    }

    #[test]
    fn a_deletion_that_would_form_a_marker_is_refused() {
        let document = "x <!-- SLOW_UPDATE_ZSTART --> y <!-- SLOW_UPDATE_END -->";
        let (next, entry) = apply_edit(document, &edit("delete", "Z", ""));
        assert_eq!(next, document);
        assert_eq!(entry.status, EditStatus::SkippedProtectedRegion);
    }

    #[test]
    fn an_edit_that_changes_nothing_says_so() {
        let (_, entry) = apply_edit("a b", &edit("replace", "a", "a"));
        assert_eq!(
            (entry.status, entry.changed),
            (EditStatus::AppliedReplace, false)
        );
    }

    #[test]
    fn an_empty_patch_is_the_identity() {
        assert_eq!(apply_patch(GUARDED, []), (GUARDED.to_owned(), Vec::new()));
    }

    #[test]
    fn an_item_that_is_no_edit_is_reported_and_passed_over() {
        let items = [
            json!("text"),
            json!({"op": "append", "content": "x"}),
            json!({"op": "append", "content": 5}),
        ];
        let (next, report) = apply_patch("d\n", items.iter().map(Edit::from_value));
        assert_eq!(next, "d\n\nx\n");
        assert_eq!(
            EditSummary::of(&report),
            EditSummary {
                total: 3,
                applied: 1,
                skipped: 0,
                errors: 2
            }
        );
        assert_eq!(
            report[2].error.as_deref(),
            Some("the edit's `content` is a number, not text")
        );
    }

    fn document() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => "[ab \n]{1,5}",
            1 => Just("<!-- SLOW_UPDATE_START -->".to_owned()),
            1 => Just("<!-- SLOW_UPDATE_END -->".to_owned()),
            1 => Just("<!-- APPENDIX_START -->".to_owned()),
            1 => Just("<!-- APPENDIX_END -->".to_owned()),
        ];
        prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
    }

    fn any_edit(document: &str) -> impl Strategy<Value = Edit> + use<> {
        let length = document.chars().count();
        let document = document.to_owned();
        let ops = ["append", "insert_after", "replace", "delete", "swap"];
        (0..ops.len(), 0..=length, 0..30_usize, document_content()).prop_map(
            move |(op, from, width, content)| Edit {
                op: EditOp::from_name(ops[op]),
                target: document.chars().skip(from).take(width).collect(),
                content,
            },
        )
    }

    fn document_content() -> impl Strategy<Value = String> {
        prop_oneof![
            "[ab \n]{0,6}",
            Just("<!-- APPENDIX_<!-- APPENDIX_END -->START -->".to_owned()),
            document()
        ]
    }

    proptest! {
        #[test]
        fn regions_survive_every_edit(
            (document, edits) in document().prop_flat_map(|document| {
                let edits = prop::collection::vec(any_edit(&document), 1..6);
                (Just(document), edits)
            })
        ) {
            let texts = |document: &str| -> Vec<String> {
                region::regions(document).into_iter().map(|region| document[region.span].to_owned()).collect()
            };
            let (next, report) = apply_patch(&document, edits.iter().cloned().map(Ok));
            prop_assert_eq!(report.len(), edits.len());
            prop_assert_eq!(texts(&next), texts(&document));
        }
    }
}
