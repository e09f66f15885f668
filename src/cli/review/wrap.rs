//! Breaking styled lines to a width, so that scrolling can count them.

use ratatui::text::{Line, Span};

/// The lines, none wider than `width` cells; what goes on is indented by `indent` blanks. Breaks at
/// a blank, if that is not too far back.
pub(super) fn wrap(lines: Vec<Line<'static>>, width: usize, indent: usize) -> Vec<Line<'static>> {
    let width = width.max(indent + 8);
    lines
        .into_iter()
        .flat_map(|line| wrap_line(line, width, indent))
        .collect()
}

fn wrap_line(line: Line<'static>, width: usize, indent: usize) -> Vec<Line<'static>> {
    if line.width() <= width {
        return vec![line];
    }
    let style = line.style;
    let mut cells: Vec<(char, ratatui::style::Style)> = line
        .spans
        .iter()
        .flat_map(|span| span.content.chars().map(|c| (c, span.style)))
        .collect();
    let mut rows = Vec::new();
    let mut room = width;
    while !cells.is_empty() {
        let mut used = 0;
        let mut end = 0;
        for (c, _) in &cells {
            let cell = Span::raw(c.to_string()).width();
            if used + cell > room {
                break;
            }
            used += cell;
            end += 1;
        }
        if end < cells.len() {
            let blank = cells[..end]
                .iter()
                .rposition(|(c, _)| *c == ' ')
                .filter(|at| *at > end / 3);
            end = blank.map_or(end.max(1), |at| at + 1);
        }
        let rest = cells.split_off(end);
        let mut spans: Vec<Span<'static>> = Vec::new();
        if !rows.is_empty() && indent > 0 {
            spans.push(Span::raw(" ".repeat(indent)));
        }
        for (c, style) in cells {
            match spans.last_mut() {
                Some(span) if span.style == style => span.content.to_mut().push(c),
                _ => spans.push(Span::styled(c.to_string(), style)),
            }
        }
        rows.push(Line::from(spans).style(style));
        room = width - indent;
        cells = rest;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_break_at_blanks_and_wide_characters_count_twice() {
        let shown = |text: &'static str, width| -> Vec<String> {
            wrap(vec![Line::raw(text)], width, 2)
                .iter()
                .map(ToString::to_string)
                .collect()
        };
        assert_eq!(
            shown("one two three four", 12),
            ["one two ", "  three four"]
        );
        assert_eq!(shown("aaaaaaaaaaaaaaaa", 10), ["aaaaaaaaaa", "  aaaaaa"]);
        assert_eq!(
            shown("日本語日本語日本語", 10),
            ["日本語日本", "  語日本語"]
        );
    }
}
