use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use skillopt_files::{Attributes, Directory, Error, Kind, NoSteps, Step, Steps};
use tempfile::tempdir;

/// Fails at the n-th step.
struct FailAt {
    left: usize,
    seen: Vec<Step>,
}

impl Steps for FailAt {
    fn before(&mut self, step: Step, _path: &Path) -> io::Result<()> {
        if self.left == 0 {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.left -= 1;
        self.seen.push(step);
        Ok(())
    }
}

fn name(text: &str) -> &OsStr {
    OsStr::new(text)
}

#[test]
fn a_link_anywhere_on_the_way_is_refused() {
    let dir = tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("real/deep")).unwrap();
    symlink(root.join("real"), root.join("link")).unwrap();
    Directory::open_no_links(&root.join("real/deep")).unwrap();
    Directory::open_no_links(Path::new("/")).unwrap();
    for path in ["link", "link/deep"] {
        let error = Directory::open_no_links(&root.join(path)).unwrap_err();
        assert!(error.is_not_a_directory(), "{error}");
    }
    let missing = Directory::open_no_links(&root.join("none")).unwrap_err();
    assert!(missing.is_not_found() && !missing.is_not_a_directory());
    for path in ["relative", "/a/../b"] {
        let error = Directory::open_no_links(Path::new(path)).unwrap_err();
        assert!(matches!(error, Error::NotPlain { .. }), "{error}");
    }
}

#[test]
fn an_open_directory_cannot_be_redirected() {
    let dir = tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("inside")).unwrap();
    fs::create_dir_all(root.join("outside")).unwrap();
    let directory = Directory::open_no_links(&root.join("inside")).unwrap();
    fs::rename(root.join("inside"), root.join("moved")).unwrap();
    symlink(root.join("outside"), root.join("inside")).unwrap();
    directory
        .replace(name("a"), b"x", &Attributes::default(), &mut NoSteps)
        .unwrap();
    assert!(root.join("moved/a").exists());
    assert!(!root.join("outside/a").exists());
}

#[test]
fn a_failure_at_any_step_leaves_the_old_or_the_new_content_and_no_litter() {
    for left in 0.. {
        let dir = tempdir().unwrap();
        fs::write(dir.path().join("a"), "old").unwrap();
        let directory = Directory::open(dir.path()).unwrap();
        let mut steps = FailAt {
            left,
            seen: Vec::new(),
        };
        let done = directory.replace(name("a"), b"new!", &Attributes::default(), &mut steps);
        let renamed = steps.seen.contains(&Step::Rename);
        let expected = if renamed { "new!" } else { "old" };
        assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), expected);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        if done.is_ok() {
            assert_eq!(left, 7, "every step was tried");
            break;
        }
    }
}

#[test]
fn reading_neither_follows_links_nor_blocks() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a"), "text").unwrap();
    symlink("a", dir.path().join("link")).unwrap();
    let directory = Directory::open(dir.path()).unwrap();
    let (bytes, entry) = directory.read(name("a"), 10).unwrap();
    assert_eq!(bytes, b"text");
    assert_eq!((entry.kind, entry.length, entry.links), (Kind::File, 4, 1));
    let error = directory.read(name("link"), 10).unwrap_err();
    assert!(error.to_string().contains("a symbolic link"), "{error}");
    assert!(directory.read(name("none"), 10).unwrap_err().is_not_found());
    assert_eq!(directory.entry(name("none")).unwrap(), None);
}

#[test]
fn exchanging_keeps_both_files() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a"), "a").unwrap();
    fs::write(dir.path().join("b"), "b").unwrap();
    let directory = Directory::open(dir.path()).unwrap();
    if directory
        .exchange(name("a"), name("b"), &mut NoSteps)
        .unwrap()
    {
        assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), "b");
        assert_eq!(fs::read_to_string(dir.path().join("b")).unwrap(), "a");
    }
    assert!(
        directory
            .exchange(name("a"), name("none"), &mut NoSteps)
            .is_err()
    );
}

#[test]
fn a_taken_name_is_not_replaced_by_a_new_file() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a"), "a").unwrap();
    fs::write(dir.path().join("b"), "b").unwrap();
    let directory = Directory::open(dir.path()).unwrap();
    let error = directory
        .rename_new(name("a"), name("b"), &mut NoSteps)
        .unwrap_err();
    assert!(error.is_already_there(), "{error}");
    let error = directory
        .create(name("a"), b"", &Attributes::default(), &mut NoSteps)
        .unwrap_err();
    assert!(error.is_already_there(), "{error}");
    assert_eq!(fs::read_to_string(dir.path().join("b")).unwrap(), "b");
}
