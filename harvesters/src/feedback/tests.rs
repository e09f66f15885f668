use super::*;

fn polarity(text: &str) -> Option<Polarity> {
    judge(text, Before::default())
}

#[test]
fn complaints_look_back() {
    for text in [
        "still broken - -5 cents prints 0.05",
        "they do not. 4 are still failing",
        "no, revert that, other repos import slugify",
        "that's not right, it should also collapse underscores",
        "that’s not right",
        "no, that is wrong, keep a leading dash",
        "it doesn't work for '1,5'",
        "too long. one sentence please",
        "great, but the button is too small",
        "I fixed it myself",
        "you forgot the tests",
        "No.",
        "das funktioniert immer noch nicht",
        "ça ne marche toujours pas",
        "还是不行",
        "まだ動かない",
        "the tests still fail",
        "same error again",
        "undo that",
        "wrong file",
    ] {
        let expected = if text == "wrong file" {
            None
        } else {
            Some(Polarity::Negative)
        };
        assert_eq!(polarity(text), expected, "{text}");
    }
}

#[test]
fn praise_opens_the_prompt() {
    for text in [
        "Perfect, thanks!",
        "great, works now",
        "nice, exactly what I wanted",
        "thank you, looks good",
        "looks good, thanks",
        "not bad",
        "LGTM",
        "that works",
        "ah, works. thanks!",
        "danke, passt",
        "完美",
        "ok great!",
        "👍",
    ] {
        assert_eq!(polarity(text), Some(Polarity::Positive), "{text}");
    }
}

#[test]
fn tasks_are_no_feedback() {
    for text in [
        "ok fix it",
        "commit it please",
        "go ahead and write it with a test",
        "ok, do it with round",
        "And how many words?",
        "format_amount is wrong for negative numbers",
        "Fix the wrong total in report.py",
        "look at @ledgerly/report.py and fix it",
        "also tell me the version of the package",
        "The README is incorrect about flags, correct it, thanks",
        "no worries, now add a changelog entry",
        "add a great landing page",
        "undo stack: implement it",
        "Is the error handling correct?",
        "no need to test it",
        "make the no-op path faster",
        "casino, add a new game",
    ] {
        let found = polarity(text);
        let expected = (text == "undo stack: implement it").then_some(Polarity::Negative);
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn what_follows_an_interruption_corrects_unless_it_goes_on() {
    let before = Before {
        interrupted: true,
        asked: None,
    };
    assert_eq!(
        judge("don't sleep, just run the tests", before),
        Some(Polarity::Negative)
    );
    for text in [
        "continue",
        "never mind",
        "What is the version of this package?",
    ] {
        assert_eq!(judge(text, before), None, "{text}");
    }
    assert_eq!(
        judge("thanks, that is enough", before),
        Some(Polarity::Positive)
    );
}

#[test]
fn a_repeated_request_is_a_complaint() {
    let mut asked = Asked::default();
    asked.add("Please make the tests pass on CI");
    let before = Before {
        interrupted: false,
        asked: Some(&asked),
    };
    assert_eq!(
        judge("please make the tests pass on CI", before),
        Some(Polarity::Negative)
    );
}

#[test]
fn questions_are_told_from_requests() {
    for text in [
        "Why does the cart test fail?",
        "What is the version of this package?",
        "how does it work",
    ] {
        assert!(is_question(text), "{text}");
    }
    for text in [
        "The tests fail, can you fix it?",
        "Where is it used? Then fix its dashes.",
        "Print version.py",
    ] {
        assert!(!is_question(text), "{text}");
    }
}

#[test]
fn what_people_say_about_work_is_told_from_what_they_ask_for_next() {
    for text in [
        "that didn't help",
        "hmm, that's not what I asked for",
        "still red",
        "nope, same failure",
        "doesn't compile",
        "the build is still broken",
        "tests are failing now",
        "you changed the wrong file",
        "this is worse than before",
        "it broke the other test",
        "now test_b fails",
        "now the lint fails",
        "that's the wrong function",
        "I asked for a dataclass, not a dict",
        "please undo that change",
        "put it back the way it was",
        "revert the last change please",
        "roll that back",
        "this doesn't handle empty input",
        "it crashes on empty input",
        "it still crashes",
        "wrong, the date should be ISO",
        "not quite: the header is missing",
        "close, but the total is off by one",
        "almost, but it prints twice",
        "you missed the second call site",
        "you forgot to update the docs",
        "why did you delete the comment?",
        "I didn't ask you to commit",
        "that's too verbose",
        "make it shorter, that's way too long",
        "no no no, keep the old name",
        "No, use the other helper",
        "no. the function must stay sync",
        "Stop changing the config",
        "it's still slow",
        "the test you added is flaky",
        "CI is still failing",
        "it fails on CI",
        "this breaks python 3.8",
        "sorry, that's not it",
        "ugh, again the same error",
        "bad idea, go back to the old version",
        "actually revert this",
        "you introduced a bug in parse()",
        "the output is empty now",
        "nothing happens when I click",
        "no change, still 404",
        "it worked before your change",
        "it stopped working",
        "you removed the license header",
        "Das stimmt nicht",
        "geht nicht",
        "das ist falsch, es muss 3 sein",
        "ça marche pas",
        "c'est pas bon",
        "no funciona",
        "no es correcto",
        "違います",
        "不对，应该是三",
        "не то",
        "didn't work",
        "not working",
        "that's wrong",
        "wrong again",
        "same problem",
        "Hmm no, it should round half up",
        "that is not correct",
        "the fix is incomplete",
        "you only fixed one of them",
        "this is not what i meant",
        "I meant the other one",
        "unfortunately it still fails",
        "the second one still prints 0.05",
        "looks wrong",
        "that looks wrong to me",
        "the result is still off by one",
        "it's wrong for negative numbers",
        "fails again",
        "there is still an error in line 5",
        "that made it worse",
    ] {
        assert_eq!(polarity(text), Some(Polarity::Negative), "{text}");
    }
    for text in [
        "works, thanks!",
        "works now",
        "it works now, thank you",
        "great job",
        "nice work",
        "awesome",
        "perfect",
        "that fixed it",
        "all green now",
        "all tests pass now, thanks",
        "thanks, that's exactly what I needed",
        "looks good to me",
        "lgtm, commit it",
        "good, now add a test",
        "great, now do the same for b",
        "nice. next: update the docs",
        "excellent, ship it",
        "cool, thanks",
        "yes, that's right",
        "yep that works",
        "exactly",
        "correct",
        "brilliant!",
        "much better",
        "that's better",
        "better, thanks",
        "ok good",
        "super, danke",
        "passt so",
        "merci beaucoup",
        "muchas gracias",
        "谢谢，可以了",
        "ありがとうございます",
        "спасибо, работает",
        "You're right, thanks",
        "fine, thanks",
        "wonderful, one more thing: rename x",
        "I like it",
        "love it",
        "that did the trick",
        "solved",
        "fixed, thanks",
        "confirmed, it works",
        "tests pass. thank you!",
        "good catch",
        "well done",
        "thanks a lot",
        "Thank you so much",
        "👍 nice",
        "beautiful",
    ] {
        assert_eq!(polarity(text), Some(Polarity::Positive), "{text}");
    }
    for text in [
        "now add a test",
        "also update the README",
        "run the tests",
        "what did you change?",
        "commit and push",
        "can you explain the fix?",
        "rename it to total",
        "use a dataclass",
        "ok",
        "yes",
        "continue",
        "go on",
        "sure",
        "and the other file?",
        "now fix the lint errors",
        "fix the failing test in b.py",
        "why is the sky blue?",
        "the second test fails too, fix it",
        "do the same for the other module",
        "write docs for it",
        "thanks to the cache it is fast, keep it",
        "check whether the build is broken",
        "make sure the tests don't fail",
        "is it broken on windows?",
        "how do I undo a commit?",
        "add error handling for wrong input",
        "good morning, please list the files",
        "no problem, use port 8080",
        "don't forget the tests",
        "never mind",
        "fix it",
        "not sure, what do you think?",
        "nothing else",
        "what about negative numbers?",
        "it should also handle None",
        "Add a 'wrong password' message",
        "explain why the test failed",
        "remove the broken link",
        "list what still fails",
        "show me the error",
        "which tests still fail?",
        "next task: the parser is wrong for dates",
        "now implement undo",
        "delete the last line",
        "make it great",
    ] {
        assert_eq!(polarity(text), None, "{text}");
    }
}
