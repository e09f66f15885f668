//! Cutting one raw data file into splits by a ratio, and keeping the cut (engine 5.3, benchmarks
//! 2.4).
//!
//! The cut depends on the file, the ratio and the seed alone, so it is made anew at every start and
//! compared with the one on disk. A run whose raw file was edited in the meantime is refused rather
//! than continued on other items (W-D7).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::DataError;
use super::layout::{self, Counts, Rows};
use super::raw::Source;
use super::split::SplitRatio;

/// What is cut, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatioSplit {
    /// The raw file, or the folder that holds it.
    pub data_path: PathBuf,
    /// Parts of train, validation and test.
    pub ratio: SplitRatio,
    /// Seeds the shuffle; 0 is a seed like any other (W-D4).
    pub seed: i64,
}

/// `split_manifest.json` of a cut: the original's keys, and the hash of the raw file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutManifest {
    /// The raw file, absolute where it was cut. For people: a moved file is still the same data.
    pub source_data_path: String,
    /// `ratio`.
    pub split_mode: String,
    /// Such as `2:1:7`.
    pub split_ratio: String,
    /// The seed.
    pub split_seed: i64,
    /// How many items each split got.
    pub counts: Counts,
    /// SHA-256 of the raw file; absent in folders that the original made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_sha256: Option<String>,
}

/// A cut that is not on disk yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// The items.
    pub rows: Rows,
    /// Where they came from.
    pub manifest: CutManifest,
}

impl RatioSplit {
    /// Reads the raw file and cuts it. Nothing is written.
    ///
    /// # Errors
    /// [`DataError`] when the file cannot be read.
    pub fn cut(&self) -> Result<Cut, DataError> {
        let source = Source::read(&self.data_path)?;
        let pick = |positions: Vec<usize>| -> Vec<_> {
            positions
                .into_iter()
                .filter_map(|position| source.rows.get(position).cloned())
                .collect()
        };
        let [train, val, test] = self.ratio.draw(source.rows.len(), self.seed).map(pick);
        let rows = Rows { train, val, test };
        let manifest = CutManifest {
            source_data_path: source.path.display().to_string(),
            split_mode: "ratio".to_owned(),
            split_ratio: self.ratio.to_string(),
            split_seed: self.seed,
            counts: rows.counts(),
            source_sha256: Some(source.sha256),
        };
        Ok(Cut { rows, manifest })
    }

    /// Where the cut is kept unless the configuration says otherwise.
    #[must_use]
    pub fn folder(&self, out_root: &Path, environment: &str) -> PathBuf {
        let ratio = self.ratio.to_string().replace(':', "-");
        out_root
            .join("_generated_splits")
            .join(format!("{environment}_{ratio}_seed{}", self.seed))
    }
}

impl Cut {
    /// Writes the cut to `dir`, or checks that the one that is there is the same.
    ///
    /// # Errors
    /// [`DataError::Splits`] when `dir` holds another cut, with what differs and what to do.
    pub fn keep(&self, dir: &Path) -> Result<(), DataError> {
        let Some(kept) = layout::read_manifest::<CutManifest>(dir)? else {
            return self.rows.write(dir, &self.manifest);
        };
        let remedy = "use another --out-root, or remove that folder to cut anew";
        if let Some(difference) = self.manifest.difference(&kept) {
            let dir = dir.display();
            return Err(DataError::Splits(format!(
                "{difference} since the split in {dir} was made; {remedy}"
            )));
        }
        if Rows::read(dir)? != self.rows {
            let dir = dir.display();
            return Err(DataError::Splits(format!(
                "the items in {dir} are not what its manifest says they were cut from; {remedy}"
            )));
        }
        Ok(())
    }
}

impl CutManifest {
    /// What changed since `kept` was written, as the beginning of a sentence.
    fn difference(&self, kept: &CutManifest) -> Option<String> {
        if self.split_ratio != kept.split_ratio {
            let (now, then) = (&self.split_ratio, &kept.split_ratio);
            return Some(format!("split_ratio changed from {then} to {now}"));
        }
        if self.split_seed != kept.split_seed {
            let (now, then) = (self.split_seed, kept.split_seed);
            return Some(format!("split_seed changed from {then} to {now}"));
        }
        let same_file = kept.source_sha256.is_none() || kept.source_sha256 == self.source_sha256;
        (!same_file).then(|| format!("the data in {} changed", self.source_data_path))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn split_of(dir: &Path, count: usize) -> RatioSplit {
        let rows: Vec<_> = (0..count).map(|n| json!({"id": format!("i{n}")})).collect();
        let data_path = dir.join("raw.json");
        std::fs::write(&data_path, serde_json::to_string(&rows).unwrap()).unwrap();
        RatioSplit {
            data_path,
            ratio: SplitRatio::parse("2:1:7").unwrap(),
            seed: 42,
        }
    }

    #[test]
    fn a_kept_cut_is_found_again_and_an_edited_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let split = split_of(dir.path(), 20);
        let folder = split.folder(dir.path(), "toy");
        assert!(folder.ends_with("_generated_splits/toy_2-1-7_seed42"));
        split.cut().unwrap().keep(&folder).unwrap();
        split.cut().unwrap().keep(&folder).unwrap();

        let error = split_of(dir.path(), 21).cut().unwrap().keep(&folder);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("raw.json changed since"), "{error}");

        let other = RatioSplit { seed: 7, ..split };
        let error = other.cut().unwrap().keep(&folder).unwrap_err().to_string();
        assert!(error.contains("split_seed changed from 42 to 7"), "{error}");
    }

    #[test]
    fn edited_items_are_noticed_and_an_unfinished_cut_is_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let split = split_of(dir.path(), 20);
        let folder = split.folder(dir.path(), "toy");
        let cut = split.cut().unwrap();
        cut.keep(&folder).unwrap();
        std::fs::write(folder.join("val/items.json"), "[]").unwrap();
        assert!(
            cut.keep(&folder)
                .unwrap_err()
                .to_string()
                .contains("are not what")
        );
        std::fs::remove_file(folder.join(layout::MANIFEST)).unwrap();
        cut.keep(&folder).unwrap();
        assert_eq!(Rows::read(&folder).unwrap(), cut.rows);
    }
}
