//! How many calls of a role run at once, and when none may start.
//!
//! Each role has one [`Limit`]. It starts at the configured width and adapts as TCP does: every
//! success widens it a little, up to the configured width; a rate limit halves it, once per burst
//! of refusals. When the provider says how long to wait, the whole role pauses that long: calls
//! that started meanwhile would only be refused too.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::retry::LONGEST_RETRY_AFTER;
use super::{CallError, CallErrorKind, ChatModel, ChatReply, ChatRequest};

#[derive(Debug)]
struct State {
    /// The current width; its whole part counts.
    width: f64,
    running: usize,
    paused_until: Option<Instant>,
    /// When the width was last halved: refusals of calls that started before are the same burst.
    narrowed: Option<Instant>,
}

/// The gate through which the calls of one role pass.
#[derive(Debug)]
pub struct Limit {
    widest: usize,
    state: Mutex<State>,
    changed: Notify,
}

impl Limit {
    /// At most `widest` calls at once, and at least 1.
    #[must_use]
    pub fn new(widest: usize) -> Limit {
        let widest = widest.max(1);
        Limit {
            widest,
            state: Mutex::new(State {
                width: widest as f64,
                running: 0,
                paused_until: None,
                narrowed: None,
            }),
            changed: Notify::new(),
        }
    }

    /// How many calls may run at once right now.
    #[must_use]
    pub fn width(&self) -> usize {
        self.lock().width as usize
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place.
    async fn enter(&self) -> Place<'_> {
        loop {
            let until = {
                let mut state = self.lock();
                let now = Instant::now();
                if state.paused_until.is_some_and(|until| until <= now) {
                    state.paused_until = None;
                }
                if state.paused_until.is_none() && state.running < state.width as usize {
                    state.running += 1;
                    if state.running < state.width as usize {
                        // Wakes the next in line, who may have slept through a pause.
                        self.changed.notify_one();
                    }
                    return Place {
                        limit: self,
                        since: now,
                    };
                }
                state.paused_until
            };
            match until {
                Some(until) => {
                    // Passed on, so that everybody sleeps through the pause and nobody's wake-up is
                    // lost with a call that is given up meanwhile.
                    self.changed.notify_one();
                    tokio::time::sleep_until(until).await;
                }
                None => self.changed.notified().await,
            }
        }
    }

    fn saw(&self, since: Instant, result: &Result<ChatReply, CallError>) {
        let mut state = self.lock();
        match result {
            Ok(_) => {
                state.width = (state.width + 1.0 / state.width).min(self.widest as f64);
            }
            Err(error) if error.kind == CallErrorKind::RateLimited => {
                let now = Instant::now();
                if state.narrowed.is_none_or(|narrowed| since >= narrowed) {
                    state.width = (state.width / 2.0).max(1.0);
                    state.narrowed = Some(now);
                }
                if let Some(asked) = error.retry_after {
                    let until = now + Duration::min(asked, LONGEST_RETRY_AFTER);
                    state.paused_until = state.paused_until.max(Some(until));
                }
            }
            Err(_) => {}
        }
    }
}

/// A place at the gate; leaving it is dropping it, also when the call is given up.
struct Place<'a> {
    limit: &'a Limit,
    since: Instant,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.limit.lock().running -= 1;
        self.limit.changed.notify_one();
    }
}

/// Sends calls through a [`Limit`].
pub struct Limited {
    inner: Arc<dyn ChatModel>,
    limit: Arc<Limit>,
}

impl Limited {
    /// Sends the calls of `inner` through `limit`.
    #[must_use]
    pub fn new(inner: Arc<dyn ChatModel>, limit: Arc<Limit>) -> Limited {
        Limited { inner, limit }
    }
}

impl ChatModel for Limited {
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
            let place = self.limit.enter().await;
            let result = self.inner.chat(request).await;
            self.limit.saw(place.since, &result);
            result
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use futures::future::join_all;

    use super::*;
    use crate::model::testing::{Listed, failure, reply, request};

    fn second() -> Duration {
        Duration::from_secs(1)
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_calls_than_the_width_run_at_once_and_all_finish() {
        let backend = Arc::new(Listed::new(vec![reply("ok")]).taking(second()));
        let model = Limited::new(backend.clone(), Arc::new(Limit::new(3)));
        let start = Instant::now();
        let request = request("x");
        join_all((0..10).map(|_| model.chat(&request))).await;
        assert_eq!(backend.most_running.load(Ordering::SeqCst), 3);
        assert_eq!(start.elapsed().as_secs(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_refusals_halves_the_width_once_and_successes_widen_it_again() {
        let mut results = vec![failure(CallErrorKind::RateLimited); 8];
        results.push(reply("ok"));
        let backend = Arc::new(Listed::new(results).taking(second()));
        let limit = Arc::new(Limit::new(8));
        let model = Limited::new(backend, Arc::clone(&limit));
        let request = request("x");
        join_all((0..8).map(|_| model.chat(&request))).await;
        assert_eq!(limit.width(), 4);
        for _ in 0..100 {
            model.chat(&request).await.unwrap();
        }
        assert_eq!(limit.width(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn retry_after_pauses_the_whole_role_and_then_all_places_fill() {
        let busy = CallError {
            retry_after: Some(Duration::from_secs(30)),
            ..CallError::new(CallErrorKind::RateLimited, "busy")
        };
        let backend = Arc::new(Listed::new(vec![Err(busy), reply("ok")]).taking(second()));
        let model = Limited::new(backend.clone(), Arc::new(Limit::new(4)));
        let start = Instant::now();
        let request = request("x");
        // The fifth and later calls wait without knowing of the pause when they start to.
        join_all((0..8).map(|_| model.chat(&request))).await;
        let elapsed = start.elapsed().as_secs();
        assert!((32..=33).contains(&elapsed), "{elapsed}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_given_up_frees_its_place() {
        let backend = Arc::new(Listed::new(vec![reply("ok")]).taking(Duration::from_secs(60)));
        let model = Limited::new(backend, Arc::new(Limit::new(1)));
        let request = request("x");
        let given_up = tokio::time::timeout(second(), model.chat(&request)).await;
        assert!(given_up.is_err());
        model.chat(&request).await.unwrap();
    }
}
