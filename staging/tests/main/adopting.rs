use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use skillopt_files::Lock;
use skillopt_staging::{
    Acceptance, AllowedRoots, Approver, Draft, EditSelection, Error, Finding, Level, RefusalKind,
    adopt, dry_run, normal, preflight, rebase, sha256,
};

use crate::world::{World, acceptance, at, refused};

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn several_documents_are_adopted_together() {
    let world = World::new();
    let (a, b) = (world.skill("a"), world.home.join("project/CLAUDE.md"));
    world.write(&a, "one\n");
    fs::set_permissions(&a, fs::Permissions::from_mode(0o640)).unwrap();
    let ids = [
        world.accepted(&a, "one\ntwo\n"),
        world.accepted(&b, "new\n"),
    ];
    let adoption = world.adopt(&ids).unwrap();
    assert_eq!(adoption.id, "a1");
    assert_eq!(read(&a), "one\ntwo\n");
    assert_eq!(read(&b), "new\n");
    assert_eq!(fs::metadata(&a).unwrap().mode() & 0o777, 0o640);
    let plain = world.home.join("plain");
    fs::write(&plain, "").unwrap();
    assert_eq!(
        fs::metadata(&b).unwrap().mode(),
        fs::metadata(&plain).unwrap().mode(),
        "a new document honours the umask"
    );
    for id in &ids {
        assert_eq!(world.area().load(id).unwrap().status.word(), "adopted");
    }
    assert_eq!(refused(world.adopt(&ids)), RefusalKind::AlreadyAdopted);
    let litter = world
        .tree("")
        .into_iter()
        .filter(|(path, ..)| path.extension().is_some_and(|end| end == "tmp"))
        .count();
    assert_eq!(litter, 0);
}

#[test]
fn the_form_of_a_document_is_kept_byte_for_byte() {
    for (raw, expected) in [
        ("\u{feff}a\r\nb\r\n", "\u{feff}a\r\nb\r\nc\r\n"),
        ("a\rb\r", "a\rb\rc\r"),
        ("a\nb", "a\nb\nc"),
        ("a\r\nb\nb\n", "a\r\nb\nb\nc\n"),
        ("", "\nc\n"),
    ] {
        let world = World::new();
        let path = world.skill("a");
        world.write(&path, raw);
        let id = world.accepted(&path, &format!("{}\nc\n", normal(raw).trim_end()));
        world.adopt(&[id]).unwrap();
        let found = read(&path);
        assert_eq!(found, expected);
        world.revert(None, false).unwrap();
        assert_eq!(read(&path), raw);
    }
}

#[test]
fn extended_attributes_and_group_survive() {
    let world = World::new();
    let path = world.skill("a");
    world.write(&path, "one\n");
    let set = Command::new("setfattr")
        .args(["-n", "user.note", "-v", "kept"])
        .arg(&path)
        .status();
    let id = world.accepted(&path, "two\n");
    world.adopt(&[id]).unwrap();
    if set.is_ok_and(|status| status.success()) {
        let read = Command::new("getfattr")
            .arg("-d")
            .arg(&path)
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&read.stdout).contains("kept"));
    }
}

#[test]
fn a_changed_document_is_refused_and_can_be_rebased() {
    let world = World::new();
    let path = world.skill("a");
    world.write(&path, "one\ntwo\nthree\nfour\n");
    let id = world.accepted(&path, "one\ntwo\nthree\nfour\nfive\n");
    world.write(&path, "ONE\ntwo\nthree\nfour\n");
    assert_eq!(
        refused(world.adopt(std::slice::from_ref(&id))),
        RefusalKind::LiveDrift
    );
    assert_eq!(read(&path), "ONE\ntwo\nthree\nfour\n");

    let area = world.area();
    let proposal = area.load(&id).unwrap().proposal;
    let live = preflight(&path, &world.roots).unwrap().read().unwrap();
    let text = rebase(
        &proposal.base.normal(),
        &proposal.proposed.text,
        &live.normal(),
    )
    .unwrap();
    let rebased = Acceptance {
        base_sha256: Some(live.sha256),
        ..acceptance(&text)
    };
    area.accept(&id, rebased).unwrap();
    world.adopt(&[id]).unwrap();
    assert_eq!(read(&path), "ONE\ntwo\nthree\nfour\nfive\n");
}

#[test]
fn a_document_that_appeared_or_vanished_is_drift() {
    let world = World::new();
    let (new, old) = (world.skill("new"), world.skill("old"));
    world.write(&old, "x\n");
    let ids = [world.accepted(&new, "one\n"), world.accepted(&old, "two\n")];
    world.write(&new, "somebody's\n");
    fs::remove_file(&old).unwrap();
    for id in ids {
        assert_eq!(refused(world.adopt(&[id])), RefusalKind::LiveDrift);
    }
    assert_eq!(read(&new), "somebody's\n");
    assert!(!old.exists());
}

#[test]
fn one_refusal_stops_all() {
    let world = World::new();
    let (a, b) = (world.skill("a"), world.skill("b"));
    world.write(&a, "one\n");
    world.write(&b, "one\n");
    let ids = [world.accepted(&a, "two\n"), world.accepted(&b, "two\n")];
    world.write(&b, "changed\n");
    let before = world.tree("skills");
    assert_eq!(refused(world.adopt(&ids)), RefusalKind::LiveDrift);
    assert_eq!(world.tree("skills"), before);
}

#[test]
fn nothing_is_adopted_that_was_not_accepted_as_it_is() {
    let world = World::new();
    let id = world.stage(&world.skill("a"), "one\n");
    assert_eq!(
        refused(world.adopt(std::slice::from_ref(&id))),
        RefusalKind::ProposalNotAccepted
    );
    world.accept(&id);
    let mut plan = world
        .area()
        .plan(std::slice::from_ref(&id), Approver::Person, at(9))
        .unwrap();
    plan.items[0].text.push_str("and more\n");
    assert_eq!(
        refused(adopt(&plan, &world.state, &world.roots)),
        RefusalKind::ApprovalMismatch
    );
    let record = world
        .state
        .join("staging/n12")
        .join(&id)
        .join("proposal.json");
    let text = read(&record).replace("/skills/a/", "/skills/b/");
    fs::write(&record, text).unwrap();
    assert_eq!(refused(world.adopt(&[id])), RefusalKind::ProposalChanged);
    assert!(world.tree("skills").len() == 1);
}

#[test]
fn the_same_file_twice_is_refused() {
    let world = World::new();
    let path = world.skill("a");
    world.write(&path, "one\n");
    symlink(world.home.join("skills/a"), world.home.join("skills/b")).unwrap();
    let (one, two) = (
        world.accepted(&path, "two\n"),
        world.accepted(&world.skill("b"), "three\n"),
    );
    assert_eq!(
        refused(world.adopt(&[one.clone(), two])),
        RefusalKind::LiveTargetCollision
    );
    assert_eq!(
        refused(world.adopt(&[one.clone(), one])),
        RefusalKind::SelectionDuplicate
    );
}

#[test]
fn a_linked_skill_is_written_where_it_really_is_and_stays_linked() {
    let world = World::new();
    let real = world.home.join("project/shared/SKILL.md");
    world.write(&real, "one\n");
    fs::create_dir_all(world.home.join("skills/a")).unwrap();
    symlink(&real, world.skill("a")).unwrap();
    symlink(
        world.home.join("project/shared"),
        world.home.join("skills/b"),
    )
    .unwrap();
    for (name, text) in [("a", "two\n"), ("b", "three\n")] {
        let id = world.accepted(&world.skill(name), text);
        let adoption = world.adopt(&[id]).unwrap();
        assert_eq!(adoption.documents[0].real_path, real);
        assert_eq!(read(&real), text);
    }
    assert!(fs::symlink_metadata(world.skill("a")).unwrap().is_symlink());
}

#[test]
fn a_link_that_was_turned_elsewhere_since_is_refused() {
    let world = World::new();
    let path = world.skill("a");
    let (here, there) = (world.skill("here"), world.skill("there"));
    world.write(&here, "one\n");
    world.write(&there, "one\n");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(&here, &path).unwrap();
    let mut draft = world.draft(&path, "two\n");
    draft.document.real_path = Some(here.clone());
    let id = world.area().stage(draft).unwrap().id;
    world.accept(&id);
    fs::remove_file(&path).unwrap();
    symlink(&there, &path).unwrap();
    assert_eq!(refused(world.adopt(&[id])), RefusalKind::LiveMoved);
    assert_eq!(
        (read(&here), read(&there)),
        ("one\n".into(), "one\n".into())
    );
}

#[test]
fn targets_that_may_not_be_written_are_refused_beforehand() {
    let world = World::new();
    let kind = |path: &Path| preflight(path, &world.roots).unwrap_err().kind;
    let skill = |name: &str, text: &str| {
        world.write(&world.skill(name), text);
        world.skill(name)
    };

    assert_eq!(
        kind(Path::new("skills/a/SKILL.md")),
        RefusalKind::LivePathUnsafe
    );
    assert_eq!(
        kind(&world.home.join("skills/../skills/a/SKILL.md")),
        RefusalKind::LivePathUnsafe
    );
    assert_eq!(
        kind(&world.home.join("skills/a\n/SKILL.md")),
        RefusalKind::LivePathUnsafe
    );
    assert_eq!(
        kind(&world.home.join("other/SKILL.md")),
        RefusalKind::LiveOutsideRoots
    );
    assert_eq!(
        kind(&world.home.join("project/README.md")),
        RefusalKind::LiveBasename
    );

    let outside = world.home.join("secret/SKILL.md");
    world.write(&outside, "x\n");
    fs::create_dir_all(world.home.join("skills/link")).unwrap();
    symlink(&outside, world.skill("link")).unwrap();
    assert_eq!(kind(&world.skill("link")), RefusalKind::LiveOutsideRoots);
    symlink(world.home.join("secret"), world.home.join("skills/dirlink")).unwrap();
    assert_eq!(kind(&world.skill("dirlink")), RefusalKind::LiveOutsideRoots);
    fs::create_dir_all(world.home.join("skills/dangling")).unwrap();
    symlink("nowhere", world.skill("dangling")).unwrap();
    assert_eq!(kind(&world.skill("dangling")), RefusalKind::LiveSymlink);
    fs::create_dir_all(world.home.join("skills/loop")).unwrap();
    symlink("SKILL.md", world.skill("loop")).unwrap();
    assert_eq!(kind(&world.skill("loop")), RefusalKind::LiveSymlink);
    let readme = world.home.join("project/README.md");
    world.write(&readme, "x\n");
    symlink(&readme, world.home.join("project/AGENTS.md")).unwrap();
    assert_eq!(
        kind(&world.home.join("project/AGENTS.md")),
        RefusalKind::LiveBasename
    );

    let hard = skill("hard", "x\n");
    fs::hard_link(&hard, world.home.join("twin")).unwrap();
    assert_eq!(kind(&hard), RefusalKind::LiveHardlinked);
    let frozen = skill("frozen", "x\n");
    fs::set_permissions(&frozen, fs::Permissions::from_mode(0o444)).unwrap();
    assert_eq!(kind(&frozen), RefusalKind::LiveReadOnly);
    let shut = skill("shut", "x\n");
    fs::set_permissions(shut.parent().unwrap(), fs::Permissions::from_mode(0o555)).unwrap();
    assert_eq!(kind(&shut), RefusalKind::LiveDirectoryReadOnly);
    let big = skill("big", "");
    fs::File::options()
        .write(true)
        .open(&big)
        .unwrap()
        .set_len(50_000_000)
        .unwrap();
    assert_eq!(kind(&big), RefusalKind::LiveTooLarge);
    fs::create_dir_all(world.skill("dir")).unwrap();
    assert_eq!(kind(&world.skill("dir")), RefusalKind::LiveNotFile);
    let pipe = world.skill("pipe");
    fs::create_dir_all(pipe.parent().unwrap()).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(kind(&pipe), RefusalKind::LiveNotFile);
    world.write(&world.home.join("skills/file"), "x");
    assert_eq!(kind(&world.skill("file")), RefusalKind::AncestorUnsafe);

    let bad = skill("bad", "");
    world.write(&bad, b"\xff\xfe");
    let target = preflight(&bad, &world.roots).unwrap();
    assert_eq!(target.read().unwrap_err().kind, RefusalKind::LiveNotUtf8);
}

#[test]
fn another_persons_file_is_refused() {
    let world = World::new();
    let path = world.skill("a");
    world.write(&path, "x\n");
    // Only the superuser can give a file away.
    if std::os::unix::fs::chown(&path, Some(12345), None).is_ok() {
        let refusal = preflight(&path, &world.roots).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::LiveForeignOwner);
        assert!(refusal.reason.contains("12345"), "{refusal}");
    }
}

#[test]
fn documents_can_be_allowed_one_by_one_and_references_belong_to_a_skill() {
    let world = World::new();
    let path = world.home.join("notes/rules.md");
    world.write(&path, "x\n");
    let roots = AllowedRoots::new().document(&path);
    preflight(&path, &roots).unwrap();
    fs::remove_file(&path).unwrap();
    let elsewhere = world.home.join("elsewhere.md");
    world.write(&elsewhere, "x\n");
    symlink(&elsewhere, &path).unwrap();
    assert_eq!(
        preflight(&path, &roots).unwrap_err().kind,
        RefusalKind::LiveOutsideRoots
    );
    let reference = world.home.join("skills/a/references/forms.md");
    world.write(&reference, "x\n");
    preflight(&reference, &world.roots).unwrap();
}

#[test]
fn missing_directories_are_made_and_a_dry_run_says_so() {
    let world = World::new();
    let path = world.home.join("skills/deep/er/SKILL.md");
    let id = world.accepted(&path, "one\n");
    let plan = world.area().plan(&[id], Approver::Person, at(9)).unwrap();
    let before = world.tree("");
    let planned = dry_run(&plan, &world.state, &world.roots).unwrap();
    assert_eq!(world.tree(""), before, "a dry run writes nothing");
    assert!(planned.refusals.is_empty());
    let write = &planned.writes[0];
    assert_eq!(
        write.makes_directories,
        [
            world.home.join("skills/deep"),
            world.home.join("skills/deep/er"),
        ]
    );
    assert_eq!(
        (write.after_length, &write.after_sha256),
        (4, &sha256("one\n"))
    );
    assert!(write.diff.contains("+one"), "{}", write.diff);
    let adoption = adopt(&plan, &world.state, &world.roots).unwrap();
    assert_eq!(
        adoption.documents[0].made_directories,
        write.makes_directories
    );
    assert_eq!(read(&path), "one\n");
}

#[test]
fn allowed_directories_need_not_be_there_yet() {
    let world = World::new();
    let path = world.home.join("new/skills/a/SKILL.md");
    let memory = world.home.join("other/CLAUDE.md");
    let roots = AllowedRoots::new()
        .skills(world.home.join("new/skills"))
        .document(&memory);
    assert_eq!(
        preflight(&path, &roots).unwrap().missing_directories.len(),
        3
    );
    preflight(&memory, &roots).unwrap();
    symlink(world.home.join("project"), world.home.join("new")).unwrap();
    let target = preflight(&path, &roots).unwrap();
    assert_eq!(
        target.real_path,
        world.home.join("project/skills/a/SKILL.md")
    );
    let outside = world.home.join("new/SKILL.md");
    assert_eq!(
        preflight(&outside, &roots).unwrap_err().kind,
        RefusalKind::LiveOutsideRoots
    );
}

#[test]
fn a_dry_run_names_every_refusal() {
    let world = World::new();
    let (a, b) = (world.skill("a"), world.skill("b"));
    let ids = [world.accepted(&a, "one\n"), world.accepted(&b, "one\n")];
    world.write(&a, "x\n");
    world.write(&b, "x\n");
    let plan = world.area().plan(&ids, Approver::Person, at(9)).unwrap();
    let planned = dry_run(&plan, &world.state, &world.roots).unwrap();
    assert_eq!(planned.refusals.len(), 2);
    assert_eq!(planned.refusals[0].1.kind.as_str(), "live_drift");
}

#[test]
fn a_second_adopter_is_told_who_is_first() {
    let world = World::new();
    let id = world.accepted(&world.skill("a"), "one\n");
    let _first = Lock::acquire(&world.state.join("adopt.lock"), "adoption of n1-1").unwrap();
    let error = world.adopt(&[id]).unwrap_err();
    assert!(matches!(error, Error::Locked(_)));
    assert!(error.to_string().contains("adoption of n1-1"), "{error}");
}

#[test]
fn roots_come_from_the_caller_and_not_from_the_proposal() {
    let world = World::new();
    let id = world.accepted(&world.skill("a"), "one\n");
    let plan = world.area().plan(&[id], Approver::Person, at(9)).unwrap();
    let narrow = AllowedRoots::new().project(world.home.join("project"));
    assert_eq!(
        refused(adopt(&plan, &world.state, &narrow)),
        RefusalKind::LiveOutsideRoots
    );
}

#[test]
fn a_document_that_already_has_the_text_needs_no_adoption() {
    let world = World::new();
    let path = world.skill("a");
    world.write(&path, "one\n");
    let id = world.accepted(&path, "two\n");
    world.write(&path, "two\n");
    assert_eq!(refused(world.adopt(&[id])), RefusalKind::NothingToChange);
}

#[test]
fn a_text_with_a_risk_is_never_adopted_automatically() {
    let world = World::new();
    let path = world.skill("a");
    world.write(&path, "one\n");
    let mut draft = world.draft(&path, "one\ntwo\n");
    draft.gate.accepted = true;
    draft.lint.push(Finding {
        rule: "new-host".to_owned(),
        level: Level::Warning,
        line: Some(2),
        excerpt: "two".to_owned(),
    });
    let area = world.area();
    let id = area.stage(draft).unwrap().id;
    let adopt_by = |by| {
        let plan = area.plan(&[&id], by, at(5)).unwrap();
        adopt(&plan, &world.state, &world.roots)
    };
    assert_eq!(
        refused(adopt_by(Approver::Automatic)),
        RefusalKind::RiskNeedsPerson
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
    world.accept(&id);
    adopt_by(Approver::Person).unwrap();
}

#[test]
fn only_what_the_gate_confirmed_and_nobody_decided_about_is_adopted_automatically() {
    let world = World::new();
    let path = world.skill("a");
    world.write(&path, "one\n");
    let area = world.area();
    let stage = |change: fn(&mut Draft)| {
        let mut draft = world.draft(&path, "one\ntwo\n");
        (draft.verified, draft.gate.accepted) = (true, true);
        change(&mut draft);
        area.stage(draft).unwrap().id
    };
    let adopt_by = |by, id: &str| {
        let plan = area.plan(&[id], by, at(5))?;
        adopt(&plan, &world.state, &world.roots)
    };
    let unsure = [
        stage(|draft| draft.verified = false),
        stage(|draft| draft.gate.accepted = false),
        stage(|_| {}),
        stage(|_| {}),
    ];
    world.accept(&unsure[2]);
    let some = EditSelection::Some(vec![1]);
    area.reject(&unsure[3], some, "", at(4)).unwrap();
    for id in &unsure {
        assert_eq!(
            refused(adopt_by(Approver::Automatic, id)),
            RefusalKind::NeedsPerson
        );
    }
    let sure = stage(|_| {});
    assert_eq!(
        refused(adopt_by(Approver::Person, &sure)),
        RefusalKind::ProposalNotAccepted
    );
    let adoption = adopt_by(Approver::Automatic, &sure).unwrap();
    assert_eq!(adoption.by, Approver::Automatic);
    assert_eq!(read(&path), "one\ntwo\n");
}
