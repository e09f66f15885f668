//! What a user sees of the skills that sessions used: each has tasks, a proposal and a decision of its
//! own, and what cannot be written is said before a model is asked anything.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::claude_log::ClaudeLog;
use crate::machine::Machine;
use crate::model_server::{Asked, ModelServer};

/// The title of a document and the rule that makes its tasks go well.
const LESSONS: [(&str, &str); 4] = [
    ("# Triage", "- Name the owner of every report."),
    ("# Deploy", "- Say how to roll back."),
    ("# Regions", "- Regions are written in capitals."),
    ("# House rules", "- Run the tests first."),
];

/// Proposes for each document the rule that belongs to it, and does well once the rule is there.
fn developer(asked: &Asked) -> Result<String, u16> {
    let whole = format!("{}\n{}", asked.system, asked.user);
    if asked.system.contains("You grade how well") {
        let score = if asked.user.contains("EVIDENCE") {
            0.9
        } else {
            0.2
        };
        return Ok(format!(r#"{{"score": {score}, "reason": "r"}}"#));
    }
    // A reference stands below its skill, so the last title is that of the trained text.
    let lesson = LESSONS
        .iter()
        .filter_map(|lesson| Some((whole.rfind(lesson.0)?, lesson)))
        .max_by_key(|(place, _)| *place);
    let Some((_, (_, rule))) = lesson else {
        return Err(400);
    };
    if asked.system.contains("You improve a skill document") {
        let edit = serde_json::json!({"op": "append", "content": rule, "rationale": "asked for"});
        return Ok(serde_json::json!({"patch": {"reasoning": "r", "edits": [edit]}}).to_string());
    }
    Ok(if asked.system.contains(rule) {
        "EVIDENCE"
    } else {
        "Done."
    }
    .to_owned())
}

pub(crate) async fn with_model(machine: &mut Machine) -> ModelServer {
    let server = ModelServer::start(developer).await;
    machine.set("OPENAI_COMPATIBLE_BASE_URL", &server.url());
    machine.set("OPENAI_COMPATIBLE_API_KEY", "test-key");
    machine.set("OPENAI_COMPATIBLE_MODEL", "fake-model");
    server
}

/// Sessions with a request each, in which the agent used a skill and opened a file.
fn sessions(
    machine: &Machine,
    request: &str,
    count: usize,
    skill: Option<&str>,
    file: Option<&str>,
) {
    let project = machine.path("home/shop").display().to_string();
    let begins: Timestamp = "2026-10-01T09:00:00Z".parse().unwrap();
    for number in 0..count {
        let id = format!("{}-{number}", request.replace(' ', "-"));
        let at = begins + SignedDuration::from_hours(number as i64);
        let mut log = ClaudeLog::new(&id, &project, at).says(&format!("{request} number {number}"));
        if let Some(skill) = skill {
            log = log.uses(skill);
        }
        if let Some(file) = file {
            log = log.opens(file);
        }
        log.answers("Done.")
            .says("no, that is not what I asked for")
            .write(machine);
    }
}

/// A project whose sessions used one skill of their own and one of the project.
pub(crate) fn shop() -> (Machine, PathBuf, PathBuf) {
    let machine = Machine::new();
    let skill = |name: &str, title: &str| {
        format!("---\nname: {name}\ndescription: How we do it.\n---\n\n{title}\n\n- Be kind.\n")
    };
    let triage = machine.write(
        "home/.claude/skills/triage/SKILL.md",
        &skill("triage", "# Triage"),
    );
    let deploy = machine.write(
        "home/shop/.claude/skills/deploy/SKILL.md",
        &skill("deploy", "# Deploy"),
    );
    machine.write(
        "home/.claude/skills/skillopt-sleep-learned/SKILL.md",
        &skill("skillopt-sleep-learned", "# House rules"),
    );
    sessions(&machine, "sort the bug report", 8, Some("triage"), None);
    sessions(&machine, "ship the service", 7, Some("deploy"), None);
    sessions(&machine, "explain the build", 7, None, None);
    sessions(&machine, "draw a picture", 1, Some("painting"), None);
    (machine, triage, deploy)
}

/// Writes a configuration that allows the project, and more.
pub(crate) fn configure(machine: &mut Machine, more: &str) {
    let project = machine.path("home/shop");
    let text = format!("projects: {{mode: list, paths: [{project:?}]}}\n{more}");
    let path = machine.write("config.yaml", &text);
    machine.set("SKILLOPT_SLEEP_CONFIG", &path.display().to_string());
}

pub(crate) fn named<'a>(night: &'a Value, name: &str) -> &'a Value {
    let documents = night["documents"].as_array().unwrap();
    documents
        .iter()
        .find(|document| document["name"] == name)
        .unwrap_or_else(|| panic!("{name}: {night}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_skill_that_sessions_used_gets_a_proposal_and_a_decision_of_its_own() {
    let (mut machine, triage, deploy) = shop();
    configure(&mut machine, "");
    let server = with_model(&mut machine).await;
    let planned = machine.ok(&["run", "--dry-run"]).stdout;
    assert!(planned.contains("deploy/SKILL.md · "), "{planned}");

    let night = machine.json(&["run", "--json"]);
    assert_eq!(night["documents"].as_array().unwrap().len(), 3, "{night}");
    for name in ["skillopt-sleep-learned", "triage", "deploy"] {
        assert_eq!(named(&night, name)["verified"], true, "{night}");
    }
    let total = |name: &str| {
        let tasks = &named(&night, name)["tasks"];
        tasks["train"].as_u64().unwrap() + tasks["validation"].as_u64().unwrap()
    };
    assert_eq!((total("triage"), total("deploy")), (8, 7));
    assert_eq!(
        total("skillopt-sleep-learned"),
        8,
        "the picture is nobody else's"
    );
    let notes = night["notes"].to_string();
    assert!(
        notes.contains("`painting`") && notes.contains("skill_roots"),
        "{notes}"
    );

    for body in server.answered() {
        let attempt = body.contains("planning half");
        if attempt && body.contains("# Triage") {
            assert!(body.contains("sort the bug report"), "{body}");
        }
        if attempt && body.contains("# Deploy") {
            assert!(body.contains("ship the service"), "{body}");
        }
    }

    let id = |name: &str| named(&night, name)["proposal"].as_str().unwrap().to_owned();
    let shown = machine.json(&["review", &id("deploy"), "--show", "--json"]);
    let evidence = shown["proposals"][0]["proposal"]["edits"].to_string();
    assert!(
        evidence.contains("ship-the-service") && !evidence.contains("sort-the"),
        "{shown}"
    );
    let before = std::fs::read_to_string(&deploy).unwrap();
    machine.ok(&["review", &id("triage"), "--accept"]);
    machine.ok(&["review", &id("deploy"), "--reject", "--reason", "not here"]);
    machine.ok(&["adopt"]);
    assert!(
        std::fs::read_to_string(&triage)
            .unwrap()
            .contains(LESSONS[0].1)
    );
    assert_eq!(std::fs::read_to_string(&deploy).unwrap(), before);
}

#[test]
fn a_named_skill_is_the_one_that_there_is() {
    let (mut machine, triage, deploy) = shop();
    configure(&mut machine, "");
    for (name, path) in [("triage", &triage), ("deploy", &deploy)] {
        let planned = machine.ok(&["run", "--dry-run", "--target", name]).stdout;
        let documents: Vec<&str> = planned
            .lines()
            .filter(|line| line.starts_with("document"))
            .collect();
        assert_eq!(documents.len(), 1, "{planned}");
        assert!(
            documents[0].contains(&path.display().to_string()),
            "{planned}"
        );
    }
    machine.write("home/shop/.cursor/skills/deploy/SKILL.md", "# Deploy\n");
    let ran = machine.run(&["run", "--dry-run", "--target", "deploy"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("several skills") && ran.stderr.contains(".cursor"),
        "{}",
        ran.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn references_that_sessions_opened_are_trained_when_configuration_says_so() {
    let mut machine = Machine::new();
    let skill = machine.write(
        "home/.claude/skills/deploy/SKILL.md",
        "---\nname: deploy\ndescription: How we ship.\n---\n\n# Deploy\n",
    );
    let regions = machine.write(
        "home/.claude/skills/deploy/references/regions.md",
        "# Regions\n",
    );
    machine.write(
        "home/.claude/skills/deploy/references/unread.md",
        "# Unread\n",
    );
    let opened = regions.display().to_string();
    sessions(
        &machine,
        "ship the service",
        8,
        Some("deploy"),
        Some(&opened),
    );
    let _server = with_model(&mut machine).await;
    configure(&mut machine, "documents: {skill: {enabled: false}}\n");
    let night = machine.json(&["run", "--json"]);
    assert_eq!(night["documents"].as_array().unwrap().len(), 1, "{night}");

    configure(
        &mut machine,
        "documents: {skill: {enabled: false}, skills: {references: true}}\n",
    );
    let night = machine.json(&["run", "--json", "--since", "2000d"]);
    let reference = named(&night, "deploy/references/regions.md");
    assert_eq!(night["documents"].as_array().unwrap().len(), 2, "{night}");
    assert_eq!(
        (&reference["kind"], &reference["verified"]),
        (&"reference".into(), &true.into())
    );
    let id = reference["proposal"].as_str().unwrap();
    machine.ok(&["review", id, "--accept"]);
    machine.ok(&["adopt", id]);
    assert_eq!(
        std::fs::read_to_string(&regions).unwrap(),
        format!("# Regions\n\n{}\n", LESSONS[2].1)
    );
    assert!(
        !std::fs::read_to_string(&skill)
            .unwrap()
            .contains(LESSONS[2].1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_cannot_be_written_is_refused_before_a_model_is_asked() {
    let (mut machine, triage, deploy) = shop();
    let server = with_model(&mut machine).await;
    std::fs::set_permissions(&triage, std::fs::Permissions::from_mode(0o444)).unwrap();
    let elsewhere = machine.write("elsewhere/SKILL.md", "# Deploy\n");
    std::fs::remove_file(&deploy).unwrap();
    symlink(&elsewhere, &deploy).unwrap();
    configure(
        &mut machine,
        "documents: {skill: {path: /nix/store/abc-skills/kept/SKILL.md}}\n",
    );
    let reasons = [
        (triage.display().to_string(), "chmod u+w"),
        (
            deploy.display().to_string(),
            "outside the skill directories",
        ),
        (
            "/nix/store/abc-skills/kept/SKILL.md".to_owned(),
            "package manager",
        ),
    ];
    let planned = machine.ok(&["run", "--dry-run"]).stdout;
    for (path, reason) in &reasons {
        let told = |line: &str| {
            line.starts_with("refused") && line.contains(path) && line.contains(reason)
        };
        assert!(planned.lines().any(told), "{path}: {planned}");
    }

    let ran = machine.run(&["run", "--json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("no document that this night may change"),
        "{}",
        ran.stderr
    );
    let night: Value = serde_json::from_str(&ran.stdout).unwrap();
    for (path, reason) in &reasons {
        let refused = night["refused"].as_array().unwrap();
        let told = |one: &Value| {
            one["path"] == path.as_str() && one["reason"].as_str().unwrap().contains(reason)
        };
        assert!(refused.iter().any(told), "{path}: {night}");
    }
    let report = machine.ok(&["log", "1"]).stdout;
    assert!(report.contains("## Left alone"), "{report}");
    assert!(server.answered().is_empty(), "nothing was spent");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_refused_document_does_not_stop_the_others() {
    let (mut machine, triage, _) = shop();
    let _server = with_model(&mut machine).await;
    let folder = triage.parent().unwrap();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o555)).unwrap();
    configure(&mut machine, "");
    let night = machine.json(&["run", "--json"]);
    assert_eq!(night["documents"].as_array().unwrap().len(), 2, "{night}");
    assert_eq!(night["refused"][0]["name"], "triage");
    let reason = night["refused"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("cannot be written"), "{reason}");
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}
