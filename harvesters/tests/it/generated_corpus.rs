//! A corpus made by a generator that counts what it writes (`corpus.json`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use skillopt_harvesters::session::IncidentKind;
use skillopt_harvesters::{Agent, HarvestOptions, Polarity, Roots, Session, harvest_each};

/// Adds a session's counts.
fn count(sums: &mut BTreeMap<&'static str, u64>, session: &Session) {
    let mut add = |name, number: usize| *sums.entry(name).or_default() += number as u64;
    add("sessions", 1);
    add("user_prompts", session.prompts().count());
    add("finals", session.finals().count());
    add(
        "edits",
        session
            .calls()
            .filter(|call| !call.edits.is_empty())
            .count(),
    );
    add("interruptions", session.count(IncidentKind::Interruption));
    add("compactions", session.count(IncidentKind::Compaction));
    add("tool_errors", session.tool_errors());
    add("tool_calls", session.calls().count());
    let polarity = |wanted: Polarity| {
        session
            .feedback()
            .iter()
            .filter(|said| said.polarity == wanted)
            .count()
    };
    add("negative", polarity(Polarity::Negative));
    add("positive", polarity(Polarity::Positive));
    let passed = |wanted: bool| {
        session
            .verifications()
            .filter(|(_, found)| found.passed == Some(wanted))
            .count()
    };
    add("verification_passed", passed(true));
    add("verification_failed", passed(false));
    let usage = session.usage.unwrap_or_default();
    for (name, number) in [
        ("input_tokens", usage.input),
        ("output_tokens", usage.output),
        ("cache_read_tokens", usage.cache_read),
        ("cache_creation_tokens", usage.cache_creation),
    ] {
        *sums.entry(name).or_default() += number;
    }
    *sums.entry("sub_agents").or_default() += u64::from(session.sub_agents);
}

#[test]
#[ignore = "needs a generated corpus in $SKILLOPT_CORPUS"]
fn the_counts_of_a_generated_corpus_are_reached() {
    let corpus = PathBuf::from(std::env::var_os("SKILLOPT_CORPUS").unwrap());
    let truth: Value =
        serde_json::from_slice(&std::fs::read(corpus.join("corpus.json")).unwrap()).unwrap();
    for (agent, name) in [(Agent::Claude, "claude"), (Agent::Codex, "codex")] {
        let roots = Roots::none().with(agent, corpus.join(name));
        let mut sums = BTreeMap::new();
        let started = std::time::Instant::now();
        let account = harvest_each(&roots, &HarvestOptions::default(), |session| {
            count(&mut sums, &session);
            std::ops::ControlFlow::Continue(())
        });
        let seconds = started.elapsed().as_secs_f64();
        let bytes = account.report.bytes_read;
        println!(
            "{name}: {bytes} bytes in {seconds:.2} s, {:?}, {:?}",
            account.report.skip_counts, account.report.flaw_counts
        );
        for (fact, sum) in &sums {
            let expected = &truth[name][*fact];
            let mark = if *expected == json!(sum) || expected.is_null() {
                " "
            } else {
                "!"
            };
            println!("{mark} {name} {fact}: {sum} of {expected}");
        }
    }
}
