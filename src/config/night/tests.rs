use super::*;
use crate::config::modes::GateMetric;

fn parse(text: &str) -> Result<NightConfig, ConfigError> {
    NightConfig::parse(Path::new("config.yaml"), text)
}

#[test]
fn the_commented_default_is_the_default() {
    assert_eq!(parse(DEFAULT_YAML).unwrap(), NightConfig::default());
    assert_eq!(parse("# nothing\n").unwrap(), NightConfig::default());
    assert_eq!(
        serde_saphyr::from_str::<NightConfig>(
            &serde_saphyr::to_string(&NightConfig::default()).unwrap()
        )
        .unwrap(),
        NightConfig::default()
    );
}

#[test]
fn a_file_sets_what_it_names_and_leaves_the_rest() {
    let config = parse(
        "sources: [codex]\nlookback: 3d\nprojects: {mode: list, paths: [/a]}\n\
         train:\n  gate_metric: hard\nbudget: {usd: 1.5, tokens: null}\n\
         models:\n  target:\n    backend: compat\n    timeout: 90s\n    extra_body: {anything: {goes: 1}}\n",
    )
    .unwrap();
    assert_eq!(config.sources, [Source::Codex]);
    assert_eq!(config.train.gate_metric, GateMetric::Hard);
    assert_eq!(config.train.edit_budget, 4);
    assert_eq!(config.most_sessions(), 120);
    let limits = config.models().budget;
    assert_eq!((limits.usd, limits.tokens), (Some(1.5), None));
    assert_eq!(limits.time.unwrap().as_secs(), 6 * 3600);
    assert_eq!(config.models.target.timeout.unwrap().as_secs(), 90);
}

#[test]
fn mistakes_name_their_line_key_and_remedy() {
    for (text, part) in [
        (
            "seed: 1\nlokback: 3d\n",
            "config.yaml:2: unknown key `lokback`; did you mean `lookback`?",
        ),
        (
            "train:\n  epocs: 2\n",
            "config.yaml:2: unknown key `train.epocs`; did you mean `train.epochs`?",
        ),
        (
            "models:\n  target:\n    modle: x\n",
            "did you mean `models.target.model`?",
        ),
        ("zzzzz: 2\n", "config.yaml:1: unknown key `zzzzz`"),
        (
            "seed: 1\nmax_tasks: many\n",
            "config.yaml:2: `max_tasks` must be a whole number",
        ),
        (
            "max_tasks: 0\n",
            "config.yaml:1: `max_tasks` is 0; it must be at least 1",
        ),
        ("val_fraction: 1.5\n", "from 0 to 1"),
        ("val_fraction: 0.6\ntest_fraction: 0.5\n", "must be below 1"),
        ("lookback: soon\n", "not a span of time"),
        ("sources: [claud]\n", "`sources` cannot be read"),
        (
            "models:\n  target:\n    backend: openai_compatble\n",
            "did you mean `openai_compatible`?",
        ),
        ("projects: {mode: list}\n", "must name the projects"),
        (
            "redact:\n  extra:\n    - {name: x, pattern: '('}\n",
            "not a regular expression",
        ),
        (
            "documents:\n  skill:\n    name: ../x\n",
            "name of one folder",
        ),
        ("- 1\n", "a configuration is a mapping"),
        ("a: [\n", "not valid YAML"),
        ("seed: 1\nseed: 2\n", "`seed` is set twice"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
        assert!(error.contains("config.yaml"), "{error}");
    }
}

#[test]
fn an_absent_file_means_the_defaults_unless_the_user_named_it() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config.yaml");
    assert_eq!(
        NightConfig::read(&path, false).unwrap(),
        NightConfig::default()
    );
    assert!(
        NightConfig::read(&path, true)
            .unwrap_err()
            .to_string()
            .contains("config.yaml")
    );
}

#[test]
fn a_budget_option_changes_the_limits_that_it_names() {
    let mut budget = NightBudget::default();
    budget
        .apply("tokens=1_000, usd=0.5,time=45m,calls=none")
        .unwrap();
    assert_eq!(
        (budget.tokens, budget.usd, budget.calls),
        (Some(1000), Some(0.5), None)
    );
    assert_eq!(budget.time.unwrap().duration().as_secs(), 2700);
    for (text, part) in [
        ("token=5", "did you mean `tokens`?"),
        ("tokens", "has no `=`"),
        ("tokens=-1", "whole number"),
        ("usd=lots", "amount of money"),
        ("time=5", "not a span of time"),
    ] {
        let error = budget.apply(text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn agent_homes_come_from_the_file_the_agents_variable_or_the_home_directory() {
    let env = |name: &str| match name {
        "HOME" => Some("/h".to_owned()),
        "CODEX_HOME" => Some("/codex".to_owned()),
        _ => None,
    };
    let homes = Homes::default();
    assert_eq!(
        homes.of(Source::Claude, &env).unwrap(),
        Path::new("/h/.claude")
    );
    assert_eq!(homes.of(Source::Codex, &env).unwrap(), Path::new("/codex"));
    let homes = Homes {
        codex: Some("~/c".into()),
        ..Homes::default()
    };
    assert_eq!(homes.of(Source::Codex, &env).unwrap(), Path::new("/h/c"));
}

#[test]
fn a_key_in_the_file_is_accepted_with_a_notice_that_does_not_show_it() {
    let config = parse("models: {optimizer: {api_key: sk-1234}}\n").unwrap();
    let notices = config.notices().join("\n");
    assert!(notices.contains("models.optimizer.api_key"));
    assert!(!notices.contains("sk-1234"));
}

#[test]
fn automatic_adoption_behind_the_strict_gate_is_warned_of() {
    let config = |gate: &str| {
        parse(&format!(
            "staging: {{auto_adopt: {{enabled: true}}}}\ntrain: {{gate_rule: {gate}}}\n"
        ))
        .unwrap()
    };
    assert!(config("strict").notices()[0].contains("gate_rule: confident"));
    assert!(config("confident").notices().is_empty());
    let none = parse("staging: {auto_adopt: {max_edits: 0}}\n").unwrap_err();
    assert!(
        none.to_string()
            .contains("`staging.auto_adopt.max_edits` is 0")
    );
}
