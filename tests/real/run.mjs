// Installs the programs, lets each do its job in a home of its own, reads their logs with
// skillopt-sleep, and compares with the script.
//
//   temporary folder/
//     cli/      the programs
//     home/     all that they and skillopt-sleep may write: their homes, the project, the state
//     tmp/      their temporary files

import { spawnSync, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import * as script from "./script.mjs";
import { start } from "./server.mjs";

const MINUTE = 60_000;
const [sleep] = process.argv.slice(2);
const root = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "skillopt-real-")));
const home = path.join(root, "home");
const began = Date.now();

// The programs: package and the release that is run, so that the outcome is this project's doing alone; how its native program is found, and how a prompt is put to it.
const PROGRAMS = [
    {
        agent: "claude",
        title: "Claude Code",
        package: "@anthropic-ai/claude-code",
        release: "2.1.332",
        protocol: "messages",
        program: (modules) => [first(`${modules}/@anthropic-ai`, /^claude-code-.*/, "claude"), `${modules}/.bin/claude`],
        ask: (url, prompt, resumed) => ({
            arguments: ["-p", "--output-format", "json", "--permission-mode", "acceptEdits"]
                .concat(["--allowedTools=Bash,Read,Edit"], resumed ? ["--continue"] : []),
            input: prompt,
            environment: { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "dummy" },
        }),
    },
    {
        agent: "codex",
        title: "Codex",
        package: "@openai/codex",
        release: "0.171.0",
        protocol: "responses",
        program: (modules) => [`${modules}/.bin/codex`],
        ask: (url, prompt, resumed) => ({
            arguments: ["exec", "--json", "--skip-git-repo-check", "-m", "gpt-5.5"]
                .concat(
                    settings({
                        model_provider: '"loopback"',
                        "model_providers.loopback":
                            `{name="loopback",base_url="${url}/v1",wire_api="responses",env_key="LOOPBACK_KEY"}`,
                        sandbox_mode: '"danger-full-access"',
                        approval_policy: '"never"',
                        check_for_update_on_startup: "false",
                        "analytics.enabled": "false",
                    }),
                )
                .concat(resumed ? ["resume", "--last", "-"] : ["-"]),
            input: prompt,
            environment: { LOOPBACK_KEY: "dummy" },
        }),
    },
];

const settings = (values) => Object.entries(values).flatMap(([name, value]) => ["-c", `${name}=${value}`]);

// A file in the first folder of that name.
function first(folder, name, file) {
    const found = fs.existsSync(folder) ? fs.readdirSync(folder).filter((entry) => name.test(entry)) : [];
    return found.length ? path.join(folder, found[0], file) : "";
}

class Skip extends Error {}
const wrong = [];

function check(what, found, expected) {
    if (!isDeepStrictEqual(found, expected)) {
        wrong.push(`${what}\n    found    ${JSON.stringify(found)}\n    expected ${JSON.stringify(expected)}`);
    }
}

// Nothing of the caller's environment but the way to programs.
function environment(more) {
    return {
        HOME: home,
        PATH: process.env.PATH,
        TMPDIR: path.join(root, "tmp"),
        CLAUDE_CODE_TMPDIR: path.join(root, "tmp"),
        LANG: "C.UTF-8",
        TERM: "dumb",
        NO_COLOR: "1",
        no_proxy: "127.0.0.1,localhost",
        DISABLE_AUTOUPDATER: "1",
        DISABLE_TELEMETRY: "1",
        DISABLE_ERROR_REPORTING: "1",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        DO_NOT_TRACK: "1",
        ...more,
    };
}

// --- the programs at work ---

function npm(minutes, ...words) {
    const patience = ["--fetch-retries=1", "--fetch-timeout=20000"];
    const options = { encoding: "utf8", timeout: minutes * MINUTE, cwd: root };
    const done = spawnSync("npm", [...words, ...patience], options);
    if (done.status !== 0) {
        const why = (done.stderr || String(done.error)).trim().split("\n").slice(0, 3).join(" · ");
        throw new Skip(`npm ${words.join(" ")} did not work: ${why}`);
    }
    return done.stdout.trim();
}

// The release to run. With REAL_RELEASES=latest it is today's, whatever npm holds right for this Node.
const releaseOf = (program) =>
    process.env.REAL_RELEASES === "latest"
        ? npm(0.5, "view", `${program.package}@latest`, "version")
        : program.release;

function install(program, release) {
    const into = path.join(root, "cli", program.agent);
    fs.mkdirSync(into, { recursive: true });
    npm(1.5, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", into, `${program.package}@${release}`);
    const found = program.program(path.join(into, "node_modules")).find((file) => file && fs.existsSync(file));
    if (!found) throw new Skip(`${program.package} ${release} has nothing to run for this machine`);
    return found;
}

// One run of a program; the server answers meanwhile.
function run(file, asked, project) {
    return new Promise((done, fail) => {
        const child = spawn(file, asked.arguments, {
            cwd: project,
            env: environment(asked.environment),
            timeout: MINUTE,
        });
        let told = "";
        for (const pipe of [child.stdout, child.stderr]) {
            pipe.on("data", (part) => (told += part));
        }
        child.on("error", fail);
        child.on("close", (code) =>
            code === 0 ? done() : fail(new Error(`${file} ended with ${code}:\n${told.slice(-2000)}`)),
        );
        child.stdin.end(asked.input);
    });
}

// --- what skillopt-sleep tells ---

function harvest(...words) {
    const done = spawnSync(sleep, ["harvest", ...words, "--json"], {
        encoding: "utf8",
        timeout: MINUTE,
        cwd: home,
        env: environment({ SKILLOPT_SLEEP_HOME: path.join(home, "state") }),
    });
    if (done.status !== 0) throw new Error(`harvest ${words[0]} ended with ${done.status}:\n${done.stderr}`);
    return { text: done.stdout + done.stderr, json: JSON.parse(done.stdout) };
}

function compare(program, release, project, calls) {
    const listed = harvest("list", "--all-projects", "--source", program.agent);
    check("sessions", listed.json.sessions.length, 1);
    check("kinds of records that nobody knows", listed.json.report.unknown_kinds, {});
    if (listed.json.sessions.length === 0) return;
    const shown = harvest("show", listed.json.sessions[0].id);
    const session = shown.json.session ?? shown.json;
    const texts = (list) => list.map((one) => one.text);
    const turns = session.turns;
    const tools = turns.flatMap((turn) => turn.tools);
    check("release", session.agent_version, release);
    check("project", session.project, project);
    check("who started it", session.origin, "headless");
    check("prompts", turns.flatMap((turn) => texts(turn.prompts)), [script.PROMPT, script.PRAISE]);
    check("final answers", turns.flatMap((turn) => (turn.answer ? [turn.answer.text] : [])), [
        script.ANSWER,
        script.WELCOME,
    ]);
    check("remarks", turns.flatMap((turn) => texts(turn.remarks)), [script.REMARK]);
    check("tools", [...new Set(tools.map((call) => call.name))].sort(), [...calls].sort());
    const commands = tools.filter((call) => call.command && !call.command.text.startsWith("apply_patch"));
    check(
        "commands",
        commands.map(({ command }) => [command.text, command.exit_code, command.verification?.passed ?? null]),
        script.COMMANDS,
    );
    check("edited files", [...new Set(tools.flatMap((call) => call.edits))], [path.join(project, "totals.txt")]);
    check("feedback", session.feedback.map((said) => said.polarity), ["positive"]);
    check("outcome", session.outcome.verdict, "success");
    const replies = script.STEPS.length + 1;
    const { input, cache_read, output } = session.usage ?? {};
    check("tokens", [input, cache_read, output], [
        replies * script.USAGE.input,
        replies * script.USAGE.cached,
        replies * script.USAGE.output,
    ]);
    check("the secret is named", /STRIPE_KEY=\[redacted:/.test(shown.text), true);
    check("the secret is told", (listed.text + shown.text).includes(script.SECRET), false);
}

// --- what was written where ---

// Files below a folder that were written since the start, not deeper than a log lies.
function* written(folder, depth = 8) {
    let entries = [];
    try {
        entries = fs.readdirSync(folder, { withFileTypes: true });
    } catch {
        return; // not there, or not ours to read
    }
    for (const entry of entries) {
        const file = path.join(folder, entry.name);
        if (file === root || entry.isSymbolicLink()) continue;
        if (entry.isDirectory()) {
            if (depth > 0) yield* written(file, depth - 1);
        } else if (entry.isFile() && (fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) >= began) {
            yield file;
        }
    }
}

// Others may work on this machine meanwhile: what names our folder is ours.
function compareDisk() {
    const name = path.basename(root);
    const places = [".claude", ".codex", ".config/skillopt-sleep", ".local/state/skillopt-sleep"]
        .map((folder) => path.join(os.homedir(), folder))
        .concat(fs.readdirSync(os.tmpdir()).filter((entry) => /claude|codex|skillopt/i.test(entry))
            .map((entry) => path.join(os.tmpdir(), entry)));
    const ours = places
        .filter((place) => place !== root)
        .flatMap((place) => [...written(place)])
        .filter((file) => file.includes(name) || fs.statSync(file).size < 1e7 && fs.readFileSync(file).includes(name));
    check("files outside the temporary home", ours, []);
    const stored = [...written(path.join(home, "state"))];
    check("what skillopt-sleep keeps", stored.length > 0, true);
    const leaks = stored.filter((file) => fs.readFileSync(file).includes(script.SECRET));
    check("files of skillopt-sleep with the secret in them", leaks, []);
}

// --- all of it ---

async function drive(program, release) {
    const file = install(program, release);
    const project = path.join(home, "src", program.agent);
    fs.mkdirSync(project, { recursive: true });
    for (const [name, text] of Object.entries(script.FILES)) fs.writeFileSync(path.join(project, name), text);
    process.env.REAL_PROJECT = project;
    const server = await start();
    try {
        await run(file, program.ask(server.url, script.PROMPT, false), project);
        await run(file, program.ask(server.url, script.PRAISE, true), project);
    } finally {
        server.stop();
    }
    compare(program, release, project, server.calls[program.protocol]);
}

const skipped = (what, why) => console.log(`\n*** SKIPPED: ${what}. ${why} ***\n`);

async function main() {
    fs.mkdirSync(path.join(root, "tmp"));
    let driven = 0;
    let releases = [];
    try {
        releases = PROGRAMS.map(releaseOf);
    } catch (problem) {
        if (!(problem instanceof Skip)) throw problem;
        skipped("the real programs", problem.message);
    }
    for (const [index, release] of releases.entries()) {
        const program = PROGRAMS[index];
        const before = wrong.length;
        try {
            await drive(program, release);
            driven += 1;
            if (wrong.length === before) console.log(`${program.title} ${release}: all as scripted`);
        } catch (problem) {
            if (problem instanceof Skip) skipped(program.title, problem.message);
            else wrong.push(problem.message);
        }
        wrong.slice(before).forEach((what) => console.log(`${program.title}: WRONG ${what}`));
    }
    if (driven > 0) {
        const before = wrong.length;
        compareDisk();
        wrong.slice(before).forEach((what) => console.log(`WRONG ${what}`));
    }
    if (wrong.length === 0) fs.rmSync(root, { recursive: true, force: true });
    else console.log(`\n${wrong.length} wrong; the logs are kept in ${root}`);
    process.exitCode = wrong.length === 0 ? 0 : 1;
}

await main();
