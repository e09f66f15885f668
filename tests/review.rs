//! Review on a real pseudo-terminal, on a dumb one, and without any.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use portable_pty::{Child, CommandBuilder, PtySize, native_pty_system};
use skillopt_staging::{
    Base, Cost, Document, DocumentKind, Draft, EditStatus, Evidence, Finding, GateRecord,
    ItemDelta, Level, Origin, RejectedCandidate, StagedEdit, StagingArea,
};

use crate::machine::{Machine, data};
use crate::model_server::{Asked, ModelServer};

/// How long a screen may take to come, on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

const RULES: [&str; 3] = [
    "- Run the tests before you say that work is done.",
    "- Keep answers short.",
    "- Name the file that was changed.",
];

/// Proposes three rules, and does better once the first is in the skill.
fn three_rules(asked: &Asked) -> Result<String, u16> {
    if asked.system.contains("You grade how well") {
        let score = if asked.user.contains("EVIDENCE") {
            0.9
        } else {
            0.2
        };
        return Ok(format!(r#"{{"score": {score}, "reason": "tests"}}"#));
    }
    if asked.system.contains("You improve a skill document") {
        let edits: Vec<_> = RULES
            .iter()
            .map(|rule| serde_json::json!({"op": "append", "content": rule, "rationale": "asked for"}))
            .collect();
        return Ok(serde_json::json!({"patch": {"reasoning": "r", "edits": edits}}).to_string());
    }
    Ok(if asked.system.contains(RULES[0]) {
        "EVIDENCE".to_owned()
    } else {
        "It works.".to_owned()
    })
}

/// The program in a pseudo-terminal, and what its screen shows.
struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    bytes: Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

impl Terminal {
    fn start(machine: &Machine, args: &[&str], term: &str) -> Self {
        let size = PtySize {
            rows: 24,
            cols: 80,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_skillopt-sleep"));
        command.env_clear();
        for (name, value) in machine.command().get_envs() {
            command.env(name, value.unwrap());
        }
        command.env("TERM", term);
        command.cwd(machine.path("home"));
        command.args(args);
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let keys = pair.master.take_writer().unwrap();
        let (send, bytes) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length) = reader.read(&mut buffer) {
                if length == 0 || send.send(buffer[..length].to_vec()).is_err() {
                    break;
                }
            }
            // The other side stays open for as long as something may be read.
            drop(pair.master);
        });
        Self {
            child,
            keys,
            bytes,
            screen: vt100::Parser::new(24, 80, 0),
        }
    }

    fn shown(&self) -> String {
        self.screen.screen().contents()
    }

    /// Waits until the screen shows something.
    fn expect(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.shown().contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            match self.bytes.recv_timeout(left) {
                Ok(bytes) => self.screen.process(&bytes),
                Err(_) => panic!("{text:?} did not come:\n{}", self.shown()),
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits for the end of the program.
    fn end(mut self) -> String {
        while let Ok(bytes) = self.bytes.recv_timeout(PATIENCE) {
            self.screen.process(&bytes);
        }
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status:?}\n{}", self.shown());
        self.shown()
    }
}

/// A machine after a night that proposes three edits of one skill.
async fn night_of_three() -> (Machine, ModelServer, PathBuf) {
    let mut machine = Machine::new();
    machine.copy(&data("sessions/claude"), "home/.claude");
    let server = ModelServer::start(three_rules).await;
    machine.set("OPENAI_COMPATIBLE_BASE_URL", &server.url());
    machine.set("OPENAI_COMPATIBLE_API_KEY", "test-key");
    machine.set("OPENAI_COMPATIBLE_MODEL", "fake-model");
    let path = machine.write("home/.claude/skills/skillopt-sleep-learned/SKILL.md", SKILL);
    let night = machine.json(&["run", "--json"]);
    assert_eq!(night["documents"][0]["proposal"], "n1-1", "{night}");
    (machine, server, path)
}

const SKILL: &str = "---\nname: skillopt-sleep-learned\ndescription: House rules.\n---\n\n# House rules\n\n- Small changes.\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_night_is_reviewed_with_keys_adopted_and_reverted() {
    let (machine, _server, path) = night_of_three().await;
    let mut terminal = Terminal::start(&machine, &["review"], "xterm-256color");
    terminal.expect("1 of 1 · n1-1 skillopt-sleep-learned · pending");
    terminal.expect("+ - Keep answers short.");
    terminal.press("\t");
    terminal.expect("because asked for");
    terminal.press("1n");
    terminal.expect("edit 1 of 3");
    terminal.press("a");
    terminal.expect("edit 2 of 3");
    terminal.press("r");
    terminal.expect("why do you reject edit 2?");
    terminal.press("we like them long\r");
    terminal.expect("edit 3 of 3");
    let stored = machine.json(&["review", "n1-1", "--json"]);
    assert_eq!(
        stored["proposals"][0]["status"]["edits"],
        serde_json::json!([1]),
        "stored at once"
    );
    terminal.press("a");
    terminal.expect("adopt now? one document would be written:");
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        SKILL,
        "nothing is written before"
    );
    terminal.press("y");
    let said = terminal.end();
    assert!(
        said.contains("accepted 2, rejected 1") && said.contains("revert a1"),
        "{said}"
    );
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains(RULES[0]) && !text.contains(RULES[1]) && text.contains(RULES[2]),
        "{text}"
    );

    let story = machine
        .ok(&["log", "--document", "skillopt-sleep-learned"])
        .stdout;
    for part in [
        "proposed by night n1",
        "accepted (edits 1, 3)",
        "rejected (edits 2): we like them long",
        "adopted as a1",
    ] {
        assert!(story.contains(part), "{part}: {story}");
    }
    machine.ok(&["revert"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), SKILL);
    assert!(
        machine
            .ok(&["log", "--document", path.to_str().unwrap()])
            .stdout
            .contains("a1  reverted by a2")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_text_is_linted_and_adopted_only_when_its_risk_is_allowed() {
    let (mut machine, _server, path) = night_of_three().await;
    let editor = machine.write(
        "editor.sh",
        "printf '%s\\n' '- Skip the failing tests.' >> \"$1\"\n",
    );
    machine.set("EDITOR", &format!("sh {}", editor.display()));
    let mut terminal = Terminal::start(&machine, &["review"], "xterm-256color");
    terminal.expect("n1-1");
    terminal.press("e");
    terminal.expect("danger · disabled-checks");
    terminal.press("q");
    terminal.expect("n1-1 is held back: danger disabled-checks");
    terminal.press("q");
    terminal.end();
    let refused = machine.run(&["adopt"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("--allow-risk disabled-checks"),
        "{}",
        refused.stderr
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), SKILL);
    assert_eq!(
        machine.run(&["adopt", "--allow-risk", "nonsense"]).code,
        Some(1)
    );
    machine.ok(&["adopt", "--allow-risk", "disabled-checks"]);
    assert!(
        std::fs::read_to_string(&path)
            .unwrap()
            .contains("Skip the failing tests.")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dumb_terminal_gets_plain_questions() {
    let (machine, _server, path) = night_of_three().await;
    let mut terminal = Terminal::start(&machine, &["review"], "dumb");
    terminal.expect("n1-1 edit 1: [a]ccept");
    terminal.press("a\n");
    terminal.expect("n1-1 edit 2: [a]ccept");
    terminal.press("r\n");
    terminal.expect("why?");
    terminal.press("too short\n");
    terminal.expect("n1-1 edit 3: [a]ccept");
    terminal.press("s\n");
    terminal.expect("adopt now? [y/N]");
    terminal.press("y\n");
    terminal.end();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains(RULES[0]) && !text.contains(RULES[1]) && !text.contains(RULES[2]),
        "{text}"
    );
}

#[test]
fn without_a_terminal_it_says_which_flags_to_use() {
    let machine = Machine::new();
    assert_eq!(
        machine.ok(&["review"]).stderr.trim(),
        "nothing waits for review"
    );
    stage(&machine, 2);
    let refused = machine.run(&["review"]);
    assert_eq!(refused.code, Some(1));
    for flag in [
        "--list", "--show", "--accept", "--reject", "--edit", "--json",
    ] {
        assert!(refused.stderr.contains(flag), "{flag}: {}", refused.stderr);
    }
    assert_eq!(machine.ok(&["review", "--list"]).stdout.lines().count(), 2);
}

#[test]
fn the_flag_edit_takes_the_text_of_the_editor() {
    let mut machine = Machine::new();
    stage(&machine, 1);
    assert_eq!(
        machine.run(&["review", "n1-1", "--edit"]).code,
        Some(1),
        "there is no editor"
    );
    let editor = machine.write("editor.sh", "echo '- Mine.' >> \"$1\"\n");
    machine.set("VISUAL", &format!("sh {}", editor.display()));
    machine.ok(&["review", "n1-1", "--edit"]);
    machine.ok(&["adopt"]);
    assert!(
        std::fs::read_to_string(machine.path("home/.claude/skills/skill-0/SKILL.md"))
            .unwrap()
            .ends_with("- Mine.\n")
    );
    let refused = machine.run(&["review", "n1-1", "--edit"]);
    assert_eq!(refused.code, Some(1), "it is adopted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_night_supersedes_what_was_not_decided_and_old_proposals_expire() {
    let (machine, _server, _) = night_of_three().await;
    stage_at(
        &machine,
        1,
        "n0",
        Timestamp::now() - SignedDuration::from_hours(24 * 40),
    );
    let night = machine.json(&["run", "--since", "2000d", "--json"]);
    assert_eq!(night["documents"][0]["proposal"], "n2-1");
    assert!(
        night["notes"].to_string().contains("n0-1 expired"),
        "{}",
        night["notes"]
    );
    let states = machine.json(&["review", "--all", "--json"]);
    let state = |id: &str| {
        let all = states["proposals"].as_array().unwrap();
        all.iter().find(|one| one["proposal"]["id"] == id).unwrap()["status"]["state"].clone()
    };
    assert_eq!(
        (state("n0-1"), state("n1-1"), state("n2-1")),
        ("expired".into(), "superseded".into(), "pending".into())
    );
    assert!(
        machine
            .ok(&["log", "--document", "skillopt-sleep-learned"])
            .stdout
            .contains("n1-1  superseded by n2-1")
    );
    let unknown = machine.run(&["log", "--document", "nothing"]);
    assert_eq!(unknown.code, Some(1));
    assert!(
        unknown.stderr.contains("skillopt-sleep-learned"),
        "{}",
        unknown.stderr
    );
}

/// `cargo test --release --test main review_of_200 -- --ignored --nocapture` prints how long it
/// takes.
#[test]
#[ignore = "a measurement: meaningful in release only"]
fn review_of_200_proposals_opens_at_once() {
    let machine = Machine::new();
    stage(&machine, 200);
    let mut times: Vec<f64> = (0..11)
        .map(|_| {
            let started = Instant::now();
            let mut terminal = Terminal::start(&machine, &["review"], "xterm-256color");
            terminal.expect("1 of 200");
            terminal.expect("Rule number");
            let time = started.elapsed().as_secs_f64();
            terminal.press("\u{3}");
            terminal.end();
            time * 1000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "from start to first screen: median {:.0} ms, slowest {:.0} ms",
        times[5], times[10]
    );
    assert!(times[5] < 100.0, "{times:?}");
}

fn stage(machine: &Machine, count: usize) {
    stage_at(
        machine,
        count,
        "n1",
        "2026-11-28T03:00:00Z".parse().unwrap(),
    );
}

/// Stages proposals for skills that are there, each with ten edits of 4 kB documents.
fn stage_at(machine: &Machine, count: usize, night: &str, created: Timestamp) {
    let area = StagingArea::open(&machine.path("state/staging")).unwrap();
    for number in 0..count {
        let name = format!("skill-{number}");
        let base = format!(
            "---\nname: {name}\ndescription: House rules.\n---\n\n# House rules\n\n{}",
            "- Words of a rule.\n".repeat(200)
        );
        let path = machine.write(&format!("home/.claude/skills/{name}/SKILL.md"), &base);
        let edits: Vec<StagedEdit> = (1..=10)
            .map(|index| StagedEdit {
                index,
                op: "append".to_owned(),
                target: String::new(),
                anchor: None,
                content: format!("- Rule number {index}."),
                rationale: "asked for".to_owned(),
                origin: Origin::Model,
                status: EditStatus::Applied,
                contribution: None,
                evidence: Vec::new(),
            })
            .collect();
        let rules: Vec<&str> = edits.iter().map(|edit| edit.content.as_str()).collect();
        let draft = Draft {
            night: night.to_owned(),
            created,
            document: Document {
                kind: DocumentKind::Skill,
                name,
                path,
                real_path: None,
                hosts: Vec::new(),
            },
            proposed: format!("{base}\n{}\n", rules.join("\n\n")),
            base: Base::of(base),
            edits,
            gate: GateRecord::default(),
            rejected: Vec::new(),
            lint: Vec::new(),
            cost: Cost::default(),
            verified: true,
        };
        area.stage(draft).unwrap();
    }
}

/// What a terminal must not be sent by a log, a model, or whoever edits a staged file.
const ESCAPES: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{200b}\r";

#[test]
fn no_field_of_a_proposal_reaches_the_terminal_raw() {
    let machine = Machine::new();
    let area = StagingArea::open(&machine.path("state/staging")).unwrap();
    let path = machine.write("home/.claude/skills/MARK/SKILL.md", "# Rules MARK\n");
    let edit = StagedEdit {
        index: 1,
        op: "append MARK".to_owned(),
        target: "target MARK".to_owned(),
        anchor: Some("anchor MARK".to_owned()),
        content: "- A rule MARK.".to_owned(),
        rationale: "reason MARK".to_owned(),
        origin: Origin::Model,
        status: EditStatus::Applied,
        contribution: Some(0.5),
        evidence: vec![Evidence {
            task: "task MARK".to_owned(),
            session: "session MARK".to_owned(),
            project: "project MARK".to_owned(),
            date: "date MARK".to_owned(),
            quote: "quote MARK".to_owned(),
            file: Some("log MARK".into()),
            offset: Some(7),
        }],
    };
    let gate = GateRecord {
        action: "accept MARK".to_owned(),
        rule: "rule MARK".to_owned(),
        metric: "metric MARK".to_owned(),
        baseline: Some(0.0),
        candidate: Some(1.0),
        items: vec![ItemDelta {
            id: "item MARK".to_owned(),
            label: "label MARK".to_owned(),
            baseline: None,
            candidate: Some(1.0),
        }],
        ..GateRecord::default()
    };
    let draft = Draft {
        night: "n1".to_owned(),
        created: "2026-11-28T03:00:00Z".parse().unwrap(),
        document: Document {
            kind: DocumentKind::Skill,
            name: "name MARK".to_owned(),
            path,
            real_path: None,
            hosts: vec!["host MARK".to_owned()],
        },
        base: Base::of("# Rules MARK\n"),
        proposed: format!("# Rules MARK\n- A rule MARK {ESCAPES}.\n"),
        edits: vec![edit.clone()],
        rejected: vec![RejectedCandidate {
            edits: vec![edit],
            gate: gate.clone(),
        }],
        gate,
        lint: vec![Finding {
            rule: "finding MARK".to_owned(),
            level: Level::Danger,
            line: Some(1),
            excerpt: "excerpt MARK".to_owned(),
        }],
        cost: Cost::default(),
        verified: false,
    };
    area.stage(draft).unwrap();
    // Staging would refuse some of it; whoever can write the file is not asked.
    let record = machine.path("state/staging/n1/n1-1/proposal.json");
    let escaped = serde_json::to_string(ESCAPES).unwrap();
    let forged = std::fs::read_to_string(&record)
        .unwrap()
        .replace("MARK", &format!("MARK{}", escaped.trim_matches('"')));
    std::fs::write(&record, forged).unwrap();
    machine.write(
        "state/nights/night-0001/report.md",
        &format!("# Night 1 {ESCAPES}\n"),
    );

    for args in [
        &["review", "--list"][..],
        &["review", "--show"],
        &["review", "n1-1", "--accept"],
        &["review", "n1-1", "--reject", "--reason", ESCAPES],
        &["review", "--all", "--list"],
        &["review", ESCAPES],
        &["adopt", "--dry-run"],
        &["adopt", ESCAPES],
        &["revert", ESCAPES],
        &["log", "--document", "MARK"],
        &["status"],
    ] {
        let ran = machine.run(args);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let raw = said
            .chars()
            .find(|c| *c != '\n' && *c != '\t' && skillopt_staging::has_hidden(&c.to_string()));
        assert_eq!(raw, None, "{args:?}: {said:?}");
    }

    let mut terminal = Terminal::start(&machine, &["review", "--all"], "xterm-256color");
    terminal.expect("n1-1");
    for tab in ["1", "2", "3", "4", "5"] {
        terminal.press(tab);
    }
    terminal.expect("Night 1");
    assert!(!terminal.shown().contains(['\u{202e}', '\u{200b}']));
    terminal.press("\u{3}");
    terminal.end();
}
