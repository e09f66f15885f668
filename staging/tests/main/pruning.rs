use skillopt_staging::{EditSelection, RefusalKind, prune_backups};

use crate::world::{World, at, refused};

#[test]
fn only_decided_proposals_of_the_past_are_removed() {
    let world = World::new();
    let area = world.area();
    let open = world.stage(&world.skill("open"), "x\n");
    let rejected = world.stage(&world.skill("rejected"), "x\n");
    area.reject(&rejected, EditSelection::All, "no", at(1))
        .unwrap();
    let adopted = world.accepted(&world.skill("adopted"), "x\n");
    world.adopt(&[adopted]).unwrap();
    assert!(area.prune(at(0)).unwrap().is_empty(), "not older than that");
    let mut removed = area.prune(at(1)).unwrap();
    removed.sort();
    assert_eq!(removed, ["n12-2", "n12-3"]);
    let left = area.list().unwrap().staged;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].proposal.id, open);
    world.revert(None, false).unwrap();
    assert!(!world.skill("adopted").exists(), "still to be reverted");
}

#[test]
fn numbers_are_not_given_twice_while_a_later_one_is_there() {
    let world = World::new();
    for name in ["a", "b"] {
        world.stage(&world.skill(name), "x\n");
    }
    let area = world.area();
    area.reject("n12-1", EditSelection::All, "", at(1)).unwrap();
    area.prune(at(1)).unwrap();
    assert_eq!(world.stage(&world.skill("c"), "x\n"), "n12-3");
}

#[test]
fn an_adoption_without_its_backups_says_so() {
    let world = World::new();
    let path = world.skill("a");
    world.write(&path, "one\n");
    let id = world.accepted(&path, "two\n");
    world.adopt(&[id]).unwrap();
    assert!(prune_backups(&world.state, at(10)).unwrap().is_empty());
    assert_eq!(prune_backups(&world.state, at(11)).unwrap(), ["a1"]);
    assert_eq!(
        refused(world.revert(None, false)),
        RefusalKind::BackupMissing
    );
}
