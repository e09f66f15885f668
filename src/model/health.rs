//! Stops a run whose model cannot answer at all.
//!
//! A wrong URL, a refused key or a model that is not there fails every call. Without this, a run
//! would try each of hundreds of items, find none measured, and end hours later with nothing.
//! [`Health`] watches the outcome of finished calls and trips:
//!
//! - at once, when the very first calls fail in a way that only a person can mend
//!   ([`CallErrorKind::is_fatal`]);
//! - when nothing has succeeded yet and [`EARLY`] calls in a row failed alike;
//! - when, later, [`LATE`] calls in a row failed alike: the provider went away, or the key was
//!   revoked in the middle of the night.
//!
//! Once tripped, every later call fails at once with the same cause, and whoever runs the calls
//! asks [`Health::tripped`] and stops, so that the cause is said once.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;

use super::{CallError, CallErrorKind, ChatModel, ChatReply, ChatRequest};

/// How many failures in a row trip when nothing has succeeded yet.
pub const EARLY: u32 = 5;

/// How many failures in a row trip after a success.
pub const LATE: u32 = 20;

#[derive(Debug, Default)]
struct State {
    succeeded: bool,
    alike: u32,
    last: Option<CallErrorKind>,
    tripped: Option<CallError>,
}

/// The breaker of one role.
#[derive(Debug, Default)]
pub struct Health {
    state: Mutex<State>,
}

impl Health {
    /// The failure that makes going on useless, once there is one.
    #[must_use]
    pub fn tripped(&self) -> Option<CallError> {
        self.lock().tripped.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn saw(&self, result: &Result<ChatReply, CallError>) {
        let mut state = self.lock();
        match result {
            Ok(_) => {
                state.succeeded = true;
                state.alike = 0;
                state.last = None;
            }
            // These say something about the run, nothing about the model.
            Err(error)
                if matches!(error.kind, CallErrorKind::Budget | CallErrorKind::Cancelled) => {}
            Err(error) => {
                state.alike = if state.last == Some(error.kind) {
                    state.alike + 1
                } else {
                    1
                };
                state.last = Some(error.kind);
                let enough = if state.succeeded {
                    state.alike >= LATE
                } else {
                    error.kind.is_fatal() || state.alike >= EARLY
                };
                if enough && state.tripped.is_none() {
                    tracing::error!(cause = %error, "the model cannot be used; no more calls are made");
                    state.tripped = Some(CallError {
                        usage: None,
                        retry_after: None,
                        ..error.clone()
                    });
                }
            }
        }
    }
}

/// Passes calls through while [`Health`] has not tripped.
pub struct Guarded {
    inner: Arc<dyn ChatModel>,
    health: Arc<Health>,
}

impl Guarded {
    /// Watches `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn ChatModel>, health: Arc<Health>) -> Guarded {
        Guarded { inner, health }
    }
}

impl ChatModel for Guarded {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn fingerprint(&self) -> String {
        self.inner.fingerprint()
    }

    fn reply_bound(&self, request: &ChatRequest) -> u32 {
        self.inner.reply_bound(request)
    }

    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, CallError>> {
        Box::pin(async move {
            if let Some(cause) = self.health.tripped() {
                return Err(cause);
            }
            let result = self.inner.chat(request).await;
            self.health.saw(&result);
            result
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{Listed, failure, reply, request};

    async fn calls_until_tripped(results: Vec<Result<ChatReply, CallError>>, most: usize) -> usize {
        let backend = Arc::new(Listed::new(results));
        let health = Arc::new(Health::default());
        let model = Guarded::new(backend.clone(), Arc::clone(&health));
        for _ in 0..most {
            let _ = model.chat(&request("x")).await;
        }
        if health.tripped().is_some() {
            assert!(model.chat(&request("x")).await.is_err());
        }
        backend.calls()
    }

    #[tokio::test]
    async fn a_refused_key_trips_on_the_first_call() {
        let calls = calls_until_tripped(vec![failure(CallErrorKind::Unauthorized)], 30).await;
        assert_eq!(calls, 1);
    }

    #[tokio::test]
    async fn five_failures_alike_trip_when_nothing_ever_worked() {
        let calls = calls_until_tripped(vec![failure(CallErrorKind::Empty)], 30).await;
        assert_eq!(calls, 5);
    }

    #[tokio::test]
    async fn after_a_success_it_takes_twenty() {
        let calls =
            calls_until_tripped(vec![reply("a"), failure(CallErrorKind::NotFound)], 30).await;
        assert_eq!(calls, 21);
    }

    #[tokio::test]
    async fn mixed_failures_and_an_exhausted_budget_do_not_trip() {
        let mixed = (0..15).flat_map(|_| {
            [
                failure(CallErrorKind::Empty),
                failure(CallErrorKind::Budget),
                failure(CallErrorKind::Server),
            ]
        });
        assert_eq!(calls_until_tripped(mixed.collect(), 45).await, 45);
    }
}
