//! The account of a night: what was read, tried, decided and spent. It is written whatever happens,
//! as JSON for programs and as Markdown for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use skillopt_harvesters::Report as HarvestReport;
use skillopt_staging::{markdown, one_line, table_cell};

use super::task::Task;
use crate::impact::Impact;
use crate::model::Usage;

/// A night from start to end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct NightReport {
    /// Counted from 1.
    pub night: i64,
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// The models, by role.
    pub models: BTreeMap<String, String>,
    /// What was read, and everything that was not, with the reason.
    pub harvest: HarvestReport,
    /// Sessions within scope and time.
    pub sessions: usize,
    /// Tasks by split.
    pub tasks: TaskCounts,
    /// One entry per document that could have been improved.
    pub documents: Vec<DocumentReport>,
    /// Adoptions since which sessions go clearly worse.
    pub regressions: Vec<Impact>,
    /// Documents that could not be written, found out before anything was spent on them.
    pub refused: Vec<RefusedDocument>,
    /// Usage by role and stage.
    pub usage: BTreeMap<String, Usage>,
    /// What it cost in US dollars, when prices are configured.
    pub usd: Option<f64>,
    /// Things that the reader should know.
    pub notes: Vec<String>,
}

/// Tasks by split.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCounts {
    /// For reflection.
    pub train: usize,
    /// For the gate.
    pub validation: usize,
    /// Measured only.
    pub test: usize,
}

impl TaskCounts {
    /// Counts tasks.
    #[must_use]
    pub fn of(tasks: &[Task]) -> Self {
        let count = |split: &str| tasks.iter().filter(|task| task.split == split).count();
        Self {
            train: count("train"),
            validation: count("val"),
            test: count("test"),
        }
    }

    /// All of them.
    #[must_use]
    pub fn total(self) -> usize {
        self.train + self.validation + self.test
    }
}

/// A document that the night left alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RefusedDocument {
    /// The skill's name, or the file's.
    pub name: String,
    /// Where it is.
    pub path: String,
    /// Why, and what to do about it.
    pub reason: String,
}

/// What became of one document.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct DocumentReport {
    /// `skill` or `memory`.
    pub kind: String,
    /// The skill's name, or the file's.
    pub name: String,
    /// Where it is.
    pub path: String,
    /// Its own tasks.
    pub tasks: TaskCounts,
    /// Gate score of the live text, over the validation tasks.
    pub baseline: Option<f64>,
    /// Gate score of the best text.
    pub candidate: Option<f64>,
    /// The metric of both.
    pub metric: String,
    /// Whether there is a better text that the gate accepted.
    pub accepted: bool,
    /// The training steps.
    pub steps: Vec<StepLine>,
    /// The staged proposal.
    pub proposal: Option<String>,
    /// Whether the gate accepted it; a suggestion that it could not decide about is not.
    pub verified: bool,
    /// Why there is none.
    pub reason: Option<String>,
    /// The adoption, when it was adopted without a person.
    pub adoption: Option<String>,
    /// Why it was not, where configuration asks for it.
    pub held: Option<String>,
}

/// One training step.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StepLine {
    /// From 1.
    pub step: u32,
    /// What the gate said.
    pub action: String,
    /// The current text's score before.
    pub before: Option<f64>,
    /// The candidate's.
    pub after: Option<f64>,
    /// Its edits, one line each.
    pub edits: Vec<String>,
}

impl NightReport {
    /// All usage.
    #[must_use]
    pub fn total_usage(&self) -> Usage {
        self.usage.values().copied().sum()
    }

    /// The proposals of the night.
    #[must_use]
    pub fn proposals(&self) -> Vec<&str> {
        self.documents
            .iter()
            .filter_map(|document| document.proposal.as_deref())
            .collect()
    }

    /// The report for people. Everything that comes from logs and models is one line of plain text,
    /// whatever a terminal or a Markdown viewer might make of it.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        let usage = self.total_usage();
        let _ = writeln!(text, "# Night {}\n", self.night);
        let _ = writeln!(
            text,
            "- from {} to {}",
            second(self.started),
            second(self.ended)
        );
        for (role, model) in &self.models {
            let _ = writeln!(text, "- {role}: `{}`", table_cell(model));
        }
        let _ = writeln!(text, "- sessions: {}", self.sessions);
        let _ = writeln!(
            text,
            "- tasks: {} ({} train, {} validation, {} test)",
            self.tasks.total(),
            self.tasks.train,
            self.tasks.validation,
            self.tasks.test
        );
        let _ = writeln!(
            text,
            "- model calls: {}, tokens: {} in, {} out{}",
            usage.calls,
            usage.prompt_tokens,
            usage.completion_tokens,
            self.usd
                .map(|usd| format!(", ${usd:.4}"))
                .unwrap_or_default()
        );
        for document in &self.documents {
            document.write_markdown(&mut text);
        }
        if !self.regressions.is_empty() {
            text.push_str("\n## Sessions go worse\n\n");
            for impact in &self.regressions {
                let _ = writeln!(
                    text,
                    "- since {} changed `{}`; `skillopt-sleep status --impact` shows it, `{}` undoes it",
                    impact.adoption,
                    table_cell(&impact.path.display().to_string()),
                    impact.undo()
                );
            }
        }
        if !self.refused.is_empty() {
            text.push_str("\n## Left alone\n\n");
            for refused in &self.refused {
                let _ = writeln!(
                    text,
                    "- {} (`{}`): {}",
                    markdown(&refused.name),
                    table_cell(&refused.path),
                    markdown(&refused.reason)
                );
            }
        }
        self.write_harvest(&mut text);
        if !self.notes.is_empty() {
            text.push_str("\n## Notes\n\n");
            for note in &self.notes {
                let _ = writeln!(text, "- {}", markdown(note));
            }
        }
        text
    }

    fn write_harvest(&self, text: &mut String) {
        let harvest = &self.harvest;
        let _ = writeln!(
            text,
            "\n## Logs\n\n- files: {} found, {} read, {} unchanged",
            harvest.files_found, harvest.files_read, harvest.files_unchanged
        );
        for (reason, count) in &harvest.skip_counts {
            let _ = writeln!(text, "- skipped, {}: {count}", name_of(reason));
        }
        for (flaw, count) in &harvest.flaw_counts {
            let _ = writeln!(text, "- lines skipped, {}: {count}", name_of(flaw));
        }
        for (kind, count) in &harvest.unknown_kinds {
            let _ = writeln!(text, "- unknown records, {}: {count}", markdown(kind));
        }
        for skipped in harvest
            .skipped
            .iter()
            .filter(|skipped| !skipped.detail.is_empty())
            .take(20)
        {
            let _ = writeln!(
                text,
                "- {}: {}",
                markdown(&skipped.file),
                markdown(&skipped.detail)
            );
        }
        for warning in &harvest.warnings {
            let _ = writeln!(text, "- {}", markdown(warning));
        }
    }
}

impl DocumentReport {
    fn write_markdown(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "\n## {} ({})\n",
            markdown(&self.name),
            markdown(&self.kind)
        );
        let _ = writeln!(text, "- file: `{}`", table_cell(&self.path));
        let _ = writeln!(
            text,
            "- its own tasks: {} ({} train, {} validation)",
            self.tasks.total(),
            self.tasks.train,
            self.tasks.validation
        );
        let _ = writeln!(
            text,
            "- validation score ({}): {} → {}",
            self.metric,
            score(self.baseline),
            score(self.candidate)
        );
        match (&self.proposal, &self.reason) {
            (Some(proposal), _) => {
                let suggestion = if self.verified {
                    ""
                } else {
                    ", NOT VERIFIED: the gate could not decide"
                };
                let _ = writeln!(text, "- staged as {proposal}{suggestion}");
                if let Some(adoption) = &self.adoption {
                    let _ = writeln!(
                        text,
                        "- **adopted without review as {adoption}**; undo it with \
                         `skillopt-sleep revert {adoption}`"
                    );
                }
                if let Some(held) = &self.held {
                    let _ = writeln!(text, "- left for review: {}", markdown(held));
                }
            }
            (None, Some(reason)) => {
                let _ = writeln!(text, "- nothing staged: {}", markdown(reason));
            }
            (None, None) => {}
        }
        for step in &self.steps {
            let _ = writeln!(
                text,
                "- step {}: **{}** ({} → {})",
                step.step,
                one_line(&step.action),
                score(step.before),
                score(step.after)
            );
            for edit in &step.edits {
                let _ = writeln!(text, "  - {}", markdown(edit));
            }
        }
    }
}

/// A score with three decimals, or a dash.
#[must_use]
pub fn score(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_finite() => format!("{value:.3}"),
        _ => "—".to_owned(),
    }
}

fn second(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// The serialised name of a plain enumeration's value, with spaces.
fn name_of(value: &impl Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(|name| name.replace('_', " ")))
        .unwrap_or_default()
}
