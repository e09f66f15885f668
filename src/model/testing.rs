//! A model whose replies a test lists beforehand, and requests to send to it.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;

use super::{CallError, CallErrorKind, ChatModel, ChatReply, ChatRequest, Message, Speaker, Usage};

/// Gives the listed results in order, then the last one again and again.
pub(crate) struct Listed {
    results: Mutex<VecDeque<Result<ChatReply, CallError>>>,
    /// How long a call takes.
    pub(crate) takes: Duration,
    /// Calls so far.
    pub(crate) calls: AtomicUsize,
    /// Calls that run now, and the most that ever ran at once.
    running: AtomicUsize,
    pub(crate) most_running: AtomicUsize,
}

impl Listed {
    pub(crate) fn new(results: Vec<Result<ChatReply, CallError>>) -> Listed {
        Listed {
            results: Mutex::new(results.into()),
            takes: Duration::ZERO,
            calls: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
        }
    }

    pub(crate) fn taking(mut self, takes: Duration) -> Listed {
        self.takes = takes;
        self
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl ChatModel for Listed {
    fn id(&self) -> &str {
        "listed/test"
    }

    fn chat<'a>(
        &'a self,
        _request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, CallError>> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_running.fetch_max(running, Ordering::SeqCst);
            if !self.takes.is_zero() {
                tokio::time::sleep(self.takes).await;
            }
            self.running.fetch_sub(1, Ordering::SeqCst);
            let mut results = self.results.lock().unwrap();
            if results.len() > 1 {
                results.pop_front().unwrap()
            } else {
                results.front().cloned().unwrap()
            }
        })
    }
}

pub(crate) fn reply(text: &str) -> Result<ChatReply, CallError> {
    Ok(ChatReply {
        text: text.to_owned(),
        usage: Usage {
            calls: 1,
            prompt_tokens: 10,
            completion_tokens: 5,
            ..Usage::default()
        },
        finish_reason: Some("stop".to_owned()),
    })
}

pub(crate) fn failure(kind: CallErrorKind) -> Result<ChatReply, CallError> {
    Err(CallError::new(kind, format!("made up {kind:?}")))
}

pub(crate) fn request(text: &str) -> ChatRequest {
    ChatRequest {
        stage: "rollout",
        sample: "step_0001".to_owned(),
        messages: vec![
            Message {
                role: Speaker::System,
                content: "you are a test".to_owned(),
            },
            Message {
                role: Speaker::User,
                content: text.to_owned(),
            },
        ],
        max_tokens: 100,
    }
}
