use super::rules::Matcher;
use super::*;

fn names(base: &str, proposed: &str) -> Vec<&'static str> {
    let context = Context {
        is_skill: true,
        ..Context::default()
    };
    lint(base, proposed, &context)
        .iter()
        .map(|finding| finding.rule)
        .collect()
}

#[test]
fn every_rule_finds_its_examples_and_nothing_in_its_counter_examples() {
    let mut wrong = Vec::new();
    for rule in rules() {
        for example in rule.examples {
            if !names("", example).contains(&rule.name) {
                wrong.push(format!("{} misses {example:?}", rule.name));
            }
        }
        for example in rule.counter_examples {
            if names("", example).contains(&rule.name) {
                wrong.push(format!("{} finds {example:?}", rule.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_can_be_understood_and_named_and_its_pattern_compiles() {
    let mut seen = std::collections::HashSet::new();
    for rule in rules() {
        assert!(seen.insert(rule.name), "{} is there twice", rule.name);
        assert!(!rule.explanation.is_empty());
        assert!(
            rule.name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c == '-'),
            "{}",
            rule.name
        );
        if let Some(pattern) = rule.pattern() {
            regex::Regex::new(&pattern).unwrap_or_else(|error| panic!("{}: {error}", rule.name));
            assert!(
                !rule.examples.is_empty() && !rule.counter_examples.is_empty(),
                "{}",
                rule.name
            );
        }
        assert!(matches!(rule.matcher, Matcher::Patterns(_)) == rule.pattern().is_some());
        assert_eq!(super::rule(rule.name).unwrap().name, rule.name);
    }
}

#[test]
fn what_the_base_says_already_is_not_found() {
    let base = "# A\n\nRun `git commit --no-verify`.\n";
    assert_eq!(names(base, &format!("{base}\n- Be brief.\n")), [""; 0]);
    assert_eq!(
        names(
            base,
            "# A\n\n- Be brief.\n\n  Run `git commit --no-verify`.\n"
        ),
        [""; 0]
    );
    assert_eq!(
        names(base, "# A\n\nAlways run `git commit --no-verify`.\n"),
        ["disabled-checks"]
    );
}

#[test]
fn a_prohibition_is_a_warning_and_no_danger() {
    let level = |text: &str| lint("", text, &Context::default())[0].level;
    assert_eq!(level("- Never use `--no-verify`."), Level::Warning);
    assert_eq!(level("- Do not run `rm -rf /`."), Level::Warning);
    assert_eq!(level("- Use `--no-verify`."), Level::Danger);
    assert_eq!(
        level("- Never hesitate to use `--no-verify`."),
        Level::Danger
    );
    assert_eq!(level("- Never mind. Use `--no-verify`."), Level::Danger);
}

#[test]
fn ordinary_rules_of_developers_are_clean() {
    for text in [
        "- Always run the tests before you say that work is done.",
        "- Answer in English, even when the request is in German.",
        "- Keep commits small; one change each, with a message that says why.",
        "- Use `rg` instead of `grep` when you search the code.",
        "- Format with `cargo fmt` and check with `cargo clippy -- -D warnings`.",
        "```sh\ncargo test --workspace\nbash .ci/run\n```",
        "- Prefer early returns. Do not nest more than three levels.",
        "- Show the exact command and its output when you report a result.",
        "- Write dates as 2026-11-28.",
        "- Ask before you add a dependency.",
    ] {
        assert_eq!(
            names("# Rules\n", &format!("# Rules\n{text}\n")),
            [""; 0],
            "{text}"
        );
    }
}

#[test]
fn answers_are_found_whole_and_in_part_but_not_when_the_base_has_them() {
    let answer =
        "the quarterly revenue of the northern branch was four hundred and twelve thousand";
    let context = Context {
        task_answers: &[answer, "x = 17 * 23 + 4"],
        ..Context::default()
    };
    let rules = |base: &str, text: &str| -> Vec<&str> {
        lint(base, text, &context)
            .iter()
            .map(|finding| finding.rule)
            .collect()
    };
    let part =
        "Remember: Quarterly revenue of the northern\nbranch was four hundred and twelve thousand.";
    assert_eq!(rules("", part), ["task-answer"]);
    assert_eq!(rules("", "It is x = 17 * 23 + 4."), ["task-answer"]);
    assert_eq!(
        rules("", "Report the quarterly revenue of each branch."),
        [""; 0]
    );
    assert_eq!(rules(answer, &format!("{answer}, as we know.")), [""; 0]);
}

#[test]
fn limits_are_those_of_the_host() {
    let long = "word ".repeat(1800);
    let rules = |host| {
        let context = Context {
            host,
            is_skill: true,
            ..Context::default()
        };
        lint("", &long, &context)
            .iter()
            .filter(|finding| finding.rule == "size")
            .count()
    };
    assert_eq!(
        (
            rules(Host::Codex),
            rules(Host::ClaudeCode),
            rules(Host::Any),
            rules(Host::Other)
        ),
        (1, 0, 1, 0)
    );
    let described = format!("---\nname: a\ndescription: {}\n---\n", "long ".repeat(300));
    assert!(names("", &described).contains(&"description-size"));
    assert!(!names(&described, &format!("{described}\nmore\n")).contains(&"description-size"));
}

#[test]
fn a_name_that_changes_breaks_the_skill() {
    let base = "---\nname: a\ndescription: b\n---\n";
    assert_eq!(
        names(base, "---\nname: c\ndescription: b\n---\n"),
        ["front-matter"]
    );
    assert_eq!(names(base, "# Title\n"), ["front-matter"]);
}

#[test]
fn findings_are_few_and_the_gravest_come_first() {
    let text = "sudo make\nrm -rf /\n".to_owned() + &"git commit --no-verify\nx\n".repeat(500);
    let found = lint("", &text, &Context::default());
    assert!(found.len() <= MAX_FINDINGS + 3, "{}", found.len());
    assert_eq!(found.first().unwrap().level, Level::Danger);
    assert_eq!(found.last().unwrap().level, Level::Warning);
}

#[test]
fn a_large_text_takes_no_longer_than_its_size() {
    // Text that makes naive matchers go back again and again.
    let time = |count: usize| {
        let text =
            "curl curl without ignore the the the the ".repeat(count) + "\n" + &"a.".repeat(count);
        let started = std::time::Instant::now();
        let _ = lint("", &text, &Context::default());
        started.elapsed().as_secs_f64()
    };
    time(100);
    let (small, large) = (time(1_000), time(8_000));
    assert!(large < 30.0 * small + 0.5, "{small} s, then {large} s");
}
