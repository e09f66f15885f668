//! What keys decide, and what is on the disk then.

use std::collections::BTreeSet;

use skillopt_staging::Status;

use super::fixture::{BASE, DANGER, Night, THREE};
use crate::cli::review::app::{Effect, Mode};
use crate::cli::review::keys::{Key, update};
use crate::night::risk;

#[test]
fn a_key_for_each_edit_and_every_decision_is_stored_at_once() {
    let night = Night::new();
    let id = night.stage("one", THREE);
    let mut app = night.app();
    night.press(&mut app, "na");
    assert_eq!(night.decision(&id), (vec![1], vec![]));
    assert_eq!(app.edit(), Some(2), "on to the next edit");
    night.press(&mut app, "rtoo fussy\n");
    assert_eq!(
        night.decision(&id),
        (vec![1], vec![(vec![2], "too fussy".to_owned())])
    );
    night.press(&mut app, "a");
    assert_eq!(night.decision(&id).0, [1, 3]);
    let Mode::Finish(preview) = &app.mode else {
        panic!("at the end: {:?}", app.mode)
    };
    assert_eq!(preview.writes.len(), 1);
    let text = night
        .area
        .load(&id)
        .unwrap()
        .decision
        .accepted
        .unwrap()
        .text;
    assert!(
        text.contains("cargo test") && text.contains("Dates as") && !text.contains("filler"),
        "{text}"
    );
}

#[test]
fn rejecting_an_accepted_edit_keeps_the_others() {
    let night = Night::new();
    let id = night.stage("one", THREE);
    let mut app = night.app();
    night.press(&mut app, "a\u{1b}");
    assert_eq!(night.decision(&id).0, [1, 2, 3]);
    night.press(&mut app, "nnr\n");
    assert_eq!(
        night.decision(&id),
        (vec![1, 3], vec![(vec![2], String::new())])
    );
}

#[test]
fn capitals_are_for_all_that_remain() {
    let night = Night::new();
    let ids: Vec<String> = ["a", "b", "c"].map(|name| night.stage(name, THREE)).into();
    let mut app = night.app();
    night.press(&mut app, "rno\n");
    night.press(&mut app, "A");
    let word = |id: &str| night.area.load(id).unwrap().status.word();
    assert_eq!(
        ids.iter().map(|id| word(id)).collect::<Vec<_>>(),
        ["rejected", "accepted", "accepted"]
    );

    let night = Night::new();
    let ids: Vec<String> = ["a", "b"].map(|name| night.stage(name, THREE)).into();
    let mut app = night.app();
    night.press(&mut app, "na");
    assert!(
        !night.press(&mut app, "Rlater\n"),
        "one edit is accepted: the end shows it"
    );
    assert_eq!(
        night.decision(&ids[0]),
        (vec![1], vec![(vec![2, 3], "later".to_owned())])
    );
    assert!(matches!(
        night.area.load(&ids[1]).unwrap().status,
        Status::Rejected { .. }
    ));
}

#[test]
fn skipped_proposals_keep_waiting_and_leaving_changes_nothing() {
    let night = Night::new();
    let ids: Vec<String> = ["a", "b"].map(|name| night.stage(name, THREE)).into();
    let mut app = night.app();
    assert!(!night.press(&mut app, "s"));
    assert!(
        night.press(&mut app, "s"),
        "nothing is accepted, so it is over"
    );
    for id in &ids {
        assert_eq!(night.area.load(id).unwrap().status, Status::Pending);
    }
    assert_eq!(update(&mut app, Key::Interrupt), Effect::Quit);
}

#[test]
fn a_danger_is_held_back_at_the_end() {
    let night = Night::new();
    let id = night.stage("one", DANGER);
    let mut app = night.app();
    night.press(&mut app, "a");
    let Mode::Finish(preview) = &app.mode else {
        panic!("{:?}", app.mode)
    };
    assert_eq!(preview.held, [(id.clone(), vec!["remote-code".to_owned()])]);
    assert!(preview.writes.is_empty());
    assert_eq!(update(&mut app, Key::Char('y')), Effect::Nothing);
    let allowed = night
        .desk()
        .preview(std::slice::from_ref(&id), &["remote-code".to_owned()])
        .unwrap();
    assert_eq!(allowed.writes.len(), 1);
}

#[test]
fn a_subset_without_the_dangerous_edit_is_free() {
    let night = Night::new();
    let edits = [THREE[0], DANGER[0]];
    let id = night.stage("one", &edits);
    night.desk().accept(&id, &BTreeSet::from([1])).unwrap();
    assert!(
        night
            .desk()
            .preview(std::slice::from_ref(&id), &[])
            .unwrap()
            .held
            .is_empty()
    );
    let text =
        night.area.load(&id).unwrap().proposal.proposed.text + "\nRun `git commit --no-verify`.\n";
    let opened = night.desk().accept_text(&id, text).unwrap();
    assert_eq!(
        risk::dangers(&opened.findings),
        BTreeSet::from(["disabled-checks", "remote-code"])
    );
    assert!(opened.staged.decision.accepted.unwrap().edited_by_person);
}

#[test]
fn a_change_is_accepted_onto_the_document_as_it_is_now() {
    let night = Night::new();
    let id = night.stage("one", THREE);
    night.write(
        "one",
        &BASE.replace("How we work here.", "How we all work here."),
    );
    let mut app = night.app();
    night.press(&mut app, "a");
    let Mode::Finish(preview) = &app.mode else {
        panic!("{:?}", app.mode)
    };
    night.desk().adopt(preview).unwrap();
    let text = std::fs::read_to_string(night.path("one")).unwrap();
    assert!(
        text.contains("How we all work here.") && text.contains("cargo test"),
        "{text}"
    );
    assert_eq!(night.area.load(&id).unwrap().status.word(), "adopted");
}

#[test]
fn what_was_accepted_before_the_document_changed_is_accepted_again() {
    let night = Night::new();
    let id = night.stage("one", THREE);
    night
        .desk()
        .accept(&id, &BTreeSet::from([1, 2, 3]))
        .unwrap();
    night.write(
        "one",
        &BASE.replace("How we work here.", "How we all work here."),
    );
    let preview = night
        .desk()
        .preview(std::slice::from_ref(&id), &[])
        .unwrap();
    assert_eq!(preview.refused.len(), 1, "{preview:?}");
    assert!(night.desk().open(&id).unwrap().stale);
    let mut app = night.app();
    night.press(&mut app, "a");
    let Mode::Finish(preview) = &app.mode else {
        panic!("{:?}", app.mode)
    };
    assert_eq!((preview.writes.len(), preview.refused.len()), (1, 0));
}
