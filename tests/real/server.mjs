// A model server on the loopback interface that plays the script in the two protocols that the
// programs speak: Anthropic's Messages and OpenAI's Responses, both as event streams. It keeps no
// state: how far a conversation is, its results of calls tell, so that a call that is made again
// is answered alike.

import http from "node:http";
import { PRAISE, STEPS, USAGE, WELCOME } from "./script.mjs";

// Starts it. `calls` collects the names of the tools that the model called, by protocol.
export async function start() {
    const calls = { messages: new Set(), responses: new Set() };
    const server = http.createServer((request, response) => {
        let body = "";
        request.on("data", (part) => (body += part));
        request.on("end", () => answer(request, body, response, calls));
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    const stop = () => {
        server.closeAllConnections();
        server.close();
    };
    return { url: `http://127.0.0.1:${server.address().port}`, calls, stop };
}

function answer(request, body, response, calls) {
    const path = new URL(request.url, "http://localhost").pathname;
    if (request.method === "POST" && path.endsWith("/count_tokens")) {
        return json(response, { input_tokens: 1 });
    }
    if (request.method === "POST" && path.endsWith("/messages")) {
        return stream(response, messages(JSON.parse(body), calls.messages));
    }
    if (request.method === "POST" && path.endsWith("/responses")) {
        return stream(response, responses(JSON.parse(body), calls.responses));
    }
    if (path.endsWith("/models")) {
        return json(response, { object: "list", data: [], models: [] });
    }
    response.writeHead(request.method === "HEAD" ? 200 : 404).end();
}

function json(response, value) {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
}

function stream(response, events) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of events) {
        response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    }
    response.end();
}

// The step after so many results. Only some steps' calls are made by both programs, so they are
// counted as `made` of each step says.
function step(results, made) {
    let before = 0;
    for (const step of STEPS) {
        const count = made(step.does).length;
        if (results < before + count || count === 0) return step;
        before += count;
    }
    return STEPS.at(-1);
}

let serial = 0;

// --- Anthropic ---

function messages(request, called) {
    const texts = request.messages.map((message) => JSON.stringify(message.content));
    const blocks = request.messages.flatMap((message) => message.content);
    const results = blocks.filter((block) => block.type === "tool_result").length;
    const praised = texts.some((text) => text.includes(PRAISE));
    // Requests without tools are the program's own, for a title and the like.
    const worker = (request.tools ?? []).some((tool) => tool.name === "Bash");
    const made = (does) => does.map(toMessagesCall);
    const next = praised || !worker ? { says: worker ? WELCOME : "A title", does: [] } : step(results, made);
    const content = [];
    if (next.says) content.push({ type: "text", text: next.says });
    for (const call of made(next.does)) {
        called.add(call.name);
        content.push({ type: "tool_use", id: `toolu_${++serial}`, ...call });
    }
    return messagesEvents(request.model, content, next.does.length ? "tool_use" : "end_turn");
}

function toMessagesCall({ run, look, edit, from, to }) {
    const file = `${process.env.REAL_PROJECT}/${look ?? edit}`;
    if (run) return { name: "Bash", input: { command: run, description: "A step" } };
    if (look) return { name: "Read", input: { file_path: file } };
    return { name: "Edit", input: { file_path: file, old_string: from, new_string: to } };
}

function messagesEvents(model, content, stop_reason) {
    const usage = {
        input_tokens: USAGE.input,
        cache_read_input_tokens: USAGE.cached,
        cache_creation_input_tokens: 0,
        output_tokens: 1,
    };
    const message = { id: `msg_${++serial}`, type: "message", role: "assistant", model, content: [], usage };
    const events = [{ type: "message_start", message: { ...message, stop_reason: null, stop_sequence: null } }];
    content.forEach((block, index) => {
        const isText = block.type === "text";
        events.push({
            type: "content_block_start",
            index,
            content_block: isText ? { type: "text", text: "" } : { ...block, input: {} },
        });
        const delta = isText
            ? { type: "text_delta", text: block.text }
            : { type: "input_json_delta", partial_json: JSON.stringify(block.input) };
        events.push({ type: "content_block_delta", index, delta }, { type: "content_block_stop", index });
    });
    events.push(
        {
            type: "message_delta",
            delta: { stop_reason, stop_sequence: null },
            usage: { ...usage, output_tokens: USAGE.output },
        },
        { type: "message_stop" },
    );
    return events;
}

// --- OpenAI ---

function responses(request, called) {
    const results = request.input.filter((item) => item.type?.endsWith("_call_output")).length;
    const praised = request.input.some((item) => item.role === "user" && JSON.stringify(item).includes(PRAISE));
    const offered = new Set((request.tools ?? []).map((tool) => tool.name));
    const made = (does) => does.flatMap((call) => toResponsesCall(call, offered));
    const next = praised ? { says: WELCOME, does: [] } : step(results, made);
    const output = [];
    if (next.says) {
        const content = [{ type: "output_text", text: next.says, annotations: [] }];
        output.push({ type: "message", id: `msg_${++serial}`, role: "assistant", status: "completed", content });
    }
    for (const call of made(next.does)) {
        called.add(call.name);
        output.push({ id: `item_${++serial}`, call_id: `call_${serial}`, status: "completed", ...call });
    }
    return responsesEvents(request.model, output);
}

// Which shell tool there is, depends on the release and the model. Looking is done with a command,
// and the program looks at none of its own.
function toResponsesCall({ run, edit, from, to }, offered) {
    const shell = ["exec_command", "shell_command"].find((name) => offered.has(name)) ?? "exec_command";
    const command = (line) => ({
        type: "function_call",
        name: shell,
        arguments: JSON.stringify(shell === "exec_command" ? { cmd: line } : { command: line }),
    });
    if (run) return [command(run)];
    if (!edit) return [];
    const patch = `*** Begin Patch\n*** Update File: ${edit}\n@@\n-${from}\n+${to}\n*** End Patch`;
    return offered.has("apply_patch")
        ? [{ type: "custom_tool_call", name: "apply_patch", input: patch }]
        : [command(`apply_patch <<'END'\n${patch}\nEND`)];
}

function responsesEvents(model, output) {
    const response = { id: `resp_${++serial}`, object: "response", created_at: 0, model, status: "in_progress", output: [] };
    const usage = {
        input_tokens: USAGE.input + USAGE.cached,
        input_tokens_details: { cached_tokens: USAGE.cached },
        output_tokens: USAGE.output,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: USAGE.input + USAGE.cached + USAGE.output,
    };
    const events = [{ type: "response.created", response }];
    output.forEach((item, output_index) => {
        events.push(
            { type: "response.output_item.added", output_index, item: { ...item, status: "in_progress" } },
            { type: "response.output_item.done", output_index, item },
        );
    });
    events.push({ type: "response.completed", response: { ...response, status: "completed", output, usage } });
    return events.map((event, sequence_number) => ({ ...event, sequence_number }));
}
