//! Finds where any of some hundred short words occurs in a text, whatever their case.
//!
//! An automaton takes one dependent step a byte, whatever the text. Here each word is
//! known by its rarest three bytes in a row, and a table tells for two bytes in the
//! middle which bytes before and behind make one of these: one look a pair of bytes,
//! none of which waits for the one before it. Only where three bytes fit is a word compared.

/// Classes of bytes: few enough that three of them fit in 15 bits, and one `u32` has a
/// bit for each.
const CLASSES: usize = 32;
/// All bytes that are rare in words: white space, quotes, brackets, other languages.
const OTHER: u8 = 31;

/// How common the classes are in prose and code, in thousandths, roughly.
const COMMON: [u32; CLASSES] = [
    60, 12, 26, 30, 95, 18, 16, 30, 55, 3, 8, 36, 22, 54, 56, 20, 2, 54, 56, 72, 24, 9, 12, 4, 14,
    2, 12, 14, 30, 20, 30, 180,
];

/// Pairs of letters that are more common than their letters are.
const COMMON_PAIRS: &[u8] =
    b"thheinerreonatndstestoenedorngouhaseetitisaritlealceicllehichlacasscoioutunceckur\
    chmepeporattroetraomlipltrinpachpr";

/// The class of a byte.
const fn class(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => byte - b'a',
        b'A'..=b'Z' => byte - b'A',
        b'_' => 26,
        b'-' => 27,
        b'.' | b':' => 28,
        b'/' | b'=' | b'$' | b'~' | b'?' | b'&' => 29,
        b'0'..=b'9' => 30,
        _ => OTHER,
    }
}

const CLASS_OF: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = class(byte as u8);
        byte += 1;
    }
    table
};

/// Which classes before and behind two middle ones make three that a word has.
#[derive(Clone, Copy, Debug, Default)]
struct Around {
    before: u32,
    behind: u32,
}

/// The words to look for.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    /// The letters of all words, one after the other.
    letters: Box<[u8]>,
    around: Box<[Around]>,
    /// For three classes, where the words that have them begin in `entries`; beyond its
    /// end when there are none.
    first: Box<[u16]>,
    /// Words by their three classes, in the order of these.
    entries: Box<[Entry]>,
}

/// A word and where its three bytes are in it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    triple: u16,
    offset: u8,
    length: u8,
    /// Where the word begins in `letters`.
    letters: u16,
    word: u16,
}

impl Words {
    /// Words in lower case; none of them empty. None when they are more, or longer, than an
    /// [`Entry`] can tell.
    pub(crate) fn new(words: &[&str]) -> Option<Self> {
        let mut letters = Vec::new();
        let mut entries = Vec::new();
        for (word, text) in words.iter().enumerate() {
            let length = u8::try_from(text.len()).ok().filter(|length| *length > 0)?;
            for (triple, offset) in triples(text.as_bytes()) {
                entries.push(Entry {
                    triple,
                    offset,
                    length,
                    letters: u16::try_from(letters.len()).ok()?,
                    word: u16::try_from(word).ok()?,
                });
            }
            letters.extend_from_slice(text.as_bytes());
        }
        entries.sort_unstable_by_key(|entry| (entry.triple, entry.word));
        let mut around = vec![Around::default(); CLASSES * CLASSES].into_boxed_slice();
        let mut first = vec![u16::MAX; CLASSES * CLASSES * CLASSES].into_boxed_slice();
        for (at, entry) in entries.iter().enumerate() {
            let [one, two, three] = parted(entry.triple);
            around[one * CLASSES + two].behind |= 1 << three;
            around[two * CLASSES + three].before |= 1 << one;
            let first = &mut first[usize::from(entry.triple)];
            *first = u16::try_from(at).ok()?.min(*first);
        }
        Some(Words {
            letters: letters.into(),
            around,
            first,
            entries: entries.into(),
        })
    }

    /// Calls `each` with the number, the start and the end of every word that occurs, in the
    /// order of where their three bytes are.
    pub(crate) fn each(&self, text: &[u8], mut each: impl FnMut(usize, usize, usize)) {
        const NOTHING: usize = OTHER as usize;
        let class = |byte: u8| usize::from(CLASS_OF[usize::from(byte)]);
        let (mut one, mut two) = (NOTHING, NOTHING);
        let pairs = text.chunks_exact(2);
        let last = pairs
            .remainder()
            .first()
            .map_or(NOTHING, |byte| class(*byte));
        for (index, pair) in pairs.enumerate() {
            let (three, four) = (class(pair[0]), class(pair[1]));
            self.look(text, 2 * index, [one, two, three, four], &mut each);
            (one, two) = (three, four);
        }
        // The last bytes, and beyond the end what is in no word.
        let end = text.len() & !1;
        self.look(text, end, [one, two, last, NOTHING], &mut each);
        self.look(text, end + 2, [last, NOTHING, NOTHING, NOTHING], &mut each);
    }

    /// Looks whether the four classes from two bytes before `at` on have three in a row that
    /// a word has.
    #[inline]
    fn look(
        &self,
        text: &[u8],
        at: usize,
        [one, two, three, four]: [usize; 4],
        each: &mut impl FnMut(usize, usize, usize),
    ) {
        let around = self.around[two * CLASSES + three];
        if (around.before >> one) & 1 != 0 {
            self.compare(text, at.checked_sub(2), [one, two, three], each);
        }
        if (around.behind >> four) & 1 != 0 {
            self.compare(text, at.checked_sub(1), [two, three, four], each);
        }
    }

    /// Compares the words that have these three classes, which begin at `at`. None when that is
    /// before the text.
    #[cold]
    fn compare(
        &self,
        text: &[u8],
        at: Option<usize>,
        triple: [usize; 3],
        each: &mut impl FnMut(usize, usize, usize),
    ) {
        let triple = joined(triple);
        let from = usize::from(self.first[usize::from(triple)]);
        let entries = self.entries.get(from..).unwrap_or_default();
        for entry in entries.iter().take_while(|entry| entry.triple == triple) {
            let Some(start) = at.and_then(|at| at.checked_sub(usize::from(entry.offset))) else {
                continue;
            };
            let end = start + usize::from(entry.length);
            let letters = usize::from(entry.letters);
            let word = &self.letters[letters..letters + usize::from(entry.length)];
            let occurs = text
                .get(start..end)
                .is_some_and(|piece| piece.eq_ignore_ascii_case(word));
            if occurs {
                each(usize::from(entry.word), start, end);
            }
        }
    }

    /// Whether any of the words occurs.
    pub(crate) fn any(&self, text: &[u8]) -> bool {
        let mut found = false;
        self.each(text, |_, _, _| found = true);
        found
    }
}

/// The rarest three classes of a word and where they are. What a short word lacks is
/// anything.
fn triples(word: &[u8]) -> impl Iterator<Item = (u16, u8)> {
    let classes: Vec<usize> = word.iter().map(|byte| usize::from(class(*byte))).collect();
    let rarest = (0_u8..)
        .zip(classes.windows(3))
        .min_by_key(|(_, three)| commonness(three));
    let found: Vec<(u16, u8)> = match (rarest, classes.as_slice()) {
        (Some((offset, three)), _) => vec![(joined([three[0], three[1], three[2]]), offset)],
        (None, [one, two]) => (0..CLASSES)
            .map(|three| (joined([*one, *two, three]), 0))
            .collect(),
        (None, [one, ..]) => (0..CLASSES * CLASSES)
            .map(|rest| (joined([*one, rest / CLASSES, rest % CLASSES]), 0))
            .collect(),
        (None, []) => Vec::new(),
    };
    found.into_iter()
}

/// How common three classes in a row are, as far as it is easily told.
fn commonness(three: &[usize]) -> u32 {
    const MORE: u32 = 4;
    let pairs = three.windows(2).filter(|pair| {
        let is_common = |common: &[u8]| {
            common
                .iter()
                .zip(*pair)
                .all(|(letter, class_)| usize::from(class(*letter)) == *class_)
        };
        COMMON_PAIRS.chunks_exact(2).any(is_common)
    });
    let alone: u32 = three.iter().map(|class| COMMON[*class]).product();
    pairs.fold(alone, |product, _| product * MORE)
}

/// Three classes as one number.
#[expect(
    clippy::cast_possible_truncation,
    reason = "three classes have 15 bits"
)]
fn joined([one, two, three]: [usize; 3]) -> u16 {
    ((one * CLASSES + two) * CLASSES + three) as u16
}

fn parted(triple: u16) -> [usize; 3] {
    let triple = usize::from(triple);
    [
        triple / (CLASSES * CLASSES),
        triple / CLASSES % CLASSES,
        triple % CLASSES,
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SOME: &[&str] = &[
        "a", "ab", "abc", "token", "key", "api-key", "q~", "://", "sk0", "aab", "ba",
    ];

    fn found(text: &str) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        Words::new(SOME)
            .unwrap()
            .each(text.as_bytes(), |word, start, _| found.push((word, start)));
        found.sort_unstable();
        found
    }

    fn expected(text: &str) -> Vec<(usize, usize)> {
        let lower = text.to_ascii_lowercase();
        let mut expected = Vec::new();
        for (index, word) in SOME.iter().enumerate() {
            for start in 0..lower.len() {
                if lower.as_bytes()[start..].starts_with(word.as_bytes()) {
                    expected.push((index, start));
                }
            }
        }
        expected
    }

    proptest! {
        #[test]
        fn every_word_is_found_wherever_it_is(text in "[abAksK0q~:/ token-pié]{0,24}") {
            prop_assert_eq!(found(&text), expected(&text));
        }

        #[test]
        fn words_are_found_in_other_text(before in any::<String>(), after in any::<String>()) {
            let text = format!("{before}ToKeN{after}Api-Key");
            prop_assert_eq!(found(&text), expected(&text));
        }
    }
}
