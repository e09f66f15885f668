use std::collections::HashMap;

use miette::Diagnostic;

use super::*;
use crate::model::CallErrorKind;
use crate::model::testing::{Listed, reply, request};

fn environment(pairs: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> + use<> {
    let map: HashMap<String, String> = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    move |name| map.get(name).cloned()
}

#[test]
fn without_a_url_or_a_key_there_is_no_model_and_the_error_says_how_to_get_one() {
    let error = Models::build(&ModelsConfig::default(), None, &environment(&[]))
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "no usable model for the optimizer and the target: none is configured"
    );
    let help = error.help().unwrap().to_string();
    assert!(help.contains("OPENAI_COMPATIBLE_BASE_URL"), "{help}");

    let env = environment(&[("TARGET_OPENAI_COMPATIBLE_BASE_URL", "http://127.0.0.1:1/v1")]);
    let error = Models::build(&ModelsConfig::default(), None, &env)
        .err()
        .unwrap();
    assert!(matches!(error, ModelError::NotConfigured { roles } if roles == [Role::Optimizer]));
}

#[test]
fn a_model_option_names_role_backend_model_and_server() {
    let mut config = ModelsConfig::default();
    config
        .select("optimizer=openai_compatible:a@b/c:1@http://h:1/v1")
        .unwrap();
    config.select("target=scripted:rules.yaml").unwrap();
    assert_eq!(config.optimizer.model.as_deref(), Some("a@b/c:1"));
    assert_eq!(config.optimizer.base_url.as_deref(), Some("http://h:1/v1"));
    assert_eq!(
        config.target.script.as_deref(),
        Some(Path::new("rules.yaml"))
    );
    config.select("both=openai_compatible:@https://x").unwrap();
    assert_eq!(config.optimizer.model.as_deref(), Some("a@b/c:1"));
    assert_eq!(config.target.base_url.as_deref(), Some("https://x"));
    config.select("both=compat").unwrap();
}

#[test]
fn a_misspelt_backend_or_role_is_an_error_with_the_right_name() {
    let mut config = ModelsConfig::default();
    let error = config.select("target=openai_compatable:x").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("did you mean `openai_compatible`?"),
        "{error}"
    );
    let error = config.select("target=claude").unwrap_err();
    assert!(
        error.to_string().contains("not part of this version"),
        "{error}"
    );
    let error = config.select("traget=scripted:x").unwrap_err();
    assert!(
        error.to_string().contains("use optimizer, target or both"),
        "{error}"
    );
    assert!(config.select("target").is_err());
    assert!(config.select("target=scripted").is_err());
    assert!(
        serde_json::from_str::<RoleConfig>(r#"{"backend": "scriptd"}"#)
            .unwrap_err()
            .to_string()
            .contains("did you mean `scripted`?")
    );
}

#[tokio::test]
async fn a_resumed_run_answers_from_the_journal_and_counts_what_was_spent() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("calls.sqlite");
    let config = ModelsConfig {
        budget: Limits {
            calls: Some(2),
            ..Limits::default()
        },
        ..ModelsConfig::default()
    };
    let backend = Arc::new(Listed::new(vec![reply("a")]));
    let build =
        || Models::with_backends(&config, backend.clone(), backend.clone(), Some(&path)).unwrap();
    build().target.chat(&request("x")).await.unwrap();

    let resumed = build();
    assert_eq!(resumed.budget.spent().calls, 1);
    resumed.target.chat(&request("x")).await.unwrap();
    resumed.target.chat(&request("y")).await.unwrap();
    assert_eq!(backend.calls(), 2);
    assert_eq!(resumed.meter.snapshot().total().calls, 2);
    let error = resumed.optimizer.chat(&request("z")).await.unwrap_err();
    assert_eq!(error.kind, CallErrorKind::Budget);
    assert!(resumed.tripped().is_none());
}

#[test]
fn a_budget_in_dollars_needs_prices() {
    let config = ModelsConfig {
        budget: Limits {
            usd: Some(1.0),
            ..Limits::default()
        },
        ..ModelsConfig::default()
    };
    let env = environment(&[("OPENAI_COMPATIBLE_BASE_URL", "http://127.0.0.1:1/v1")]);
    let error = Models::build(&config, None, &env).err().unwrap();
    assert!(
        error.to_string().contains("models.optimizer.price_in"),
        "{error}"
    );
}

#[test]
fn numbers_of_a_role_out_of_range_are_errors() {
    for (text, part) in [
        ("concurrency: 0", "models.target.concurrency"),
        ("retries: 0", "models.target.retries"),
        ("price_in: -1", "models.target.price_in"),
    ] {
        let config = ModelsConfig {
            target: serde_saphyr::from_str(text).unwrap(),
            ..ModelsConfig::default()
        };
        let backend = Arc::new(Listed::new(vec![reply("a")]));
        let error = Models::with_backends(&config, backend.clone(), backend, None)
            .err()
            .unwrap();
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_role_is_read_with_time_spans_and_written_without_its_key() {
    let config: RoleConfig =
        serde_saphyr::from_str("timeout: 5m\napi_key: sk-12345\nextra_body: {top_p: 0.5}\n")
            .unwrap();
    assert_eq!(config.timeout.unwrap().as_secs(), 300);
    let written = serde_json::to_string(&config).unwrap();
    assert!(!written.contains("12345"), "{written}");
    assert!(!format!("{config:?}").contains("12345"));
    let config: RoleConfig = serde_saphyr::from_str("timeout: 2.5").unwrap();
    assert_eq!(config.timeout.unwrap().as_millis(), 2500);
    assert!(serde_saphyr::from_str::<RoleConfig>("timeout: soon").is_err());
}

#[test]
fn a_scripted_model_is_built_from_its_file_and_says_so() {
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("rules.yaml");
    fs_err::write(&script, "default: hello\n").unwrap();
    let mut config = ModelsConfig::default();
    config
        .select(&format!("both=scripted:{}", script.display()))
        .unwrap();
    let models = Models::build(&config, None, &environment(&[])).unwrap();
    assert!(models.are_scripted());
}
