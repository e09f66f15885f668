//! Rule judges: checks of an answer that need no model.
//!
//! A judge is a list of checks, each an operator with an argument. A check that cannot be carried
//! out (an operator that does not exist, a pattern that does not compile, a bound that is no
//! number) never passes, and says why, instead of ending the night or passing in silence
//! (sleep-night 6.1 to 6.3, weaknesses 19 to 21).

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::pattern;
use crate::skill::text::{casefold, clip, strip};

/// How long, in characters, a text may be and still be nothing but a refusal.
const LONGEST_REFUSAL: usize = 600;

const REFUSALS: [&str; 9] = [
    "cannot complete",
    "i cannot",
    "i can't",
    "i'm unable",
    "i am unable",
    "unable to complete",
    "sorry, i can't",
    "sorry, i cannot",
    "no can do",
];

/// Operators whose argument may not be blank.
const NEEDS_ARGUMENT: [&str; 6] = [
    "regex",
    "section_present",
    "section_contains",
    "contains",
    "not_contains",
    "tool_called",
];

/// Operators that only look at the form of an answer.
const SHAPE: [&str; 4] = [
    "section_present",
    "section_contains",
    "max_chars",
    "min_chars",
];

/// What became of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOutcome {
    /// Whether the answer passes.
    pub passed: bool,
    /// Why the check could not be carried out, if it could not.
    pub problem: Option<String>,
}

impl CheckOutcome {
    fn of(passed: bool) -> CheckOutcome {
        CheckOutcome {
            passed,
            problem: None,
        }
    }

    fn invalid(problem: impl Into<String>) -> CheckOutcome {
        CheckOutcome {
            passed: false,
            problem: Some(problem.into()),
        }
    }
}

/// One check that an answer did not pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailedCheck {
    /// The operator, as it was written.
    pub op: Value,
    /// The argument, as it was written.
    pub arg: Value,
    /// Why the check could not be carried out, if it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How an answer does under a judge.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleScore {
    /// 1 when every check passes, else 0.
    pub hard: f64,
    /// The share of checks that pass.
    pub soft: f64,
    /// The others, in order.
    pub failed: Vec<FailedCheck>,
}

impl RuleScore {
    /// The score in a sentence.
    #[must_use]
    pub fn rationale(&self) -> String {
        if self.failed.is_empty() {
            return if self.hard > 0.0 {
                "all checks passed".into()
            } else {
                "there is nothing to check".into()
            };
        }
        let failed: Vec<String> = self
            .failed
            .iter()
            .map(|check| {
                let problem = check
                    .problem
                    .as_deref()
                    .map(|problem| format!(" [{problem}]"))
                    .unwrap_or_default();
                format!("{}={}{problem}", written(&check.op), written(&check.arg))
            })
            .collect();
        format!("failed: {}", failed.join(", "))
    }
}

/// The calls of tools during an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tools<'a> {
    /// These were called. What the answer says about calls does not count.
    Observed(&'a [String]),
    /// Calls cannot be seen; the answer announces one with `tool_call: <name>`.
    Unobserved,
}

/// Carries out one check.
#[must_use]
pub fn check(op: &Value, argument: &Value, response: &str, tools: Tools<'_>) -> CheckOutcome {
    let Some(op) = op.as_str() else {
        return CheckOutcome::invalid(format!("the operator is {op}, not a name"));
    };
    let text = written(argument);
    match op {
        "section_present" => CheckOutcome::of(has_section(response, &text)),
        "section_contains" => CheckOutcome::of(has_heading_with(response, &text)),
        "regex" => match pattern::compile(&text) {
            Ok(pattern) => CheckOutcome::of(pattern.is_match(response)),
            Err(problem) => CheckOutcome::invalid(problem),
        },
        "max_chars" | "min_chars" => match whole(argument) {
            Some(bound) => {
                let length = response.chars().count() as f64;
                CheckOutcome::of(if op == "max_chars" {
                    length <= bound
                } else {
                    length >= bound
                })
            }
            None => CheckOutcome::invalid(format!("{argument} is no number of characters")),
        },
        "contains" => CheckOutcome::of(response.to_lowercase().contains(&text.to_lowercase())),
        "not_contains" => CheckOutcome::of(!response.to_lowercase().contains(&text.to_lowercase())),
        "no_refusal" => CheckOutcome::of(!is_refusal(response)),
        "tool_called" => CheckOutcome::of(was_called(&text, response, tools)),
        _ => CheckOutcome::invalid(format!("there is no operator `{op}`")),
    }
}

/// Scores an answer under a judge. A judge without checks gives 0.
#[must_use]
pub fn score(judge: &Map<String, Value>, response: &str, tools: Tools<'_>) -> RuleScore {
    let checks = judge
        .get("checks")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let mut failed = Vec::new();
    for item in checks {
        let field = |name: &str| item.get(name).cloned().unwrap_or(Value::Null);
        let (op, arg) = (field("op"), field("arg"));
        let outcome = if item.is_object() {
            check(&op, &arg, response, tools)
        } else {
            CheckOutcome::invalid("the check is no object")
        };
        if !outcome.passed {
            failed.push(FailedCheck {
                op,
                arg,
                problem: outcome.problem,
            });
        }
    }
    let (all, passed) = (checks.len(), checks.len() - failed.len());
    RuleScore {
        hard: f64::from(u8::from(all > 0 && failed.is_empty())),
        soft: if all == 0 {
            0.0
        } else {
            passed as f64 / all as f64
        },
        failed,
    }
}

/// What is wrong with a judge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Checks that can never be carried out.
    pub errors: Vec<String>,
    /// Checks that can be carried out and are likely not meant so.
    pub warnings: Vec<String>,
    /// Whether all checks look at the form of an answer only.
    pub shape_only: bool,
}

/// Looks a judge over before it is used.
#[must_use]
pub fn validate(judge: &Value) -> Findings {
    let mut findings = Findings::default();
    let checks = match judge {
        Value::Null => return findings,
        Value::Object(judge) => judge.get("checks").unwrap_or(&Value::Null),
        _ => {
            findings.errors.push("the judge is no object".into());
            return findings;
        }
    };
    let checks = match checks {
        Value::Null => return findings,
        Value::Array(checks) => checks,
        _ => {
            findings.errors.push("`checks` is no list".into());
            return findings;
        }
    };
    for (index, item) in checks.iter().enumerate() {
        validate_check(index + 1, item, &mut findings);
    }
    findings.shape_only = !checks.is_empty()
        && checks.iter().all(|item| {
            item.get("op")
                .and_then(Value::as_str)
                .is_some_and(|op| SHAPE.contains(&op))
        });
    if findings.shape_only && findings.errors.is_empty() {
        findings
            .warnings
            .push("all checks look at the form of the answer only".into());
    }
    findings
}

fn validate_check(number: usize, item: &Value, findings: &mut Findings) {
    let Some(item) = item.as_object() else {
        findings.errors.push(format!("check {number} is no object"));
        return;
    };
    let Some(op) = item.get("op").and_then(Value::as_str) else {
        findings
            .errors
            .push(format!("check {number} has no operator"));
        return;
    };
    let argument = item.get("arg").unwrap_or(&Value::Null);
    let blank = argument.is_null() || strip(&written(argument)).is_empty();
    if NEEDS_ARGUMENT.contains(&op) {
        if blank {
            findings
                .errors
                .push(format!("check {number}: {op} needs an argument"));
        } else if op == "regex"
            && let Err(problem) = pattern::compile(&written(argument))
        {
            findings.errors.push(format!(
                "check {number}: the pattern does not compile: {problem}"
            ));
        }
    } else if op == "max_chars" || op == "min_chars" {
        match char_bound(argument) {
            None => findings.errors.push(format!(
                "check {number}: {argument} is no number of characters"
            )),
            Some(bound) if bound < 0 => findings
                .errors
                .push(format!("check {number}: {bound} is negative")),
            Some(0) if op == "min_chars" => findings
                .warnings
                .push(format!("check {number}: every answer has 0 characters")),
            Some(_) => {}
        }
    } else if op != "no_refusal" {
        findings
            .warnings
            .push(format!("check {number}: there is no operator `{op}`"));
    }
}

/// A bound in characters, as a judge should write it: an integer, a float without fraction, or
/// such a number as text.
#[must_use]
pub fn char_bound(argument: &Value) -> Option<i64> {
    match argument {
        Value::Number(number) => number.as_i64().or_else(|| {
            number
                .as_f64()
                .filter(|float| float.fract() == 0.0)
                .map(|float| float as i64)
        }),
        Value::String(text) => {
            let text = strip(text);
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| text.parse().ok()).flatten()
        }
        _ => None,
    }
}

/// A bound in characters, as a judge may write it: also with a fraction, which is cut off, with
/// `_` between digits, or as a boolean.
fn whole(argument: &Value) -> Option<f64> {
    match argument {
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Value::Number(number) => number.as_f64().map(f64::trunc),
        Value::String(text) => {
            let text = strip(text);
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            let groups = digits
                .split('_')
                .all(|group| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit()));
            if groups {
                text.replace('_', "").parse().ok()
            } else {
                None
            }
        }
        _ => None,
    }
}

/// A line that is a heading with the name at its end, a bold line with the name in it, or starts
/// with the name and a colon.
fn has_section(response: &str, name: &str) -> bool {
    let name = regex::escape(name);
    let blank = r"[\s--\n]";
    let line = format!(
        r"^{blank}{{0,3}}(?:#{{1,6}}(?:[^#\n].*)?{name}|\*\*.*{name}.*\*\*:?){blank}*$|^{blank}*{name}{blank}*:"
    );
    ignoring_case(&line).is_some_and(|line| line.is_match(response))
}

/// A heading line of at most three blanks, one to six `#`, and a blank or nothing, with the name
/// anywhere in it.
fn has_heading_with(response: &str, name: &str) -> bool {
    let name = casefold(name);
    response.split('\n').any(|line| {
        let bare = line.trim_start_matches(' ');
        let text = bare.trim_start_matches('#');
        let (indent, level) = (line.len() - bare.len(), bare.len() - text.len());
        let is_heading = indent <= 3
            && (1..=6).contains(&level)
            && (text.is_empty() || text.starts_with([' ', '\t', '\r']));
        is_heading && casefold(text).contains(&name)
    })
}

fn is_refusal(response: &str) -> bool {
    let mut text = response;
    loop {
        let before = text.len();
        text = text.trim_start_matches(|c: char| {
            c.is_whitespace() || matches!(c, '>' | '-' | '*' | '_' | '#')
        });
        let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() < text.len() && rest.starts_with(['.', ')']) {
            text = &rest[1..];
        }
        if text.len() == before {
            break;
        }
    }
    let start = clip(text, 160).to_lowercase();
    text.is_empty()
        || text.chars().count() < LONGEST_REFUSAL
            && REFUSALS.iter().any(|refusal| start.starts_with(refusal))
}

fn was_called(name: &str, response: &str, tools: Tools<'_>) -> bool {
    match tools {
        Tools::Observed(called) => called.iter().any(|tool| casefold(tool) == casefold(name)),
        Tools::Unobserved => {
            ignoring_case(&format!(r"\btool_call\s*:\s*{}\b", regex::escape(name)))
                .is_some_and(|marker| marker.is_match(response))
        }
    }
}

fn ignoring_case(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern)
        .case_insensitive(true)
        .multi_line(true)
        .build()
        .ok()
}

/// A value as Python writes it into a text, which is how judges of other programs read.
fn written(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn passes(op: &str, arg: &Value, response: &str) -> bool {
        check(&json!(op), arg, response, Tools::Unobserved).passed
    }

    #[test]
    fn a_section_is_on_one_line() {
        assert!(passes(
            "section_present",
            &json!("Risks"),
            "x\n## Key Risks  \r\ny"
        ));
        assert!(!passes("section_present", &json!("Risks"), "##\nRisks"));
        assert!(!passes("section_present", &json!("Risks"), "####### Risks"));
    }

    #[test]
    fn a_check_that_cannot_be_carried_out_fails_and_says_why() {
        for (op, arg) in [
            (json!("mystery"), json!(1)),
            (json!("regex"), json!("[a-")),
            (json!("max_chars"), json!("x")),
            (json!(["x"]), json!(1)),
        ] {
            let outcome = check(&op, &arg, "abc", Tools::Unobserved);
            assert!(!outcome.passed && outcome.problem.is_some(), "{op}");
        }
    }

    #[test]
    fn observed_calls_count_and_claims_do_not() {
        let called = ["Search".to_owned()];
        let tool = |name: &str, tools| {
            check(
                &json!("tool_called"),
                &json!(name),
                "tool_call: edit",
                tools,
            )
            .passed
        };
        assert!(tool("search", Tools::Observed(&called)));
        assert!(!tool("edit", Tools::Observed(&called)));
        assert!(tool("edit", Tools::Unobserved));
    }

    #[test]
    fn the_rationale_names_what_failed() {
        let judge =
            json!({"checks": [{"op": "contains", "arg": "z"}, {"op": "regex", "arg": "("}]});
        let score = score(judge.as_object().unwrap(), "abc", Tools::Unobserved);
        assert_eq!(
            score.rationale(),
            "failed: contains=z, regex=( [unclosed group]"
        );
    }

    proptest! {
        #[test]
        fn a_judge_without_errors_can_be_carried_out(op in "regex|contains|max_chars|min_chars|section_present|tool_called", arg in "\\PC{0,12}", response in "\\PC{0,60}") {
            let judge = json!({"checks": [{"op": op, "arg": arg}]});
            let score = score(judge.as_object().unwrap(), &response, Tools::Unobserved);
            if validate(&judge).errors.is_empty() {
                prop_assert!(score.failed.iter().all(|check| check.problem.is_none()));
            }
        }
    }
}
