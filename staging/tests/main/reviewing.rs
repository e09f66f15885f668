use std::collections::BTreeSet;
use std::fs;

use skillopt_staging::{Acceptance, Approver, EditSelection, HistoryEvent, RefusalKind, Status};

use crate::world::{World, acceptance, at, refused};

fn some(edits: &[usize]) -> EditSelection {
    EditSelection::Some(edits.to_vec())
}

#[test]
fn two_edits_of_three_are_accepted_and_one_rejected_with_a_reason() {
    let world = World::new();
    let id = world.stage(&world.skill("a"), "one\ntwo\nthree\n");
    let area = world.area();
    let rejected = area.reject(&id, some(&[2]), " too vague ", at(1)).unwrap();
    assert_eq!(rejected.status, Status::Pending, "the others are undecided");
    let staged = area
        .accept(
            &id,
            Acceptance {
                edits: some(&[1, 3]),
                ..acceptance("one\nthree\n")
            },
        )
        .unwrap();
    let Status::Accepted { edits, .. } = &staged.status else {
        panic!("{:?}", staged.status)
    };
    assert_eq!(edits, &BTreeSet::from([1, 3]));
    let rejections = area.rejections().unwrap();
    assert_eq!(rejections.len(), 1);
    assert_eq!(rejections[0].reason, "too vague");
    assert_eq!(rejections[0].edits[0].content, "second");
}

#[test]
fn only_what_was_shown_can_be_accepted() {
    let world = World::new();
    let id = world.stage(&world.skill("a"), "one\n");
    let unseen = Acceptance {
        text: "other\n".to_owned(),
        ..acceptance("one\n")
    };
    assert_eq!(
        refused(world.area().accept(&id, unseen)),
        RefusalKind::ApprovalMismatch
    );
    assert_eq!(
        refused(world.area().accept(&id, acceptance(" \n"))),
        RefusalKind::ProposalEmpty
    );
    let unknown = Acceptance {
        edits: some(&[7]),
        ..acceptance("one\n")
    };
    assert_eq!(
        refused(world.area().accept(&id, unknown)),
        RefusalKind::EditUnknown
    );
    assert_eq!(world.area().load(&id).unwrap().status, Status::Pending);
}

#[test]
fn rejecting_an_accepted_edit_withdraws_the_approval() {
    let world = World::new();
    let id = world.accepted(&world.skill("a"), "one\n");
    let area = world.area();
    let staged = area.reject(&id, some(&[1]), "", at(6)).unwrap();
    assert_eq!(staged.status, Status::Pending);
    let staged = area.reject(&id, some(&[2, 3]), "no", at(7)).unwrap();
    assert!(matches!(staged.status, Status::Rejected { ref reason, .. } if reason == "no"));
    world.accept(&id);
    let staged = area.load(&id).unwrap();
    assert_eq!(staged.status.word(), "accepted");
    assert!(staged.decision.rejected.is_empty(), "accepted after all");
}

#[test]
fn a_proposal_can_be_rejected_whole_and_reopened() {
    let world = World::new();
    let id = world.stage(&world.skill("a"), "one\n");
    let area = world.area();
    area.reject(&id, EditSelection::All, "not mine", at(1))
        .unwrap();
    assert_eq!(area.load(&id).unwrap().status.word(), "rejected");
    assert_eq!(area.reopen(&id).unwrap().status, Status::Pending);
}

#[test]
fn superseded_and_expired_proposals_are_closed() {
    let world = World::new();
    let area = world.area();
    let old = world.stage(&world.skill("a"), "one\n");
    let new = world.stage(&world.skill("a"), "two\n");
    area.supersede(&old, &new, at(1)).unwrap();
    assert_eq!(
        refused(area.accept(&old, acceptance("one\n"))),
        RefusalKind::ProposalClosed
    );
    assert_eq!(area.expire(at(-5), at(2)).unwrap(), Vec::<String>::new());
    assert_eq!(area.expire(at(1), at(2)).unwrap(), vec![new.clone()]);
    assert_eq!(
        area.load(&new).unwrap().status,
        Status::Expired { at: at(2) }
    );
    world.accept(&new);
    assert_eq!(area.load(&new).unwrap().status.word(), "accepted");
}

#[test]
fn a_forged_or_copied_decision_does_not_count() {
    let world = World::new();
    let one = world.accepted(&world.skill("a"), "one\n");
    let two = world.stage(&world.skill("b"), "two\n");
    let decision = |id: &str| {
        world
            .state
            .join("staging/n12")
            .join(id)
            .join("decision.json")
    };
    let text = fs::read_to_string(decision(&one)).unwrap();
    fs::write(decision(&one), text.replace("one\\n", "evil\\n")).unwrap();
    assert_eq!(
        refused(world.area().load(&one)),
        RefusalKind::DecisionInvalid
    );
    fs::write(decision(&one), &text).unwrap();
    fs::write(decision(&two), &text).unwrap();
    assert_eq!(
        refused(world.adopt(std::slice::from_ref(&two))),
        RefusalKind::ProposalChanged,
        "a decision belongs to one proposal"
    );
    assert!(!world.skill("b").exists());
}

#[test]
fn the_history_tells_the_whole_story_of_a_document() {
    let world = World::new();
    let path = world.skill("a");
    let id = world.stage(&path, "one\n");
    let area = world.area();
    area.reject(&id, some(&[2]), "vague", at(1)).unwrap();
    let part = Acceptance {
        edits: some(&[1, 3]),
        ..acceptance("one\n")
    };
    area.accept(&id, part).unwrap();
    world.adopt(std::slice::from_ref(&id)).unwrap();
    world.revert(None, false).unwrap();
    world.stage(&world.skill("other"), "x\n");
    let events: Vec<HistoryEvent> = area
        .history(Some(&path))
        .unwrap()
        .into_iter()
        .map(|entry| entry.event)
        .collect();
    assert_eq!(
        events,
        [
            HistoryEvent::Staged {
                proposal: id.clone(),
                night: "n12".to_owned(),
                verified: true
            },
            HistoryEvent::Rejected {
                proposal: id.clone(),
                edits: vec![2],
                reason: "vague".to_owned()
            },
            HistoryEvent::Accepted {
                proposal: id.clone(),
                edits: vec![1, 3],
                edited_by_person: false
            },
            HistoryEvent::Adopted {
                adoption: "a1".to_owned(),
                proposal: id,
                by: Approver::Person,
            },
            HistoryEvent::Reverted {
                revert: "a2".to_owned(),
                adoption: "a1".to_owned()
            },
        ]
    );
}
