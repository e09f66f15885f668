// The job that both programs do, step by step, and what must be found in the log of it.

export const SECRET = "sk_live_FAKEfakeFAKEfakeFAKEfake";
export const PROMPT = "The check fails, please put totals.txt right.";
export const PRAISE = "great, thanks";
export const REMARK = "Let me run the check first.";
export const ANSWER = "Fixed: the total is 29 now.";
export const WELCOME = "Gladly.";

// The project, before anybody worked on it.
export const FILES = {
    "totals.txt": "total=28\n",
    "deploy.env": `STRIPE_KEY=${SECRET}\n`,
    "check.sh": "if grep -q '^total=29$' totals.txt; then echo '1 passed'; else echo '1 failed'; exit 1; fi\n",
};

// Tokens of each reply: what was not cached, what was, and the answer.
export const USAGE = { input: 60, cached: 40, output: 20 };

// What the model does, in order. A step is over when its calls have results.
export const STEPS = [
    { says: REMARK, does: [{ run: "sh check.sh" }] },
    { does: [{ run: "cat deploy.env" }, { look: "totals.txt" }] },
    { does: [{ edit: "totals.txt", from: "total=28", to: "total=29" }] },
    { does: [{ run: "sh check.sh" }] },
    { says: ANSWER, does: [] },
];

// The commands, as `harvest` must tell of them: line, exit code, verdict of the check.
export const COMMANDS = [
    ["sh check.sh", 1, false],
    ["cat deploy.env", 0, null],
    ["sh check.sh", 0, true],
];
