//! What a night stages, or why it does not.

use serde_json::{Value, json};

use super::super::Vector;
use super::home::Home;
use super::outcome::refused;
use super::place::RECORDED_HOME;

pub(super) fn run(vector: &Vector) -> Value {
    let input = &vector.input;
    let mut home = Home::new(input);
    home.change(&input["mutate"]);
    let staged = match home.stage(&input["stage"]).and_then(|()| rows(&home)) {
        Ok(rows) => json!(rows),
        Err(error) => refused(&error),
    };
    json!({"staged": staged, "files": home.files()})
}

fn rows(home: &Home) -> Result<Vec<Value>, skillopt_staging::Error> {
    let recorded = |path: &std::path::Path| {
        let inside = path.strip_prefix(&home.path).unwrap_or(path);
        format!("{RECORDED_HOME}/{}", inside.display())
    };
    let area = home.area()?;
    let rows = home.night.rows().iter().map(|row| {
        let proposal = area.load(&row.id)?.proposal;
        Ok(json!({
            "live": recorded(&proposal.document.path),
            "real": proposal.document.real_path.as_deref().map(recorded),
            "base": proposal.base.sha256,
            "proposed": proposal.proposed.sha256,
        }))
    });
    rows.collect()
}
