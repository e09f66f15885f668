//! Somebody else at work on the same files, before every single step of an adoption: an
//! editor that saves, a hand that deletes, an attacker who swaps directories for links.
//! Their text is never lost, and nothing is written outside.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use skillopt_files::{Step, Steps};
use skillopt_staging::{Acceptance, Approver, adopt, adopt_with, recover};

use crate::world::{World, acceptance, at};

/// Does something before the n-th step.
struct Meddle<'t> {
    left: usize,
    act: &'t dyn Fn(&World),
    world: &'t World,
    done: bool,
}

impl Steps for Meddle<'_> {
    fn before(&mut self, _step: Step, _path: &Path) -> io::Result<()> {
        if self.left == 0 && !self.done {
            self.done = true;
            (self.act)(self.world);
        }
        self.left = self.left.saturating_sub(1);
        Ok(())
    }
}

const OUTSIDE: &str = "outside\n";

/// Adopts two documents once for every step, with `act` before that step, and looks at
/// the world afterwards. `b` is there to have something to undo when `a` was meddled with.
fn meddle(existing: bool, act: &dyn Fn(&World), check: &dyn Fn(&World, usize)) {
    for left in 0.. {
        let world = World::new();
        world.write(&world.home.join("outside/SKILL.md"), OUTSIDE);
        world.write(&world.skill("b"), "b\n");
        if existing {
            world.write(&world.skill("a"), "one\n");
        }
        let ids = [
            world.accepted(&world.skill("b"), "b\nb\n"),
            world.accepted(&world.skill("a"), "two\n"),
        ];
        let plan = world.area().plan(&ids, Approver::Person, at(10)).unwrap();
        let mut steps = Meddle {
            left,
            act,
            world: &world,
            done: false,
        };
        let adopted = adopt_with(&plan, &world.state, &world.roots, &mut steps);
        if !steps.done {
            adopted.unwrap();
            break;
        }
        recover(&world.state, &world.roots).unwrap();
        let outside = world.tree("outside");
        assert_eq!(outside.len(), 2, "step {left}: {outside:?}");
        let text = fs::read_to_string(world.home.join("outside/SKILL.md")).unwrap();
        assert_eq!(text, OUTSIDE, "step {left}");
        let b = fs::read_to_string(world.skill("b")).unwrap();
        let expected = if adopted.is_ok() { "b\nb\n" } else { "b\n" };
        assert_eq!(b, expected, "all or nothing, step {left}: {adopted:?}");
        for (path, ..) in world.tree("") {
            assert!(
                path.extension().is_none_or(|end| end != "tmp"),
                "{}",
                path.display()
            );
        }
        check(&world, left);
    }
}

fn holds(text: &'static str) -> impl Fn(&World, usize) {
    move |world, left| {
        let found = fs::read_to_string(world.skill("a"));
        assert_eq!(found.unwrap(), text, "step {left}");
    }
}

#[test]
fn an_editor_that_saves_in_place_keeps_its_text() {
    meddle(
        true,
        &|world| fs::write(world.skill("a"), "edited\n").unwrap(),
        &holds("edited\n"),
    );
}

#[test]
fn an_editor_that_saves_by_renaming_keeps_its_text() {
    meddle(
        true,
        &|world| {
            let draft = world.home.join("skills/draft");
            fs::write(&draft, "edited\n").unwrap();
            fs::rename(&draft, world.skill("a")).unwrap();
        },
        &holds("edited\n"),
    );
}

#[test]
fn a_document_that_somebody_creates_meanwhile_stays() {
    meddle(
        false,
        &|world| world.write(&world.skill("a"), "mine\n"),
        &holds("mine\n"),
    );
}

#[test]
fn a_document_that_somebody_deletes_stays_deleted() {
    meddle(
        true,
        &|world| fs::remove_file(world.skill("a")).unwrap(),
        &|world, left| assert!(!world.skill("a").exists(), "step {left}"),
    );
}

#[test]
fn a_directory_swapped_for_a_link_redirects_nothing() {
    meddle(
        true,
        &|world| {
            let skill = world.home.join("skills/a");
            fs::rename(&skill, world.home.join("skills/moved")).unwrap();
            symlink(world.home.join("outside"), &skill).unwrap();
        },
        &|_, _| {},
    );
}

#[test]
fn a_file_swapped_for_a_link_is_not_followed() {
    meddle(
        true,
        &|world| {
            fs::remove_file(world.skill("a")).unwrap();
            symlink(world.home.join("outside/SKILL.md"), world.skill("a")).unwrap();
        },
        &|world, _| assert!(fs::symlink_metadata(world.skill("a")).unwrap().is_symlink()),
    );
}

#[test]
fn a_second_name_keeps_the_text_it_had() {
    meddle(
        true,
        &|world| {
            let twin = world.home.join("twin");
            fs::hard_link(world.skill("a"), twin).unwrap();
        },
        &|world, left| {
            let twin = fs::read_to_string(world.home.join("twin")).unwrap();
            assert!(["one\n", "two\n"].contains(&twin.as_str()), "step {left}");
        },
    );
}

/// Adopts again and again while somebody turns the skill's link to and fro, until `enough` says so
/// of the number of attempts; says how many were adopted and refused.
fn race(enough: &(dyn Fn(usize) -> bool + Sync)) -> (usize, usize) {
    let world = World::new();
    let (skill, real) = (world.home.join("skills/a"), world.home.join("skills/real"));
    let outside = world.home.join("outside");
    world.write(&outside.join("SKILL.md"), "one\n");
    world.write(&real.join("SKILL.md"), "one\n");
    symlink(&real, &skill).unwrap();
    let id = world.accepted(&world.skill("a"), "two\n");
    let plan = world
        .area()
        .plan(std::slice::from_ref(&id), Approver::Person, at(10))
        .unwrap();
    let over = AtomicBool::new(false);
    let (mut adopted, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let link = world.home.join("skills/next");
            for target in [&outside, &real].into_iter().cycle() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                symlink(target, &link).unwrap();
                fs::rename(&link, &skill).unwrap();
            }
        });
        while !enough(adopted + refused) {
            match adopt(&plan, &world.state, &world.roots) {
                Ok(_) => adopted += 1,
                Err(_) => refused += 1,
            }
            // Either may fail as the link happens to stand; the next round tries again.
            let _ = world.revert(None, true);
            let again = Acceptance {
                at: at(30),
                ..acceptance("two\n")
            };
            let _ = world.area().accept(&id, again);
        }
        over.store(true, Ordering::Relaxed);
    });
    recover(&world.state, &world.roots).unwrap();
    assert_eq!(
        fs::read_to_string(outside.join("SKILL.md")).unwrap(),
        "one\n"
    );
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    (adopted, refused)
}

#[test]
fn a_racer_that_swaps_links_never_gets_a_byte_outside() {
    let (adopted, refused) = race(&|attempts| attempts >= 200);
    assert_eq!(adopted + refused, 200);
}

#[test]
#[ignore = "a minute long"]
fn a_racer_that_swaps_links_for_a_minute_never_gets_a_byte_outside() {
    let end = Instant::now() + Duration::from_secs(60);
    let (adopted, refused) = race(&|_| Instant::now() > end);
    println!("in 60 seconds: {adopted} adopted, {refused} refused");
    assert!(adopted > 100 && refused > 100);
}

#[test]
fn two_adopters_at_once_take_turns_or_one_is_told() {
    let world = World::new();
    let ids: Vec<String> = (0..4)
        .map(|n| world.accepted(&world.skill(&format!("s{n}")), "x\n"))
        .collect();
    std::thread::scope(|scope| {
        for id in &ids {
            scope.spawn(|| {
                while let Err(error) = world.adopt(std::slice::from_ref(id)) {
                    assert!(
                        matches!(error, skillopt_staging::Error::Locked(_)),
                        "{error}"
                    );
                }
            });
        }
    });
    let adopted = world.area().list().unwrap().staged;
    assert!(
        adopted
            .iter()
            .all(|staged| staged.status.word() == "adopted")
    );
}
