use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use proptest::prelude::*;
use skillopt_staging::{
    Base, EditStatus, Evidence, Finding, GateRecord, ItemDelta, Level, RefusalKind,
    RejectedCandidate, Status,
};

use crate::world::{World, at, edit, refused};

#[test]
fn what_is_staged_is_read_back_whole_and_private() {
    let world = World::new();
    let path = world.skill("a");
    world.write(&path, "\u{feff}one\r\n");
    let mut draft = world.draft(&path, "one\ntwo\n");
    draft.edits[0].evidence.push(Evidence {
        task: "t1".to_owned(),
        quote: "run the tests \u{1b}[31m".to_owned(),
        offset: Some(7),
        ..Evidence::default()
    });
    draft.gate = GateRecord {
        action: "accept".to_owned(),
        accepted: true,
        baseline: Some(0.25),
        candidate: Some(1.0),
        gain: Some(f64::NAN),
        interval: Some((0.1, f64::INFINITY)),
        items: vec![ItemDelta {
            id: "i1".to_owned(),
            label: String::new(),
            baseline: None,
            candidate: Some(1.0),
        }],
        ..GateRecord::default()
    };
    draft.rejected.push(RejectedCandidate {
        edits: vec![edit(9, "no")],
        gate: GateRecord::default(),
    });
    draft.lint.push(Finding {
        rule: "new-host".to_owned(),
        level: Level::Warning,
        line: Some(2),
        excerpt: "example.com".to_owned(),
    });
    let staged = world.area().stage(draft.clone()).unwrap();
    assert_eq!(staged.id, "n12-1");
    let loaded = world.area().load("n12-1").unwrap();
    assert_eq!(loaded.proposal, staged);
    assert_eq!(loaded.status, Status::Pending);
    assert_eq!(loaded.proposal.base, draft.base);
    assert_eq!(loaded.proposal.base.normal(), "one\n");
    assert_eq!(
        loaded.proposal.gate.gain, None,
        "not a number: not measured"
    );
    assert_eq!(loaded.proposal.gate.interval, None);
    for (path, mode, _) in world.tree("state") {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode & 0o777, expected, "{}", path.display());
    }
    assert_eq!(fs::metadata(&world.state).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn proposals_of_a_night_are_numbered_and_listed_in_order() {
    let world = World::new();
    for number in 1..=12 {
        let id = world.stage(&world.skill(&format!("s{number}")), "x\n");
        assert_eq!(id, format!("n12-{number}"));
    }
    let listing = world.area().list().unwrap();
    let ids: Vec<String> = listing.staged.into_iter().map(|s| s.proposal.id).collect();
    let expected: Vec<String> = (1..=12).map(|n| format!("n12-{n}")).collect();
    assert_eq!(ids, expected);
}

#[test]
fn a_proposal_is_found_by_what_a_person_types() {
    let world = World::new();
    let area = world.area();
    let first = world.stage(&world.skill("alpha"), "x\n");
    let mut other = world.draft(&world.skill("beta"), "x\n");
    other.night = "n13".to_owned();
    let second = area.stage(other).unwrap().id;
    let found = |query: &str| area.find(query).map(|s| s.proposal.id);
    assert_eq!(found("n12-1").unwrap(), first);
    assert_eq!(found("n12").unwrap(), first);
    assert_eq!(found("beta").unwrap(), second);
    assert_eq!(
        found(world.skill("beta").to_str().unwrap()).unwrap(),
        second
    );
    assert_eq!(refused(found("n1")), RefusalKind::ProposalAmbiguous);
    for nothing in ["", "zzz", "../n12-1", "n12-1/..", "n12-\0"] {
        assert_eq!(
            refused(found(nothing)),
            RefusalKind::ProposalUnknown,
            "{nothing:?}"
        );
    }
    let later = world.stage(&world.skill("alpha"), "y\n");
    assert_eq!(refused(found("alpha")), RefusalKind::ProposalAmbiguous);
    area.supersede(&first, &later, at(1)).unwrap();
    assert_eq!(found("alpha").unwrap(), later, "only one is open");
}

#[test]
fn a_draft_that_changes_nothing_or_contradicts_itself_is_refused() {
    let world = World::new();
    let path = world.skill("a");
    world.write(&path, "one\r\n");
    let stage = |change: &dyn Fn(&mut skillopt_staging::Draft)| {
        let mut draft = world.draft(&path, "one\ntwo\n");
        change(&mut draft);
        refused(world.area().stage(draft))
    };
    assert_eq!(
        stage(&|draft| draft.proposed = "one\n".to_owned()),
        RefusalKind::NothingToChange
    );
    assert_eq!(
        stage(&|draft| draft.proposed = " \n".to_owned()),
        RefusalKind::ProposalEmpty
    );
    assert_eq!(
        stage(&|draft| draft.night = "../x".to_owned()),
        RefusalKind::NightUnsafe
    );
    assert_eq!(
        stage(&|draft| draft.base.sha256 = "0".repeat(64)),
        RefusalKind::ProposalInvalid
    );
    assert_eq!(
        stage(&|draft| draft.edits.push(edit(1, "again"))),
        RefusalKind::ProposalInvalid
    );
    assert_eq!(
        stage(&|draft| draft.document.path = "a/SKILL.md".into()),
        RefusalKind::LivePathUnsafe
    );
    assert_eq!(
        stage(&|draft| draft.proposed = "x".repeat(5 * 1024 * 1024)),
        RefusalKind::ProposalTooLarge
    );
    assert!(world.area().list().unwrap().staged.is_empty());
}

#[test]
fn edited_files_are_refused_by_name_and_the_others_still_listed() {
    let world = World::new();
    let path = world.skill("a");
    world.write(&path, "one\n");
    let record = |id: &str| {
        world
            .state
            .join("staging/n12")
            .join(id)
            .join("proposal.json")
    };
    for _ in 0..2 {
        world.stage(&path, "two\n");
    }
    let good = fs::read_to_string(record("n12-2")).unwrap();
    let duplicate = good.replacen("\"id\"", "\"night\": \"x\",\n  \"id\"", 1);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (text, kind) in [
        (String::new(), RefusalKind::ProposalInvalid),
        ("[]".to_owned(), RefusalKind::ProposalInvalid),
        (duplicate, RefusalKind::ProposalInvalid),
        (deep, RefusalKind::ProposalInvalid),
        (
            good.replace("\"format\": 1", "\"format\": 2"),
            RefusalKind::ProposalFormat,
        ),
        (good.replace("n12-2", "n12-1"), RefusalKind::ProposalInvalid),
        (
            "x".repeat(17 * 1024 * 1024),
            RefusalKind::ProposalUnreadable,
        ),
    ] {
        fs::write(record("n12-2"), text).unwrap();
        let listing = world.area().list().unwrap();
        assert_eq!(listing.staged.len(), 1);
        assert_eq!(listing.unreadable[0].kind, kind);
        assert!(listing.unreadable[0].subject.contains("n12-2"));
        assert_eq!(refused(world.area().load("n12-2")), kind);
    }
    fs::remove_file(record("n12-2")).unwrap();
    symlink(record("n12-1"), record("n12-2")).unwrap();
    assert_eq!(
        refused(world.area().load("n12-2")),
        RefusalKind::ProposalUnreadable
    );
}

#[test]
fn a_text_that_is_not_the_staged_one_is_refused() {
    let world = World::new();
    let path = world.skill("a");
    world.write(&path, "one\n");
    let id = world.stage(&path, "two\n");
    let folder = world.state.join("staging/n12").join(&id);
    for file in ["base.md", "proposed.md"] {
        let good = fs::read(folder.join(file)).unwrap();
        fs::write(folder.join(file), "evil\n").unwrap();
        assert_eq!(
            refused(world.area().load(&id)),
            RefusalKind::ProposalHashMismatch
        );
        fs::write(folder.join(file), good).unwrap();
    }
    world.area().load(&id).unwrap();
}

#[test]
fn foreign_files_in_the_area_are_passed_over() {
    let world = World::new();
    world.stage(&world.skill("a"), "x\n");
    let root = world.state.join("staging");
    fs::write(root.join("notes.txt"), "mine").unwrap();
    fs::create_dir_all(root.join(".hidden/n1-1")).unwrap();
    fs::create_dir_all(root.join("n12/.making-1-0")).unwrap();
    symlink(&world.home, root.join("n99")).unwrap();
    let listing = world.area().list().unwrap();
    assert_eq!((listing.staged.len(), listing.unreadable.len()), (1, 0));
}

#[test]
fn an_absent_base_is_not_an_empty_one() {
    let world = World::new();
    let absent = world.stage(&world.skill("a"), "x\n");
    world.write(&world.skill("b"), "");
    let empty = world.stage(&world.skill("b"), "x\n");
    let base = |id: &str| world.area().load(id).unwrap().proposal.base;
    assert_eq!(base(&absent), Base::absent());
    assert_eq!(base(&empty), Base::of(""));
    assert_eq!(edit(1, "x").status, EditStatus::Applied);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_content_of_a_record_makes_reading_panic(bytes: Vec<u8>, at in 0.0..1.0_f64) {
        let world = World::new();
        let id = world.stage(&world.skill("a"), "x\n");
        let record = world.state.join("staging/n12").join(&id).join("proposal.json");
        let mut content = fs::read(&record).unwrap();
        let cut = (content.len() as f64 * at) as usize;
        content.splice(cut..cut, bytes);
        fs::write(&record, content).unwrap();
        let _ = world.area().load(&id);
        world.area().list().unwrap();
    }
}
