#!/usr/bin/env python3
"""Measures `train` against the Python original on the same server, and `eval` with 2,000 open rollouts.

    python3 benches/compare.py --binary TARGET/release/skillopt-sleep --server TARGET/release/examples/bench-server \
        --original VENV/bin/python

Prints one JSON document. Needs Linux or macOS; nothing besides the standard library.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

PORT = 8391

COMMON = """
env: searchqa
optimizer_model: bench
target_model: bench
skill_init: {work}/initial.md
split_mode: split_dir
split_dir: {work}/data
workers: {workers}
exec_timeout: 120
max_completion_tokens: 256
max_turns: 1
num_epochs: 1
train_size: 0
batch_size: 40
accumulation: 1
seed: 42
minibatch_size: 8
merge_batch_size: 8
analyst_workers: {workers}
failure_only: false
edit_budget: 4
min_edit_budget: 4
lr_scheduler: constant
use_slow_update: false
use_meta_skill: false
use_gate: true
sel_env_num: 0
test_env_num: 0
eval_test: false
"""

# The original reads its prompts from files that its package on PyPI does not contain.
PROMPTS = {
    "envs/searchqa/prompts/rollout_system.md": "Answer the question from the passages.\n{skill_section}\nAnswer in <answer> tags.",
    **{f"prompts/{name}.md": f"You improve a skill document. Stage: {name}. Reply with JSON."
       for name in ("analyst_error", "analyst_success", "merge_failure", "merge_success", "merge_final", "ranking")},
}


def data(work, sizes):
    passage = "[DOC] [TLE] title [PAR] " + "Some words of a passage that is read and says nothing. " * 8
    for split, count in sizes.items():
        rows = [{"id": f"{split}{n}", "question": f"What is item {n} of {split}?", "context": passage * 4, "answers": ["gold"]}
                for n in range(count)]
        folder = work / "data" / split
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "items.json").write_text(json.dumps(rows))
    (work / "initial.md").write_text("# Skill\n\n- Read the passages.\n")


class Server:
    def __init__(self, binary, milliseconds):
        self.process = subprocess.Popen([binary, str(PORT), str(milliseconds)])
        for _ in range(100):
            try:
                self.counts()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("the server does not start")

    def counts(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/") as reply:
            return json.load(reply)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def measured(command, environment, log):
    """Runs a command; wall seconds, CPU seconds, peak memory in MB, exit status."""
    started = time.monotonic()
    with open(log, "wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    unit = 1024 if sys.platform == "linux" else 1024 * 1024
    return {
        "wall_s": round(time.monotonic() - started, 2),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_mb": round(usage.ru_maxrss / unit, 1),
        "status": os.waitstatus_to_exitcode(status),
    }


def environment(**more):
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "PYTHONUNBUFFERED": "1", **more}


def run(name, command, env, server_binary, milliseconds, log):
    server = Server(server_binary, milliseconds)
    try:
        result = measured(command, env, log)
        counts = server.counts()
    finally:
        server.stop()
    result |= {"calls": counts["answered"], "most_open": counts["most_open"]}
    if result["calls"]:
        result["cpu_ms_per_call"] = round(1000 * result["cpu_s"] / result["calls"], 2)
    if result["status"] != 0:
        print(Path(log).read_text()[-3000:], file=sys.stderr)
    print(name, result, file=sys.stderr)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--original", help="the python of an environment with skillopt==0.2.0")
    parser.add_argument("--keep", help="work in this folder and keep it")
    args = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
    work = Path(args.keep or tempfile.mkdtemp(prefix="bench-")).absolute()
    work.mkdir(parents=True, exist_ok=True)
    data(work, {"train": 400, "val": 200, "test": 4})
    url = f"http://127.0.0.1:{PORT}/v1"
    common = COMMON.format(work=work, workers=64)
    ours, theirs = work / "ours.yaml", work / "theirs.yaml"
    ours.write_text(common + "model_backend: openai_compatible\n")
    theirs.write_text(common + f"model_backend: azure_openai\noptimizer_backend: openai_chat\ntarget_backend: openai_chat\n"
                      f"azure_openai_auth_mode: openai_compatible\nazure_openai_endpoint: {url}\nazure_openai_api_key: bench\n"
                      f"reasoning_effort: ''\nout_root: {work}/run-original\n")
    env = environment(OPENAI_COMPATIBLE_BASE_URL=url, OPENAI_COMPATIBLE_API_KEY="bench",
                      SKILLOPT_SLEEP_HOME=str(work / "home"), OPENAI_API_KEY="bench")
    report = {"machine": f"{platform.platform()}, {os.cpu_count()} CPUs"}

    for name, more in (("train", []), ("train_full_scores", ["--set", "evaluation.gate_full_scores=true"])):
        out = work / f"run-{name}"
        shutil.rmtree(out, ignore_errors=True)
        command = [args.binary, "-q", "train", "--config", str(ours), "--out-root", str(out), *more]
        report[name] = run(name, command, env, args.server, 20, work / f"{name}.log")
    command = [args.binary, "train", "--dry-run", "--config", str(ours), "--out-root", str(work / "none")]
    report["dry_run"] = measured(command, env, work / "dry.log")

    if args.original:
        package = subprocess.check_output(
            [args.original, "-c", "import skillopt; print(skillopt.__path__[0])"], text=True).strip()
        for prompt, text in PROMPTS.items():
            path = Path(package) / prompt
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        shutil.rmtree(work / "run-original", ignore_errors=True)
        main_program = "import sys; from scripts.train import main; sys.exit(main())"
        command = [args.original, "-c", main_program, "--config", str(theirs)]
        report["original"] = run("original", command, env, args.server, 20, work / "original.log")

    data(work, {"train": 1, "val": 1, "test": 2000})
    out = work / "run-eval"
    shutil.rmtree(out, ignore_errors=True)
    command = [args.binary, "-q", "eval", "--config", str(ours), "--skill", str(work / "initial.md"), "--split", "test",
               "--set", "env.workers=2000", "--out-root", str(out), "--json"]
    report["eval_2000"] = run("eval_2000", command, env, args.server, 2000, work / "eval.log")
    try:
        report["eval_2000"]["measured"] = json.loads((out / "eval_summary.json").read_text())["n_measured"]
    except OSError:
        pass
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
