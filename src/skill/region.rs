//! Protected regions: the parts of a skill document that step edits may not touch.
//!
//! Two passages of a skill belong to somebody else than the step edits: the guidance that the
//! slow update writes at the end of an epoch, and the appendix of execution notes. Each is fenced
//! by a pair of HTML comments. Everything that changes a document asks this module where the
//! regions are; everything that owns a region rewrites it through [`remove`] and [`write_slow`]
//! (engine 12.1, 15 and 17).

use std::ops::Range;

use super::text::{collapse_newlines, strip, strip_end};

/// What a region is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegionKind {
    /// The guidance written by the slow update.
    SlowUpdate,
    /// The execution notes of skill-aware reflection.
    Appendix,
}

impl RegionKind {
    /// Both kinds.
    pub const ALL: [RegionKind; 2] = [RegionKind::SlowUpdate, RegionKind::Appendix];

    /// The comment that opens a region of this kind.
    #[must_use]
    pub fn start(self) -> &'static str {
        match self {
            RegionKind::SlowUpdate => "<!-- SLOW_UPDATE_START -->",
            RegionKind::Appendix => "<!-- APPENDIX_START -->",
        }
    }

    /// The comment that closes a region of this kind.
    #[must_use]
    pub fn end(self) -> &'static str {
        match self {
            RegionKind::SlowUpdate => "<!-- SLOW_UPDATE_END -->",
            RegionKind::Appendix => "<!-- APPENDIX_END -->",
        }
    }
}

/// One region of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Whose it is.
    pub kind: RegionKind,
    /// Its bytes, both markers included.
    pub span: Range<usize>,
}

/// Every region of the document, of both kinds, ordered by position.
///
/// A region runs from a start marker to the next end marker of its kind. A start marker without
/// an end, or an end without a start, is ordinary text.
#[must_use]
pub fn regions(document: &str) -> Vec<Region> {
    let mut found = Vec::new();
    for kind in RegionKind::ALL {
        let mut from = 0;
        while let Some(span) = next_region(document, kind, from) {
            from = span.end;
            found.push(Region { kind, span });
        }
    }
    found.sort_by_key(|region| (region.span.start, region.span.end));
    found
}

/// Whether the document has at least one complete region of this kind.
#[must_use]
pub fn has(document: &str, kind: RegionKind) -> bool {
    next_region(document, kind, 0).is_some()
}

/// The text between the markers of the first region of this kind, without blanks around it;
/// `None` when there is no region.
#[must_use]
pub fn inner(document: &str, kind: RegionKind) -> Option<&str> {
    let span = next_region(document, kind, 0)?;
    let text = &document[span.start + kind.start().len()..span.end - kind.end().len()];
    Some(strip(text))
}

/// The position of the first start marker of either kind; new text goes before it.
#[must_use]
pub fn first_start(document: &str) -> Option<usize> {
    RegionKind::ALL
        .iter()
        .filter_map(|kind| document.find(kind.start()))
        .min()
}

/// The text with every marker of either kind deleted, also those that only appear once another
/// one inside them is gone.
#[must_use]
pub fn without_markers(text: &str) -> String {
    let mut text = text.to_owned();
    loop {
        let before = text.len();
        for kind in RegionKind::ALL {
            for marker in [kind.start(), kind.end()] {
                if text.contains(marker) {
                    text = text.replace(marker, "");
                }
            }
        }
        if text.len() == before {
            return text;
        }
    }
}

/// The document without its regions of this kind: regions with all they hold, then stray markers;
/// runs of three or more line feeds become two, and the end is stripped.
///
/// In a slow-update region a start marker reaches to the next end marker; in an appendix the
/// innermost pair goes first, so that a nested appendix goes as a whole (engine 15 and 17).
#[must_use]
pub fn remove(document: &str, kind: RegionKind) -> String {
    let mut kept = match kind {
        RegionKind::SlowUpdate => cut_forward(document, kind),
        RegionKind::Appendix => cut_innermost(document, kind),
    };
    loop {
        let before = kept.len();
        kept = kept.replace(kind.start(), "").replace(kind.end(), "");
        if kept.len() == before {
            break;
        }
    }
    strip_end(&collapse_newlines(&kept)).to_owned()
}

/// The document with `guidance` as its only slow-update region, at the end.
///
/// Blanks around the guidance and markers inside it are dropped, so that writing the same guidance
/// twice changes nothing and the document never has two regions (engine 15).
#[must_use]
pub fn write_slow(document: &str, guidance: &str) -> String {
    let kind = RegionKind::SlowUpdate;
    let guidance = without_markers(guidance);
    format!(
        "{}\n\n{}\n{}\n{}\n",
        remove(document, kind),
        kind.start(),
        strip(&guidance),
        kind.end()
    )
}

/// The document with an empty slow-update region at its end, or unchanged when it has one.
#[must_use]
pub fn ensure_slow(document: &str) -> String {
    let kind = RegionKind::SlowUpdate;
    if has_both_markers(document, kind) {
        return document.to_owned();
    }
    format!(
        "{}\n\n{}\n{}\n",
        strip_end(document),
        kind.start(),
        kind.end()
    )
}

/// Whether both markers occur, in whatever order.
pub(super) fn has_both_markers(document: &str, kind: RegionKind) -> bool {
    document.contains(kind.start()) && document.contains(kind.end())
}

fn next_region(document: &str, kind: RegionKind, from: usize) -> Option<Range<usize>> {
    let start = from + document[from..].find(kind.start())?;
    let inner = start + kind.start().len();
    let end = inner + document[inner..].find(kind.end())? + kind.end().len();
    Some(start..end)
}

fn cut_forward(document: &str, kind: RegionKind) -> String {
    let mut kept = String::with_capacity(document.len());
    let mut from = 0;
    while let Some(span) = next_region(document, kind, from) {
        kept.push_str(&document[from..span.start]);
        from = span.end;
    }
    kept.push_str(&document[from..]);
    kept
}

/// Cuts pairs from the inside out, in one pass: an end marker closes the latest open start.
fn cut_innermost(document: &str, kind: RegionKind) -> String {
    let of = |marker: &'static str| document.match_indices(marker);
    let mut markers: Vec<(usize, &str)> = of(kind.start()).chain(of(kind.end())).collect();
    markers.sort_unstable();
    let mut kept = String::with_capacity(document.len());
    let mut open: Vec<usize> = Vec::new();
    let mut from = 0;
    for (at, marker) in markers {
        kept.push_str(&document[from..at]);
        from = at + marker.len();
        if marker == kind.start() {
            open.push(kept.len());
            kept.push_str(marker);
        } else {
            match open.pop() {
                Some(start) => kept.truncate(start),
                None => kept.push_str(marker),
            }
        }
    }
    kept.push_str(&document[from..]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLOW: RegionKind = RegionKind::SlowUpdate;

    #[test]
    fn every_region_is_found() {
        let (s, e) = (SLOW.start(), SLOW.end());
        let document = format!("a {s} b {e} c {s} d {e} {e}");
        let texts: Vec<_> = regions(&document)
            .into_iter()
            .map(|region| document[region.span].to_owned())
            .collect();
        assert_eq!(texts, [format!("{s} b {e}"), format!("{s} d {e}")]);
    }

    #[test]
    fn markers_hidden_in_markers_go_too() {
        assert_eq!(
            without_markers("<!-- SLOW_<!-- SLOW_UPDATE_END -->UPDATE_START -->x"),
            "x"
        );
    }

    #[test]
    fn a_nested_appendix_goes_as_a_whole() {
        let (s, e) = (RegionKind::Appendix.start(), RegionKind::Appendix.end());
        assert_eq!(
            remove(&format!("a{s}b{s}c{e}d{e}f"), RegionKind::Appendix),
            "af"
        );
    }

    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just(SLOW.start().to_owned()),
            Just(SLOW.end().to_owned()),
            Just(RegionKind::Appendix.start().to_owned()),
            Just(RegionKind::Appendix.end().to_owned()),
            "[a-z \n]{0,8}",
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn writing_guidance_twice_is_writing_it_once(document in pieces(), guidance in pieces()) {
            let once = write_slow(&document, &guidance);
            prop_assert_eq!(&write_slow(&once, &guidance), &once);
            prop_assert_eq!(once.matches(SLOW.start()).count(), 1);
            prop_assert_eq!(once.matches(SLOW.end()).count(), 1);
        }

        #[test]
        fn removal_leaves_no_marker(document in pieces()) {
            for kind in RegionKind::ALL {
                let rest = remove(&document, kind);
                prop_assert!(!rest.contains(kind.start()) && !rest.contains(kind.end()));
            }
        }
    }
}
