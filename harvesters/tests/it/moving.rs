//! Logs that change while they are read, and lines that do not end.

use std::fs::{self, File};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;

use skillopt_harvesters::report::{Flaw, SkipReason};
use skillopt_harvesters::{Account, Agent, HarvestOptions, Roots, harvest_each};

/// Three logs of Pi, which are read one after the other. `change` is called with the path of
/// the second while the first is handed out.
fn harvest_while(change: impl Fn(&PathBuf)) -> (Vec<String>, Account) {
    let home = tempfile::tempdir().unwrap();
    let path = |number: u32| home.path().join(format!("sessions/p/2026_s{number}.jsonl"));
    fs::create_dir_all(home.path().join("sessions/p")).unwrap();
    for number in 1..=3 {
        let log = format!(
            r#"{{"type":"session","id":"s{number}","cwd":"/home/dev/x","timestamp":"2026-10-05T08:00:00Z"}}
{{"type":"message","id":"1","timestamp":"2026-10-05T08:00:00Z","message":{{"role":"user","content":"fix it"}}}}
{{"type":"message","id":"2","parentId":"1","timestamp":"2026-10-05T08:10:00Z","message":{{"role":"assistant","content":[{{"type":"text","text":"Done."}}]}}}}
"#
        );
        fs::write(path(number), log).unwrap();
    }
    let mut ids = Vec::new();
    let roots = Roots::none().with(Agent::Pi, home.path());
    let account = harvest_each(&roots, &HarvestOptions::default(), |session| {
        if ids.is_empty() {
            change(&path(2));
        }
        ids.push(session.id.into_string());
        ControlFlow::Continue(())
    });
    (ids, account)
}

#[test]
fn a_log_that_is_deleted_while_others_are_read_has_vanished() {
    let (ids, account) = harvest_while(|path| fs::remove_file(path).unwrap());
    assert_eq!(ids, ["s1", "s3"]);
    assert_eq!(account.report.skips(SkipReason::Vanished), 1);
    assert_eq!(account.files.len(), 2);
}

#[cfg(unix)]
#[test]
fn a_log_that_becomes_a_pipe_or_a_link_is_not_opened() {
    let pipe = |path: &PathBuf| {
        fs::remove_file(path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    };
    let link = |path: &PathBuf| {
        fs::remove_file(path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path).unwrap();
    };
    for change in [&pipe as &dyn Fn(&PathBuf), &link] {
        let (ids, account) = harvest_while(change);
        assert_eq!(ids, ["s1", "s3"]);
        assert_eq!(account.report.skips(SkipReason::NotAFile), 1);
    }
}

#[test]
fn a_log_that_is_cut_or_grows_while_others_are_read_is_read_as_far_as_it_goes() {
    let cut = |path: &PathBuf| {
        let file = File::options().write(true).open(path).unwrap();
        file.set_len(230).unwrap();
    };
    let (ids, account) = harvest_while(cut);
    assert_eq!(ids, ["s1", "s2", "s3"]);
    assert_eq!(account.report.flaws(Flaw::Unfinished), 1);
    let grow = |path: &PathBuf| {
        let mut file = File::options().append(true).open(path).unwrap();
        file.write_all(b"{\"type\":\"message\",\"id\":\"3\",\"par")
            .unwrap();
    };
    let (ids, _) = harvest_while(grow);
    assert_eq!(ids, ["s1", "s2", "s3"]);
}

/// The file has holes, so that it takes no room: a line of 200 MB that is nothing but NULs.
#[test]
fn a_line_of_200_megabytes_costs_itself_only() {
    const LONG: u64 = 200 << 20;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions/p/2026_s1.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = File::create(&path).unwrap();
    file.write_all(b"{\"type\":\"session\",\"id\":\"s1\"}\n{\"type\":\"x\",\"a\":\"")
        .unwrap();
    file.set_len(LONG).unwrap();
    let mut file = File::options().append(true).open(&path).unwrap();
    file.write_all(b"\"}\n{\"type\":\"message\",\"id\":\"1\",\"message\":{\"role\":\"user\",\"content\":\"fix it\"}}\n").unwrap();
    let mut prompts = Vec::new();
    let roots = Roots::none().with(Agent::Pi, home.path());
    let account = harvest_each(&roots, &HarvestOptions::default(), |session| {
        prompts.extend(session.prompts().map(|prompt| prompt.text.clone()));
        ControlFlow::Continue(())
    });
    assert_eq!(prompts, ["fix it"]);
    assert_eq!(account.report.flaws(Flaw::Oversized), 1);
}
