//! How fast logs are read. See docs/performance.md, "Reading logs".
//!
//! `SKILLOPT_CORPUS` names a folder with `.claude` and `.codex` below it (or `claude` and
//! `codex`); nothing is generated here. Each row is the median and the best of
//! `SKILLOPT_ROUNDS` rounds (three unless set). The digest is of all sessions in order: two builds that print
//! the same one read the same.

#![expect(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark that cannot prepare its input fails; its figures are rounded"
)]

use std::io::BufRead as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use skillopt_harvesters::{
    Agent, FileMemory, FileStamp, HarvestOptions, Redactor, Report, Roots, harvest_each,
};

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let Some(corpus) = std::env::var_os("SKILLOPT_CORPUS").map(PathBuf::from) else {
        // `cargo test` and `cargo bench` run this without a corpus as well.
        println!("SKILLOPT_CORPUS is not set: nothing is measured");
        return;
    };
    let rounds = std::env::var("SKILLOPT_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(3);
    let only = std::env::var("SKILLOPT_ONLY").unwrap_or_default();
    for (name, agent) in [("claude", Agent::Claude), ("codex", Agent::Codex)] {
        let root = [format!(".{name}"), name.to_owned()]
            .map(|folder| corpus.join(folder))
            .into_iter()
            .find(|root| root.is_dir());
        let Some(root) = root else { continue };
        let files = log_files(&root);
        let bytes: u64 = files
            .iter()
            .map(|file| file.metadata().unwrap().len())
            .sum();
        println!(
            "{name}: {} files, {:.1} MB",
            files.len(),
            bytes as f64 / 1e6
        );
        let row = |what: &str, run: &mut dyn FnMut()| {
            if !only.is_empty() && !what.starts_with(&only) {
                return;
            }
            let mut times: Vec<Duration> = (0..rounds.max(1))
                .map(|_| {
                    let start = Instant::now();
                    run();
                    start.elapsed()
                })
                .collect();
            times.sort();
            let (best, median) = (times[0], times[times.len() / 2]);
            println!(
                "  {what:<14} median {:>8.1} ms {:>8.1} MB/s   best {:>8.1} ms",
                median.as_secs_f64() * 1e3,
                bytes as f64 / 1e6 / median.as_secs_f64(),
                best.as_secs_f64() * 1e3,
            );
        };
        row("bytes", &mut || read_bytes(&files));
        row("json values", &mut || parse_lines(&files));
        let roots = Roots::none().with(agent, &root);
        row("harvest", &mut || {
            drop(harvested(&roots, &HarvestOptions::default()))
        });
        let digest = digest(&roots);
        println!("  digest {digest}");
        let first = harvested(&roots, &HarvestOptions::default());
        let again = HarvestOptions {
            known: first,
            ..HarvestOptions::default()
        };
        row("unchanged", &mut || drop(harvested(&roots, &again)));
        let grown = HarvestOptions {
            known: before_growth(again.known),
            ..HarvestOptions::default()
        };
        row("one grown", &mut || drop(harvested(&roots, &grown)));
    }
    println!("peak memory: {}", peak_memory());
}

/// Harvests and lets go of every session; the files that were seen.
fn harvested(roots: &Roots, options: &HarvestOptions) -> skillopt_harvesters::FileMemory {
    harvest_each(roots, options, |session| {
        std::hint::black_box(&session);
        ControlFlow::Continue(())
    })
    .files
}

/// What would be remembered had one log of a usual size been 100 kB shorter the last time.
fn before_growth(mut known: FileMemory) -> FileMemory {
    const GROWTH: u64 = 100_000;
    const USUAL: std::ops::Range<u64> = 250_000..1_000_000;
    let one = known
        .iter()
        .filter(|(_, stamp)| USUAL.contains(&stamp.size))
        .min_by_key(|(path, _)| path.to_owned())
        .map(|(path, stamp)| (path.to_owned(), stamp.clone()));
    if let Some((path, stamp)) = one {
        let shorter = FileStamp {
            size: stamp.size - GROWTH,
            read_to: stamp.read_to - GROWTH,
            ..stamp
        };
        known.insert(path, shorter);
    }
    known
}

/// One hash over all sessions in order, as JSON, and over the report.
fn digest(roots: &Roots) -> String {
    let mut hasher = blake3::Hasher::new();
    let options = HarvestOptions {
        redactor: Redactor::new(),
        ..HarvestOptions::default()
    };
    let mut sessions = 0;
    let account = harvest_each(roots, &options, |session| {
        sessions += 1;
        hasher.update(&serde_json::to_vec(&session).unwrap());
        ControlFlow::Continue(())
    });
    let report: &Report = &account.report;
    hasher.update(&serde_json::to_vec(report).unwrap());
    format!(
        "{} of {sessions} sessions",
        &hasher.finalize().to_hex()[..16]
    )
}

fn log_files(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
            {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn read_bytes(files: &[PathBuf]) {
    for file in files {
        std::hint::black_box(fs_err::read(file).unwrap());
    }
}

fn parse_lines(files: &[PathBuf]) {
    for file in files {
        let reader = std::io::BufReader::with_capacity(1 << 16, fs_err::File::open(file).unwrap());
        for line in reader.split(b'\n') {
            let value = serde_json::from_slice::<serde_json::Value>(&line.unwrap());
            std::hint::black_box(value.ok());
        }
    }
}

/// The most memory that this process ever had, as the system tells it.
fn peak_memory() -> String {
    fs_err::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
            Some(line.trim_start_matches("VmHWM:").trim().to_owned())
        })
        .unwrap_or_else(|| "unknown".to_owned())
}
