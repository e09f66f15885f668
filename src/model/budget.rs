//! The hard limits of a run: calls, tokens, money and time.
//!
//! One [`Budget`] is shared by both roles. Before a call, the most that it can cost is reserved;
//! afterwards the reservation is replaced by what it did cost. So the sum of what was spent and
//! what is still at stake never exceeds a limit, however many calls run at once. When a
//! reservation does not fit only because of other calls that are still running, the call waits
//! for them; when it would not fit even then, it fails with [`CallErrorKind::Budget`], and the
//! message says which limit was reached.
//!
//! Money is kept in whole nanodollars, so that sums are exact.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{CallError, CallErrorKind, ChatModel, ChatReply, ChatRequest, Usage};

/// The limits; an absent one does not limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    /// Calls sent, failed ones that the provider worked for included.
    pub calls: Option<u64>,
    /// Tokens sent and received.
    pub tokens: Option<u64>,
    /// US dollars, by the prices given for each role.
    pub usd: Option<f64>,
    /// Wall time since the budget was made; a call that still runs then is given up.
    pub time: Option<Duration>,
}

/// What a role's tokens cost, in US dollars per million.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Per million prompt tokens.
    pub input: f64,
    /// Per million completion tokens.
    pub output: f64,
}

impl Price {
    /// Rounded up, so that a limit errs on the side of the purse.
    fn nanodollars(self, prompt_tokens: u64, completion_tokens: u64) -> u64 {
        let cost = self.input * prompt_tokens as f64 + self.output * completion_tokens as f64;
        (cost * 1000.0).ceil() as u64
    }
}

/// What was spent so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Calls sent.
    pub calls: u64,
    /// Tokens sent and received.
    pub tokens: u64,
    /// US dollars; 0 when no prices are known.
    pub usd: f64,
    /// Wall time since the budget was made.
    #[serde(skip)]
    pub time: Duration,
}

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reached {
    /// [`Limits::calls`].
    Calls,
    /// [`Limits::tokens`].
    Tokens,
    /// [`Limits::usd`].
    Usd,
    /// [`Limits::time`].
    Time,
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reached::Calls => "calls",
            Reached::Tokens => "tokens",
            Reached::Usd => "usd",
            Reached::Time => "time",
        })
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    calls: u64,
    tokens: u64,
    nanodollars: u64,
}

impl Amount {
    fn plus(self, other: Amount) -> Amount {
        Amount {
            calls: self.calls.saturating_add(other.calls),
            tokens: self.tokens.saturating_add(other.tokens),
            nanodollars: self.nanodollars.saturating_add(other.nanodollars),
        }
    }

    fn minus(self, other: Amount) -> Amount {
        Amount {
            calls: self.calls.saturating_sub(other.calls),
            tokens: self.tokens.saturating_sub(other.tokens),
            nanodollars: self.nanodollars.saturating_sub(other.nanodollars),
        }
    }
}

#[derive(Debug, Default)]
struct Books {
    spent: Amount,
    reserved: Amount,
    reached: Option<Reached>,
}

/// The account of a run.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    started: Instant,
    books: Mutex<Books>,
    settled: Notify,
}

impl Budget {
    /// An account with nothing spent; its wall time starts now.
    #[must_use]
    pub fn new(limits: Limits) -> Budget {
        Budget {
            limits,
            started: Instant::now(),
            books: Mutex::default(),
            settled: Notify::new(),
        }
    }

    /// What was spent so far, without what running calls have reserved.
    #[must_use]
    pub fn spent(&self) -> Spent {
        let spent = self.lock().spent;
        Spent {
            calls: spent.calls,
            tokens: spent.tokens,
            usd: spent.nanodollars as f64 / 1e9,
            time: self.started.elapsed(),
        }
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The limit that a call first ran into, once one has.
    #[must_use]
    pub fn reached(&self) -> Option<Reached> {
        self.lock().reached
    }

    /// Books what an interrupted run had already spent.
    pub fn preload(&self, usage: Usage, price: Price) {
        let mut books = self.lock();
        books.spent = books.spent.plus(amount(usage, price));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deadline(&self) -> Option<Instant> {
        self.limits
            .time
            .and_then(|time| self.started.checked_add(time))
    }

    /// The first limit that `sum` exceeds.
    fn exceeded(&self, sum: Amount) -> Option<Reached> {
        let Limits {
            calls, tokens, usd, ..
        } = self.limits;
        if calls.is_some_and(|limit| sum.calls > limit) {
            Some(Reached::Calls)
        } else if tokens.is_some_and(|limit| sum.tokens > limit) {
            Some(Reached::Tokens)
        } else if usd.is_some_and(|limit| sum.nanodollars as f64 > limit * 1e9) {
            Some(Reached::Usd)
        } else {
            None
        }
    }

    fn refuse(&self, books: &mut Books, reached: Reached, wanted: Amount) -> CallError {
        books.reached.get_or_insert(reached);
        let spent = books.spent;
        let detail = match reached {
            Reached::Calls => format!(
                "{} of {} calls are made",
                spent.calls,
                self.limits.calls.unwrap_or_default()
            ),
            Reached::Tokens => format!(
                "{} of {} tokens are spent and the next call may need {}",
                spent.tokens,
                self.limits.tokens.unwrap_or_default(),
                wanted.tokens
            ),
            Reached::Usd => format!(
                "{:.4} of {} US dollars are spent and the next call may cost {:.4}",
                spent.nanodollars as f64 / 1e9,
                self.limits.usd.unwrap_or_default(),
                wanted.nanodollars as f64 / 1e9
            ),
            Reached::Time => format!(
                "the {} s that the run may take are over",
                self.limits.time.unwrap_or_default().as_secs()
            ),
        };
        CallError::new(
            CallErrorKind::Budget,
            format!("the budget's `{reached}` limit is reached: {detail}"),
        )
    }

    /// Reserves `wanted`, waiting for running calls when they alone are in the way.
    async fn reserve(&self, wanted: Amount) -> Result<Reservation<'_>, CallError> {
        loop {
            // Registered before the books are read, so that no settlement is missed.
            let mut settled = std::pin::pin!(self.settled.notified());
            settled.as_mut().enable();
            {
                let mut books = self.lock();
                if self.deadline().is_some_and(|end| Instant::now() >= end) {
                    return Err(self.refuse(&mut books, Reached::Time, wanted));
                }
                if let Some(reached) = self.exceeded(books.spent.plus(wanted)) {
                    return Err(self.refuse(&mut books, reached, wanted));
                }
                let at_stake = books.spent.plus(books.reserved);
                if self.exceeded(at_stake.plus(wanted)).is_none() {
                    books.reserved = books.reserved.plus(wanted);
                    return Ok(Reservation {
                        budget: self,
                        reserved: wanted,
                        cost: wanted,
                    });
                }
            }
            match self.deadline() {
                Some(end) => {
                    let _ = tokio::time::timeout_at(end, settled).await;
                }
                None => settled.await,
            }
        }
    }
}

fn amount(usage: Usage, price: Price) -> Amount {
    Amount {
        calls: usage.calls,
        tokens: usage.total_tokens(),
        nanodollars: price.nanodollars(usage.prompt_tokens, usage.completion_tokens),
    }
}

/// What one running call has reserved. Dropping it books `cost` instead; until the true cost is
/// known that is the whole reservation, because a call that was given up may be billed in full.
struct Reservation<'a> {
    budget: &'a Budget,
    reserved: Amount,
    cost: Amount,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut books = self.budget.lock();
        books.reserved = books.reserved.minus(self.reserved);
        books.spent = books.spent.plus(self.cost);
        drop(books);
        self.budget.settled.notify_waiters();
    }
}

/// Charges the calls of one role to a [`Budget`].
pub struct Budgeted {
    inner: Arc<dyn ChatModel>,
    budget: Arc<Budget>,
    price: Price,
}

impl Budgeted {
    /// Charges the calls of `inner`, at `price`, to `budget`.
    #[must_use]
    pub fn new(inner: Arc<dyn ChatModel>, budget: Arc<Budget>, price: Price) -> Budgeted {
        Budgeted {
            inner,
            budget,
            price,
        }
    }
}

impl ChatModel for Budgeted {
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
            let prompt = request.estimated_prompt_tokens();
            let bound = u64::from(self.inner.reply_bound(request));
            let most = Usage {
                calls: 1,
                prompt_tokens: prompt,
                completion_tokens: bound,
                ..Usage::default()
            };
            let mut reservation = self.budget.reserve(amount(most, self.price)).await?;
            let call = self.inner.chat(request);
            let result = match self.budget.deadline() {
                Some(end) => match tokio::time::timeout_at(end, call).await {
                    Ok(result) => result,
                    Err(_) => {
                        let mut books = self.budget.lock();
                        return Err(self.budget.refuse(
                            &mut books,
                            Reached::Time,
                            reservation.reserved,
                        ));
                    }
                },
                None => call.await,
            };
            let cost = match &result {
                Ok(reply) => Some(reply.usage),
                Err(error) => error.usage.or_else(|| assumed_cost(error.kind, prompt)),
            };
            reservation.cost = cost.map_or_else(Amount::default, |usage| amount(usage, self.price));
            result
        })
    }
}

/// What a failed call is charged when the provider did not say: nothing when it refused to work,
/// one call and the prompt when it may have.
fn assumed_cost(kind: CallErrorKind, prompt_tokens: u64) -> Option<Usage> {
    use CallErrorKind as Kind;
    match kind {
        Kind::Unauthorized
        | Kind::NotFound
        | Kind::Rejected
        | Kind::RateLimited
        | Kind::Server
        | Kind::Connection
        | Kind::Budget
        | Kind::Cancelled => None,
        Kind::Refused | Kind::Timeout | Kind::Malformed | Kind::Empty => Some(Usage {
            calls: 1,
            prompt_tokens,
            ..Usage::default()
        }),
    }
}

#[cfg(test)]
mod tests;
