//! What is counted of sessions: each is looked at once and forgotten.

use skillopt_harvesters::session::Verdict;
use skillopt_harvesters::{Polarity, Session};

use super::interval::Count;

/// Most sessions whose tokens and durations are kept.
const MAX_VALUES: usize = 20_000;

/// The sessions of one side, added up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measures {
    /// All of them.
    pub sessions: usize,
    /// Those that went well, of those of which it is known.
    pub success: Count,
    /// Those in which the person corrected the agent, of all.
    pub corrected: Count,
    /// Those in which a test, linter or build failed, of those that ran any.
    pub failed_check: Count,
    /// Tokens sent and received, those read from a cache left out, of sessions whose log has them.
    pub tokens: Vec<f64>,
    /// Seconds from the first to the last record, of sessions whose log has times.
    pub seconds: Vec<f64>,
}

impl Measures {
    /// Adds a session.
    pub fn add(&mut self, session: &Session) {
        self.sessions += 1;
        match session.outcome.verdict {
            Verdict::Success => self.success.see(true),
            Verdict::Fail | Verdict::Mixed => self.success.see(false),
            Verdict::Unknown => {}
        }
        let mut said = session.feedback().iter();
        self.corrected
            .see(said.any(|said| said.polarity == Polarity::Negative));
        let mut outcomes = session
            .verifications()
            .filter_map(|(_, verification)| verification.passed)
            .peekable();
        if outcomes.peek().is_some() {
            self.failed_check.see(outcomes.any(|passed| !passed));
        }
        if let Some(usage) = session.usage {
            let tokens = usage.input + usage.output + usage.cache_creation;
            keep(&mut self.tokens, tokens as f64);
        }
        if let Some((started, ended)) = session.started.zip(session.ended) {
            keep(
                &mut self.seconds,
                ended.duration_since(started).as_secs_f64(),
            );
        }
    }
}

impl Count {
    fn see(&mut self, yes: bool) {
        self.of += 1;
        self.yes += usize::from(yes);
    }
}

/// Keeps a value that has a logarithm.
fn keep(values: &mut Vec<f64>, value: f64) {
    if value > 0.0 && value.is_finite() && values.len() < MAX_VALUES {
        values.push(value);
    }
}

#[cfg(test)]
mod tests {
    use skillopt_harvesters::Verification;
    use skillopt_harvesters::session::{CommandRun, Feedback, ToolCall, Turn, Usage};

    use super::*;

    #[test]
    fn a_session_counts_where_something_is_known_of_it() {
        let run = |passed: Option<bool>| ToolCall {
            command: Some(CommandRun {
                verification: Some(Verification {
                    passed,
                    ..Verification::default()
                }),
                ..CommandRun::default()
            }),
            ..ToolCall::default()
        };
        let mut session = Session {
            turns: vec![Turn {
                tools: vec![run(Some(true)), run(Some(false))],
                ..Turn::default()
            }],
            feedback: vec![Feedback::default()],
            usage: Some(Usage {
                input: 100,
                output: 10,
                cache_read: 5_000,
                cache_creation: 1,
                ..Usage::default()
            }),
            started: "2026-03-01T11:00:00Z".parse().ok(),
            ended: "2026-03-01T11:01:30Z".parse().ok(),
            ..Session::default()
        };
        session.outcome.verdict = Verdict::Mixed;
        let mut measures = Measures::default();
        measures.add(&session);
        measures.add(&Session::default());
        let count = |yes, of| Count { yes, of };
        assert_eq!(
            measures,
            Measures {
                sessions: 2,
                success: count(0, 1),
                corrected: count(1, 2),
                failed_check: count(1, 1),
                tokens: vec![111.0],
                seconds: vec![90.0],
            }
        );
    }
}
