//! What who has benchmark data does: cut it, check it, put it together, train on a cut.

use serde_json::{Value, json};

use crate::machine::Machine;
use crate::model_server::ModelServer;

fn questions(count: usize) -> String {
    let row = |n: usize| json!({"id": format!("q{n}"), "question": format!("What is {n}?"), "context": "[DOC] x", "answers": ["gold"]});
    (0..count).map(|n| row(n).to_string() + "\n").collect()
}

fn read(machine: &Machine, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(machine.path(name)).unwrap()).unwrap()
}

#[test]
fn a_file_is_cut_the_same_way_every_time_and_passes_its_check() {
    let machine = Machine::new();
    machine.write("home/raw.jsonl", &questions(20));
    let args = [
        "data",
        "split",
        "raw.jsonl",
        "--ratio",
        "2:1:7",
        "--seed",
        "42",
        "--out",
        "cut",
        "--json",
    ];
    let first = machine.json(&args);
    assert_eq!(first["counts"], json!({"train": 4, "val": 2, "test": 14}));
    assert_eq!(machine.json(&args), first);
    // Python's `random.Random(42).shuffle` of 20 items begins so.
    let train: Vec<Value> = read(&machine, "home/cut/train/items.json")
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["id"].clone())
        .collect();
    assert_eq!(train, ["q19", "q5", "q14", "q4"]);
    let checked = machine.json(&["data", "check", "cut", "--json"]);
    assert_eq!(
        (checked["ok"].clone(), checked["findings"].clone()),
        (json!(true), json!([]))
    );
}

#[test]
fn a_check_names_everything_that_is_wrong() {
    let machine = Machine::new();
    machine.write("home/d/train/items.json", r#"[{"id": "a", "question": "What colour is the red door?", "answers": ["the red door"]}, {"id": "a"}]"#);
    machine.write(
        "home/d/val/items.json",
        r#"[{"id": "b", "question": "x"}, {"question": "no id"}]"#,
    );
    machine.write(
        "home/d/test/items.json",
        r#"[{"id": "a", "question": "y"}, {"id": "c", "question": "x"}]"#,
    );
    machine.write(
        "home/d/split_manifest.json",
        r#"{"counts": {"train": 2, "val": 2, "test": 9}}"#,
    );
    let ran = machine.run(&["data", "check", "d"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    for part in [
        "item a stands twice in train",
        "item a stands in train and again in test",
        "item 2 of val has no `id`",
        "item c of test is item b of val",
        "item a of train has its answer `the red door` in the question",
        "the manifest counts 9 items in test, there are 2",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let ran = machine.run(&["data", "check", "nowhere", "--json"]);
    assert_eq!(ran.code, Some(1));
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["findings"].as_array().unwrap().len(), 3);
}

#[test]
fn a_cut_that_could_not_be_trained_on_is_not_made() {
    let machine = Machine::new();
    machine.write("home/raw.jsonl", &questions(1));
    let ran = machine.run(&["data", "split", "raw.jsonl", "--out", "cut"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("the train split has no items"),
        "{}",
        ran.stderr
    );
    assert!(!machine.path("home/cut").exists());
}

#[test]
fn searchqa_is_put_together_from_ids_and_rows() {
    let machine = Machine::new();
    for (split, id) in [("train", "k1"), ("val", "k2"), ("test", "k3")] {
        machine.write(
            &format!("home/ids/{split}/items.json"),
            &json!([{"id": id}]).to_string(),
        );
    }
    let row = |key: &str| {
        json!({"key": key, "question": "q", "context": "c", "answers": [key], "labels": []})
            .to_string()
    };
    machine.write(
        "home/rows/train.jsonl",
        &format!("{}\n{}\n{}\n", row("k3"), row("other"), row("k1")),
    );
    let args = [
        "data",
        "materialize",
        "searchqa",
        "--manifest-dir",
        "ids",
        "--output-dir",
        "out",
        "--source",
        "rows",
    ];
    let ran = machine.run(&args);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("1 of 3 ids") && ran.stderr.contains("k2"),
        "{}",
        ran.stderr
    );
    machine.write("home/rows/validation.jsonl", &row("k2"));
    machine.ok(&args);
    assert_eq!(
        read(&machine, "home/out/val/items.json"),
        json!([{"id": "k2", "question": "q", "context": "c", "answers": ["k2"]}])
    );
    assert_eq!(
        read(&machine, "home/out/split_manifest.json")["counts"],
        json!({"train": 1, "val": 1, "test": 1})
    );
}

const CONFIG: &str = "_base_: default
model: {backend: openai_compatible, optimizer: m, target: m, optimizer_price_in: 1, optimizer_price_out: 2,
  target_price_in: 1, target_price_out: 2}
train: {num_epochs: 1, batch_size: 4}
optimizer: {use_slow_update: false, use_meta_skill: false}
env: {name: searchqa, split_mode: ratio, data_path: raw.jsonl, split_ratio: '2:1:1', limit: 8}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_run_on_a_cut_keeps_it_reports_itself_and_refuses_edited_data() {
    let mut machine = Machine::new();
    machine.write("home/raw.jsonl", &questions(20));
    machine.write("home/run.yaml", CONFIG);
    let args = [
        "train",
        "--config",
        "run.yaml",
        "--out-root",
        "run",
        "--json",
    ];
    let dry = machine.json(&[&args[..], &["--dry-run"]].concat());
    assert_eq!(dry["items"], json!({"train": 8, "selection": 5, "test": 5}));
    assert!(dry["usd"].as_f64().unwrap() > 0.0 && !machine.path("home/run").exists());

    let server = ModelServer::start(|asked| {
        let reflects = asked.system.contains("You improve a skill document");
        Ok(if reflects {
            "{}".to_owned()
        } else {
            "<answer>gold</answer>".to_owned()
        })
    })
    .await;
    machine.set("OPENAI_COMPATIBLE_BASE_URL", &server.url());
    machine.set("OPENAI_COMPATIBLE_API_KEY", "test-key");
    let summary = machine.json(&args);
    let selection = &summary["statistics"]["selection"];
    assert_eq!(selection["best"]["hard"]["value"], json!(1.0));
    assert!(
        selection["best"]["hard"]["interval"]["low"]
            .as_f64()
            .unwrap()
            < 0.9
    );
    assert_eq!(selection["gain"]["ties"], json!(5));
    assert!(
        summary["costs"]["target"]["rollout"]["usd"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    assert!(
        machine
            .path("home/run/_generated_splits/searchqa_2-1-1_seed42/split_manifest.json")
            .exists()
    );
    let page = std::fs::read_to_string(machine.path("home/run/report.html")).unwrap();
    assert!(page.contains("The best skill is the initial one.") && !page.contains("test-key"));
    machine.ok(&args);

    machine.write("home/raw.jsonl", &questions(21));
    let ran = machine.run(&args);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("raw.jsonl changed since the split"),
        "{}",
        ran.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_not_continued_on_other_items() {
    let mut machine = Machine::new();
    for (split, from) in [("train", 0), ("val", 10), ("test", 20)] {
        let rows: Vec<Value> = (from..from + 4)
            .map(|n| json!({"id": n, "question": "q", "answers": ["gold"], "n": n}))
            .collect();
        machine.write(
            &format!("home/data/{split}/items.json"),
            &json!(rows).to_string(),
        );
    }
    let config = CONFIG.replace(
        "split_mode: ratio, data_path: raw.jsonl, split_ratio: '2:1:1'",
        "split_mode: split_dir, split_dir: data",
    );
    machine.write("home/run.yaml", &config);
    let server = ModelServer::start(|_| Ok("<answer>gold</answer>".to_owned())).await;
    machine.set("OPENAI_COMPATIBLE_BASE_URL", &server.url());
    machine.set("OPENAI_COMPATIBLE_API_KEY", "test-key");
    let args = ["train", "--config", "run.yaml", "--out-root", "run"];
    machine.ok(&args);
    machine.write(
        "home/data/test/items.json",
        r#"[{"id": "new", "question": "q", "answers": ["gold"]}]"#,
    );
    let ran = machine.run(&args);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr
            .contains("the items ([4, 4, 4] of train, val and test → [4, 4, 1])"),
        "{}",
        ran.stderr
    );
    machine.ok(&[&args[..], &["--resume=force"]].concat());
}

#[test]
fn the_flags_of_the_original_are_understood_and_hidden() {
    let machine = Machine::new();
    machine.write("home/raw.jsonl", &questions(40));
    machine.write("home/run.yaml", CONFIG);
    let args = [
        "train",
        "--dry-run",
        "--config",
        "run.yaml",
        "--limit",
        "3",
        "--batch_size",
        "1",
        "--json",
    ];
    let plan = machine.json(&args);
    assert_eq!(
        (plan["steps"].clone(), plan["items"]["train"].clone()),
        (json!(3), json!(3))
    );
    let help = machine.ok(&["train", "--help"]).stdout;
    assert!(
        !help.contains("batch_size ") && !help.contains("minimax"),
        "{help}"
    );
    for wrong in [
        ["--lr_scheduler", "step"],
        ["--nope", "1"],
        ["--batch_size", "many"],
    ] {
        let ran = machine.run(&[&args[..], &wrong].concat());
        assert_eq!(ran.code, Some(2), "{wrong:?}: {}", ran.stderr);
    }
    let warned = [
        &args[..],
        &["--minimax_api_key", "s3cret", "--max_analyst_rounds", "0"],
    ]
    .concat();
    let ran = machine.ok(&warned);
    assert!(
        ran.stderr.contains("MINIMAX_API_KEY") && ran.stderr.contains("retired"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("s3cret"));
    let ran = machine.run(&[&args[..], &["--train_size", "9"]].concat());
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr
            .contains("train.train_size is 9 and the train split has 3"),
        "{}",
        ran.stderr
    );
}
