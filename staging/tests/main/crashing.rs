//! The crash matrix: an adoption or revert stopped before every single change of the
//! disk, by a failure or by death, and what is there afterwards.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use skillopt_files::{Step, Steps};
use skillopt_staging::{
    Approver, Error, RefusalKind, Result, RevertPlan, adopt_with, is_interrupted, recover,
    recover_with, revert_with,
};

use crate::world::{World, at};

/// Tells the child of the killing test where its home is and when to end.
pub(crate) const CHILD: &str = "SKILLOPT_STAGING_TEST_CHILD";

/// Path, mode, content and extended attributes.
type Tree = Vec<(PathBuf, u32, Vec<u8>, Vec<(String, Vec<u8>)>)>;

/// How the n-th step ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stop {
    /// It fails once.
    Fail,
    /// It fails, and so does everything after it: a full disk.
    FailForGood,
    /// The process is gone before it.
    Die,
}

struct StopAt {
    stop: Stop,
    left: usize,
    reached: bool,
}

impl StopAt {
    fn new(stop: Stop, left: usize) -> StopAt {
        StopAt {
            stop,
            left,
            reached: false,
        }
    }
}

/// What unwinds instead of a killed process.
struct Killed;

impl Steps for StopAt {
    fn before(&mut self, _step: Step, _path: &Path) -> io::Result<()> {
        if self.reached && self.stop != Stop::FailForGood {
            return Ok(());
        }
        if self.left > 0 {
            self.left -= 1;
            return Ok(());
        }
        self.reached = true;
        match self.stop {
            Stop::Fail | Stop::FailForGood => Err(io::Error::from(io::ErrorKind::StorageFull)),
            Stop::Die => resume_unwind(Box::new(Killed)),
        }
    }
}

/// Documents of every sort: changed, with another form, new, with new directories.
pub(crate) struct Scene {
    pub(crate) world: World,
    ids: Vec<String>,
}

impl Scene {
    pub(crate) fn new(documents: &[usize]) -> Scene {
        let world = World::new();
        let mut ids = Vec::new();
        for document in documents {
            let (path, live, proposed) = match document {
                0 => (world.skill("a"), Some("one\n"), "one\ntwo\n"),
                1 => (world.skill("deep/er"), None, "new\n"),
                2 => (world.home.join("project/CLAUDE.md"), None, "memory\n"),
                3 => (world.skill("b"), Some("\u{feff}x\r\ny"), "x\nz\ny\n"),
                _ => (world.skill("deep/other"), None, "beside the other\n"),
            };
            if let Some(live) = live {
                world.write(&path, live);
                mark(&path);
            }
            ids.push(world.accepted(&path, proposed));
        }
        Scene { world, ids }
    }

    fn adopt(&self, steps: &mut dyn Steps) -> Result<()> {
        let plan = self
            .world
            .area()
            .plan(&self.ids, Approver::Person, at(10))
            .unwrap();
        adopt_with(&plan, &self.world.state, &self.world.roots, steps).map(drop)
    }

    pub(crate) fn revert(&self, steps: &mut dyn Steps) -> Result<()> {
        let plan = RevertPlan {
            adoption: Some("a1".to_owned()),
            force: false,
            at: at(20),
        };
        revert_with(&plan, &self.world.state, &self.world.roots, steps).map(drop)
    }

    pub(crate) fn status(&self) -> &'static str {
        self.world.area().load(&self.ids[0]).unwrap().status.word()
    }

    pub(crate) fn documents(&self) -> Tree {
        let mut tree = self.world.tree("skills");
        tree.extend(self.world.tree("project"));
        let home = &self.world.home;
        tree.into_iter()
            .map(|(path, mode, bytes)| {
                let inside = path.strip_prefix(home).unwrap().to_path_buf();
                (inside, mode, bytes, attributes(&path))
            })
            .collect()
    }

    /// Nothing of an undone operation is left among our own files.
    #[track_caller]
    pub(crate) fn assert_tidy(&self, operation: &str) {
        let state = &self.world.state;
        assert!(!is_interrupted(state));
        assert!(!state.join("backups").join(operation).exists());
        assert!(!state.join(format!("adoptions/{operation}.json")).exists());
        for (path, ..) in self.world.tree("") {
            assert!(
                path.extension().is_none_or(|end| end != "tmp"),
                "{}",
                path.display()
            );
        }
    }
}

/// Gives a document a mode and an attribute of its own, as a person may.
fn mark(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o640)).unwrap();
    // Where the file system has no attributes, there is none to lose.
    let none = rustix::fs::XattrFlags::empty();
    let _ = rustix::fs::setxattr(path, "user.owner", b"sam", none);
}

/// The attributes of a file that a person can set.
fn attributes(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut names = vec![0; 4096];
    let Ok(length) = rustix::fs::llistxattr(path, &mut names[..]) else {
        return Vec::new();
    };
    let names = String::from_utf8(names[..length].to_vec()).unwrap();
    let own = names
        .split_terminator('\0')
        .filter(|name| name.starts_with("user."));
    own.map(|name| {
        let mut value = vec![0; 4096];
        let length = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
        value.truncate(length);
        (name.to_owned(), value)
    })
    .collect()
}

/// What stopped: nothing, a failure, or a death.
enum Ended {
    Done,
    Failed(Error),
    Died,
}

fn end(run: impl FnOnce() -> Result<()>) -> Ended {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => Ended::Done,
        Ok(Err(error)) => Ended::Failed(error),
        Err(_) => Ended::Died,
    }
}

const SCENES: [&[usize]; 4] = [&[0], &[1], &[3, 1], &[0, 1, 2, 3, 4]];

#[test]
fn an_adoption_that_dies_anywhere_is_undone_by_the_next() {
    for documents in SCENES {
        let mut committed = false;
        for left in 0.. {
            let scene = Scene::new(documents);
            let before = scene.documents();
            let mut steps = StopAt::new(Stop::Die, left);
            let ended = end(|| scene.adopt(&mut steps));
            let recovered = recover(&scene.world.state, &scene.world.roots).unwrap();
            if scene.status() == "adopted" {
                committed = true;
            } else {
                assert!(!committed, "a later step is not less final");
                assert_eq!(scene.documents(), before, "{documents:?} step {left}");
                scene.assert_tidy("a1");
                scene
                    .adopt(&mut StopAt::new(Stop::Die, usize::MAX))
                    .unwrap();
            }
            assert_eq!(
                recover(&scene.world.state, &scene.world.roots).unwrap(),
                None
            );
            assert_ne!(scene.documents(), before);
            scene
                .revert(&mut StopAt::new(Stop::Die, usize::MAX))
                .unwrap();
            assert_eq!(scene.documents(), before);
            if matches!(ended, Ended::Done) {
                assert_eq!(recovered, None);
                break;
            }
        }
    }
}

#[test]
fn an_adoption_that_fails_anywhere_puts_everything_back_at_once() {
    for documents in SCENES {
        for left in 0.. {
            let scene = Scene::new(documents);
            let before = scene.documents();
            let mut steps = StopAt::new(Stop::Fail, left);
            match end(|| scene.adopt(&mut steps)) {
                Ended::Done => break,
                Ended::Died => unreachable!(),
                Ended::Failed(error) => {
                    assert!(matches!(error, Error::PutBack { .. }), "{error}");
                    assert_eq!(scene.documents(), before, "{documents:?} step {left}");
                    scene.assert_tidy("a1");
                }
            }
        }
    }
}

#[test]
fn a_disk_that_stays_full_leaves_the_rest_to_recovery() {
    for documents in SCENES {
        for left in 0.. {
            let scene = Scene::new(documents);
            let before = scene.documents();
            let mut steps = StopAt::new(Stop::FailForGood, left);
            match end(|| scene.adopt(&mut steps)) {
                Ended::Done => break,
                Ended::Died => unreachable!(),
                Ended::Failed(_) => {
                    recover(&scene.world.state, &scene.world.roots).unwrap();
                    assert_eq!(scene.documents(), before, "{documents:?} step {left}");
                    scene.assert_tidy("a1");
                }
            }
        }
    }
}

#[test]
fn a_revert_that_dies_anywhere_leaves_what_was_adopted() {
    for documents in [&[0][..], &[1], &[0, 1]] {
        for left in 0.. {
            let scene = Scene::new(documents);
            let original = scene.documents();
            scene
                .adopt(&mut StopAt::new(Stop::Die, usize::MAX))
                .unwrap();
            let adopted = scene.documents();
            let mut steps = StopAt::new(Stop::Die, left);
            let ended = end(|| scene.revert(&mut steps));
            recover(&scene.world.state, &scene.world.roots).unwrap();
            if scene.status() == "adopted" {
                assert_eq!(scene.documents(), adopted, "{documents:?} step {left}");
                scene.assert_tidy("a2");
                scene
                    .revert(&mut StopAt::new(Stop::Die, usize::MAX))
                    .unwrap();
                assert_eq!(scene.documents(), original);
            }
            if matches!(ended, Ended::Done) {
                assert_eq!(scene.documents(), original);
                break;
            }
        }
    }
}

#[test]
fn a_recovery_that_dies_anywhere_is_finished_by_the_next() {
    for documents in [&[0, 1][..]] {
        for left in 0.. {
            let mut finished = false;
            for again in 0.. {
                let scene = Scene::new(documents);
                let before = scene.documents();
                let ended = end(|| scene.adopt(&mut StopAt::new(Stop::Die, left)));
                if matches!(ended, Ended::Done) {
                    finished = true;
                    break;
                }
                let (state, roots) = (&scene.world.state, &scene.world.roots);
                let mut steps = StopAt::new(Stop::Die, again);
                let recovery = end(|| recover_with(state, roots, &mut steps).map(drop));
                recover(state, roots).unwrap();
                if scene.status() != "adopted" {
                    assert_eq!(scene.documents(), before, "{documents:?} {left} {again}");
                    scene.assert_tidy("a1");
                }
                if matches!(recovery, Ended::Done) {
                    break;
                }
            }
            if finished {
                break;
            }
        }
    }
}

/// Ends the process itself before the n-th step.
struct Abort(usize);

impl Steps for Abort {
    fn before(&mut self, _step: Step, _path: &Path) -> io::Result<()> {
        match self.0.checked_sub(1) {
            Some(left) => self.0 = left,
            None => std::process::abort(),
        }
        Ok(())
    }
}

#[test]
fn a_killed_process_leaves_no_lock_and_nothing_half_written() {
    for left in (0..).step_by(7) {
        let scene = Scene::new(&[0, 1]);
        let before = scene.documents();
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crashing::child_that_is_killed", "--ignored"])
            .env(CHILD, format!("{left}:{}", scene.world.home.display()))
            .output()
            .unwrap();
        recover(&scene.world.state, &scene.world.roots).unwrap();
        if child.status.success() {
            assert_eq!(scene.status(), "adopted");
            break;
        }
        if scene.status() != "adopted" {
            assert_eq!(scene.documents(), before, "step {left}");
            scene.assert_tidy("a1");
        }
    }
}

#[test]
#[ignore = "runs only as the child of the test above"]
fn child_that_is_killed() {
    let Ok(task) = std::env::var(CHILD) else {
        return;
    };
    let (left, home) = task.split_once(':').unwrap();
    let world = World::at(Path::new(home));
    let listing = world.area().list().unwrap().staged;
    let ids: Vec<String> = listing
        .into_iter()
        .map(|staged| staged.proposal.id)
        .collect();
    let plan = world.area().plan(&ids, Approver::Person, at(10)).unwrap();
    let mut steps = Abort(left.parse().unwrap());
    adopt_with(&plan, &world.state, &world.roots, &mut steps).unwrap();
}

#[test]
fn a_journal_that_nobody_of_us_wrote_is_not_carried_out() {
    let scene = Scene::new(&[0]);
    let before = scene.documents();
    let _ = end(|| scene.adopt(&mut StopAt::new(Stop::Die, 30)));
    let journal = scene.world.state.join("adoptions/journal.json");
    let text = std::fs::read_to_string(&journal).unwrap();
    for forged in [
        text.replace("/skills/a/", "/skills/b/"),
        text[..text.len() / 2].to_owned(),
        text.replace("journal/1", "journal/2"),
        String::new(),
    ] {
        std::fs::write(&journal, forged).unwrap();
        let error = recover(&scene.world.state, &scene.world.roots).unwrap_err();
        assert_eq!(error.refusal(), Some(RefusalKind::JournalInvalid));
        assert!(error.to_string().contains("journal.json"), "{error}");
    }
    std::fs::write(&journal, &text).unwrap();
    let nowhere = skillopt_staging::AllowedRoots::new();
    let error = recover(&scene.world.state, &nowhere).unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::RecoveryFailed));
    let recovery = recover(&scene.world.state, &scene.world.roots)
        .unwrap()
        .unwrap();
    assert!(recovery.lines()[0].contains("SKILL.md"), "{recovery:?}");
    assert_eq!(scene.documents(), before);
}

/// An adoption that died between writing everything and removing its journal.
fn interrupted(documents: &[usize]) -> Scene {
    for left in 0.. {
        let scene = Scene::new(documents);
        let record = scene.world.state.join("adoptions/a1.json");
        let _ = end(|| scene.adopt(&mut StopAt::new(Stop::Die, left)));
        if record.exists() && is_interrupted(&scene.world.state) {
            return scene;
        }
    }
    unreachable!()
}

#[test]
fn what_somebody_did_after_a_crash_does_not_block_recovery() {
    use skillopt_staging::Outcome;
    let acts: [fn(&Path); 4] = [
        |skill| std::fs::remove_dir_all(skill.parent().unwrap()).unwrap(),
        |skill| std::fs::write(skill, "mine\n").unwrap(),
        |skill| {
            std::fs::remove_file(skill).unwrap();
            std::fs::create_dir(skill).unwrap();
        },
        |skill| {
            std::fs::rename(
                skill.parent().unwrap(),
                skill.ancestors().nth(2).unwrap().join("x"),
            )
            .unwrap();
            std::os::unix::fs::symlink("x", skill.parent().unwrap()).unwrap();
        },
    ];
    for act in acts {
        let scene = interrupted(&[0, 3]);
        act(&scene.world.skill("a"));
        let left = scene.world.tree("skills/a");
        let recovery = recover(&scene.world.state, &scene.world.roots)
            .unwrap()
            .unwrap();
        let outcomes: Vec<Outcome> = recovery.documents.iter().map(|d| d.outcome).collect();
        assert_eq!(outcomes, [Outcome::LeftChanged, Outcome::Restored]);
        assert_eq!(scene.world.tree("skills/a"), left);
        let b = std::fs::read_to_string(scene.world.skill("b")).unwrap();
        assert_eq!(b, "\u{feff}x\r\ny");
        assert!(!is_interrupted(&scene.world.state));
        let kept = scene.world.state.join("backups/a1/0.before");
        assert_eq!(std::fs::read_to_string(kept).unwrap(), "one\n");
    }
}

#[test]
fn a_lost_backup_stops_recovery_with_the_way_out() {
    let scene = interrupted(&[0]);
    std::fs::remove_file(scene.world.state.join("backups/a1/0.before")).unwrap();
    let error = recover(&scene.world.state, &scene.world.roots).unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::RecoveryFailed));
    assert!(error.to_string().contains("journal.json"), "{error}");
}
