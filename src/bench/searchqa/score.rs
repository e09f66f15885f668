//! How SearchQA answers are read and scored (benchmarks 6.3 and 6.5).

use std::collections::HashMap;

/// What opens a passage in a context.
const PASSAGE: &str = "[DOC]";

/// What stands at the end of a context that was cut inside a passage.
const CUT: &str = "\n...[truncated]";

/// The scores of one answer, each 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerScore {
    /// 1 when the normalised answer equals a normalised gold answer; the hard score.
    pub em: f64,
    /// The best overlap of words with a gold answer; the soft score.
    pub f1: f64,
    /// 1 when the normalised answer and a gold answer contain one another.
    pub sub_em: f64,
    /// The answer that was read from the response.
    pub predicted_answer: String,
}

/// Scores a response against the gold answers.
#[must_use]
pub fn score(response: &str, golds: &[String]) -> AnswerScore {
    let predicted_answer = extract_answer(response);
    let predicted = normalise(&predicted_answer);
    let golds: Vec<String> = golds.iter().map(|gold| normalise(gold)).collect();
    let flag = |holds: bool| f64::from(u8::from(holds));
    AnswerScore {
        em: flag(golds.contains(&predicted)),
        f1: golds
            .iter()
            .map(|gold| overlap(&predicted, gold))
            .fold(0.0, f64::max),
        sub_em: flag(
            golds
                .iter()
                .any(|gold| gold.contains(&predicted) || predicted.contains(gold.as_str())),
        ),
        predicted_answer,
    }
}

/// The answer in a response: what the last `<answer>` pair holds, whatever its case; without a
/// pair, the last line that is not blank.
#[must_use]
pub fn extract_answer(response: &str) -> String {
    match last_pair(response) {
        Some(answer) => answer.trim_matches(is_blank).to_owned(),
        None => {
            let mut lines = response
                .split(is_line_end)
                .map(|line| line.trim_matches(is_blank));
            lines
                .rfind(|line| !line.is_empty())
                .unwrap_or_default()
                .to_owned()
        }
    }
}

/// Lower case, without ASCII punctuation, without the words a, an and the, and with single blanks.
#[must_use]
pub fn normalise(text: &str) -> String {
    let kept: String = text
        .to_lowercase()
        .chars()
        .filter(|c| !c.is_ascii_punctuation())
        .collect();
    let mut out = String::with_capacity(kept.len());
    // Articles are whole words by letters and digits, so "’the" ends one and "1the" does not.
    let mut word = String::new();
    for c in kept.chars().chain([' ']) {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        match word.as_str() {
            "a" | "an" | "the" => out.push(' '),
            other => out.push_str(other),
        }
        word.clear();
        out.push(c);
    }
    out.split(is_blank)
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The context cut to at most `longest` characters, at the start of a passage where that is
/// possible. The text before the first mark is a passage too; while nothing is kept yet, a passage
/// is taken without its mark.
#[must_use]
pub fn truncate_context(context: &str, longest: usize) -> String {
    if context.chars().count() <= longest {
        return context.to_owned();
    }
    let (mut kept, mut length) = (String::new(), 0);
    for piece in context.split(PASSAGE) {
        let mark = if kept.is_empty() { "" } else { PASSAGE };
        let added = mark.len() + piece.chars().count();
        if length + added > longest {
            break;
        }
        kept.push_str(mark);
        kept.push_str(piece);
        length += added;
    }
    if kept.is_empty() {
        let head: String = context.chars().take(longest).collect();
        return head + CUT;
    }
    kept
}

fn last_pair(response: &str) -> Option<&str> {
    const OPEN: &str = "<answer>";
    const CLOSE: &str = "</answer>";
    // ASCII lower case keeps every position.
    let lower = response.to_ascii_lowercase();
    let (mut from, mut last) = (0, None);
    while let Some(open) = lower[from..].find(OPEN) {
        let start = from + open + OPEN.len();
        let Some(close) = lower[start..].find(CLOSE) else {
            break;
        };
        last = Some(&response[start..start + close]);
        from = start + close + CLOSE.len();
    }
    last
}

/// The best F1 of two word multisets; two answers without words agree.
fn overlap(predicted: &str, gold: &str) -> f64 {
    let words = |text: &str| -> Vec<String> {
        text.split(' ')
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (predicted, gold) = (words(predicted), words(gold));
    if predicted.is_empty() || gold.is_empty() {
        return f64::from(u8::from(predicted.is_empty() && gold.is_empty()));
    }
    let mut left: HashMap<&str, usize> = HashMap::new();
    for word in &gold {
        *left.entry(word).or_default() += 1;
    }
    let mut shared = 0_usize;
    for word in &predicted {
        if let Some(count) = left.get_mut(word.as_str()).filter(|count| **count > 0) {
            *count -= 1;
            shared += 1;
        }
    }
    if shared == 0 {
        return 0.0;
    }
    let precision = shared as f64 / predicted.len() as f64;
    let recall = shared as f64 / gold.len() as f64;
    2.0 * precision * recall / (precision + recall)
}

fn is_blank(c: char) -> bool {
    crate::skill::text::is_blank(c)
}

fn is_line_end(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pair_is_the_answer() {
        let golds = ["The Beatles".to_owned()];
        let scored = score("<answer>x</answer> no: <ANSWER> Beatles. </Answer>", &golds);
        assert_eq!(
            (scored.em, scored.f1, scored.predicted_answer.as_str()),
            (1.0, 1.0, "Beatles.")
        );
    }

    #[test]
    fn a_context_is_cut_between_passages() {
        assert_eq!(
            truncate_context("pre[DOC]aaaa[DOC]bbbbbbbb", 14),
            "pre[DOC]aaaa"
        );
        assert_eq!(truncate_context("xxxxx", 2), "xx\n...[truncated]");
    }
}
