//! Verification: commands that run tests, a linter, a type checker or a build, and
//! whether they passed (session-logs.md, section 11).
//!
//! Two questions, asked apart. What was run? [`programs`] knows the tools, wherever in
//! a chain and behind whatever wrapper they stand. Did it pass? The exit code tells
//! only if it is the command's own; when a pipe or `|| true` hides it, the output is
//! read, and if that says nothing the answer is unknown.

mod output;
mod programs;
mod table;
mod wrappers;

use serde::{Deserialize, Serialize};

use crate::redact::{Redacted, Redactor};
use crate::shell::{Join, Step};

/// What a command verifies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerificationKind {
    /// Tests.
    #[default]
    Test,
    /// A linter or formatter in checking mode.
    Lint,
    /// A type checker or compiler front end.
    Types,
    /// A build.
    Build,
    /// A project's own check script.
    Check,
}

/// One verification and its verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Verification {
    /// What was verified.
    pub kind: VerificationKind,
    /// The program or script that verified it (`pytest`, `npm test`).
    pub tool: Redacted,
    /// Whether it passed; none when it was not measured.
    pub passed: Option<bool>,
    /// The shell's exit code is not the verification's own, so the output was read.
    pub masked: bool,
    /// Lines of the output that name what failed, at most ten.
    pub failing: Vec<Redacted>,
}

/// What is known of a command's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With this code.
    Code(i32),
    /// By itself, with a code that the log does not have.
    Unknown,
    /// Not by itself: interrupted, refused, timed out, still running.
    No,
}

/// Whose exit code the shell reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// The verification's.
    Own,
    /// The verification's if it is 0, else somebody's in the chain.
    OwnIfZero,
    /// Another command's.
    Masked,
    /// Nobody's: it runs in the background.
    Never,
}

/// The verification in a command line, with its verdict. Words without their quotes and
/// lines without their colours are redacted again: what held a secret apart is gone.
pub(crate) fn judge(
    command: &str,
    steps: &[Step],
    ended: Ended,
    output: &str,
    redactor: &Redactor,
) -> Option<Verification> {
    let (index, program) = steps.iter().enumerate().rev().find_map(|(index, step)| {
        programs::recognise(&step.words).map(|program| (index, program))
    })?;
    let exit = whose_exit(steps, index);
    let printed = printed_code(steps, index, output).filter(|_| exit == Exit::Masked);
    // The shell could not start it: nothing was verified.
    let unstarted = exit == Exit::Own && matches!(ended, Ended::Code(126 | 127));
    if unstarted || matches!(printed, Some(126 | 127)) {
        return None;
    }
    let broken_wrapper = command.contains("PIPESTATUS") && output.contains("ad substitution");
    let passed = match (ended, exit) {
        (Ended::No, _) | (_, Exit::Never) => None,
        (_, Exit::Masked) if printed.is_some() => printed.map(|code| code == 0),
        (Ended::Unknown, _) | (_, Exit::Masked) => output::verdict(output),
        (Ended::Code(_), _) if broken_wrapper => output::verdict(output),
        (Ended::Code(0), _) => Some(true),
        (Ended::Code(_), Exit::Own) => Some(false),
        (Ended::Code(_), Exit::OwnIfZero) => output::verdict(output),
    };
    let failing = if passed == Some(false) {
        output::failing_lines(output)
            .into_iter()
            .map(|line| redactor.redacted(line))
            .collect()
    } else {
        Vec::new()
    };
    Some(Verification {
        kind: program.kind,
        tool: redactor.redacted(program.name),
        passed,
        masked: exit == Exit::Masked,
        failing,
    })
}

/// Whose exit code is reported when step `index` is the one of interest.
fn whose_exit(steps: &[Step], index: usize) -> Exit {
    let sets = |flag: char, option: &str| {
        steps[..index].iter().any(|step| {
            step.words.first().is_some_and(|word| word == "set")
                && step
                    .words
                    .iter()
                    .any(|word| word == option || word.starts_with('-') && word.contains(flag))
        })
    };
    let pipefail = steps
        .iter()
        .any(|step| step.words.iter().any(|word| word == "pipefail"));
    let stops_at_errors = sets('e', "errexit");
    let hands_on = steps[index..].iter().any(hands_on_status);
    let mut exit = Exit::Own;
    for (offset, step) in steps[index..].iter().enumerate() {
        let next = steps.get(index + offset + 1);
        match step.join {
            Join::End => break,
            Join::Background => return Exit::Never,
            _ if hands_on => return Exit::Own,
            Join::Pipe if !pipefail => return Exit::Masked,
            Join::Pipe => {}
            Join::And => exit = Exit::OwnIfZero,
            Join::Or => match next {
                Some(next) if fails_on(next) => {
                    return if in_loop(steps, index) {
                        Exit::Own
                    } else {
                        exit
                    };
                }
                _ => return Exit::Masked,
            },
            Join::Then => {
                let ends_block = steps[index + offset + 1..].iter().all(|step| {
                    step.words.len() == 1
                        && matches!(step.words[0].as_str(), "done" | "fi" | "}" | "esac")
                });
                let decided = stops_at_errors || ends_block && !in_loop(steps, index);
                if !decided {
                    return Exit::Masked;
                }
                if !ends_block {
                    exit = Exit::OwnIfZero;
                }
            }
        }
    }
    exit
}

/// The code of a verification that a command after it printed: `pytest; echo "exit: $?"`,
/// `pytest | tail -3; echo ${PIPESTATUS[0]}`.
fn printed_code(steps: &[Step], index: usize, output: &str) -> Option<i32> {
    let end = index
        + steps[index..]
            .iter()
            .position(|step| step.join != Join::Pipe)?;
    let echo = steps
        .get(end + 1)
        .filter(|_| steps[end].join == Join::Then)?;
    let (program, words) = echo.words.split_first()?;
    let said = words.join(" ");
    let mark = if end > index {
        "${PIPESTATUS[0]}"
    } else {
        "$?"
    };
    let (before, after) = said.split_once(mark).filter(|_| program == "echo")?;
    output.lines().rev().find_map(|line| {
        let code = line.strip_prefix(before)?.strip_suffix(after)?;
        code.trim().parse().ok()
    })
}

/// `exit $?`, `exit ${PIPESTATUS[0]}`, `exit $status`: hands the code on.
fn hands_on_status(step: &Step) -> bool {
    matches!(step.words.as_slice(), [exit, code] if (exit == "exit" || exit == "return") && code.starts_with('$'))
}

/// What follows `||` keeps the failure visible.
fn fails_on(step: &Step) -> bool {
    match step.words.first().map(String::as_str) {
        Some("exit" | "return") => step.words.get(1).is_none_or(|code| code != "0"),
        Some("false") => true,
        _ => false,
    }
}

/// Whether the step is in the body of a loop: then only the last round's code shows.
fn in_loop(steps: &[Step], index: usize) -> bool {
    steps[..=index].iter().any(|step| {
        step.words
            .first()
            .is_some_and(|word| matches!(word.as_str(), "for" | "while" | "until"))
    }) && steps[index..]
        .iter()
        .any(|step| step.words.first().is_some_and(|word| word == "done"))
}

#[cfg(test)]
mod tests;
