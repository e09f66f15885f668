//! Feedback: what a person's later prompts say about the work before them.
//!
//! A table of phrases, matched at the start of a word in the lower-cased text. From the signals of
//! all prompts after the first, the last that speaks decides how the session went: "wrong" and
//! later "perfect, thanks" is a success (sleep-night 3.2, weakness 9).

/// Phrases of disapproval, in the order in which they are reported.
pub const NEGATIVE: [&str; 22] = [
    "still broken", "still not", "still wrong", "doesn't work", "does not work", "not working", "that's wrong",
    "thats wrong", "incorrect", "wrong", "no,", "nope", "fix it", "didn't", "did not", "broken", "error again",
    "still failing", "still fails", "not fixed", "revert", "undo",
];

/// Phrases of approval, in the order in which they are reported.
pub const POSITIVE: [&str; 12] = [
    "thanks", "thank you", "perfect", "great", "works now", "fixed", "that works", "lgtm", "looks good", "nice",
    "awesome", "correct",
];

/// The phrases to look for: the tables above, then a person's own.
#[derive(Debug, Clone)]
pub struct Phrases {
    negative: Vec<String>,
    positive: Vec<String>,
}

impl Default for Phrases {
    fn default() -> Phrases {
        Phrases::with_extra(&[], &[])
    }
}

impl Phrases {
    /// The tables with further phrases behind them. Blank ones are passed over.
    #[must_use]
    pub fn with_extra(negative: &[String], positive: &[String]) -> Phrases {
        let list = |table: &[&str], extra: &[String]| {
            let table = table.iter().map(|&phrase| phrase.to_owned());
            let extra = extra.iter().map(|phrase| plain(phrase.trim())).filter(|phrase| !phrase.is_empty());
            let mut all: Vec<String> = Vec::new();
            for phrase in table.chain(extra) {
                if !all.contains(&phrase) {
                    all.push(phrase);
                }
            }
            all
        };
        Phrases { negative: list(&NEGATIVE, negative), positive: list(&POSITIVE, positive) }
    }

    /// The signals in one text, each once, as `neg:<phrase>` and then `pos:<phrase>`.
    #[must_use]
    pub fn signals(&self, text: &str) -> Vec<String> {
        let text = plain(text);
        let label = |mark: &str, phrases: &[String]| -> Vec<String> {
            phrases
                .iter()
                .filter(|phrase| last_place(&text, phrase).is_some())
                .map(|phrase| format!("{mark}:{phrase}"))
                .collect()
        };
        let mut signals = label("neg", &self.negative);
        signals.extend(label("pos", &self.positive));
        signals
    }

    /// What one text says last, or nothing. Where phrases overlap ("not fixed" and "fixed"), the
    /// longer one speaks.
    #[must_use]
    pub fn tone(&self, text: &str) -> Option<Tone> {
        let text = plain(text);
        let hits = |phrases: &[String], tone: Tone| -> Vec<(usize, usize, Tone)> {
            phrases.iter().filter_map(|phrase| last_place(&text, phrase).map(|at| (at, phrase.len(), tone))).collect()
        };
        let mut all = hits(&self.negative, Tone::Negative);
        all.extend(hits(&self.positive, Tone::Positive));
        // By where a phrase ends; of those that end together, the longer is the whole phrase.
        all.into_iter().max_by_key(|&(at, length, _)| (at + length, length)).map(|(_, _, tone)| tone)
    }

    /// How a session went, by the last prompt after the first that speaks. The first prompt is the
    /// request, and says nothing about the answer.
    #[must_use]
    pub fn verdict<'a>(&self, prompts: impl IntoIterator<Item = &'a str>) -> Option<Tone> {
        prompts.into_iter().skip(1).filter_map(|prompt| self.tone(prompt)).last()
    }
}

/// Approval or disapproval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tone {
    /// Disapproval.
    Negative,
    /// Approval.
    Positive,
}

/// Lower case, with typographic apostrophes as plain ones.
fn plain(text: &str) -> String {
    text.to_lowercase().replace(['\u{2019}', '\u{2018}', '\u{2bc}'], "'")
}

/// Where the phrase last begins a word.
fn last_place(text: &str, phrase: &str) -> Option<usize> {
    text.rmatch_indices(phrase)
        .map(|(at, _)| at)
        .find(|&at| text[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_start_at_words() {
        let phrases = Phrases::default();
        assert_eq!(phrases.signals("incorrect total"), ["neg:incorrect"]);
        assert_eq!(phrases.signals("casino, imperfect, unfixed, prefix items"), Vec::<String>::new());
        assert_eq!(phrases.signals("It doesn’t work"), ["neg:doesn't work"]);
    }

    #[test]
    fn the_last_word_decides() {
        let phrases = Phrases::default();
        assert_eq!(phrases.verdict(["fix the wrong total", "still wrong", "perfect, thanks"]), Some(Tone::Positive));
        assert_eq!(phrases.verdict(["a", "great. but not fixed"]), Some(Tone::Negative));
        assert_eq!(phrases.verdict(["this is wrong, please look"]), None);
    }

    #[test]
    fn own_phrases_come_last() {
        let phrases = Phrases::with_extra(&["Mist".into(), " ".into()], &["prima".into()]);
        assert_eq!(phrases.signals("so ein MIST, thanks, prima"), ["neg:mist", "pos:thanks", "pos:prima"]);
    }
}
