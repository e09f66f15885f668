//! What single releases of the agents were seen to write, and others do not.

mod claude;
mod codex;
mod others;

use serde_json::{Value, json};
use skillopt_harvesters::{Agent, Session};

use crate::fixtures::Home;

fn plant(home: &Home, agent: Agent, name: &str, records: &[Value]) {
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    home.write(&home.root(agent).join(name), text.as_bytes());
}

fn prompts(session: &Session) -> Vec<&str> {
    let prompts = session.prompts();
    prompts.map(|prompt| prompt.text.as_str()).collect()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
