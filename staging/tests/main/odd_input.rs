//! Names, documents and moments that nobody plans for.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use skillopt_staging::{AllowedRoots, RefusalKind, preflight};

use crate::world::{World, refused};

/// A byte that cannot be text.
const NOT_TEXT: &[u8] = b"one\n\xff\xfe\n";

#[test]
fn a_document_is_shown_under_a_name_that_hides_nothing() {
    let world = World::new();
    let long = "x".repeat(2000);
    for name in [
        "",
        "../../etc",
        "a\0b",
        "a\nb",
        "a\u{1b}]0;title\u{7}",
        "a\u{202e}b",
        &long,
    ] {
        let mut draft = world.draft(&world.skill("a"), "x\n");
        name.clone_into(&mut draft.document.name);
        assert_eq!(
            refused(world.area().stage(draft)),
            RefusalKind::ProposalInvalid,
            "{name:?}"
        );
    }
    assert!(world.area().list().unwrap().staged.is_empty());
}

#[test]
fn a_path_that_no_file_system_takes_is_refused_and_shown_safely() {
    let world = World::new();
    let long = "x".repeat(300);
    for (folder, kind) in [
        ("..", RefusalKind::LivePathUnsafe),
        ("a/../b", RefusalKind::LivePathUnsafe),
        ("a\0b", RefusalKind::LivePathUnsafe),
        ("a\nb", RefusalKind::LivePathUnsafe),
        ("a\u{1b}[2Jb", RefusalKind::LivePathUnsafe),
        ("a\u{202e}b", RefusalKind::LivePathUnsafe),
        (&long, RefusalKind::LiveUnreadable),
    ] {
        let path = world.home.join("skills").join(folder).join("SKILL.md");
        let refusal = preflight(&path, &world.roots).unwrap_err();
        assert_eq!(refusal.kind, kind, "{folder:?}");
        assert!(
            !refusal
                .to_string()
                .contains(['\u{1b}', '\0', '\n', '\u{202e}'])
        );
    }
}

#[test]
fn twins_that_a_file_system_may_take_for_one_are_not_adopted_together() {
    for (one, other) in [
        ("Alpha", "alpha"),
        ("caf\u{e9}", "cafe\u{301}"),
        ("STRASSE", "stra\u{df}e"),
    ] {
        let world = World::new();
        let ids = [one, other].map(|name| {
            world.write(&world.skill(name), "one\n");
            world.accepted(&world.skill(name), "two\n")
        });
        let before = world.tree("skills");
        assert_eq!(refused(world.adopt(&ids)), RefusalKind::LiveTargetCollision);
        assert_eq!(world.tree("skills"), before);
        for id in ids {
            world.adopt(&[id]).unwrap();
        }
    }
}

#[test]
fn a_document_that_became_something_else_after_the_approval_is_left_alone() {
    type Act = fn(&World, &Path);
    let acts: [(Act, RefusalKind); 7] = [
        (
            |_, path| fs::File::create(path).unwrap().set_len(50_000_000).unwrap(),
            RefusalKind::LiveTooLarge,
        ),
        (
            |_, path| fs::write(path, NOT_TEXT).unwrap(),
            RefusalKind::LiveNotUtf8,
        ),
        (
            |world, path| fs::hard_link(path, world.home.join("twin")).unwrap(),
            RefusalKind::LiveHardlinked,
        ),
        (
            |_, path| {
                fs::remove_file(path).unwrap();
                fs::create_dir(path).unwrap();
            },
            RefusalKind::LiveNotFile,
        ),
        (
            |_, path| {
                fs::remove_file(path).unwrap();
                let made = Command::new("mkfifo").arg(path).status().unwrap();
                assert!(made.success());
            },
            RefusalKind::LiveNotFile,
        ),
        (
            |_, path| {
                fs::remove_file(path).unwrap();
                std::os::unix::net::UnixListener::bind(path).unwrap();
            },
            RefusalKind::LiveNotFile,
        ),
        (
            |_, path| {
                fs::remove_file(path).unwrap();
                symlink("/dev/null", path).unwrap();
            },
            RefusalKind::LiveOutsideRoots,
        ),
    ];
    for (act, kind) in acts {
        let world = World::new();
        let path = world.skill("a");
        world.write(&path, "one\n");
        let id = world.accepted(&path, "two\n");
        act(&world, &path);
        let before = world.tree("skills");
        assert_eq!(refused(world.adopt(&[id])), kind);
        assert_eq!(world.tree("skills"), before);
    }
}

#[test]
fn a_device_is_no_document() {
    let world = World::new();
    let path = world.skill("a");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Only the superuser can make one; everybody can name one that is there.
    let made = Command::new("mknod")
        .arg(&path)
        .args(["c", "1", "3"])
        .output();
    if made.is_ok_and(|made| made.status.success()) {
        assert_eq!(
            preflight(&path, &world.roots).unwrap_err().kind,
            RefusalKind::LiveNotFile
        );
    }
    let null = Path::new("/dev/null");
    let roots = AllowedRoots::new().document(null);
    assert_eq!(
        preflight(null, &roots).unwrap_err().kind,
        RefusalKind::LivePathUnsafe
    );
}

#[test]
fn a_record_of_another_shape_is_no_decision() {
    let world = World::new();
    let path = world.skill("a");
    world.write(&path, "one\n");
    let id = world.accepted(&path, "two\n");
    let file = world
        .state
        .join("staging/n12")
        .join(&id)
        .join("decision.json");
    let good = fs::read_to_string(&file).unwrap();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for forged in [
        good.replacen("\"format\"", "\"format\": \"x\", \"format\"", 1),
        good.replacen("\"seal\"", "\"seal\": \"x\", \"seal\"", 1),
        good.replacen("\"accepted\"", "\"rejected_whole\": true, \"accepted\"", 1),
        deep,
        "x".repeat(33 * 1024 * 1024),
    ] {
        assert_ne!(forged, good);
        fs::write(&file, forged).unwrap();
        assert_eq!(
            refused(world.adopt(std::slice::from_ref(&id))),
            RefusalKind::DecisionInvalid
        );
    }
    fs::write(&file, good).unwrap();
    world.adopt(&[id]).unwrap();
}

#[test]
fn a_state_directory_that_anybody_may_write_in_proves_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let path = world.skill("a");
    world.write(&path, "one\n");
    let id = world.accepted(&path, "two\n");
    let allow = |mode| fs::set_permissions(&world.state, fs::Permissions::from_mode(mode)).unwrap();
    allow(0o777);
    let error = world.adopt(std::slice::from_ref(&id)).unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::KeyUnusable));
    assert!(error.to_string().contains("chmod 700"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
    allow(0o755);
    world.adopt(&[id]).unwrap();
}

#[test]
fn a_night_may_stage_while_somebody_adopts() {
    let world = World::new();
    let ids: Vec<String> = (0..20)
        .map(|n| world.accepted(&world.skill(&format!("s{n}")), "x\n"))
        .collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..20 {
                let mut draft = world.draft(&world.skill(&format!("t{n}")), "y\n");
                draft.night = "n13".to_owned();
                world.area().stage(draft).unwrap();
            }
        });
        for id in &ids {
            world.adopt(std::slice::from_ref(id)).unwrap();
        }
    });
    let listing = world.area().list().unwrap();
    assert!(listing.unreadable.is_empty(), "{:?}", listing.unreadable);
    let words: Vec<&str> = listing.staged.iter().map(|s| s.status.word()).collect();
    let count = |word: &str| words.iter().filter(|other| **other == word).count();
    assert_eq!((count("adopted"), count("pending")), (20, 20));
}

#[test]
fn an_unknown_name_tells_of_what_cannot_be_read() {
    let world = World::new();
    let id = world.stage(&world.skill("a"), "x\n");
    let record = world
        .state
        .join("staging/n12")
        .join(&id)
        .join("proposal.json");
    fs::write(record, "{").unwrap();
    let error = world.area().find("a").unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::ProposalUnknown));
    assert!(error.to_string().contains("n12-1"), "{error}");
}
