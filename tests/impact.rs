//! What a user sees after an adoption: those that nobody reviewed, and how sessions go since.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::claude_log::ClaudeLog;
use crate::machine::Machine;
use crate::skills::{configure, named, shop, with_model};

#[tokio::test(flavor = "multi_thread")]
async fn a_night_adopts_without_review_when_it_may_and_says_so_until_it_is_seen() {
    let (mut machine, triage, _) = shop();
    let _server = with_model(&mut machine).await;
    configure(
        &mut machine,
        "documents: {skill: {enabled: false}}\n\
         staging: {auto_adopt: {enabled: true, max_documents: 1}}\n",
    );
    let before = std::fs::read_to_string(&triage).unwrap();
    let ran = machine.ok(&["run"]);
    let told = "adopted without review as a1; undo it with: skillopt-sleep revert a1";
    assert!(ran.stdout.contains(told), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("left for review: the night adopted 1"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("next: skillopt-sleep review"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("revert a1"), "{}", ran.stderr);
    let after = std::fs::read_to_string(&triage).unwrap();
    assert!(
        after.contains("Name the owner"),
        "the one with most tasks: {after}"
    );

    let report = machine.ok(&["log", "1"]).stdout;
    assert!(
        report.contains("**adopted without review as a1**"),
        "{report}"
    );
    assert!(report.contains("left for review: "), "{report}");
    let status = machine.json(&["status", "--json"]);
    let night = &status["last_night"]["report"];
    assert_eq!(named(night, "triage")["adoption"], "a1");
    assert!(
        named(night, "deploy")["held"]
            .as_str()
            .unwrap()
            .contains("max_documents")
    );
    assert_eq!(status["notices"][0]["kind"], "automatic_adoption");
    assert_eq!(status["notices"][0]["undo"], "skillopt-sleep revert a1");

    let text = machine.ok(&["status", "--seen"]).stdout;
    assert!(text.contains("a1 was adopted without review"), "{text}");
    assert_eq!(
        machine.json(&["status", "--json"])["notices"],
        Value::Array(vec![])
    );

    machine.ok(&["revert", "a1"]);
    assert_eq!(std::fs::read_to_string(&triage).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_adopted_by_itself_unless_configuration_says_so() {
    let (mut machine, triage, deploy) = shop();
    let _server = with_model(&mut machine).await;
    configure(&mut machine, "");
    let before = [&triage, &deploy].map(|path| std::fs::read_to_string(path).unwrap());
    let night = machine.json(&["run", "--json"]);
    assert_eq!(named(&night, "triage")["verified"], true);
    assert_eq!(named(&night, "triage")["held"], Value::Null);
    let after = [&triage, &deploy].map(|path| std::fs::read_to_string(path).unwrap());
    assert_eq!(before, after);
    assert_eq!(
        machine.json(&["status", "--json"])["adoptions"],
        Value::Array(vec![])
    );
}

/// Sessions that used the skill, an hour apart.
fn sessions(machine: &Machine, name: &str, count: i64, first: Timestamp, well: bool) {
    let project = machine.path("home/shop").display().to_string();
    for number in 0..count {
        let begins = first + SignedDuration::from_mins(10 * number);
        let log = ClaudeLog::new(&format!("{name}-{number}"), &project, begins)
            .says(&format!("sort the {name} reports, batch {number}"))
            .uses("triage")
            .tests(well)
            .answers("Sorted.");
        let log = if well {
            log.says("perfect, thanks!")
        } else {
            log.says("no, that is still broken")
        };
        log.answers("All right.").write(machine);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clear_regression_is_announced_with_the_command_that_undoes_it() {
    let mut machine = Machine::new();
    let _server = with_model(&mut machine).await;
    configure(&mut machine, "documents: {skill: {enabled: false}}\n");
    let triage = machine.write(
        "home/.claude/skills/triage/SKILL.md",
        "---\nname: triage\ndescription: How we triage.\n---\n\n# Triage\n",
    );
    let now = Timestamp::now();
    sessions(
        &machine,
        "early",
        12,
        now - SignedDuration::from_hours(30),
        true,
    );
    let night = machine.json(&["run", "--json"]);
    let id = named(&night, "triage")["proposal"].as_str().unwrap();
    machine.ok(&["review", id, "--accept"]);
    machine.ok(&["adopt"]);

    let few = machine.json(&["status", "--impact", "--json"]);
    assert_eq!(few["schema"], "skillopt-sleep.status/1");
    assert_eq!(few["impact"][0]["verdict"], "too_few_to_tell", "{few}");
    assert_eq!(few["impact"][0]["sessions_before"], 12, "{few}");

    sessions(
        &machine,
        "late",
        12,
        Timestamp::now() + SignedDuration::from_mins(5),
        false,
    );
    // A call of our own that some agent logged is no session of anybody.
    let project = machine.path("home/shop").display().to_string();
    ClaudeLog::new(
        "own",
        &project,
        Timestamp::now() + SignedDuration::from_mins(5),
    )
    .says("skillopt-sleep:internal-call sort the reports")
    .uses("triage")
    .answers("Sorted.")
    .write(&machine);
    let ran = machine.ok(&["run"]);
    let announced = format!(
        "sessions go worse since a1 changed {}: 100 % went well before, 0 % since; undo it with: \
         skillopt-sleep revert a1",
        triage.display()
    );
    assert!(ran.stdout.contains(&announced), "{}", ran.stdout);
    let status = machine.ok(&["status"]).stdout;
    assert!(
        status.contains(&format!("notice      {announced}")),
        "{status}"
    );
    assert!(
        machine
            .ok(&["log", "2"])
            .stdout
            .contains("## Sessions go worse")
    );

    let text = machine.ok(&["status", "--impact"]).stdout;
    for part in [
        "SKILL.md: worse",
        "12 before, 12 after",
        "went well         100 % of 12",
        "is no trial",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let impact = machine.json(&["status", "--impact", "--json"]);
    let found = &impact["impact"][0];
    assert_eq!(
        (&found["verdict"], &found["clear_regression"]),
        (&"worse".into(), &true.into())
    );
    let metrics = found["metrics"].as_array().unwrap();
    let metric = |name: &str| {
        metrics
            .iter()
            .find(|metric| metric["name"] == name)
            .unwrap()
    };
    assert_eq!(metric("corrected")["after"], 1.0, "{found}");
    assert_eq!(metric("failed_check")["change"], 1.0, "{found}");
    assert_eq!(metric("tokens")["change"], 1.0, "{found}");

    machine.ok(&["revert", "a1"]);
    let status = machine.json(&["status", "--impact", "--json"]);
    assert_eq!(status["notices"], Value::Array(vec![]));
    assert_eq!(status["impact"][0]["in_force"], false);
}
