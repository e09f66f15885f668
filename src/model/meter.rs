//! What calls cost, by role and stage.
//!
//! One [`Meter`] counts for both roles of a run; [`Metered`] books every call that passes through
//! it. Whoever wants the cost of a part (a step, an epoch) takes a [`Tally`] before and after and
//! asks for the difference. Replies that the journal gave are booked like fresh ones, so that a
//! resumed run reports the same figures as an undisturbed one; what was really spent is the
//! budget's business.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use super::{CallError, ChatModel, ChatReply, ChatRequest, Role, Usage};

/// Usage by role and stage: a snapshot of a [`Meter`], or the difference of two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Role, then stage.
    pub roles: BTreeMap<Role, BTreeMap<String, Usage>>,
}

impl Tally {
    /// What was added since `earlier`. Stages that are known now are kept even when nothing was
    /// added, because run records list them with zeros (engine 23).
    #[must_use]
    pub fn since(&self, earlier: &Tally) -> Tally {
        let mut difference = self.clone();
        for (role, stages) in &mut difference.roles {
            for (stage, usage) in stages {
                *usage = *usage - earlier.usage(*role, stage);
            }
        }
        difference
    }

    /// What one stage of one role used.
    #[must_use]
    pub fn usage(&self, role: Role, stage: &str) -> Usage {
        self.roles
            .get(&role)
            .and_then(|stages| stages.get(stage))
            .copied()
            .unwrap_or_default()
    }

    /// What each stage used, both roles together.
    #[must_use]
    pub fn by_stage(&self) -> BTreeMap<String, Usage> {
        let mut stages = BTreeMap::<String, Usage>::new();
        for (stage, usage) in self.roles.values().flatten() {
            *stages.entry(stage.clone()).or_default() += *usage;
        }
        stages
    }

    /// What one role used.
    #[must_use]
    pub fn of_role(&self, role: Role) -> Usage {
        let mut sum = Usage::default();
        for usage in self.roles.get(&role).into_iter().flat_map(BTreeMap::values) {
            sum += *usage;
        }
        sum
    }

    /// What everything used.
    #[must_use]
    pub fn total(&self) -> Usage {
        let mut sum = Usage::default();
        for role in Role::ALL {
            sum += self.of_role(role);
        }
        sum
    }
}

/// Counts usage; shared by both roles.
#[derive(Debug, Default)]
pub struct Meter {
    tally: Mutex<Tally>,
}

impl Meter {
    /// Books usage.
    pub fn record(&self, role: Role, stage: &str, usage: Usage) {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let stages = tally.roles.entry(role).or_default();
        match stages.get_mut(stage) {
            Some(booked) => *booked += usage,
            None => {
                stages.insert(stage.to_owned(), usage);
            }
        }
    }

    /// Everything booked so far.
    #[must_use]
    pub fn snapshot(&self) -> Tally {
        self.tally
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Books each call of one role.
pub struct Metered {
    inner: Arc<dyn ChatModel>,
    role: Role,
    meter: Arc<Meter>,
}

impl Metered {
    /// Books the calls of `inner` under `role`.
    #[must_use]
    pub fn new(inner: Arc<dyn ChatModel>, role: Role, meter: Arc<Meter>) -> Metered {
        Metered { inner, role, meter }
    }
}

impl ChatModel for Metered {
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
            let result = self.inner.chat(request).await;
            match &result {
                Ok(reply) => self.meter.record(self.role, request.stage, reply.usage),
                Err(CallError {
                    usage: Some(usage), ..
                }) => self.meter.record(self.role, request.stage, *usage),
                Err(_) => {}
            }
            result
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CallErrorKind;
    use crate::model::testing::{Listed, reply, request};

    #[tokio::test]
    async fn usage_is_booked_by_role_and_stage_and_differences_keep_known_stages() {
        let meter = Arc::new(Meter::default());
        let lost = CallError {
            usage: Some(Usage {
                calls: 1,
                prompt_tokens: 7,
                completion_tokens: 3,
                ..Usage::default()
            }),
            ..CallError::new(CallErrorKind::Empty, "nothing")
        };
        let model = Metered::new(
            Arc::new(Listed::new(vec![reply("a"), Err(lost), reply("b")])),
            Role::Target,
            Arc::clone(&meter),
        );
        model.chat(&request("x")).await.unwrap();
        let before = meter.snapshot();
        model.chat(&request("x")).await.unwrap_err();
        meter.record(Role::Optimizer, "merge", Usage::default());
        let step = meter.snapshot().since(&before);
        assert_eq!(step.usage(Role::Target, "rollout").prompt_tokens, 7);
        assert_eq!(
            step.by_stage().keys().collect::<Vec<_>>(),
            ["merge", "rollout"]
        );
        assert_eq!(meter.snapshot().total().total_tokens(), 25);
    }
}
