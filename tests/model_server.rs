//! A model server on the loopback interface that answers by rules and remembers what it was asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

/// What a rule sees of a request.
pub(crate) struct Asked {
    pub(crate) system: String,
    pub(crate) user: String,
}

/// Gives the reply's text, or an HTTP status.
pub(crate) type Rules = dyn Fn(&Asked) -> Result<String, u16> + Send + Sync;

/// The server.
pub(crate) struct ModelServer {
    server: MockServer,
    shared: Arc<Shared>,
}

struct Shared {
    rules: Box<Rules>,
    answered: Mutex<Vec<String>>,
    received: AtomicUsize,
    /// The request, counted over the server's life, that gets no answer, and who is told.
    stall: Mutex<Option<(usize, Sender<()>)>>,
}

impl ModelServer {
    /// Starts one.
    pub(crate) async fn start(
        rules: impl Fn(&Asked) -> Result<String, u16> + Send + Sync + 'static,
    ) -> Self {
        let server = MockServer::start().await;
        let shared = Arc::new(Shared {
            rules: Box::new(rules),
            answered: Mutex::default(),
            received: AtomicUsize::new(0),
            stall: Mutex::default(),
        });
        Mock::given(method("POST"))
            .respond_with(Answer(Arc::clone(&shared)))
            .mount(&server)
            .await;
        Self { server, shared }
    }

    /// The base URL for clients.
    pub(crate) fn url(&self) -> String {
        format!("{}/v1", self.server.uri())
    }

    /// The bodies of the requests that were answered, in order.
    pub(crate) fn answered(&self) -> Vec<String> {
        self.shared.answered.lock().unwrap().clone()
    }

    /// Leaves the request after the next `answers` without an answer and tells `told` of it.
    pub(crate) fn stall_after(&self, answers: usize, told: Sender<()>) {
        let at = self.shared.received.load(Ordering::SeqCst) + answers + 1;
        *self.shared.stall.lock().unwrap() = Some((at, told));
    }
}

struct Answer(Arc<Shared>);

impl Respond for Answer {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let number = self.0.received.fetch_add(1, Ordering::SeqCst) + 1;
        let stalled = self
            .0
            .stall
            .lock()
            .unwrap()
            .take_if(|(at, _)| *at == number);
        if let Some((_, told)) = stalled {
            told.send(()).unwrap();
            return ResponseTemplate::new(200).set_delay(Duration::from_secs(3600));
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        self.0.answered.lock().unwrap().push(body.to_string());
        let text = |role: &str| {
            let messages = body["messages"].as_array().unwrap();
            let of_role = messages.iter().filter(|message| message["role"] == role);
            of_role
                .filter_map(|message| message["content"].as_str())
                .collect::<Vec<_>>()
                .join("\n")
        };
        let asked = Asked {
            system: text("system"),
            user: text("user"),
        };
        match (self.0.rules)(&asked) {
            Ok(text) => ResponseTemplate::new(200).set_body_json(json!({
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            })),
            Err(status) => ResponseTemplate::new(status).set_body_json(json!({"error": {"message": "no"}})),
        }
    }
}
