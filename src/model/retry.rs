//! Tries again what may pass by itself.
//!
//! Transient failures (busy, not reached, timed out) are tried up to [`Policy::attempts`] times in
//! all, with exponentially growing, jittered waits, or as long as the provider asked for. An empty
//! or malformed answer is drawn once more: a sampled model may well do better, but a series of
//! paid draws is not worth it. A server that has never answered is tried twice, so that a wrong
//! URL is reported in a second and not in half a minute. Everything else fails at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use futures::future::BoxFuture;

use super::{CallError, CallErrorKind, ChatModel, ChatReply, ChatRequest, Usage};

/// The longest wait that a provider's `Retry-After` is followed for; a day-long one would keep a
/// night hanging.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

/// How often, and how patiently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Attempts in all, the first included; at least 1.
    pub attempts: u32,
    /// The first wait, before jitter.
    pub first_wait: Duration,
    /// The longest wait, before jitter.
    pub longest_wait: Duration,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            attempts: 5,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(30),
        }
    }
}

/// Retries the calls of the model within.
pub struct Retry {
    inner: Arc<dyn ChatModel>,
    policy: Policy,
    /// Whether the server ever answered anything at all.
    reached: AtomicBool,
}

impl Retry {
    /// Retries the calls of `inner` by `policy`.
    #[must_use]
    pub fn new(inner: Arc<dyn ChatModel>, policy: Policy) -> Retry {
        Retry {
            inner,
            policy,
            reached: AtomicBool::new(false),
        }
    }

    /// How many attempts this failure is worth in all.
    fn worth(&self, kind: CallErrorKind) -> u32 {
        if kind == CallErrorKind::Connection && !self.reached.load(Ordering::Relaxed) {
            self.policy.attempts.min(2)
        } else if kind.is_transient() {
            self.policy.attempts
        } else if kind.deserves_second_draw() {
            self.policy.attempts.min(2)
        } else {
            1
        }
    }
}

impl ChatModel for Retry {
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
            let attempts = AtomicU32::new(0);
            // What failed attempts cost goes to the call that they were made for.
            let lost = std::sync::Mutex::new(Usage::default());
            let attempt = || async {
                attempts.fetch_add(1, Ordering::Relaxed);
                let result = self.inner.chat(request).await;
                let kind = result.as_ref().err().map(|error| error.kind);
                if !matches!(
                    kind,
                    Some(
                        CallErrorKind::Connection | CallErrorKind::Timeout | CallErrorKind::Budget
                    )
                ) {
                    self.reached.store(true, Ordering::Relaxed);
                }
                if let Err(CallError {
                    usage: Some(usage), ..
                }) = &result
                    && let Ok(mut lost) = lost.lock()
                {
                    *lost += *usage;
                }
                result
            };
            let result = attempt
                .retry(
                    ExponentialBuilder::default()
                        .with_min_delay(self.policy.first_wait)
                        .with_max_delay(self.policy.longest_wait)
                        .with_max_times(self.policy.attempts.saturating_sub(1) as usize)
                        .with_jitter(),
                )
                .when(|error| attempts.load(Ordering::Relaxed) < self.worth(error.kind))
                .adjust(|error, wait| {
                    let asked = error
                        .retry_after
                        .map(|asked| asked.min(LONGEST_RETRY_AFTER));
                    wait.map(|wait| asked.unwrap_or(wait))
                })
                .notify(|error, wait| {
                    tracing::warn!(%error, ?wait, stage = request.stage, "trying again");
                })
                .await;
            let lost = lost.lock().map(|lost| *lost).unwrap_or_default();
            let attempts = attempts.load(Ordering::Relaxed);
            match result {
                Ok(mut reply) => {
                    // One finished call, however many attempts it took.
                    reply.usage += Usage { calls: 0, ..lost };
                    Ok(reply)
                }
                Err(mut error) => {
                    if attempts > 1 {
                        error.message = format!("{} ({attempts} attempts)", error.message);
                    }
                    if lost != Usage::default() {
                        error.usage = Some(lost);
                    }
                    Err(error)
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::model::testing::{Listed, failure, reply, request};

    async fn run(
        results: Vec<Result<ChatReply, CallError>>,
    ) -> (Result<ChatReply, CallError>, usize, Duration) {
        let backend = Arc::new(Listed::new(results));
        let model = Retry::new(backend.clone(), Policy::default());
        let start = Instant::now();
        let result = model.chat(&request("x")).await;
        (result, backend.calls(), start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_server_is_tried_again_with_growing_waits() {
        let (result, calls, waited) = run(vec![
            failure(CallErrorKind::Server),
            failure(CallErrorKind::Timeout),
            reply("ok"),
        ])
        .await;
        assert_eq!(result.unwrap().text, "ok");
        assert_eq!(calls, 3);
        assert!(waited >= Duration::from_secs(3), "{waited:?}");
        assert!(waited <= Duration::from_secs(6), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_are_bounded_and_counted_in_the_message() {
        let (result, calls, _) = run(vec![failure(CallErrorKind::Server)]).await;
        assert_eq!(calls, 5);
        assert!(result.unwrap_err().message.ends_with("(5 attempts)"));
    }

    #[tokio::test(start_paused = true)]
    async fn retry_after_is_followed_and_capped() {
        let asked = |seconds| {
            Err(CallError {
                retry_after: Some(Duration::from_secs(seconds)),
                ..CallError::new(CallErrorKind::RateLimited, "busy")
            })
        };
        let (_, _, waited) = run(vec![asked(17), reply("ok")]).await;
        assert_eq!(waited.as_secs(), 17);
        let (_, _, waited) = run(vec![asked(86_400), reply("ok")]).await;
        assert_eq!(waited.as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_pass_is_not_tried_again() {
        for kind in [
            CallErrorKind::Unauthorized,
            CallErrorKind::NotFound,
            CallErrorKind::Rejected,
            CallErrorKind::Refused,
            CallErrorKind::Budget,
            CallErrorKind::Cancelled,
        ] {
            let (_, calls, waited) = run(vec![failure(kind)]).await;
            assert_eq!((calls, waited), (1, Duration::ZERO), "{kind:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_answer_is_drawn_once_more_and_its_cost_is_kept() {
        let empty = || {
            Err(CallError {
                usage: Some(Usage {
                    calls: 1,
                    prompt_tokens: 3,
                    ..Usage::default()
                }),
                ..CallError::new(CallErrorKind::Empty, "nothing")
            })
        };
        let (result, calls, _) = run(vec![empty(), empty(), empty()]).await;
        assert_eq!(calls, 2);
        assert_eq!(result.unwrap_err().usage.unwrap().prompt_tokens, 6);
        let (result, ..) = run(vec![empty(), reply("ok")]).await;
        let usage = result.unwrap().usage;
        assert_eq!((usage.calls, usage.prompt_tokens), (1, 13));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answered_is_tried_twice() {
        let (_, calls, _) = run(vec![failure(CallErrorKind::Connection)]).await;
        assert_eq!(calls, 2);
        let (_, calls, _) = run(vec![
            failure(CallErrorKind::Server),
            failure(CallErrorKind::Connection),
        ])
        .await;
        assert_eq!(calls, 5);
    }
}
