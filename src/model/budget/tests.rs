use futures::future::join_all;
use proptest::prelude::*;

use super::*;
use crate::model::testing::{Listed, failure, reply, request};

fn budgeted(limits: Limits, results: Vec<Result<ChatReply, CallError>>) -> (Budgeted, Arc<Budget>) {
    let budget = Arc::new(Budget::new(limits));
    let backend = Listed::new(results).taking(Duration::from_secs(1));
    let price = Price {
        input: 1.0,
        output: 2.0,
    };
    (
        Budgeted::new(Arc::new(backend), Arc::clone(&budget), price),
        budget,
    )
}

#[tokio::test(start_paused = true)]
async fn each_limit_refuses_and_is_named() {
    let cases = [
        (
            Limits {
                calls: Some(1),
                ..Limits::default()
            },
            "`calls` limit is reached: 1 of 1 calls are made",
        ),
        (
            Limits {
                tokens: Some(120),
                ..Limits::default()
            },
            "`tokens` limit is reached: 15 of 120 tokens",
        ),
        (
            Limits {
                usd: Some(0.000_22),
                ..Limits::default()
            },
            "`usd` limit is reached",
        ),
        (
            Limits {
                time: Some(Duration::from_secs(1)),
                ..Limits::default()
            },
            "`time` limit is reached: the 1 s",
        ),
    ];
    for (limits, message) in cases {
        let (model, budget) = budgeted(limits, vec![reply("ok")]);
        let request = request("x");
        let mut outcomes = Vec::new();
        for _ in 0..3 {
            outcomes.push(model.chat(&request).await);
        }
        let error = outcomes.pop().unwrap().unwrap_err();
        assert_eq!(error.kind, CallErrorKind::Budget);
        assert!(error.message.contains(message), "{}", error.message);
        assert!(budget.reached().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_running_ones_rather_than_fail() {
    // Room for one reservation (about 115 tokens) and the true cost (15) of several calls.
    let (model, budget) = budgeted(
        Limits {
            tokens: Some(170),
            ..Limits::default()
        },
        vec![reply("ok")],
    );
    let request = request("x");
    let outcomes = join_all((0..4).map(|_| model.chat(&request))).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(budget.spent().tokens, 60);
    assert_eq!(budget.spent().calls, 4);
}

#[tokio::test(start_paused = true)]
async fn a_running_call_ends_at_the_deadline() {
    let (model, _) = budgeted(
        Limits {
            time: Some(Duration::from_millis(500)),
            ..Limits::default()
        },
        vec![reply("ok")],
    );
    let start = Instant::now();
    let error = model.chat(&request("x")).await.unwrap_err();
    assert_eq!(error.kind, CallErrorKind::Budget);
    assert_eq!(start.elapsed(), Duration::from_millis(500));
}

#[tokio::test(start_paused = true)]
async fn refusals_cost_nothing_and_timeouts_their_prompt() {
    let (model, budget) = budgeted(
        Limits::default(),
        vec![
            failure(CallErrorKind::RateLimited),
            failure(CallErrorKind::Timeout),
        ],
    );
    let request = request("x");
    let _ = model.chat(&request).await;
    assert_eq!(budget.spent().calls, 0);
    let _ = model.chat(&request).await;
    assert_eq!(budget.spent().calls, 1);
    assert_eq!(budget.spent().tokens, request.estimated_prompt_tokens());
}

#[tokio::test]
async fn what_an_interrupted_run_spent_counts() {
    let budget = Budget::new(Limits {
        calls: Some(3),
        ..Limits::default()
    });
    let usage = Usage {
        calls: 3,
        prompt_tokens: 1_000_000,
        completion_tokens: 500_000,
        ..Usage::default()
    };
    budget.preload(
        usage,
        Price {
            input: 1.0,
            output: 2.0,
        },
    );
    assert!((budget.spent().usd - 2.0).abs() < 1e-9);
    assert!(
        budget
            .reserve(amount(
                Usage {
                    calls: 1,
                    ..Usage::default()
                },
                Price::default()
            ))
            .await
            .is_err()
    );
}

/// A model whose replies cost a listed share of what was reserved.
struct Costs(Mutex<Vec<u64>>);

impl ChatModel for Costs {
    fn id(&self) -> &str {
        "costs/test"
    }

    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, CallError>> {
        Box::pin(async move {
            let share = self.0.lock().unwrap().pop().unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(share + 1)).await;
            Ok(ChatReply {
                text: "ok".to_owned(),
                usage: Usage {
                    calls: 1,
                    prompt_tokens: request.estimated_prompt_tokens(),
                    completion_tokens: u64::from(request.max_tokens) * share / 100,
                    ..Usage::default()
                },
                finish_reason: None,
            })
        })
    }
}

proptest! {
    #[test]
    fn no_limit_is_ever_overspent(
        shares in proptest::collection::vec(0_u64..=100, 1..40),
        sizes in proptest::collection::vec(1_u32..400, 1..40),
        tokens in 0_u64..4000,
        calls in 0_u64..30,
        millidollars in 0_u32..8,
    ) {
        let limits = Limits {
            calls: Some(calls),
            tokens: Some(tokens),
            usd: Some(f64::from(millidollars) / 1000.0),
            time: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let spent = runtime.block_on(async {
            let budget = Arc::new(Budget::new(limits));
            let price = Price { input: 1.0, output: 2.0 };
            let model = Budgeted::new(Arc::new(Costs(Mutex::new(shares))), Arc::clone(&budget), price);
            let requests: Vec<_> = sizes
                .iter()
                .map(|size| ChatRequest { max_tokens: *size, ..request("x") })
                .collect();
            join_all(requests.iter().map(|request| model.chat(request))).await;
            assert_eq!(budget.lock().reserved, Amount::default());
            budget.spent()
        });
        prop_assert!(spent.calls <= calls);
        prop_assert!(spent.tokens <= tokens);
        prop_assert!(spent.usd <= f64::from(millidollars) / 1000.0 + 1e-12);
    }
}
