use proptest::prelude::*;

use super::pattern::{compile, compile_here};
use super::*;

#[test]
fn each_rule_finds_its_example_and_leaves_its_counter_example() {
    for rule in built_in() {
        let pattern =
            compile(rule.pattern).unwrap_or_else(|error| panic!("{}: {error}", rule.name));
        assert!(compile_here(rule.pattern).is_some(), "{}", rule.name);
        let finds = |text: &str| {
            pattern.captures_iter(text.as_bytes()).any(|captures| {
                let span = captures.name("v").or_else(|| captures.get(0)).unwrap();
                (rule.check)(plausible::Found {
                    text,
                    start: span.start(),
                    end: span.end(),
                })
            })
        };
        assert!(
            finds(rule.example),
            "{} misses {:?}",
            rule.name,
            rule.example
        );
        assert!(
            !finds(rule.counter_example),
            "{} takes {:?}",
            rule.name,
            rule.counter_example
        );
        let lower = rule.example.to_ascii_lowercase();
        assert!(
            rule.keywords.iter().any(|word| lower.contains(word)),
            "{}: no keyword in its example",
            rule.name
        );
        let redacted = Redactor::new().redact(rule.example);
        let named = format!("{PLACEHOLDER}{}]", rule.name);
        assert!(redacted.contains(&named), "{}: {redacted}", rule.name);
    }
}

#[test]
fn names_stay_and_values_go() {
    let redactor = Redactor::new();
    for (text, expected) in [
        (
            "STRIPE_KEY=sk_live_FAKEfakeFAKEfakeFAKE0001",
            "STRIPE_KEY=[redacted:stripe-key]",
        ),
        (
            "postgres://app:hunter2-fake@db/shop",
            "postgres://app:[redacted:url-password]@db/shop",
        ),
        (
            r#"{"password": "s3cr3t-fake", "user": "dev"}"#,
            r#"{"password": "[redacted:password]", "user": "dev"}"#,
        ),
        (
            r#"{\"api_key\": \"fake00000000fake\", \"n\": 1}"#,
            r#"{\"api_key\": \"[redacted:secret]\", \"n\": 1}"#,
        ),
        (
            "password: s3cr3t-fake-pass",
            "password: [redacted:password]",
        ),
        (
            "-H 'Authorization: Bearer FAKE-fake-0001-fake'",
            "-H 'Authorization: Bearer [redacted:auth-header]'",
        ),
        (
            "curl -u dev:fake-pass-1 https://x.example",
            "curl -u dev:[redacted:curl-user] https://x.example",
        ),
        (
            "deploy -password fake-pass-1",
            "deploy -password [redacted:flag-secret]",
        ),
    ] {
        assert_eq!(redactor.redact(text), expected);
    }
}

#[test]
fn prose_code_and_ids_stay() {
    let redactor = Redactor::new();
    for text in [
        "The token count is 4096 and max_tokens: 100000.",
        "fn parse(token: &str, password: Option<String>) -> Token { todo!() }",
        "const apiKey = process.env.API_KEY;",
        "password = getpass.getpass('Password: ')",
        "commit 60f027589a3d16a919606a95d7722eaa068f2b82",
        "uuid 12aef5fc-c63a-4d84-a72a-356b7c059481",
        "if key == other_key: return keys[key]",
        "primary_key: true, foreign_key: user_id",
        "The secret of good tests is small inputs. Pass the key: value pair.",
        "Authorization is checked in auth.rs",
        "https://example.com/a/b?page=2&sort=name",
        "tests passed: 12, failed: 0",
        "sorted(items, key=lambda item: item.name)",
        "export TOKEN=$(cat token.txt)",
        "PWD=/home/dev/src/ledgerly",
    ] {
        assert_eq!(redactor.redact(text), text);
    }
}

#[test]
fn a_user_rule_is_applied_and_a_bad_one_is_named() {
    let rule = |pattern: &str| UserRule {
        name: "Ticket No".to_owned(),
        pattern: pattern.to_owned(),
    };
    let redactor = Redactor::with_rules(&[rule(r"TCK-(?P<v>\d+)")]).unwrap();
    assert_eq!(
        redactor.redact("see TCK-123"),
        "see TCK-[redacted:ticket-no]"
    );
    let error = Redactor::with_rules(&[rule("(")]).unwrap_err();
    assert!(error.to_string().contains("Ticket No"));
}

#[test]
fn members_with_telling_names_lose_their_values() {
    let value = serde_json::json!({"clientSecret": "x", "nested": {"PWD": "/home", "token": 7}, "sig": null});
    let redacted = Redactor::new().redact_value(&value);
    assert_eq!(
        redacted,
        serde_json::json!({"clientSecret": "[redacted:secret]", "nested": {"PWD": "/home", "token": "[redacted:secret]"}, "sig": "[redacted:secret]"})
    );
}

#[test]
fn a_secret_at_a_cut_does_not_leak() {
    let redactor = Redactor::new();
    let limits = TextLimits::default();
    let door = Door {
        redactor: &redactor,
        limits: &limits,
    };
    let secret = "ghp_FAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKE0001";
    for padding in 0..60 {
        let text = format!(
            "{}{secret} {}",
            "x ".repeat(3_960 + padding),
            "y ".repeat(300_000)
        );
        assert!(!door.output(&text).contains("ghp_"));
        let text = format!(
            "{}{secret}{}",
            "x ".repeat(300_000),
            " y".repeat(1_960 + padding)
        );
        assert!(!door.output(&text).contains("FAKEFAKE"), "{padding}");
    }
}

proptest! {
    #[test]
    fn redacting_twice_changes_nothing(text in redactable()) {
        let redactor = Redactor::new();
        let once = redactor.redact(&text).into_owned();
        prop_assert_eq!(redactor.redact(&once), once.as_str());
    }

    #[test]
    fn a_look_at_keywords_spares_work_and_misses_nothing(text in redactable()) {
        let all_rules = Redactor { words: None, ..Redactor::new() };
        prop_assert_eq!(Redactor::new().redact(&text), all_rules.redact(&text));
    }

    #[test]
    fn any_text_is_redacted_without_panic(text in any::<String>()) {
        let _ = Redactor::new().redact(&text);
    }
}

/// Examples of the rules in between names, quotes and separators.
fn redactable() -> impl Strategy<Value = String> {
    let examples: Vec<&'static str> = built_in().map(|rule| rule.example).collect();
    let piece = prop_oneof![
        proptest::sample::select(examples),
        proptest::sample::select(vec![
            "password=",
            "\"token\": \"",
            "\"",
            "'",
            " ",
            "\n",
            "\\",
            "\\\"",
            ":",
            "=",
            "@",
            "://",
            "key",
            "_key_id",
            "secret_access",
            "apikey",
            "api key",
            "password",
            "token",
            "token is ",
            "a1b2c3d4-fake",
            "conn_string",
            "sk_",
            "SK",
            "pat",
            "re_",
            "?",
            "&",
            "token=",
            "-",
            "--api-",
            "x-",
            "curl -u ",
            "zip ",
            "https://",
            "login ",
            "otp ",
            "code: 1234 ",
            "is",
            "sk-",
            "shared_",
            "my_",
            "0123456789abcdef0123456789abcdef",
            "0123456789abcdef_",
            "\t",
            "Bearer ",
            "x",
            "]",
            "[",
        ]),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

#[test]
fn a_placeholder_before_a_value_does_not_save_it() {
    let value = serde_json::json!({"password": "[redacted:jwt] hunter2-fake"});
    let redacted = Redactor::new().redact_value(&value);
    assert_eq!(redacted["password"], "[redacted:secret]");
    assert_eq!(Redactor::new().redact_value(&redacted), redacted);
}
