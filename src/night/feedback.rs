//! Feedback: what a person's later prompts say about the work before them.
//!
//! A table of phrases, matched at the start of a word in the lower-cased text. From the signals of
//! all prompts after the first, the last that speaks decides how the session went: "wrong" and
//! later "perfect, thanks" is a success (sleep-night 3.2, weakness 9).

/// Phrases of disapproval, in the order in which they are reported.
pub const NEGATIVE: [&str; 22] = [
    "still broken",
    "still not",
    "still wrong",
    "doesn't work",
    "does not work",
    "not working",
    "that's wrong",
    "thats wrong",
    "incorrect",
    "wrong",
    "no,",
    "nope",
    "fix it",
    "didn't",
    "did not",
    "broken",
    "error again",
    "still failing",
    "still fails",
    "not fixed",
    "revert",
    "undo",
];

/// Phrases of approval, in the order in which they are reported.
pub const POSITIVE: [&str; 12] = [
    "thanks",
    "thank you",
    "perfect",
    "great",
    "works now",
    "fixed",
    "that works",
    "lgtm",
    "looks good",
    "nice",
    "awesome",
    "correct",
];

/// The phrases to look for: the tables above, then a person's own.
#[derive(Debug, Clone, Default)]
pub struct Phrases {
    own_negative: Vec<String>,
    own_positive: Vec<String>,
}

impl Phrases {
    /// The tables with a person's own phrases behind them. Blank ones are passed over. Own phrases
    /// match anywhere: their language may not put blanks between words.
    #[must_use]
    pub fn with_own(negative: &[String], positive: &[String]) -> Phrases {
        let list = |own: &[String]| -> Vec<String> {
            own.iter()
                .map(|phrase| plain(phrase.trim()))
                .filter(|phrase| !phrase.is_empty())
                .collect()
        };
        Phrases {
            own_negative: list(negative),
            own_positive: list(positive),
        }
    }

    /// The signals in one text, as `neg:<phrase>` and then `pos:<phrase>`.
    #[must_use]
    pub fn signals(&self, text: &str) -> Vec<String> {
        let mark = |tone| if tone == Tone::Negative { "neg" } else { "pos" };
        self.hits(&plain(text))
            .into_iter()
            .map(|(_, phrase, tone)| format!("{}:{phrase}", mark(tone)))
            .collect()
    }

    /// Where each phrase that occurs is last said.
    fn hits(&self, text: &str) -> Vec<(usize, &str, Tone)> {
        let mut found = Vec::new();
        for (tone, table, own) in [
            (Tone::Negative, &NEGATIVE[..], &self.own_negative),
            (Tone::Positive, &POSITIVE[..], &self.own_positive),
        ] {
            let known = table
                .iter()
                .filter_map(|&phrase| Some((last_word(text, phrase)?, phrase, tone)));
            found.extend(known);
            found.extend(
                own.iter()
                    .filter_map(|phrase| Some((text.rfind(phrase)?, phrase.as_str(), tone))),
            );
        }
        found
    }

    /// What one text says last, or nothing. Where phrases overlap ("not fixed" and "fixed"), the
    /// longer one speaks.
    #[must_use]
    pub fn tone(&self, text: &str) -> Option<Tone> {
        // By where a phrase ends; of those that end together, the longer is the whole phrase.
        let text = plain(text);
        let last = self
            .hits(&text)
            .into_iter()
            .max_by_key(|(at, phrase, _)| (at + phrase.len(), phrase.len()));
        last.map(|(_, _, tone)| tone)
    }

    /// How a session went, by the last prompt after the first that speaks. The first prompt is the
    /// request, and says nothing about the answer.
    #[must_use]
    pub fn verdict<'a>(&self, prompts: impl IntoIterator<Item = &'a str>) -> Option<Tone> {
        prompts
            .into_iter()
            .skip(1)
            .filter_map(|prompt| self.tone(prompt))
            .last()
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
    text.to_lowercase()
        .replace(['\u{2019}', '\u{2018}', '\u{2bc}'], "'")
}

/// Where the phrase was last said, at the start of a word.
fn last_word(text: &str, phrase: &str) -> Option<usize> {
    text.rmatch_indices(phrase).map(|(at, _)| at).find(|&at| {
        text[..at]
            .chars()
            .next_back()
            .is_none_or(|before| !before.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_start_at_words() {
        let phrases = Phrases::default();
        assert_eq!(phrases.signals("incorrect total"), ["neg:incorrect"]);
        assert_eq!(
            phrases.signals("casino, imperfect, unfixed, prefix items"),
            Vec::<String>::new()
        );
        assert_eq!(phrases.signals("It doesn’t work"), ["neg:doesn't work"]);
    }

    #[test]
    fn the_last_word_decides() {
        let phrases = Phrases::default();
        assert_eq!(
            phrases.verdict(["fix the wrong total", "still wrong", "perfect, thanks"]),
            Some(Tone::Positive)
        );
        assert_eq!(
            phrases.verdict(["a", "great. but not fixed"]),
            Some(Tone::Negative)
        );
        assert_eq!(phrases.verdict(["this is wrong, please look"]), None);
    }

    #[test]
    fn own_phrases_come_last() {
        let phrases = Phrases::with_own(&["Mist".into(), " ".into()], &["prima".into()]);
        assert_eq!(
            phrases.signals("so ein MIST, thanks, prima"),
            ["neg:mist", "pos:thanks", "pos:prima"]
        );
    }
}
