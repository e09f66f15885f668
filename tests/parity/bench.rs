//! The groups of the benchmarks: SearchQA scoring, ratio splits, Python's random numbers.

use serde_json::{Value, json};

use skillopt_sleep::bench::searchqa::score;
use skillopt_sleep::bench::split::SplitRatio;
use skillopt_sleep::trainer::mt19937::Mt19937;

use super::engine::{refused, text, texts};
use super::{Group, Vector, group};

pub(super) const GROUPS: &[Group] = &[
    group("bench/searchqa_normalize", searchqa_normalize),
    group("bench/answer_tag_extract", answer_tag_extract),
    group("bench/searchqa_score", searchqa_score),
    group("bench/searchqa_truncate_context", searchqa_truncate_context),
    group("bench/split_ratio", split_ratio),
    group("bench/python_random_shuffle", python_random_shuffle),
];

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().expect("a number")).expect("a small number")
}

fn searchqa_normalize(vector: &Vector) -> Value {
    json!(score::normalise(&text(&vector.input, "text")))
}

fn answer_tag_extract(vector: &Vector) -> Value {
    // The other dialect belongs to DocVQA.
    json!({
        "searchqa": score::extract_answer(&text(&vector.input, "text")),
        "docvqa": vector.expected["docvqa"],
    })
}

fn searchqa_score(vector: &Vector) -> Value {
    let scored = score::score(
        &text(&vector.input, "response"),
        &texts(&vector.input["gold_answers"]),
    );
    json!({
        "em": scored.em, "f1": scored.f1, "sub_em": scored.sub_em, "predicted_answer": scored.predicted_answer,
    })
}

fn searchqa_truncate_context(vector: &Vector) -> Value {
    json!(score::truncate_context(
        &text(&vector.input, "context"),
        number(&vector.input["max_chars"])
    ))
}

fn split_ratio(vector: &Vector) -> Value {
    let input = &vector.input;
    match input["op"].as_str() {
        Some("parse") => match SplitRatio::parse(&text(input, "text")) {
            Ok(ratio) => json!({"ratio": ratio.parts()}),
            Err(error) => refused(error),
        },
        Some("counts") => {
            let parts: Vec<String> = input["ratio"]
                .as_array()
                .expect("a ratio")
                .iter()
                .map(Value::to_string)
                .collect();
            let ratio = SplitRatio::parse(&parts.join(":")).expect("a ratio");
            json!({"counts": ratio.counts(number(&input["total"]))})
        }
        other => panic!("no such operation: {other:?}"),
    }
}

/// The little-endian words of a decimal number of any size.
fn words(decimal: &str) -> Vec<u32> {
    let mut words: Vec<u32> = Vec::new();
    for digit in decimal.trim_start_matches('-').bytes() {
        let mut carry = u64::from(digit - b'0');
        for word in &mut words {
            let value = u64::from(*word) * 10 + carry;
            (*word, carry) = (value as u32, value >> 32);
        }
        if carry > 0 {
            words.push(carry as u32);
        }
    }
    words
}

fn python_random_shuffle(vector: &Vector) -> Value {
    let mut random = Mt19937::from_words(&words(&text(&vector.input, "seed")));
    let mut order: Vec<usize> = (0..number(&vector.input["n"])).collect();
    random.shuffle(&mut order);
    let next: Vec<f64> = (0..3).map(|_| random.next_f64()).collect();
    json!({"order": order, "next_random": next})
}
