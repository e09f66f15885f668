use std::collections::HashMap;

use serde_json::{Value, json};
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::model::testing::request;
use crate::model::{Role, RoleConfig};

fn resolve(config: &RoleConfig, pairs: &[(&str, &str)]) -> Result<Settings, ModelError> {
    let map: HashMap<_, _> = pairs.iter().copied().collect();
    Settings::resolve(Role::Optimizer, config, &|name| {
        map.get(name).map(|value| (*value).to_owned())
    })
}

fn model_at(url: &str) -> OpenAiCompatible {
    let config = RoleConfig {
        base_url: Some(url.to_owned()),
        api_key: Some(Secret::new("sk-test-key")),
        model: Some("m-1".to_owned()),
        timeout: Some(Duration::from_millis(300)),
        ..RoleConfig::default()
    };
    OpenAiCompatible::new(resolve(&config, &[]).unwrap()).unwrap()
}

async fn answering(template: ResponseTemplate) -> (MockServer, OpenAiCompatible) {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .respond_with(template)
        .mount(&server)
        .await;
    let model = model_at(&format!("{}/v1/", server.uri()));
    (server, model)
}

async fn failing(template: ResponseTemplate) -> CallError {
    let (_server, model) = answering(template).await;
    let error = model.chat(&request("x")).await.unwrap_err();
    assert!(error.message.contains("`m-1`"), "{}", error.message);
    assert!(
        error.message.contains("http://127.0.0.1"),
        "{}",
        error.message
    );
    assert!(!error.message.contains("sk-test-key"), "{}", error.message);
    error
}

fn completion(content: Value) -> Value {
    json!({
        "choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 4}
    })
}

#[tokio::test]
async fn a_call_sends_what_was_configured_and_reads_text_and_usage() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .and(header("authorization", "Bearer sk-test-key"))
        .respond_with(ResponseTemplate::new(200).set_body_json(completion(json!("hello"))))
        .expect(1)
        .mount(&server)
        .await;
    let config = RoleConfig {
        base_url: Some(format!("{}/v1", server.uri())),
        api_key: Some(Secret::new("sk-test-key")),
        model: Some("m-1".to_owned()),
        temperature: Some(0.5),
        max_tokens: Some(50),
        extra_body: json!({"top_p": 0.9, "max_tokens": null, "max_completion_tokens": 40})
            .as_object()
            .cloned(),
        ..RoleConfig::default()
    };
    let model = OpenAiCompatible::new(resolve(&config, &[]).unwrap()).unwrap();
    let request = request("x");
    let reply = model.chat(&request).await.unwrap();
    assert_eq!(reply.text, "hello");
    assert_eq!(reply.usage.total_tokens(), 15);
    assert_eq!(reply.usage.estimated_calls, 0);
    assert_eq!(reply.finish_reason.as_deref(), Some("stop"));
    assert_eq!(model.reply_bound(&request), 50);
    assert_eq!(
        model.id(),
        format!("openai_compatible/m-1@{}/v1", server.uri())
    );
    let sent: Value = server.received_requests().await.unwrap()[0]
        .body_json()
        .unwrap();
    assert_eq!(
        sent,
        json!({
            "model": "m-1",
            "messages": [
                {"role": "system", "content": "you are a test"},
                {"role": "user", "content": "x"}
            ],
            "temperature": 0.5,
            "top_p": 0.9,
            "max_completion_tokens": 40
        })
    );
}

#[tokio::test]
async fn parts_are_joined_and_missing_usage_is_estimated() {
    let content = json!([{"type": "text", "text": "he"}, {"type": "text", "text": "llo"}]);
    let mut body = completion(content);
    body.as_object_mut().unwrap().remove("usage");
    let (_server, model) = answering(ResponseTemplate::new(200).set_body_json(body)).await;
    let reply = model.chat(&request("x")).await.unwrap();
    assert_eq!(reply.text, "hello");
    assert_eq!(reply.usage.estimated_calls, 1);
    assert_eq!(reply.usage.completion_tokens, 2);
}

#[tokio::test]
async fn statuses_become_kinds_with_what_the_server_said_and_what_to_check() {
    let cases = [
        (401, CallErrorKind::Unauthorized, "check the API key"),
        (403, CallErrorKind::Unauthorized, "check the API key"),
        (
            404,
            CallErrorKind::NotFound,
            "check the model name and the base URL",
        ),
        (422, CallErrorKind::Rejected, "HTTP 422"),
        (307, CallErrorKind::Rejected, "redirects"),
        (429, CallErrorKind::RateLimited, "HTTP 429"),
        (529, CallErrorKind::RateLimited, "HTTP 529"),
        (503, CallErrorKind::Server, "HTTP 503"),
    ];
    for (status, kind, part) in cases {
        let body = json!({"error": {"message": "no\n\u{1b}[31m sk-test-key way"}});
        let error = failing(ResponseTemplate::new(status).set_body_json(body)).await;
        assert_eq!(error.kind, kind, "{status}");
        assert!(error.message.contains(part), "{}", error.message);
        assert!(
            error.message.contains("no [31m [redacted] way"),
            "{}",
            error.message
        );
    }
    let empty = json!({"error": {"message": "pay first", "code": "insufficient_quota"}});
    let error = failing(ResponseTemplate::new(429).set_body_json(empty)).await;
    assert_eq!(error.kind, CallErrorKind::Rejected);
}

#[tokio::test]
async fn retry_after_is_read_as_seconds_milliseconds_or_a_date() {
    let error = failing(ResponseTemplate::new(429).insert_header("retry-after", "7")).await;
    assert_eq!(error.retry_after, Some(Duration::from_secs(7)));

    let now = jiff::Timestamp::from_second(1_445_412_420).unwrap();
    let headers = |name: &'static str, value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    };
    let dated = headers("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT");
    assert_eq!(retry_after(&dated, now), Some(Duration::from_secs(60)));
    let milliseconds = headers("retry-after-ms", "250");
    assert_eq!(
        retry_after(&milliseconds, now),
        Some(Duration::from_millis(250))
    );
    assert_eq!(retry_after(&headers("retry-after", "-1"), now), None);
    assert_eq!(retry_after(&headers("retry-after", "soon"), now), None);
}

#[tokio::test]
async fn a_server_that_hangs_times_out() {
    let slow = ResponseTemplate::new(200)
        .set_body_json(completion(json!("late")))
        .set_delay(Duration::from_secs(30));
    let error = failing(slow).await;
    assert_eq!(error.kind, CallErrorKind::Timeout);
    assert!(error.message.contains("within 0.3 s"), "{}", error.message);
}

#[tokio::test]
async fn a_refused_connection_says_what_to_check() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let model = model_at(&format!("http://127.0.0.1:{port}/v1"));
    let error = model.chat(&request("x")).await.unwrap_err();
    assert_eq!(error.kind, CallErrorKind::Connection);
    assert!(
        error.message.contains("check the base URL"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn bodies_that_are_no_reply_are_told_apart() {
    let raw = |text: &str| ResponseTemplate::new(200).set_body_raw(text, "application/json");
    let choice = |message: Value, finish: &str| {
        raw(&json!({
            "choices": [{"message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 2}
        })
        .to_string())
    };
    let cases = [
        (raw("{\"choices\": ["), CallErrorKind::Malformed, "not JSON"),
        (
            raw("<html>hi</html>"),
            CallErrorKind::Malformed,
            "it said: <html>hi</html>",
        ),
        (
            raw("{\"choices\": []}"),
            CallErrorKind::Malformed,
            "without choices",
        ),
        (
            choice(json!({"content": "  \n"}), "stop"),
            CallErrorKind::Empty,
            "empty reply",
        ),
        (
            choice(json!({"content": null}), "length"),
            CallErrorKind::Empty,
            "raise max_tokens",
        ),
        (
            choice(json!({"content": "x"}), "content_filter"),
            CallErrorKind::Refused,
            "content filter",
        ),
        (
            choice(json!({"refusal": "I won't"}), "stop"),
            CallErrorKind::Refused,
            "declined: I won't",
        ),
    ];
    for (template, kind, part) in cases {
        let error = failing(template).await;
        assert_eq!(error.kind, kind, "{}", error.message);
        assert!(error.message.contains(part), "{}", error.message);
        if kind != CallErrorKind::Malformed {
            assert_eq!(error.usage.unwrap().total_tokens(), 7);
        }
    }
}

#[tokio::test]
async fn a_huge_body_is_not_read_to_its_end() {
    let body = vec![b'x'; LARGEST_BODY + 1];
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(200).set_body_bytes(body))
        .mount(&server)
        .await;
    let mut model = model_at(&server.uri());
    model.settings.timeout = Duration::from_secs(60);
    let error = model.chat(&request("x")).await.unwrap_err();
    assert_eq!(error.kind, CallErrorKind::Malformed);
    assert!(
        error.message.contains("more than 16 MB"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn a_server_that_recovers_is_retried_through_the_whole_stack() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(500).insert_header("retry-after", "0"))
        .up_to_n_times(1)
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(200).set_body_json(completion(json!("ok"))))
        .mount(&server)
        .await;
    let mut config = crate::model::ModelsConfig::default();
    config
        .select(&format!("both=openai_compatible:m@{}", server.uri()))
        .unwrap();
    let models = crate::model::Models::build(&config, None, &|_| None).unwrap();
    assert_eq!(models.target.chat(&request("x")).await.unwrap().text, "ok");
    assert_eq!(server.received_requests().await.unwrap().len(), 2);
}

#[test]
fn configuration_beats_the_role_variable_which_beats_the_shared_one() {
    let shared = [
        ("OPENAI_COMPATIBLE_BASE_URL", "http://shared:1/v1/"),
        ("OPENAI_COMPATIBLE_MODEL", "shared"),
        ("OPENAI_COMPATIBLE_TEMPERATURE", "0.1"),
        ("OPENAI_COMPATIBLE_MAX_TOKENS", "123"),
        ("OPENAI_COMPATIBLE_TIMEOUT_SECONDS", "1.5"),
        ("OPENAI_COMPATIBLE_EXTRA_BODY", r#"{"seed": 1}"#),
        ("OPTIMIZER_OPENAI_COMPATIBLE_MODEL", "role"),
        ("OPTIMIZER_OPENAI_COMPATIBLE_TEMPERATURE", " "),
        ("OPTIMIZER_DEPLOYMENT", "deployment"),
    ];
    let settings = resolve(&RoleConfig::default(), &shared).unwrap();
    assert_eq!(settings.server(), "http://shared:1/v1");
    assert_eq!(settings.model, "role");
    assert_eq!(settings.temperature, Some(0.1));
    assert_eq!(
        (settings.max_tokens, settings.timeout.as_millis()),
        (123, 1500)
    );
    assert_eq!(settings.extra_body.get("seed"), Some(&json!(1)));

    let config = RoleConfig {
        model: Some("config".to_owned()),
        ..RoleConfig::default()
    };
    assert_eq!(resolve(&config, &shared).unwrap().model, "config");
    let few = [
        ("OPENAI_COMPATIBLE_API_KEY", "k"),
        ("OPTIMIZER_DEPLOYMENT", "deployment"),
    ];
    let settings = resolve(&RoleConfig::default(), &few).unwrap();
    assert_eq!(settings.model, "deployment");
    assert_eq!(settings.server(), "https://api.openai.com/v1");
    assert_eq!(
        (settings.max_tokens, settings.timeout.as_secs()),
        (8000, 300)
    );
}

#[test]
fn values_that_cannot_be_used_are_errors_that_say_where_they_came_from() {
    let url = ("OPENAI_COMPATIBLE_BASE_URL", "http://h/v1");
    let cases = [
        ("OPENAI_COMPATIBLE_BASE_URL", "localhost:8000/v1"),
        ("OPENAI_COMPATIBLE_BASE_URL", "http://user:secret@h/v1"),
        ("OPENAI_COMPATIBLE_MAX_TOKENS", "many"),
        ("OPTIMIZER_OPENAI_COMPATIBLE_TEMPERATURE", "warm"),
        ("OPENAI_COMPATIBLE_TIMEOUT_SECONDS", "-3"),
        ("OPENAI_COMPATIBLE_EXTRA_BODY", "[1]"),
        ("OPENAI_COMPATIBLE_EXTRA_BODY", r#"{"messages": []}"#),
    ];
    for (name, value) in cases {
        let error = resolve(&RoleConfig::default(), &[url, (name, value)])
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(name), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
    let config = RoleConfig {
        api_key_env: Some("MY_KEY".to_owned()),
        ..RoleConfig::default()
    };
    let error = resolve(&config, &[url]).unwrap_err().to_string();
    assert!(error.contains("MY_KEY is not set"), "{error}");
}
