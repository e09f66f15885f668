use serde_json::json;

use super::*;

/// Writes files below a fresh folder.
fn files(files: &[(&str, &str)]) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = home.path().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
    home
}

#[test]
fn every_recorded_load_gives_the_recorded_result() {
    let vectors = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/vectors/engine/config_load.json"
    );
    let records: Vec<Value> =
        serde_json::from_str(&fs_err::read_to_string(vectors).unwrap()).unwrap();
    let mut failures = Vec::new();
    for record in &records {
        let input = &record["input"];
        let expected = record.get("expected_better").unwrap_or(&record["expected"]);
        let actual = if input["fn"] == "cast_value" {
            json!({"value": overrides::cast(input["text"].as_str().unwrap())})
        } else {
            let named: Vec<_> = input["files"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, text)| (name.as_str(), text.as_str().unwrap()))
                .collect();
            let home = files(&named);
            let items: Vec<String> = serde_json::from_value(input["overrides"].clone()).unwrap();
            match load(&home.path().join(input["entry"].as_str().unwrap()), &items) {
                Ok(loaded) => json!({
                    "structured": loaded.structured,
                    "merged": loaded.merged,
                    "flat": loaded.flat,
                }),
                Err(_) => json!({"error": true}),
            }
        };
        // Parts that a record does not state are not compared.
        let same = if expected.get("error").is_some() {
            actual.get("error").is_some()
        } else {
            expected
                .as_object()
                .unwrap()
                .iter()
                .filter(|(key, _)| *key != "type")
                .all(|(key, value)| actual[key] == *value)
        };
        if !same {
            failures.push(format!("{}: {actual}", record["name"]));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(records.len(), 78);
}

#[test]
fn values_know_the_file_line_or_option_that_set_them() {
    let home = files(&[
        ("base.yaml", "train:\n  seed: 1\n  batch_size: 2\n"),
        ("top.yaml", "_base_: base.yaml\n\ntrain:\n  seed: 3\n"),
    ]);
    let entry = home.path().join("top.yaml");
    let loaded = load(&entry, &["train.num_epochs=4"]).unwrap();
    let of = |key: &str| loaded.origins.of(key).to_string();
    assert_eq!(of("train.seed"), format!("{}:4", entry.display()));
    assert!(of("train.batch_size").ends_with("base.yaml:3"));
    assert_eq!(of("train.num_epochs"), "--set train.num_epochs");
    assert_eq!(of("train.accumulation"), "built-in default");
}

#[test]
fn a_base_that_is_missing_or_circular_or_no_path_says_where_it_is_named() {
    let home = files(&[
        ("missing.yaml", "# x\n_base_: nope.yaml\n"),
        ("a.yaml", "_base_: sub/b.yaml\n"),
        ("sub/b.yaml", "_base_: ../a.yaml\n"),
        ("list.yaml", "_base_: [a, b]\n"),
    ]);
    for (entry, part) in [
        ("missing.yaml", "missing.yaml:2: the base configuration"),
        ("a.yaml", "b.yaml:1: circular `_base_`"),
        ("list.yaml", "list.yaml:1: `_base_` must be the path"),
        ("absent.yaml", "cannot read the configuration"),
    ] {
        let error = load(&home.path().join(entry), &[] as &[&str]).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn the_built_in_base_can_be_named() {
    let home = files(&[("c.yaml", "_base_: default\nenv:\n  name: searchqa\n")]);
    let loaded = load(&home.path().join("c.yaml"), &[] as &[&str]).unwrap();
    assert_eq!(loaded.flat["batch_size"], json!(40));
    assert_eq!(loaded.flat["env"], json!("searchqa"));
    assert_eq!(loaded.flat["split_mode"], json!("ratio"));
    assert_eq!(
        load_built_in(&["batch_size=3"]).unwrap().flat["batch_size"],
        json!(3)
    );
}

#[test]
fn a_flat_benchmark_name_and_a_section_of_the_other_layer_are_both_kept() {
    let home = files(&[
        ("flat.yaml", "env: searchqa\nbatch_size: 3\n"),
        ("over.yaml", "_base_: flat.yaml\nenv:\n  workers: 2\n"),
        ("mixed.yaml", "env: searchqa\ntrain:\n  seed: 1\n"),
    ]);
    let loaded = load(&home.path().join("over.yaml"), &[] as &[&str]).unwrap();
    assert_eq!(
        loaded.merged["env"],
        json!({"name": "searchqa", "workers": 2})
    );
    let loaded = load(&home.path().join("mixed.yaml"), &[] as &[&str]).unwrap();
    assert_eq!(loaded.flat["env"], json!("searchqa"));
}
