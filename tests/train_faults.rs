//! Training among failures: killed after every call, a full disk, a model that fails in every way.
//! Nothing that was paid for is lost, and nothing that failed is a score.

use std::collections::HashMap;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::json;
use skillopt_sleep::bench::dataset::Dataset;
use skillopt_sleep::bench::searchqa::{PROMPTS, SearchQa};
use skillopt_sleep::model::{
    CallError, CallErrorKind, ChatModel, ChatReply, ChatRequest, Models, ModelsConfig, Usage,
};
use skillopt_sleep::trainer::event::Observers;
use skillopt_sleep::trainer::gate_rule::GateAction;
use skillopt_sleep::trainer::prompt::Prompts;
use skillopt_sleep::trainer::settings::Settings;
use skillopt_sleep::trainer::state::State;
use skillopt_sleep::trainer::{Trained, Trainer};

use crate::machine::Machine;
use crate::model_server::Asked;
use crate::train::{benchmark_of, best_skill, brief_answers, history, items, with_model};

/// One process makes one call and is killed while it waits for the second, until none is left.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_killed_after_every_call_ends_like_an_undisturbed_one() {
    let mut machine = benchmark_of(4, 3, 2);
    let server = with_model(&mut machine).await;
    let changes = [
        "--set",
        "train.batch_size=2",
        "--set",
        "evaluation.eval_test=true",
    ];
    let run = |name| {
        [
            &["train", "--config", "run.yaml", "--out-root", name][..],
            &changes,
        ]
        .concat()
    };
    machine.ok(&run("whole"));
    let mut expected = server.answered();
    let total = expected.len();

    for _ in 1..total {
        let (told, stalled) = channel();
        server.stall_after(1, told);
        let mut child = machine.command().args(run("killed")).spawn().unwrap();
        stalled.recv_timeout(Duration::from_secs(60)).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
    machine.ok(&run("killed"));
    let mut made = server.answered().split_off(total);
    expected.sort();
    made.sort();
    assert_eq!(made, expected, "each call once");
    assert_eq!(history(&machine, "killed"), history(&machine, "whole"));
    assert_eq!(
        best_skill(&machine, "killed"),
        best_skill(&machine, "whole")
    );
}

/// With files that may not grow beyond a limit, a run says so or ends as it should; with room again
/// the same command goes on to the same result.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_stops_the_run_where_it_can_go_on() {
    let mut machine = benchmark_of(12, 6, 2);
    let _server = with_model(&mut machine).await;
    machine.ok(&["train", "--config", "run.yaml", "--out-root", "whole"]);
    let program = machine.command().get_program().to_owned();
    let mut stopped = 0;
    for kilobytes in [1, 2, 4, 8, 16, 32, 48] {
        let name = format!("full_{kilobytes}");
        let args = ["train", "--config", "run.yaml", "--out-root", &name];
        // A write beyond the limit fails as on a full disk; the signal that comes with it is ignored.
        let script = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$@\"");
        let limited = machine
            .command_of("bash")
            .arg("-c")
            .arg(script)
            .arg("bash")
            .arg(&program)
            .args(args)
            .output();
        let limited = limited.unwrap();
        let said = String::from_utf8_lossy(&limited.stderr);
        assert!(!said.contains("panicked"), "{kilobytes}: {said}");
        if !limited.status.success() {
            stopped += 1;
            assert_eq!(limited.status.code(), Some(1), "{kilobytes}: {said}");
            assert!(
                said.contains(&name),
                "{kilobytes}: the message names a file: {said}"
            );
        }
        machine.ok(&args);
        assert_eq!(
            history(&machine, &name),
            history(&machine, "whole"),
            "{kilobytes}"
        );
        assert_eq!(
            best_skill(&machine, &name),
            best_skill(&machine, "whole"),
            "{kilobytes}"
        );
    }
    assert!(stopped >= 3, "the limits were never reached");
}

/// A model that answers like the server of the other tests, after failing as often as `failures` says.
struct Flaky {
    failures: fn(&ChatRequest, usize) -> Option<CallErrorKind>,
    tried: Mutex<HashMap<String, usize>>,
    answered: Mutex<Vec<String>>,
}

impl Flaky {
    fn new(failures: fn(&ChatRequest, usize) -> Option<CallErrorKind>) -> Arc<Flaky> {
        Arc::new(Flaky {
            failures,
            tried: Mutex::default(),
            answered: Mutex::default(),
        })
    }
}

impl ChatModel for Flaky {
    fn id(&self) -> &str {
        "flaky/test"
    }

    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, CallError>> {
        let key = format!("{} {:?}", request.sample, request.messages);
        let attempt = {
            let mut tried = self.tried.lock().unwrap();
            let count = tried.entry(key.clone()).or_default();
            *count += 1;
            *count
        };
        Box::pin(async move {
            if let Some(kind) = (self.failures)(request, attempt) {
                let mut error = CallError::new(kind, "on purpose");
                error.retry_after =
                    (kind == CallErrorKind::RateLimited).then(|| Duration::from_secs(7));
                return Err(error);
            }
            self.answered.lock().unwrap().push(key);
            let [system, user] = &request.messages[..] else {
                panic!("two messages");
            };
            let asked = Asked {
                system: system.content.clone(),
                user: user.content.clone(),
            };
            Ok(ChatReply {
                text: brief_answers(&asked).unwrap(),
                usage: Usage {
                    calls: 1,
                    prompt_tokens: 10,
                    completion_tokens: 5,
                    ..Usage::default()
                },
                finish_reason: None,
            })
        })
    }
}

/// A run of the trainer on the models as the program puts them together.
async fn train_with(model: &Arc<Flaky>) -> Trained {
    let home = Machine::new();
    for (split, count) in [("train", 12), ("val", 8), ("test", 4)] {
        home.write(&format!("data/{split}/items.json"), &items(split, count));
    }
    let dataset = Dataset::from_split_dir(&home.path("data"), 0).unwrap();
    let models = Models::with_backends(
        &ModelsConfig::default(),
        model.clone(),
        model.clone(),
        Some(&home.path("calls.db")),
    )
    .unwrap();
    let prompts = Arc::new(Prompts::load(None, PROMPTS).unwrap());
    let environment = SearchQa::new(dataset, models.target.clone(), 100, &prompts).unwrap();
    let settings = Settings {
        batch_size: 6,
        minibatch_size: 3,
        eval_test: true,
        ..Settings::default()
    };
    let trainer = Trainer::new(
        &environment,
        models.optimizer.clone(),
        models.meter.clone(),
        prompts,
        settings,
        Observers::default(),
    )
    .unwrap();
    trainer
        .train(State::new("# Skill\n".to_owned()))
        .await
        .unwrap()
}

fn outcome(trained: &Trained) -> serde_json::Value {
    let steps = &trained.state.history;
    json!({
        "skill": trained.state.best.skill,
        "selections": trained.state.selections,
        "actions": steps.iter().map(|step| step.action.name()).collect::<Vec<_>>(),
        "test": trained.summary.test_hard,
    })
}

/// A storm of refusals, hangs, resets, garbage and empty answers, each of which passes.
#[tokio::test(start_paused = true)]
async fn failures_that_pass_leave_no_trace() {
    let calm = Flaky::new(|_, _| None);
    let expected = outcome(&train_with(&calm).await);
    let stormy = Flaky::new(|request, attempt| {
        use CallErrorKind as Kind;
        let seed = request
            .messages
            .iter()
            .map(|m| m.content.len())
            .sum::<usize>()
            + request.sample.len();
        let kinds = [
            Kind::RateLimited,
            Kind::Timeout,
            Kind::Connection,
            Kind::Server,
            Kind::Malformed,
            Kind::Empty,
        ];
        let kind = kinds[seed % kinds.len()];
        let times = if kind.is_transient() { 1 + seed % 3 } else { 1 };
        (attempt <= times).then_some(kind)
    });
    assert_eq!(outcome(&train_with(&stormy).await), expected);
    let sorted = |model: &Flaky| {
        let mut answered = model.answered.lock().unwrap().clone();
        answered.sort();
        answered
    };
    assert_eq!(sorted(&stormy), sorted(&calm), "each call is answered once");
}

/// Items whose calls never succeed have no score, under either skill; the others decide, as long as
/// they are enough.
#[tokio::test(start_paused = true)]
async fn failures_that_last_are_not_scores() {
    let one = Flaky::new(|request, _| {
        let question = request
            .messages
            .last()
            .map_or("", |message| message.content.as_str());
        (request.stage == "rollout" && question.contains("item val1?"))
            .then_some(CallErrorKind::Timeout)
    });
    let trained = train_with(&one).await;
    for scores in trained.state.selections.values() {
        for item in scores {
            assert_eq!(item.scores.is_none(), item.id == "val1", "{item:?}");
        }
    }
    assert!(
        trained
            .state
            .history
            .iter()
            .any(|step| step.action.is_accept())
    );

    let three = Flaky::new(|request, _| {
        let question = request
            .messages
            .last()
            .map_or("", |message| message.content.as_str());
        let lost = ["item val1?", "item val2?", "item val3?"];
        let candidate = request
            .messages
            .iter()
            .any(|message| message.content.contains("few words"));
        (request.stage == "rollout" && candidate && lost.iter().any(|item| question.contains(item)))
            .then_some(CallErrorKind::Connection)
    });
    let trained = train_with(&three).await;
    let first = &trained.state.history[0];
    assert_eq!(
        first.action,
        GateAction::Undecided,
        "5 of 8 items are too few"
    );
    assert_eq!(trained.state.best.skill, "# Skill\n");
}
