//! Logs as they are after crashes, power cuts, editors and malice. Whatever stands in
//! one, nothing panics, nothing hangs, every skipped thing is counted, and the sessions
//! beside it are read.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use skillopt_harvesters::report::{Flaw, Repair, SkipReason};
use skillopt_harvesters::{Agent, Harvest, HarvestOptions, Limits, Roots, harvest};
use tempfile::TempDir;

/// A home with one good session of each agent.
struct Home(TempDir);

const CLAUDE: &str = r#"{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"fix the rounding"},"uuid":"UUID-u1","timestamp":"2026-10-05T08:39:15.1Z","entrypoint":"cli","cwd":"/home/dev/x","sessionId":"s1","version":"2.1.332","gitBranch":"main"}
{"parentUuid":"UUID-u1","isSidechain":false,"type":"assistant","message":{"id":"msg_UUID","role":"assistant","model":"m","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}},"uuid":"UUID-a1","timestamp":"2026-10-05T08:39:16.1Z","cwd":"/home/dev/x","sessionId":"s1","version":"2.1.332"}
"#;

const CODEX: &str = r#"{"timestamp":"2026-10-12T08:39:15.352Z","ordinal":0,"type":"session_meta","payload":{"id":"01a12f44-1be4-7292-a61b-921e516a6928","cwd":"/home/dev/x","originator":"codex-tui","cli_version":"0.171.0","source":"cli"}}
{"timestamp":"2026-10-12T08:39:16.352Z","ordinal":1,"type":"event_msg","payload":{"type":"item_completed","turn_id":"t1","item":{"type":"UserMessage","content":[{"type":"text","text":"fix it"}]}}}
{"timestamp":"2026-10-12T08:39:17.352Z","ordinal":2,"type":"event_msg","payload":{"type":"item_completed","turn_id":"t1","item":{"type":"AgentMessage","content":[{"type":"Text","text":"Done."}]}}}
"#;

impl Home {
    fn new() -> Home {
        let home = Home(tempfile::tempdir().unwrap());
        home.claude("good", CLAUDE.replace("UUID", "good").as_bytes());
        home.codex("01a12f44-1be4-7292-a61b-921e516a6928", CODEX.as_bytes());
        home
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, path: PathBuf, bytes: &[u8]) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn claude(&self, name: &str, bytes: &[u8]) {
        self.write(
            self.path()
                .join(format!("claude/projects/-home-dev-x/{name}.jsonl")),
            bytes,
        );
    }

    fn codex(&self, id: &str, bytes: &[u8]) {
        let name = format!("codex/sessions/2026/10/12/rollout-2026-10-12T08-39-15-{id}.jsonl");
        self.write(self.path().join(name), bytes);
    }

    fn harvest(&self) -> Harvest {
        self.harvest_with(&HarvestOptions::default())
    }

    fn harvest_with(&self, options: &HarvestOptions) -> Harvest {
        let roots = Roots::none()
            .with(Agent::Claude, self.path().join("claude"))
            .with(Agent::Codex, self.path().join("codex"));
        harvest(&roots, options)
    }
}

/// The first prompts of all sessions but the two good ones, which must be there.
fn others(harvest: &Harvest) -> Vec<String> {
    let mut prompts = Vec::new();
    let mut good = 0;
    for session in &harvest.sessions {
        if session.id == "good" || session.id == "01a12f44-1be4-7292-a61b-921e516a6928" {
            good += 1;
            assert_eq!(session.finals().count(), 1);
        } else {
            prompts.extend(session.prompts().map(|prompt| prompt.text.to_string()));
        }
    }
    assert_eq!(good, 2, "a neighbour was lost");
    prompts
}

/// A name, a log, and what must be noted about it.
type Case<'a> = (&'a str, Vec<u8>, Option<Flaw>, Option<Repair>);

#[test]
fn damaged_lines_cost_themselves_only() {
    let good = CLAUDE.replace("UUID", "x");
    let (first, second) = good.split_once('\n').unwrap();
    let cases: Vec<Case<'_>> = vec![
        (
            "torn line in the middle",
            format!("{}\n{first}\n{second}", &first[..80]).into_bytes(),
            Some(Flaw::Torn),
            None,
        ),
        (
            "torn and whole glued",
            format!("{}{first}\n{second}", &first[..80]).into_bytes(),
            Some(Flaw::Torn),
            None,
        ),
        (
            "two records glued",
            format!("{first}{}", second).into_bytes(),
            None,
            Some(Repair::Glued),
        ),
        (
            "last line cut",
            format!("{first}\n{}", &second[..90]).into_bytes(),
            Some(Flaw::Unfinished),
            None,
        ),
        (
            "nul runs",
            format!("{first}\n\0\0\0\0{second}\n\0\0\0").into_bytes(),
            None,
            Some(Repair::Nul),
        ),
        (
            "byte order mark",
            format!("\u{feff}{first}\n{second}").into_bytes(),
            None,
            Some(Repair::Bom),
        ),
        (
            "carriage returns",
            format!("{first}\r\n{second}\r\n").into_bytes(),
            None,
            Some(Repair::CarriageReturn),
        ),
        (
            "no objects",
            format!("null\n3\n\"x\"\n[1]\n{first}\n{second}").into_bytes(),
            Some(Flaw::NotAnObject),
            None,
        ),
        (
            "deep nesting",
            format!(
                "{}{}\n{first}\n{second}",
                "[".repeat(5_000),
                "]".repeat(5_000)
            )
            .into_bytes(),
            Some(Flaw::TooDeep),
            None,
        ),
        (
            "half surrogates",
            format!(
                "{}\n{second}",
                first.replace("rounding", r"rounding \ud83d x")
            )
            .into_bytes(),
            None,
            Some(Repair::LoneSurrogate),
        ),
        (
            "invalid utf-8",
            [
                &first.as_bytes()[..100],
                b"\xff\xfe",
                &first.as_bytes()[100..],
                b"\n",
                second.as_bytes(),
            ]
            .concat(),
            None,
            Some(Repair::InvalidUtf8),
        ),
    ];
    for (name, bytes, flaw, repair) in cases {
        let home = Home::new();
        home.claude("bad", &bytes);
        let found = home.harvest();
        let prompts = others(&found);
        assert_eq!(prompts.len(), 1, "{name}: {:?}", found.report);
        assert!(prompts[0].starts_with("fix the rou"), "{name}: {prompts:?}");
        if let Some(flaw) = flaw {
            assert!(found.report.flaws(flaw) > 0, "{name}: {:?}", found.report);
        }
        if let Some(repair) = repair {
            assert!(
                found.report.repairs.contains_key(&repair),
                "{name}: {:?}",
                found.report.repairs
            );
        }
    }
}

#[test]
fn oversized_lines_are_dropped_and_counted() {
    let home = Home::new();
    let good = CLAUDE.replace("UUID", "x");
    home.claude(
        "big",
        format!("{{\"x\":\"{}\"}}\n{good}", "y".repeat(100_000)).as_bytes(),
    );
    let limits = Limits {
        line: 50_000,
        ..Limits::default()
    };
    let found = home.harvest_with(&HarvestOptions {
        limits,
        ..HarvestOptions::default()
    });
    assert_eq!(others(&found), ["fix the rounding"]);
    assert_eq!(found.report.flaws(Flaw::Oversized), 1);
}

#[test]
fn line_separators_in_strings_do_not_split() {
    let home = Home::new();
    let good = CLAUDE
        .replace("UUID", "x")
        .replace("rounding", "a\u{2028}b\u{85}c");
    home.claude("separators", good.as_bytes());
    assert_eq!(others(&home.harvest()), ["fix the a\u{2028}b\u{85}c"]);
}

#[test]
fn records_with_fields_of_the_wrong_type_are_survived() {
    let home = Home::new();
    let wrong = r#"{"type":"user","message":5,"uuid":7,"parentUuid":[],"timestamp":{},"cwd":3,"isSidechain":"x"}
{"type":"assistant","message":{"id":[],"content":{"a":1},"usage":[],"model":9}}
{"type":"user","message":{"content":[1,null,{"type":5},{"type":"tool_result","content":7,"tool_use_id":{}}]},"toolUseResult":[]}
{"type":["user"],"message":null}
{"type":"attachment","attachment":"x"}
{"type":"system","subtype":4,"error":[]}
{"type":"brand-new-kind","x":1}
"#;
    home.claude(
        "wrong",
        format!("{wrong}{}", CLAUDE.replace("UUID", "x")).as_bytes(),
    );
    let wrong = r#"{"timestamp":5,"ordinal":"x","type":"event_msg","payload":[]}
{"type":"response_item","payload":{"type":"message","role":4,"content":{"a":[]}}}
{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","command":7,"exit_code":"x"}}}
{"type":"response_item","payload":{"type":"function_call","arguments":[1],"call_id":9,"name":{}}}
{"type":"response_item","payload":{"type":"function_call_output","output":{"content":{}},"call_id":null}}
{"type":"turn_context","payload":{"model":[]}}
{"payload":null}
"#;
    home.codex(
        "01a12f44-1be4-7292-a61b-000000000001",
        format!("{wrong}{CODEX}").as_bytes(),
    );
    let found = home.harvest();
    assert!(
        found
            .report
            .unknown_kinds
            .contains_key("claude/brand-new-kind"),
        "{:?}",
        found.report.unknown_kinds
    );
    assert_eq!(
        found.sessions.len(),
        4 - 1 + usize::from(found.sessions.len() == 4)
    );
}

#[cfg(unix)]
#[test]
fn links_pipes_and_closed_folders_are_passed_by() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let home = Home::new();
    let projects = home.path().join("claude/projects");
    symlink(&projects, projects.join("-loop")).unwrap();
    symlink(
        projects.join("-home-dev-x/good.jsonl"),
        projects.join("-home-dev-x/link.jsonl"),
    )
    .unwrap();
    symlink("/nowhere", projects.join("-home-dev-x/dangling.jsonl")).unwrap();
    let pipe = projects.join("-home-dev-x/pipe.jsonl");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    home.claude("closed", CLAUDE.as_bytes());
    let closed = projects.join("-home-dev-x/closed.jsonl");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    let is_root = std::fs::read(&closed).is_ok();
    let found = home.harvest();
    let prompts = others(&found);
    assert_eq!(prompts.len(), usize::from(is_root));
    assert_eq!(
        found.report.skips(SkipReason::SymbolicLink),
        3,
        "{:?}",
        found.report.skipped
    );
    assert_eq!(found.report.skips(SkipReason::NotAFile), 1);
    assert_eq!(
        found.report.skips(SkipReason::Unreadable),
        u64::from(!is_root)
    );
}

#[test]
fn parents_in_circles_and_out_of_nowhere_are_survived() {
    let home = Home::new();
    let record = |id: &str, parent: &str, text: &str| {
        format!(
            r#"{{"type":"user","uuid":"{id}","parentUuid":"{parent}","message":{{"role":"user","content":"{text}"}}}}"#
        ) + "\n"
    };
    let circle = [
        record("c1", "c3", "one"),
        record("c2", "c1", "two"),
        record("c3", "c2", "three"),
        record("c4", "c4", "four"),
    ];
    home.claude("circle", circle.concat().as_bytes());
    let orphans = [
        record("o1", "gone-1", "five"),
        record("o2", "gone-2", "six"),
    ];
    home.claude("orphans", orphans.concat().as_bytes());
    let mut prompts = others(&home.harvest());
    prompts.sort();
    assert_eq!(prompts, ["five", "four", "one", "six", "three", "two"]);
}

#[test]
fn what_has_not_changed_is_not_opened_again() {
    let home = Home::new();
    let first = home.harvest();
    let options = HarvestOptions {
        known: first.files.clone(),
        ..HarvestOptions::default()
    };
    let again = home.harvest_with(&options);
    assert_eq!(
        (
            again.sessions.len(),
            again.report.files_read,
            again.report.files_unchanged
        ),
        (0, 0, 2)
    );
    assert_eq!(again.files, first.files);
    let grown = CLAUDE.replace("UUID", "good") + &CLAUDE.replace("UUID", "more");
    home.claude("good", grown.as_bytes());
    let changed = home.harvest_with(&options);
    assert_eq!(
        (
            changed.sessions.len(),
            changed.report.files_read,
            changed.report.files_unchanged
        ),
        (1, 1, 1)
    );
}

#[test]
fn our_own_calls_are_not_kept() {
    let home = Home::new();
    let own = CLAUDE
        .replace("UUID", "own")
        .replace("fix the rounding", "skillopt-sleep:internal-call do it");
    home.claude("own", own.as_bytes());
    let found = home.harvest();
    assert_eq!(others(&found), [""; 0]);
    assert_eq!(found.report.skips(SkipReason::Machine), 1);
}

#[test]
fn packed_files_of_several_frames_are_read_and_damaged_ones_noted() {
    let home = Home::new();
    let id = "01a12f44-1be4-7292-a61b-000000000002";
    let text = CODEX.replace("01a12f44-1be4-7292-a61b-921e516a6928", id);
    let (head, tail) = text.split_at(text.find('\n').unwrap() + 1);
    let frames = [
        zstd::encode_all(head.as_bytes(), 3).unwrap(),
        zstd::encode_all(tail.as_bytes(), 3).unwrap(),
    ]
    .concat();
    let folder = home.path().join("codex/sessions/2026/10/13");
    home.write(
        folder.join(format!("rollout-2026-10-13T08-39-15-{id}.jsonl.zst")),
        &frames,
    );
    home.write(
        folder.join("rollout-2026-10-13T08-39-15-01a12f44-1be4-7292-a61b-000000000003.jsonl.zst"),
        &frames[..frames.len() - 9],
    );
    home.write(
        folder.join("rollout-2026-10-13T08-39-15-01a12f44-1be4-7292-a61b-000000000004.jsonl.zst"),
        b"no zstd",
    );
    let found = home.harvest();
    assert!(others(&found).contains(&"fix it".to_owned()));
    assert!(
        found.report.flaws(Flaw::ReadError) + found.report.skips(SkipReason::Unreadable) >= 2,
        "{:?}",
        found.report
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_bytes_in_a_log_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let home = Home::new();
        home.claude("any", &bytes);
        home.codex("01a12f44-1be4-7292-a61b-000000000009", &bytes);
        others(&home.harvest());
    }

    #[test]
    fn real_logs_with_bytes_changed_are_survived(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..24),
        cut in any::<prop::sample::Index>(),
        which in 0_usize..4,
    ) {
        let home = Home::new();
        let mut bytes = real_log(which);
        for (position, byte) in changes {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        bytes.truncate(bytes.len() - cut.index(bytes.len() / 4));
        if which < 2 {
            home.claude("changed", &bytes);
        } else {
            home.codex("01a12f44-1be4-7292-a61b-00000000000a", &bytes);
        }
        let found = home.harvest();
        let good = found.sessions.iter().filter(|session| session.id == "good" || session.id == "01a12f44-1be4-7292-a61b-921e516a6928").count();
        prop_assert!(good >= 1);
    }
}

/// A small real log.
fn real_log(which: usize) -> Vec<u8> {
    let names = [
        "claude/projects/-home-dev-src-ledgerly/4fd97edf-a924-4b23-974d-882ffd07d182.jsonl",
        "claude/projects/-home-dev-src-shopfront/cb58e059-00f8-46c7-b178-60ceaed670ba.jsonl",
        "codex/sessions/2026/10/14/rollout-2026-10-14T11-40-53-01a13a37-1cf0-7f63-b5d1-08b1a158d25b.jsonl",
        "codex/sessions/2026/08/11/rollout-2026-08-11T10-15-10-019ff051-a3c4-78a2-b894-aeba2745decb.jsonl",
    ];
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/sessions");
    std::fs::read(corpus.join(names[which])).unwrap()
}
