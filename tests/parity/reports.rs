//! The groups about the account of a night.
//!
//! Our report is laid out by document and says more. What is compared is what the original's tells:
//! each fact that its report has must be in ours, in the same escaped form, and nothing that a log
//! or a model says may become markup.

use serde_json::{Value, json};

use skillopt_sleep::night::report::{DocumentReport, NightReport, StepLine, TaskCounts};
use skillopt_staging::{one_line, prose, score, table_cell};

use super::engine::text;
use super::{Group, Vector, outcome_group};

pub(super) const GROUPS: &[Group] = &[
    outcome_group("staging/report_md", report_md, recorded_md),
    outcome_group("staging/report_json", report_json, recorded_json),
    outcome_group("staging/run_json", report_json, recorded_run),
];

fn number(value: &Value) -> Option<f64> {
    value
        .as_f64()
        .or_else(|| value["$float"].as_str()?.parse().ok())
}

fn list<'t>(value: &'t Value, key: &str) -> impl Iterator<Item = &'t Value> {
    value[key].as_array().into_iter().flatten()
}

fn count(value: &Value, key: &str) -> usize {
    usize::try_from(value[key].as_u64().unwrap_or_default()).expect("a small number")
}

/// An edit as a report of ours lists it.
fn edit_line(edit: &Value) -> String {
    format!("{}: {}", text(edit, "op"), text(edit, "content"))
}

/// The recorded night, as one of ours.
fn ours(report: &Value) -> NightReport {
    let step = |key: &str, action: &str| StepLine {
        step: 1,
        action: action.to_owned(),
        before: number(&report["baseline_score"]).or(Some(0.0)),
        after: number(&report["candidate_score"]).or(Some(0.0)),
        edits: list(report, key).map(edit_line).collect(),
    };
    let action = text(report, "gate_action");
    let whole = DocumentReport {
        kind: "skill".to_owned(),
        name: "learned".to_owned(),
        path: text(report, "project"),
        baseline: number(&report["baseline_score"]).or(Some(0.0)),
        candidate: number(&report["candidate_score"]).or(Some(0.0)),
        metric: "mixed".to_owned(),
        accepted: report["accepted"] == true,
        steps: vec![step("edits", &action), step("rejected_edits", "reject")],
        ..DocumentReport::default()
    };
    let groups = list(report, "skill_groups").map(|group| DocumentReport {
        kind: "skill".to_owned(),
        name: text(group, "skill_name"),
        baseline: number(&group["baseline_score"]),
        candidate: number(&group["candidate_score"]),
        reason: Some(text(group, "reason")),
        ..DocumentReport::default()
    });
    NightReport {
        night: report["night"].as_i64().unwrap_or_default(),
        sessions: count(report, "n_sessions"),
        tasks: TaskCounts {
            train: count(report, "n_tasks"),
            ..TaskCounts::default()
        },
        documents: std::iter::once(whole).chain(groups).collect(),
        notes: list(report, "notes")
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        ..NightReport::default()
    }
}

/// A text in ours: one line, in which nothing can become a link, an image or a tag.
fn plain(text: &str) -> String {
    one_line(text).replace('[', "\\[").replace('<', "\\<")
}

/// What a report has to tell: a name for the fact, and how the original's and ours say it.
fn facts(report: &Value) -> Vec<(String, String, String)> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, theirs: String, ours: String| {
        facts.push((name.to_owned(), theirs, ours));
    };
    let night = &report["night"];
    fact(
        "night",
        format!("night {night} report"),
        format!("# Night {night}\n"),
    );
    let sessions = count(report, "n_sessions");
    fact(
        "sessions",
        format!("sessions harvested: {sessions}\n"),
        format!("- sessions: {sessions}\n"),
    );
    let tasks = count(report, "n_tasks");
    fact(
        "tasks",
        format!("tasks mined: {tasks} "),
        format!("- tasks: {tasks} "),
    );
    let of = |key: &str| {
        score(number(&report[key]).or_else(|| report.get(key).is_none().then_some(0.0)))
    };
    let (before, after) = (of("baseline_score"), of("candidate_score"));
    fact(
        "scores",
        format!("{before} -> {after}"),
        format!("{before} → {after}"),
    );
    let action = text(report, "gate_action");
    fact(
        "action",
        format!("**{}**", prose(&action)),
        format!("**{}**", one_line(&action)),
    );
    for key in ["edits", "rejected_edits"] {
        for edit in list(report, key) {
            let content = text(edit, "content");
            fact("edit", prose(&content), plain(&content));
        }
    }
    for group in list(report, "skill_groups") {
        let name = text(group, "skill_name");
        fact("group", table_cell(&name), plain(&name));
    }
    for note in list(report, "notes").filter_map(Value::as_str) {
        fact(
            "note",
            format!("- {}\n", prose(note)),
            format!("- {}\n", plain(note)),
        );
    }
    facts
}

fn report_md(vector: &Vector) -> Value {
    let report = &vector.input["report"];
    let markdown = ours(report).to_markdown();
    // Every line begins as the report's own lines do; none is made by what was put in.
    let foreign = markdown.lines().find(|line| {
        let own = ["# Night ", "## ", "- ", "  - "];
        !line.is_empty() && !own.iter().any(|start| line.starts_with(start))
    });
    // Ours may tell more.
    let wanted = vector.expected["facts"].as_array().into_iter().flatten();
    let ours = told(report, &markdown, |(_, _, ours)| ours);
    let told: Vec<&Value> = wanted
        .filter(|fact| ours.iter().any(|told| *fact == told))
        .collect();
    json!({"facts": told, "foreign": foreign})
}

fn recorded_md(vector: &Vector) -> Value {
    let markdown = text(&vector.expected, "markdown");
    let facts = told(&vector.input["report"], &markdown, |(_, theirs, _)| theirs);
    json!({"facts": facts, "foreign": null})
}

/// The facts that a report has, by number.
fn told(
    report: &Value,
    markdown: &str,
    wording: fn(&(String, String, String)) -> &String,
) -> Vec<String> {
    let facts = facts(report);
    let told = facts
        .iter()
        .enumerate()
        .filter(|(_, fact)| markdown.contains(wording(fact)));
    told.map(|(number, (name, ..))| format!("{number} {name}"))
        .collect()
}

fn report_json(vector: &Vector) -> Value {
    let report = ours(&vector.input["report"]);
    let json = serde_json::to_value(&report).expect("a report is JSON");
    let document = &json["documents"][0];
    json!({
        "night": json["night"],
        "sessions": json["sessions"],
        "tasks": report.tasks.total(),
        "baseline": document["baseline"],
        "candidate": document["candidate"],
        "accepted": document["accepted"],
        "action": document["steps"][0]["action"],
        "edits": document["steps"][0]["edits"],
        "rejected": document["steps"][1]["edits"],
        "notes": json["notes"],
    })
}

fn recorded_json(vector: &Vector) -> Value {
    of_recorded(
        &vector.expected["json"],
        "baseline_score",
        "candidate_score",
    )
}

fn recorded_run(vector: &Vector) -> Value {
    of_recorded(&vector.expected["json"], "baseline", "candidate")
}

fn of_recorded(json: &Value, baseline: &str, candidate: &str) -> Value {
    json!({
        "night": json["night"],
        "sessions": json["n_sessions"],
        "tasks": json["n_tasks"],
        "baseline": json[baseline],
        "candidate": json[candidate],
        "accepted": json["accepted"],
        "action": json["gate_action"],
        "edits": list(json, "edits").map(edit_line).collect::<Vec<_>>(),
        "rejected": list(json, "rejected_edits").map(edit_line).collect::<Vec<_>>(),
        "notes": json["notes"],
    })
}

#[test]
fn a_name_is_one_line_in_a_heading() {
    let report = NightReport {
        documents: vec![DocumentReport {
            name: "a\n# b".to_owned(),
            ..DocumentReport::default()
        }],
        ..NightReport::default()
    };
    assert!(report.to_markdown().contains("## a # b ("));
}
