#!/bin/sh
# Runs fuzz targets one after the other: run.sh SECONDS TARGET… Needs nothing but the stable
# compiler: RUSTC_BOOTSTRAP lets it pass the coverage options that cargo-fuzz sets on nightly.
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
seconds=$1
shift
triple=$(rustc -vV | sed -n 's/host: //p')
target=${CARGO_TARGET_DIR:-$here/target}
RUSTC_BOOTSTRAP=1 RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares" \
    cargo build --release --target "$triple" --manifest-path "$here/Cargo.toml"
for name in "$@"; do
    seeds=$here/../../tests/data/sessions/$(echo "$name" | tr _ -)
    test -d "$seeds" || seeds=$here/../../tests/data/sessions
    mkdir -p "$here/corpus/$name" "$here/artifacts/$name"
    "$target/$triple/release/$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=32768 \
        -print_final_stats=1 -artifact_prefix="$here/artifacts/$name/" \
        "$here/corpus/$name" "$seeds"
done
