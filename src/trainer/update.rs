//! The update stage: the selected items become a candidate document (engine 12).
//!
//! Edits are applied one by one. In the rewrite modes a model writes the whole document; it never
//! gets hold of the protected regions: they are cut out before and put back after (W-E3).

use minijinja::context;
use serde_json::{Value, json};

use super::candidate::Candidate;
use super::error::TrainError;
use super::optimizer::{Optimizer, Question};
use super::optimizer_reply::{Rewrite, rewrite};
use super::patch::Patch;
use super::update_mode::UpdateMode;
use crate::skill::region::{RegionKind, regions, remove};

/// Makes the candidate; `None` when a rewrite mode gave no document.
///
/// # Errors
/// When the optimizer cannot be used at all.
pub async fn update(
    optimizer: &Optimizer<'_>,
    skill: &str,
    selected: Patch,
    history: &str,
    dir: &str,
) -> Result<Option<Candidate>, TrainError> {
    match optimizer.mode {
        UpdateMode::Patch => Ok(Some(Candidate::from_edits(skill, selected))),
        UpdateMode::RewriteFromSuggestions => {
            rewrite_from_suggestions(optimizer, skill, selected, history, dir).await
        }
        UpdateMode::FullRewriteMinibatch => Ok(full_rewrite(skill, selected)),
    }
}

async fn rewrite_from_suggestions(
    optimizer: &Optimizer<'_>,
    skill: &str,
    selected: Patch,
    history: &str,
    dir: &str,
) -> Result<Option<Candidate>, TrainError> {
    if selected.is_empty() {
        return Ok(None);
    }
    let suggestions: Vec<Value> = selected
        .items
        .iter()
        .cloned()
        .map(without_evidence)
        .collect();
    let question = Question {
        stage: "rewrite",
        template: "rewrite_skill",
        context: context! {
            skill => with_placeholders(skill),
            suggestions => format!("{:#}", Value::Array(suggestions)),
            count => selected.items.len(),
            history => history,
        },
        sample: &format!("{dir}/rewrite"),
        max_tokens: optimizer.document_tokens,
    };
    let Some(reply) = optimizer.ask(question).await?.value() else {
        return Ok(None);
    };
    Ok(rewrite(&reply).map(|written| {
        let record = ("rewrite_result.json", reply);
        from_rewrite(skill, written, selected, record)
    }))
}

/// The first candidate with a document in it.
fn full_rewrite(skill: &str, selected: Patch) -> Option<Candidate> {
    let (chosen, written) = selected.items.iter().find_map(|item| {
        let item = Value::Object(item.clone());
        rewrite(&item).map(|written| (item, written))
    })?;
    let record = json!({
        "selected_candidate": chosen,
        "merged_patch": selected.to_value(UpdateMode::FullRewriteMinibatch),
    });
    Some(from_rewrite(
        skill,
        written,
        selected,
        ("full_rewrite_result.json", record),
    ))
}

fn from_rewrite(
    skill: &str,
    written: Rewrite,
    selected: Patch,
    record: (&'static str, Value),
) -> Candidate {
    Candidate {
        rewrite: Some(record),
        change_summary: Some(written.change_summary),
        ..Candidate::whole(with_regions(skill, &written.new_skill), selected)
    }
}

fn without_evidence(mut item: serde_json::Map<String, Value>) -> Value {
    item.remove("evidence");
    Value::Object(item)
}

/// What stands for a protected region while a model has the document.
const PLACEHOLDER: &str = "[[PROTECTED]]";

/// The document with a placeholder for each protected region.
fn with_placeholders(skill: &str) -> String {
    let mut spans: Vec<_> = regions(skill)
        .into_iter()
        .map(|region| region.span)
        .collect();
    spans.sort_by_key(|span| span.start);
    let mut text = String::with_capacity(skill.len());
    let mut at = 0;
    for span in spans {
        if span.start >= at {
            text.push_str(&skill[at..span.start]);
            text.push_str(PLACEHOLDER);
            at = span.end;
        }
    }
    text.push_str(&skill[at..]);
    text
}

/// `written` with the protected regions of `skill`, byte for byte: at their placeholders when all
/// are there in number, else at the end. Whatever the model wrote into regions of its own goes.
fn with_regions(skill: &str, written: &str) -> String {
    let mut spans: Vec<_> = regions(skill)
        .into_iter()
        .map(|region| region.span)
        .collect();
    spans.sort_by_key(|span| span.start);
    let body = RegionKind::ALL
        .iter()
        .fold(written.to_owned(), |text, kind| remove(&text, *kind));
    let body = format!("{}\n", body.trim_end());
    if spans.is_empty() {
        return body.replace(PLACEHOLDER, "");
    }
    if body.matches(PLACEHOLDER).count() == spans.len() {
        let mut pieces = body.split(PLACEHOLDER);
        let first = pieces.next().unwrap_or_default().to_owned();
        return spans
            .into_iter()
            .zip(pieces)
            .fold(first, |text, (span, piece)| {
                format!("{text}{}{piece}", &skill[span])
            });
    }
    let body = body.replace(PLACEHOLDER, "");
    spans
        .into_iter()
        .fold(body.trim_end().to_owned(), |text, span| {
            format!("{text}\n\n{}", &skill[span])
        })
        + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: &str = "<!-- SLOW_UPDATE_START -->\nkeep me\n<!-- SLOW_UPDATE_END -->";

    #[test]
    fn a_rewrite_cannot_touch_a_protected_region() {
        let skill = format!("# S\n\n- a\n\n{REGION}\n");
        assert_eq!(with_placeholders(&skill), "# S\n\n- a\n\n[[PROTECTED]]\n");
        let kept = with_regions(&skill, "# S\n\n- b\n\n[[PROTECTED]]\n");
        assert_eq!(kept, format!("# S\n\n- b\n\n{REGION}\n"));
        let dropped = with_regions(&skill, "# S\n\n- b\n");
        assert_eq!(dropped, format!("# S\n\n- b\n\n{REGION}\n"));
        let forged = with_regions(
            &skill,
            "# S\n\n<!-- SLOW_UPDATE_START -->\nmine\n<!-- SLOW_UPDATE_END -->\n",
        );
        assert_eq!(forged, format!("# S\n\n{REGION}\n"));
    }
}
