//! What a user does with a night: run it over HTTP on real logs, review, adopt, revert.

use crate::machine::{Machine, data};
use crate::model_server::{Asked, ModelServer};

const RULE: &str = "- Always run the tests before you say that work is done.";

/// Answers well when the skill has [`RULE`], grades such answers well, and proposes the rule.
fn developer_who_wants_tests(asked: &Asked) -> Result<String, u16> {
    developer_who_wants(RULE, asked)
}

fn developer_who_wants(rule: &str, asked: &Asked) -> Result<String, u16> {
    if asked.system.contains("You grade how well") {
        let good = asked.user.contains("EVIDENCE");
        let score = if good { 0.9 } else { 0.2 };
        return Ok(format!(r#"{{"score": {score}, "reason": "tests"}}"#));
    }
    if asked.system.contains("You improve a skill document") {
        return Ok(format!(
            r#"{{"patch": {{"reasoning": "r", "edits": [{{"op": "append", "content": "{rule}", "rationale": "asked for"}}]}}}}"#
        ));
    }
    Ok(if asked.system.contains(rule) {
        "EVIDENCE".to_owned()
    } else {
        "It works.".to_owned()
    })
}

/// How many sessions of the test data a night should look at, by its truth file.
fn sessions() -> usize {
    let text = std::fs::read_to_string(data("sessions/truth.json")).unwrap();
    let truth: serde_json::Value = serde_json::from_str(&text).unwrap();
    let of_a_person = |session: &&serde_json::Value| {
        session["harvest"] == true && (session["agent"] == "claude" || session["agent"] == "codex")
    };
    truth["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(of_a_person)
        .count()
}

fn with_real_logs() -> Machine {
    let machine = Machine::new();
    machine.copy(&data("sessions/claude"), "home/.claude");
    machine.copy(&data("sessions/codex"), "home/.codex");
    machine
}

async fn with_model(machine: &mut Machine) -> ModelServer {
    let server = ModelServer::start(developer_who_wants_tests).await;
    machine.set("OPENAI_COMPATIBLE_BASE_URL", &server.url());
    machine.set("OPENAI_COMPATIBLE_API_KEY", "test-key");
    machine.set("OPENAI_COMPATIBLE_MODEL", "fake-model");
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_night_on_real_logs_is_reviewed_adopted_and_reverted() {
    let mut machine = with_real_logs();
    let _server = with_model(&mut machine).await;
    let skill = "# House rules\n\n- Small changes.\n";
    let path = machine.write("home/.claude/skills/skillopt-sleep-learned/SKILL.md", skill);

    let night = machine.json(&["run", "--json"]);
    assert_eq!(night["documents"][0]["accepted"], true);
    let id = night["documents"][0]["proposal"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        skill,
        "a night changes nothing"
    );

    let shown = machine.ok(&["review", &id, "--show"]).stdout;
    assert!(shown.contains(&format!("+{RULE}")), "{shown}");
    let listed = machine.json(&["review", "--json"]);
    assert_eq!(listed["proposals"][0]["status"]["state"], "pending");

    machine.ok(&["review", &id, "--accept"]);
    let preview = machine.ok(&["adopt", "--dry-run"]).stdout;
    assert!(preview.contains(RULE), "{preview}");
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        skill,
        "a dry run changes nothing"
    );
    machine.ok(&["adopt"]);
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        format!("{skill}\n{RULE}\n")
    );

    let status = machine.json(&["status", "--json"]);
    assert_eq!(status["last_night"]["status"], "done");
    assert_eq!(status["proposals"][0]["status"]["state"], "adopted");
    assert_eq!(status["adoptions"][0]["in_force"], true);

    machine.ok(&["revert"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), skill);
    let status = machine.json(&["status", "--json"]);
    assert_eq!(status["proposals"][0]["status"]["state"], "reverted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_that_was_not_there_is_created_and_removed_again() {
    let mut machine = with_real_logs();
    let _server = with_model(&mut machine).await;
    machine.ok(&["run"]);
    machine.ok(&["review", "--accept"]);
    machine.ok(&["adopt"]);
    let path = machine.path("home/.claude/skills/skillopt-sleep-learned/SKILL.md");
    assert!(std::fs::read_to_string(&path).unwrap().contains(RULE));
    machine.ok(&["revert"]);
    let status = machine.ok(&["status"]).stdout;
    assert!(status.contains("reverted    a2"), "{status}");
    assert!(!path.exists());
    assert!(
        !machine.path("home/.claude/skills").exists(),
        "its folders too"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_and_its_reason_reach_the_next_night() {
    let mut machine = with_real_logs();
    let server = with_model(&mut machine).await;
    machine.ok(&["run"]);
    machine.ok(&["review", "--reject", "--reason", "we have CI for that"]);
    let before = server.answered().len();
    let ran = machine.ok(&["run"]);
    assert!(ran.stdout.contains("no session is newer"), "{}", ran.stdout);
    assert_eq!(server.answered().len(), before);
    machine.ok(&["run", "--since", "2000d"]);
    let told = server.answered()[before..]
        .iter()
        .filter(|body| body.contains("You improve a skill document"))
        .all(|body| body.contains("we have CI for that"));
    assert!(told);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_learned_block_of_an_instruction_file_is_trained_when_asked_for() {
    let mut machine = with_real_logs();
    let _server = with_model(&mut machine).await;
    let own = "# Ours\r\n\r\nHand-written.\r\n";
    let path = machine.write("home/project/AGENTS.md", own);
    machine.ok(&["run", "--target", path.to_str().unwrap()]);
    machine.ok(&["review", "--accept"]);
    let refused = machine.run(&["adopt"]);
    assert_eq!(
        refused.code,
        Some(1),
        "only configuration can allow the file"
    );
    machine.write(
        "config.yaml",
        &format!(
            "projects: {{mode: list, paths: [{:?}]}}\ndocuments: {{memory: {{enabled: true}}}}\n",
            machine.path("home/project")
        ),
    );
    let config = machine.path("config.yaml");
    machine.ok(&["--config", config.to_str().unwrap(), "adopt"]);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(own), "{text}");
    assert!(text.contains(RULE), "{text}");
    assert!(
        !text.replace("\r\n", "").contains('\n'),
        "line ends are kept"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_leaves_its_file_as_it_is_is_told_and_no_failure() {
    let mut machine = with_real_logs();
    // A heading is no rule, so the learned block stays empty.
    let server = ModelServer::start(|asked| developer_who_wants("# Run the tests", asked)).await;
    machine.set("OPENAI_COMPATIBLE_BASE_URL", &server.url());
    machine.set("OPENAI_COMPATIBLE_API_KEY", "test-key");
    let path = machine.write("home/project/AGENTS.md", "# Ours\n");
    let night = machine.json(&["run", "--json", "--target", path.to_str().unwrap()]);
    assert_eq!(night["documents"].as_array().unwrap().len(), 0, "{night}");
    let reason = night["refused"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("the document's own"), "{reason}");
}

#[test]
fn without_a_model_a_night_still_reports_what_it_found() {
    let machine = with_real_logs();
    let ran = machine.run(&["run"]);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert!(
        ran.stdout.contains(&sessions().to_string()),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stderr.contains("OPENAI_COMPATIBLE_BASE_URL"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        machine.json(&["status", "--json"])["last_night"]["report"]["sessions"],
        sessions()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_cannot_be_used_is_named_once() {
    for (status, word) in [(401, "key"), (404, "name")] {
        let mut machine = with_real_logs();
        let server = ModelServer::start(move |_| Err(status)).await;
        machine.set("OPENAI_COMPATIBLE_BASE_URL", &server.url());
        machine.set("OPENAI_COMPATIBLE_API_KEY", "wrong-key");
        let ran = machine.run(&["run"]);
        assert_eq!(ran.code, Some(4), "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("error:").count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.contains(word), "{}", ran.stderr);
        assert!(!ran.stderr.contains("wrong-key"), "{}", ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_night_goes_on_and_pays_for_no_call_twice() {
    let mut undisturbed = with_real_logs();
    let server = with_model(&mut undisturbed).await;
    undisturbed.ok(&["run", "--budget", "time=1h"]);
    let mut expected = server.answered();

    let mut machine = with_real_logs();
    let server = with_model(&mut machine).await;
    machine.write(
        "config.yaml",
        "models: {optimizer: {concurrency: 1}, target: {concurrency: 1}}\n",
    );
    machine.set(
        "SKILLOPT_SLEEP_CONFIG",
        &machine.path("config.yaml").display().to_string(),
    );
    for answers in [3, 20, 31] {
        let (told, stalled) = std::sync::mpsc::channel();
        server.stall_after(answers, told);
        let mut child = machine.command().arg("run").spawn().unwrap();
        stalled
            .recv_timeout(std::time::Duration::from_secs(60))
            .unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let night = machine.json(&["run", "--json"]);
    assert_eq!(night["night"], 1, "it is the same night");
    assert_eq!(night["documents"][0]["accepted"], true);
    let mut answered = server.answered();
    // A call of the other role may have been under way at each kill; nothing else is made again.
    let repeated = answered.len() - expected.len();
    assert!(repeated <= 3, "{repeated} calls were repeated");
    expected.sort();
    answered.sort();
    answered.dedup();
    expected.dedup();
    assert!(
        answered == expected,
        "other calls were made than in an undisturbed night"
    );
}

#[test]
fn a_second_run_says_who_holds_the_lock() {
    let machine = with_real_logs();
    let lock = skillopt_files::Lock::acquire(&machine.path("state/night.lock"), "a night").unwrap();
    let ran = machine.run(&["run"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("a night") && ran.stderr.contains("since"),
        "{}",
        ran.stderr
    );
    drop(lock);
}

#[test]
fn damaged_logs_cost_only_themselves() {
    let machine = with_real_logs();
    let folder = "home/.claude/projects/-home-dev-damaged";
    machine.write(
        &format!("{folder}/binary.jsonl"),
        "\u{0}\u{1}\u{2}not json\n",
    );
    let bytes = b"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"bad \xff utf8\"},\"uuid\":\"a\",\"cwd\":\"/home/dev/x\",\"sessionId\":\"s\",\"timestamp\":\"2026-10-01T00:00:00Z\"}\n{\"type\":\"user\",";
    std::fs::write(machine.path(&format!("{folder}/torn.jsonl")), bytes).unwrap();
    let long = format!(
        "{{\"type\":\"user\",\"pad\":\"{}\"}}\n",
        "x".repeat(50 << 20)
    );
    machine.write(&format!("{folder}/long.jsonl"), &long);
    machine.write(
        &format!("{folder}/unknown.jsonl"),
        "{\"type\":\"from-the-future\"}\n[1]\n7\n",
    );
    let listed = machine.json(&["harvest", "list", "--json"]);
    let read = listed["sessions"].as_array().unwrap().len();
    assert_eq!(read, sessions() + 1, "the whole ones and the torn one");
    let report = &listed["report"];
    assert!(
        report["flaw_counts"]["torn"].as_u64().unwrap() >= 1,
        "{report}"
    );
    assert_eq!(
        report["unknown_kinds"]["claude/from-the-future"], 1,
        "{report}"
    );
}

#[test]
fn a_night_is_planned_without_a_call() {
    let machine = with_real_logs();
    let ran = machine.ok(&["run", "--dry-run"]);
    assert!(
        ran.stdout.contains("tasks      40"),
        "at most 40: {}",
        ran.stdout
    );
    assert!(!machine.path("state/runs").exists());
}

#[test]
fn a_wrong_configuration_names_file_line_key_and_the_right_name() {
    let machine = with_real_logs();
    machine.write("config.yaml", "max_tasks: 5\nval_fractoin: 0.5\n");
    let config = machine.path("config.yaml").display().to_string();
    let ran = machine.run(&["--config", &config, "run"]);
    assert_eq!(ran.code, Some(1));
    for part in ["config.yaml:2", "val_fractoin", "val_fraction"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}
