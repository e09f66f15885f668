//! A review by plain prompts, for terminals that cannot draw.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write as _};

use skillopt_staging::{Adoption, Staged, display_safe, one_line};

use super::desk::{Desk, DeskError};
use super::editor;
use super::opened::{Opened, undecided, waits};
use crate::cli::output::Printer;
use crate::cli::staged;

/// What the person wants next.
enum Answer {
    Accept,
    Reject,
    Skip,
    Edit,
    Quit,
}

/// Goes through the proposals; adopts at the end when the person says so.
pub(super) fn review(
    printer: Printer,
    desk: &Desk,
    proposals: &[Staged],
) -> Result<Option<Adoption>, DeskError> {
    let input = io::stdin();
    let mut input = input.lock();
    let waiting: Vec<&Staged> = proposals.iter().filter(|staged| waits(staged)).collect();
    'proposals: for (position, staged) in waiting.iter().enumerate() {
        let mut opened = desk.open(&staged.proposal.id)?;
        printer.line(format!("\n{} of {}", position + 1, waiting.len()));
        staged::show(printer, &opened.staged);
        staged::show_risks(printer, &opened.findings);
        let edits = undecided(&opened.staged);
        let parts: Vec<Option<usize>> = if edits.is_empty() {
            vec![None]
        } else {
            edits.into_iter().map(Some).collect()
        };
        for part in parts {
            match one(printer, desk, &mut opened, part, &mut input)? {
                Step::Next => {}
                Step::NextProposal => continue 'proposals,
                Step::Quit => break 'proposals,
            }
        }
    }
    let ids: Vec<String> = proposals
        .iter()
        .map(|staged| staged.proposal.id.clone())
        .collect();
    let preview = desk.preview(&ids, &[])?;
    for (id, rules) in &preview.held {
        printer.line(format!(
            "{id} is held back: danger {}; see: skillopt-sleep adopt --help",
            rules.join(", ")
        ));
    }
    for (id, reason) in &preview.refused {
        printer.line(format!("{id} cannot be adopted: {reason}"));
    }
    if preview.writes.is_empty() {
        return Ok(None);
    }
    printer.line("\nadopting would write:");
    for write in &preview.writes {
        printer.line(format!(
            "  {} {}",
            write.proposal,
            one_line(&write.real_path.display().to_string())
        ));
        printer.diff(&display_safe(&write.diff));
    }
    let yes =
        ask("adopt now? [y/N] ", &mut input).is_some_and(|answer| answer.eq_ignore_ascii_case("y"));
    if yes {
        desk.adopt(&preview).map(Some)
    } else {
        Ok(None)
    }
}

enum Step {
    Next,
    NextProposal,
    Quit,
}

/// Asks about one edit, or the whole proposal, until there is an answer that can be stored.
fn one(
    printer: Printer,
    desk: &Desk,
    opened: &mut Opened,
    edit: Option<usize>,
    input: &mut impl BufRead,
) -> Result<Step, DeskError> {
    let id = opened.id().to_owned();
    let what = edit.map_or_else(|| id.clone(), |edit| format!("{id} edit {edit}"));
    loop {
        let question = format!("{what}: [a]ccept [r]eject [s]kip [e]dit the text [q]uit? ");
        let stored = match answer(&question, input) {
            None | Some(Answer::Quit) => return Ok(Step::Quit),
            Some(Answer::Skip) => return Ok(Step::Next),
            Some(Answer::Accept) => {
                let edits: BTreeSet<usize> =
                    edit.map_or_else(|| opened.wanted(), |edit| [edit].into());
                desk.accept_too(&id, &edits)
            }
            Some(Answer::Reject) => {
                let reason = ask("why? (may be empty) ", input).unwrap_or_default();
                desk.reject(&id, edit.map(|edit| [edit].into()).as_ref(), &reason)
            }
            Some(Answer::Edit) => {
                let text = desk.text_to_edit(opened);
                let edited = editor::name(true).and_then(|name| editor::edit(&name, &text));
                match edited {
                    Ok(None) => {
                        printer.note("nothing was changed");
                        continue;
                    }
                    Ok(Some(text)) => match desk.accept_text(&id, text) {
                        Ok(now) => {
                            staged::show_risks(printer, &now.findings);
                            printer.note(format!("{id}: accepted with your text"));
                            return Ok(Step::NextProposal);
                        }
                        Err(error) => Err(error),
                    },
                    Err(error) => Err(error.into()),
                }
            }
        };
        match stored {
            Ok(now) => {
                *opened = now;
                return Ok(Step::Next);
            }
            Err(error) => printer.note(error.to_string()),
        }
    }
}

fn answer(question: &str, input: &mut impl BufRead) -> Option<Answer> {
    loop {
        let reply = ask(question, input)?;
        return Some(match reply.as_str() {
            "a" | "accept" => Answer::Accept,
            "r" | "reject" => Answer::Reject,
            "s" | "skip" | "" => Answer::Skip,
            "e" | "edit" => Answer::Edit,
            "q" | "quit" => Answer::Quit,
            _ => continue,
        });
    }
}

/// A line from the person; none at the end of the input.
fn ask(question: &str, input: &mut impl BufRead) -> Option<String> {
    let mut output = io::stdout();
    let _ = write!(output, "{question}").and_then(|()| output.flush());
    let mut line = String::new();
    match input.read_line(&mut line) {
        Ok(length) if length > 0 => Some(line.trim().to_owned()),
        _ => None,
    }
}
