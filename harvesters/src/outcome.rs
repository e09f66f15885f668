//! How a turn and a session went, as an attentive person would say
//! (session-logs.md, section 11).
//!
//! The last verification of the live branch comes first, then the last feedback, then
//! silence. What the agent claims counts for nothing: "all tests pass" after a failing
//! run is a failure.

use crate::feedback::{self, Polarity};
use crate::redact::{Redacted, cut};
use crate::session::CallStatus;
use crate::session::{
    Feedback, IncidentKind, Outcome, Place, Session, Signal, SignalKind, ToolCall, Turn, TurnEnd,
    Verdict,
};

/// Fills in the outcome of the session and of each of its turns.
pub(crate) fn judge(session: &mut Session) {
    for index in 0..session.turns.len() {
        session.turns[index].outcome = turn_outcome(session, index);
    }
    session.outcome = session_outcome(session);
}

/// The last verification that was measured, and the turn that it was in.
struct Verified {
    turn: usize,
    passed: bool,
    signal: Signal,
}

fn session_outcome(session: &Session) -> Outcome {
    let Some(last) = session.turns.last() else {
        return because(Verdict::Unknown, vec![Signal::default()]);
    };
    if last.end == TurnEnd::ApiError {
        return because(
            Verdict::Fail,
            vec![incident(
                session,
                IncidentKind::ApiError,
                SignalKind::ApiError,
            )],
        );
    }
    let verified = session
        .turns
        .iter()
        .enumerate()
        .rev()
        .find_map(|(index, turn)| verified_in(turn, index));
    let verdict = session.feedback.last();
    let judged = verdict.map(feedback_signal);
    if let (Some(said), Some(signal)) = (verdict, &judged)
        && signal.kind == SignalKind::Reverted
        && verified
            .as_ref()
            .is_none_or(|found| !found.passed || found.turn <= said.about_turn)
    {
        return because(Verdict::Fail, vec![signal.clone()]);
    }
    match (verified, verdict, judged) {
        (Some(found), said, judged) => after_verification(session, found, said.zip(judged)),
        (None, Some(said), Some(signal)) => after_feedback(session, said, signal),
        _ => silence(session, last),
    }
}

/// There was a verification; only later feedback can put it in doubt.
fn after_verification(
    session: &Session,
    found: Verified,
    said: Option<(&Feedback, Signal)>,
) -> Outcome {
    let later = said.filter(|(said, _)| said.about_turn >= found.turn);
    match (found.passed, later) {
        (true, Some((said, signal))) if said.polarity == Polarity::Negative => {
            if rebutted(session, said) {
                return because(
                    Verdict::Success,
                    vec![
                        found.signal,
                        Signal {
                            kind: SignalKind::Rebutted,
                            ..signal
                        },
                    ],
                );
            }
            because(Verdict::Mixed, vec![signal, found.signal])
        }
        (true, later) => because(
            Verdict::Success,
            std::iter::once(found.signal)
                .chain(later.map(|(_, signal)| signal))
                .collect(),
        ),
        (false, Some((said, signal))) if said.polarity == Polarity::Positive => {
            because(Verdict::Mixed, vec![found.signal, signal])
        }
        (false, _) if only_questions(session) => because(Verdict::Unknown, vec![found.signal]),
        (false, later) => because(
            Verdict::Fail,
            std::iter::once(found.signal)
                .chain(later.map(|(_, signal)| signal))
                .collect(),
        ),
    }
}

/// Nothing was verified, but the person said something.
fn after_feedback(session: &Session, said: &Feedback, signal: Signal) -> Outcome {
    if said.polarity == Polarity::Positive {
        return because(Verdict::Success, vec![signal]);
    }
    // The turn that the complaint started is the one after the turn that it is about.
    let answered = session.turns[said.about_turn..]
        .iter()
        .skip(1)
        .any(|turn| turn.end == TurnEnd::Answered);
    let worked = session.turns.iter().skip(said.about_turn + 1).any(did_work);
    let verdict = match (answered, worked) {
        (false, _) => Verdict::Fail,
        (true, true) => Verdict::Mixed,
        (true, false) if session.calls().next().is_none() => Verdict::Unknown,
        (true, false) => Verdict::Mixed,
    };
    because(verdict, vec![signal])
}

/// Nothing was verified and nothing said.
fn silence(session: &Session, last: &Turn) -> Outcome {
    let any_work = session.turns.iter().any(did_work);
    if session.count(IncidentKind::Denial) > 0 && !any_work {
        return because(
            Verdict::Fail,
            vec![incident(session, IncidentKind::Denial, SignalKind::Denied)],
        );
    }
    if last.end == TurnEnd::Interrupted {
        let signal = incident(session, IncidentKind::Interruption, SignalKind::Interrupted);
        return because(Verdict::Unknown, vec![signal]);
    }
    let done = session
        .turns
        .iter()
        .find(|turn| is_request(turn) && did_work(turn));
    match done {
        Some(turn) if last.end == TurnEnd::Answered => {
            because(Verdict::Success, vec![work_signal(turn)])
        }
        _ => because(Verdict::Unknown, vec![Signal::default()]),
    }
}

/// How one turn went: its own verification, else what was said about it, else its end.
fn turn_outcome(session: &Session, index: usize) -> Outcome {
    let turn = &session.turns[index];
    let said = session
        .feedback
        .iter()
        .find(|said| said.about_turn == index);
    let verified = verified_in(turn, index);
    match (verified, said) {
        (Some(found), Some(said)) => {
            let agrees = found.passed == (said.polarity == Polarity::Positive);
            let verdict = match (agrees, found.passed) {
                (false, _) => Verdict::Mixed,
                (true, true) => Verdict::Success,
                (true, false) => Verdict::Fail,
            };
            because(verdict, vec![found.signal, feedback_signal(said)])
        }
        (Some(found), None) => because(
            if found.passed {
                Verdict::Success
            } else {
                Verdict::Fail
            },
            vec![found.signal],
        ),
        (None, Some(said)) => {
            let good = said.polarity == Polarity::Positive;
            because(
                if good {
                    Verdict::Success
                } else {
                    Verdict::Fail
                },
                vec![feedback_signal(said)],
            )
        }
        (None, None) => match turn.end {
            TurnEnd::ApiError => because(
                Verdict::Fail,
                vec![Signal {
                    kind: SignalKind::ApiError,
                    ..Signal::default()
                }],
            ),
            TurnEnd::Answered if is_request(turn) && did_work(turn) => {
                because(Verdict::Success, vec![work_signal(turn)])
            }
            _ => because(Verdict::Unknown, vec![Signal::default()]),
        },
    }
}

/// The last measured verification of a turn.
fn verified_in(turn: &Turn, index: usize) -> Option<Verified> {
    turn.tools.iter().rev().find_map(|call| {
        let command = call.command.as_ref()?;
        let passed = command.verification.as_ref()?.passed?;
        let kind = if passed {
            SignalKind::VerificationPassed
        } else {
            SignalKind::VerificationFailed
        };
        Some(Verified {
            turn: index,
            passed,
            signal: signal(kind, &command.text, call.place),
        })
    })
}

/// The signal of a piece of feedback.
fn feedback_signal(said: &Feedback) -> Signal {
    let kind = match said.polarity {
        Polarity::Positive => SignalKind::PositiveFeedback,
        Polarity::Negative if feedback::asks_revert(&said.text) => SignalKind::Reverted,
        Polarity::Negative => SignalKind::NegativeFeedback,
    };
    signal(kind, &said.text, said.place)
}

/// Whether the agent answered a complaint by showing that it was unfounded.
fn rebutted(session: &Session, said: &Feedback) -> bool {
    session.turns.get(said.about_turn + 1).is_some_and(|turn| {
        turn.tools.iter().all(|call| call.edits.is_empty())
            && turn
                .answer
                .as_ref()
                .is_some_and(|answer| feedback::rebuts(&answer.text))
    })
}

/// Whether nothing was asked for but answers, and nothing changed.
fn only_questions(session: &Session) -> bool {
    session
        .prompts()
        .all(|prompt| feedback::is_question(&prompt.text))
        && session.calls().all(|call| call.edits.is_empty())
}

/// Whether a turn was asked for work.
fn is_request(turn: &Turn) -> bool {
    turn.prompts
        .iter()
        .any(|prompt| prompt.kind.by_person() && !feedback::is_question(&prompt.text))
}

/// Whether something was changed or run in a turn, without error.
fn did_work(turn: &Turn) -> bool {
    turn.tools.iter().any(works)
}

fn works(call: &ToolCall) -> bool {
    let edited = call.status == CallStatus::Ok && !call.edits.is_empty();
    let ran = call
        .command
        .as_ref()
        .is_some_and(|command| command.exit_code.or(command.late_exit_code) == Some(0));
    edited || ran
}

fn work_signal(turn: &Turn) -> Signal {
    turn.tools
        .iter()
        .find(|call| works(call))
        .map(|call| signal(SignalKind::WorkDone, &call.name, call.place))
        .unwrap_or_default()
}

fn incident(session: &Session, kind: IncidentKind, meaning: SignalKind) -> Signal {
    session
        .incidents
        .iter()
        .rev()
        .find(|incident| incident.kind == kind)
        .map(|incident| signal(meaning, &incident.detail, incident.place))
        .unwrap_or(Signal {
            kind: meaning,
            ..Signal::default()
        })
}

fn signal(kind: SignalKind, detail: &Redacted, place: Place) -> Signal {
    const LONGEST: usize = 200;
    Signal {
        kind,
        detail: detail.part(|detail| cut(detail, LONGEST)),
        place,
    }
}

fn because(verdict: Verdict, signals: Vec<Signal>) -> Outcome {
    Outcome { verdict, signals }
}
