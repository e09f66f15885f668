#!/usr/bin/env bash
# The real programs write the logs, and the built skillopt-sleep reads them.
#
# Installs Claude Code and Codex from npm into a temporary folder, lets each do one scripted job
# against a model server on the loopback interface, and compares what `harvest` tells with the
# script. See run.mjs.
#
#   tests/real/run.sh [SKILLOPT_SLEEP]           default: the debug build
#   REAL_RELEASES=latest tests/real/run.sh       today's releases: do they write their logs in another way?
#
# Exit code: 0 as scripted, or skipped (it says so loudly); 1 for any fact that is wrong.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)

program=${1:-${CARGO_TARGET_DIR:-$folder/../../target}/debug/skillopt-sleep}
if [ ! -x "$program" ]; then
    echo "there is no $program: build it (cargo build), or name it as the argument" >&2
    exit 1
fi
program=$(cd "$(dirname "$program")" && pwd)/$(basename "$program")

for tool in node npm; do
    if ! command -v "$tool" >/dev/null; then
        printf '\n*** SKIPPED: the real programs. There is no %s here to install and run them with. ***\n\n' "$tool"
        exit 0
    fi
done
exec node "$folder/run.mjs" "$program"
