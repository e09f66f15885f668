//! The groups about data: raw files, ratio splits, split folders, batches, SearchQA's materialiser.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value, json};

use skillopt_sleep::bench::error::DataError;
use skillopt_sleep::bench::eval::Scope;
use skillopt_sleep::bench::layout::Rows;
use skillopt_sleep::bench::ratio::RatioSplit;
use skillopt_sleep::bench::raw::{self, Source};
use skillopt_sleep::bench::searchqa::materialise::{FIELDS, Manifest, Materialiser};
use skillopt_sleep::bench::split::SplitRatio;
use skillopt_sleep::config::modes::{Mode as _, SplitMode};
use skillopt_sleep::trainer::batches::{EpochShape, sample};
use skillopt_sleep::trainer::environment::Split;

use super::engine::{refused, text};
use super::{Group, Vector, group};

pub(super) const GROUPS: &[Group] = &[
    group("engine/split", split),
    group("bench/split_materialise", split_materialise),
    group("bench/split_layout", split_layout),
    group("bench/raw_json_loading", raw_json_loading),
    group("bench/searchqa_materialise", searchqa_materialise),
];

/// Writes the files of a vector into a folder of their own.
pub(super) fn folder_of(files: &Value) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, content) in files.as_object().into_iter().flatten() {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, content.as_str().expect("a text")).expect("a file");
    }
    folder
}

fn size(value: &Value) -> usize {
    usize::try_from(value.as_u64().expect("a number")).expect("a small number")
}

fn ids(rows: &[Value]) -> Vec<Value> {
    rows.iter().map(|row| row["id"].clone()).collect()
}

fn items(result: Result<Vec<Value>, DataError>) -> Value {
    match result {
        Ok(items) => json!({"items": items}),
        Err(error) => refused(error),
    }
}

fn split(vector: &Vector) -> Value {
    let input = &vector.input;
    match input["fn"].as_str() {
        Some("parse_ratio") => {
            let ratio = match &input["ratio"] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            match SplitRatio::parse(&ratio) {
                Ok(ratio) => json!({"parts": ratio.parts()}),
                Err(error) => refused(error),
            }
        }
        Some("split_counts") => {
            let parts: Vec<String> = input["ratio"]
                .as_array()
                .expect("a ratio")
                .iter()
                .map(Value::to_string)
                .collect();
            let ratio = SplitRatio::parse(&parts.join(":")).expect("a ratio");
            let [train, val, test] = ratio.counts(size(&input["total"]));
            json!({"train": train, "val": val, "test": test})
        }
        Some("load_json_or_jsonl") => items(raw::parse(Path::new("raw"), &text(input, "text"))),
        Some("load_raw_items") => {
            let folder = folder_of(&input["files"]);
            let source = Source::read(&folder.path().join(text(input, "path")));
            items(source.map(|source| source.rows))
        }
        Some("ratio_split") => ratio_split(vector),
        Some("split_dir") => split_dir(vector),
        Some("plan_train_epoch" | "plan_train_epoch_items") => plan(input),
        Some("build_train_batch") => {
            let seed = input["seed"].as_i64().expect("a seed");
            let drawn = sample(size(&input["n_train"]), size(&input["batch_size"]), seed);
            let ids: Vec<String> = drawn.iter().map(|index| format!("t{index}")).collect();
            json!({"batch_size": ids.len(), "ids": ids})
        }
        Some("shuffle_epoch_seeds") => {
            let seed = input["seed"].as_i64().expect("a seed");
            let batches = size(&input["steps_per_epoch"]) * size(&input["accumulation"]);
            let shape = EpochShape {
                items: 0,
                batch_size: 1,
                batches,
            };
            let base: Vec<i64> = (1..).map(|index| seed + index).take(batches).collect();
            let shuffled = shape.seeds_without_items(seed, size(&input["epoch"]));
            json!({"base_seeds": base, "shuffled": shuffled})
        }
        other => panic!("no such function: {other:?}"),
    }
}

fn plan(input: &Value) -> Value {
    let accumulation = size(&input["accumulation"]);
    let shape = EpochShape::covering(
        size(&input["n_train"]),
        size(&input["batch_size"]),
        accumulation,
    );
    let batches = shape.epoch(
        input["seed"].as_i64().expect("a seed"),
        size(&input["epoch"]),
    );
    if input["fn"] == "plan_train_epoch_items" {
        let named = |items: &[usize]| -> Vec<String> {
            items.iter().map(|index| format!("t{index}")).collect()
        };
        let batches: Vec<_> = batches.iter().map(|batch| named(&batch.items)).collect();
        return json!({"batches": batches});
    }
    let distinct: BTreeSet<usize> = batches
        .iter()
        .flat_map(|batch| batch.items.iter().copied())
        .collect();
    json!({
        "steps_per_epoch": shape.batches / accumulation,
        "batch_sizes": batches.iter().map(|batch| batch.items.len()).collect::<Vec<_>>(),
        "batch_seeds": batches.iter().map(|batch| batch.seed).collect::<Vec<_>>(),
        "phase": "train",
        "split": Split::Train.to_string(),
        "n_distinct_ids": distinct.len(),
    })
}

/// A ratio split on disk as both families record it: its folder relative to the run's, its
/// manifest without what only ours has, and its items.
struct Made {
    folder: String,
    manifest: Value,
    files: Vec<String>,
    rows: Rows,
}

fn make(input: &Value, environment: &str, root: &Path, rows: &[Value], source: &str) -> Made {
    let data_path = root.join("raw.json");
    std::fs::write(&data_path, json!(rows).to_string()).expect("a file");
    let split = RatioSplit {
        data_path: data_path.clone(),
        ratio: SplitRatio::parse(&text(input, "split_ratio")).expect("a ratio"),
        seed: input["split_seed"].as_i64().expect("a seed"),
    };
    let out = root.join("out");
    let folder = split.folder(&out, environment);
    split
        .cut()
        .expect("a cut")
        .keep(&folder)
        .expect("a kept cut");
    let manifest = std::fs::read_to_string(folder.join("split_manifest.json")).expect("a manifest");
    let mut manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    let fields = manifest.as_object_mut().expect("an object");
    assert!(fields.remove("source_sha256").is_some());
    assert_eq!(
        fields["source_data_path"],
        json!(data_path.display().to_string())
    );
    fields.insert("source_data_path".into(), json!(source));
    let mut files: Vec<String> = [
        "split_manifest.json",
        "test/items.json",
        "train/items.json",
        "val/items.json",
    ]
    .into_iter()
    .filter(|name| folder.join(name).is_file())
    .map(str::to_owned)
    .collect();
    files.sort();
    Made {
        folder: folder
            .strip_prefix(&out)
            .expect("within")
            .display()
            .to_string(),
        manifest,
        files,
        rows: Rows::read(&folder).expect("splits"),
    }
}

fn ratio_split(vector: &Vector) -> Value {
    let input = &vector.input;
    let folder = tempfile::tempdir().expect("a folder");
    let all: Vec<Value> = (0..size(&input["n_items"]))
        .map(|index| json!({"id": format!("i{index:02}")}))
        .collect();
    let made = make(input, "toy", folder.path(), &all, "{DIR}/raw.json");
    let limit = input["ctor"]["limit"]
        .as_u64()
        .map_or(0, |limit| size(&json!(limit)));
    let limited = made.rows.clone().limited(limit);
    let mut ours = Map::from_iter([
        (
            "split_dir".to_owned(),
            json!(format!("{{DIR}}/out/{}", made.folder)),
        ),
        ("manifest".to_owned(), made.manifest.clone()),
        ("files".to_owned(), json!(made.files)),
    ]);
    if vector.expected.get("train").is_some() {
        for (name, rows) in limited.splits() {
            ours.insert(name.to_owned(), json!(ids(rows)));
        }
        return Value::Object(ours);
    }
    ours.insert("sizes".to_owned(), json!(limited.counts()));
    let again = make(input, "toy", folder.path(), &all, "{DIR}/raw.json");
    let mut union: Vec<String> = made
        .rows
        .splits()
        .iter()
        .flat_map(|(_, rows)| ids(rows))
        .map(|id| id.to_string())
        .collect();
    let count = union.len();
    union.sort();
    union.dedup();
    let properties = [
        ("disjoint", union.len() == count),
        ("union_is_all_items", union.len() == all.len()),
        ("deterministic_for_seed", again.rows == made.rows),
    ];
    let kept: Vec<&str> = properties
        .iter()
        .filter(|(_, holds)| *holds)
        .map(|(name, _)| *name)
        .collect();
    ours.insert("properties".to_owned(), json!(kept));
    Value::Object(ours)
}

fn split_dir(vector: &Vector) -> Value {
    let input = &vector.input;
    if SplitMode::parse(&text(input, "split_mode")) != Ok(SplitMode::SplitDir) {
        return refused("no such mode");
    }
    let folder = folder_of(&input["files"]);
    let rows = match Rows::read(&folder.path().join("s")) {
        Ok(rows) => rows.limited(size(&input["limit"])),
        Err(error) => return refused(error),
    };
    let of = |split: Split| match split {
        Split::Train => &rows.train,
        Split::Selection => &rows.val,
        Split::Test => &rows.test,
    };
    let aliases: Map<String, Value> = vector.expected["aliases"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| {
            let found = Split::parse(name);
            (
                name.clone(),
                found.map_or_else(|| refused("unknown split"), |split| json!(ids(of(split)))),
            )
        })
        .collect();
    let batches: Vec<Value> = vector.expected["eval_batches"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|batch| {
            let scope =
                Scope::parse(&text(batch, "split"), size(&batch["env_num"])).expect("a split");
            let taken = |(split, limit): (Split, usize)| match limit {
                0 => of(split).len(),
                limit => limit.min(of(split).len()),
            };
            let n: usize = scope.parts().into_iter().map(taken).sum();
            json!({"env_num": batch["env_num"], "split": batch["split"], "n": n})
        })
        .collect();
    json!({
        "train": rows.train, "val": rows.val, "test": rows.test, "train_size": rows.train.len(),
        "aliases": aliases, "eval_batches": batches,
    })
}

fn split_materialise(vector: &Vector) -> Value {
    let input = &vector.input;
    let folder = tempfile::tempdir().expect("a folder");
    let all: Vec<Value> = (0..size(&input["n"]))
        .map(|index| json!({"id": format!("it{index}")}))
        .collect();
    let made = make(input, &text(input, "env"), folder.path(), &all, "$RAW");
    let limited = made.rows.limited(size(&input["limit"]));
    json!({
        "dir": made.folder, "manifest": made.manifest,
        "train": ids(&limited.train), "val": ids(&limited.val), "test": ids(&limited.test),
    })
}

fn split_layout(vector: &Vector) -> Value {
    let folder = folder_of(&vector.input["files"]);
    let here = folder.path().display().to_string();
    let replaced = vector.input.to_string().replace("$D", &here);
    let input: Value = serde_json::from_str(&replaced).expect("JSON");
    match laid_out(&input["loader_args"], &input["cfg"], folder.path()) {
        Ok(rows) => json!({
            "train": ids(&rows.train), "val": ids(&rows.val), "test": ids(&rows.test),
        }),
        Err(error) => error,
    }
}

fn laid_out(args: &Value, cfg: &Value, here: &Path) -> Result<Rows, Value> {
    let given = |key: &str| args.get(key).or_else(|| cfg.get(key));
    let mode = args["split_mode"].as_str().unwrap_or("ratio");
    let rows = match SplitMode::parse(mode).map_err(refused)? {
        SplitMode::SplitDir => Rows::read(Path::new(&text(args, "split_dir"))).map_err(refused)?,
        SplitMode::Ratio => {
            let ratio = args["split_ratio"].as_str().unwrap_or("2:1:7");
            let seed = given("split_seed").or_else(|| given("seed"));
            let split = RatioSplit {
                data_path: text(args, "data_path").into(),
                ratio: SplitRatio::parse(ratio).map_err(refused)?,
                seed: seed.and_then(Value::as_i64).unwrap_or(42),
            };
            let cut = split.cut().map_err(refused)?;
            let dir = match args["split_output_dir"].as_str() {
                Some(dir) => dir.into(),
                None => split.folder(&here.join("o"), "e"),
            };
            cut.keep(&dir).map_err(refused)?;
            Rows::read(&dir).map_err(refused)?
        }
    };
    let limit = given("limit").and_then(Value::as_u64).unwrap_or(0);
    Ok(rows.limited(size(&json!(limit))))
}

fn raw_json_loading(vector: &Vector) -> Value {
    let content = text(&vector.input, "text");
    let parsed = items(raw::parse(Path::new("raw.json"), &content));
    json!({
        "base": parsed.clone(),
        "searchqa": parsed,
        "spreadsheet_jsonl": items(raw::lines(Path::new("raw.jsonl"), &content)),
        // That reader belongs to SpreadsheetBench.
        "spreadsheet_json": vector.expected["spreadsheet_json"],
    })
}

fn searchqa_materialise(vector: &Vector) -> Value {
    let input = &vector.input;
    let listed = |name: &str| -> Vec<Value> {
        input["manifest"][name]
            .as_array()
            .into_iter()
            .flatten()
            .map(|id| json!({"id": id}))
            .collect()
    };
    let manifest = Rows {
        train: listed("train"),
        val: listed("val"),
        test: listed("test"),
    };
    let made = || -> Result<Rows, DataError> {
        let mut materialiser = Materialiser::new(&manifest)?;
        for rows in input["dataset"]
            .as_object()
            .into_iter()
            .flat_map(Map::values)
        {
            for row in rows.as_array().into_iter().flatten() {
                materialiser.see(row)?;
            }
        }
        materialiser.finish()
    };
    match made() {
        Ok(rows) => json!({
            "counts": rows.counts(),
            "manifest": Manifest {
                source_manifest_dir: "$MANIFEST".to_owned(),
                source_dataset: "demo/ds".to_owned(),
                counts: rows.counts(),
                item_fields: FIELDS,
            },
            "train": rows.train, "val": rows.val, "test": rows.test,
        }),
        Err(error) => refused(error),
    }
}
