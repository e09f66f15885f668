//! The crash matrix once more, from outside: the process is killed as it enters every single
//! system call that changes the disk, whether or not our own steps know of it.
//!
//! `strace` does the killing, so these run only where it is and when they are asked for:
//! `cargo test -p skillopt-staging killing -- --ignored --nocapture`.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use skillopt_staging::{is_interrupted, recover};

use crate::crashing::{CHILD, Scene};

/// Every system call of Linux that writes, names, removes or promises something on the disk.
const CALLS: [&str; 22] = [
    "openat",
    "creat",
    "write",
    "pwrite64",
    "writev",
    "ftruncate",
    "fallocate",
    "copy_file_range",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlinkat",
    "unlink",
    "unlinkat",
    "rmdir",
    "mkdir",
    "mkdirat",
    "fchmod",
    "fsetxattr",
    "fsync",
];

/// Runs an adoption in a child that dies at its n-th call, and says how it ended: `true` if it
/// came to its end.
fn killed_at(scene: &Scene, call: &str, number: usize) -> bool {
    let ended = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e"])
        .arg(format!("trace={call}"))
        .arg("-e")
        .arg(format!("inject={call}:signal=KILL:when={number}"))
        .arg("--")
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "crashing::child_that_is_killed",
            "--ignored",
            "--quiet",
        ])
        .env(
            CHILD,
            format!("{}:{}", usize::MAX, scene.world.home.display()),
        )
        .output()
        .unwrap();
    if ended.status.success() {
        return true;
    }
    let killed = ended.status.signal() == Some(9) || ended.status.code() == Some(137);
    assert!(
        killed,
        "{call} {number}: {:?} {}",
        ended.status,
        String::from_utf8_lossy(&ended.stderr)
    );
    false
}

fn killed_everywhere(documents: &[usize]) -> (usize, usize) {
    let (mut deaths, mut undone) = (0, 0);
    for call in CALLS {
        for number in 1.. {
            let scene = Scene::new(documents);
            let before = scene.documents();
            if killed_at(&scene, call, number) {
                assert_eq!(scene.status(), "adopted");
                break;
            }
            deaths += 1;
            let recovery = recover(&scene.world.state, &scene.world.roots).unwrap();
            undone += usize::from(recovery.is_some());
            assert!(!is_interrupted(&scene.world.state));
            if scene.status() == "adopted" {
                scene.revert(&mut skillopt_files::NoSteps).unwrap();
            } else {
                scene.assert_tidy("a1");
            }
            assert_eq!(scene.documents(), before, "{documents:?} {call} {number}");
        }
    }
    (deaths, undone)
}

#[test]
#[ignore = "kills some hundred processes with strace"]
fn killed_at_every_system_call_that_changes_the_disk() {
    for documents in [&[0][..], &[3, 1], &[0, 1, 2, 3, 4]] {
        let (deaths, undone) = killed_everywhere(documents);
        println!(
            "{} documents: killed at {deaths} system calls, {undone} adoptions undone",
            documents.len()
        );
        assert!(undone > 0);
    }
}
