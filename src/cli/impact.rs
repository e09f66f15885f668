//! Showing how sessions went before and after adoptions.

use std::fmt::Write as _;

use skillopt_staging::one_line;

use crate::impact::Impact;
use crate::impact::comparison::{Metric, Scale, Verdict};

/// What is said below the comparisons, for who reads no help.
pub(super) const CAVEAT: &str = "Before and after is no trial: the model, the work and the person may \
have changed too. Intervals are 95 %; the share that went well decides, the other lines inform.";

/// A regression in one sentence.
pub(super) fn regression(impact: &Impact) -> String {
    let deciding = impact.comparison.metrics.first();
    let shares = deciding
        .and_then(|metric| metric.before.zip(metric.after))
        .map(|(before, after)| {
            format!(
                ": {} went well before, {} since",
                percent(before),
                percent(after)
            )
        })
        .unwrap_or_default();
    format!(
        "sessions go worse since {} changed {}{shares}",
        impact.adoption,
        impact.path.display()
    )
}

/// One adoption's comparison, as lines.
pub(super) fn text(impact: &Impact) -> String {
    let comparison = &impact.comparison;
    let mut text = format!(
        "{} · {} · {}: {}\n",
        impact.adoption,
        impact.at.strftime("%Y-%m-%d"),
        one_line(&impact.path.display().to_string()),
        impact.verdict().words()
    );
    let whose = if impact.created {
        "that could use it (it was new)"
    } else {
        "that used it"
    };
    if comparison.sessions_before + comparison.sessions_after == 0 {
        let _ = writeln!(text, "  no session {whose}, before or after, is known");
    } else {
        let _ = writeln!(
            text,
            "  sessions {whose}: {} before, {} after",
            comparison.sessions_before, comparison.sessions_after
        );
        for metric in &comparison.metrics {
            let _ = writeln!(text, "  {}", line(metric));
        }
    }
    if !impact.in_force {
        text.push_str("  it was reverted\n");
    } else if impact.verdict() == Verdict::Worse {
        let _ = writeln!(text, "  undo it with: {}", impact.undo());
    }
    text
}

fn line(metric: &Metric) -> String {
    let label = match metric.name.as_str() {
        "went_well" => "went well",
        "corrected" => "corrected by you",
        "failed_check" => "a check failed",
        "tokens" => "tokens",
        _ => "duration",
    };
    let sessions_of = match metric.scale {
        Scale::Share => "of",
        Scale::Tokens | Scale::Seconds => "in",
    };
    let side = |value: Option<f64>, sessions: usize| match value {
        Some(value) => format!("{} {sessions_of} {sessions}", number(metric.scale, value)),
        None => "none".to_owned(),
    };
    let mut line = format!(
        "{label:<17} {:<14} → {:<14}",
        side(metric.before, metric.sessions_before),
        side(metric.after, metric.sessions_after)
    );
    if let Some(change) = metric.change {
        let unit = match metric.scale {
            Scale::Share => " points",
            Scale::Tokens | Scale::Seconds => "",
        };
        let _ = write!(line, " {}{unit}", changed(metric.scale, change));
    }
    if let Some(interval) = metric.interval {
        let _ = write!(
            line,
            " [{}, {}]",
            changed(metric.scale, interval.low),
            changed(metric.scale, interval.high)
        );
    }
    line.trim_end().to_owned()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn number(scale: Scale, value: f64) -> String {
    match scale {
        Scale::Share => percent(value),
        Scale::Tokens if value >= 1e6 => format!("{:.1}M", value / 1e6),
        Scale::Tokens if value >= 1e3 => format!("{:.1}k", value / 1e3),
        Scale::Tokens => format!("{value:.0}"),
        Scale::Seconds if value >= 3600.0 => format!("{:.1} h", value / 3600.0),
        Scale::Seconds if value >= 60.0 => format!("{:.1} min", value / 60.0),
        Scale::Seconds => format!("{value:.0} s"),
    }
}

/// Shares change by points, the others by a factor.
fn changed(scale: Scale, change: f64) -> String {
    match scale {
        Scale::Share => format!("{:+.0}", change * 100.0),
        Scale::Tokens | Scale::Seconds => format!("×{change:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use skillopt_staging::Approver;

    use super::*;
    use crate::impact::comparison::Comparison;
    use crate::impact::interval::Count;
    use crate::impact::measures::Measures;

    fn impact(before: &Measures, after: &Measures) -> Impact {
        Impact {
            adoption: "a3".to_owned(),
            at: "2026-10-12T08:00:00Z".parse().unwrap(),
            by: Approver::Automatic,
            in_force: true,
            name: "triage".to_owned(),
            path: "/home/dev/.claude/skills/triage/SKILL.md".into(),
            created: false,
            comparison: Comparison::of(before, after),
        }
    }

    fn side(well: usize, of: usize, scale: f64) -> Measures {
        let count = |yes| Count { yes, of };
        Measures {
            sessions: of + 2,
            success: count(well),
            corrected: count(of - well),
            failed_check: Count { yes: 1, of: 4 },
            tokens: (1..=of).map(|n| scale * 9_000.0 * n as f64).collect(),
            seconds: (1..=of).map(|n| scale * 100.0 * n as f64).collect(),
        }
    }

    #[test]
    fn a_comparison_is_a_few_lines() {
        insta::assert_snapshot!(text(&impact(&side(15, 18, 1.0), &side(5, 16, 1.4))), @r"
        a3 · 2026-10-12 · /home/dev/.claude/skills/triage/SKILL.md: worse
          sessions that used it: 20 before, 18 after
          went well         83 % of 18     → 31 % of 16     -52 points [-72, -19]
          corrected by you  17 % of 18     → 69 % of 16     +52 points [+19, +72]
          a check failed    25 % of 4      → 25 % of 4      +0 points [-49, +49]
          tokens            68.0k in 18    → 85.7k in 16    ×1.26 [×0.72, ×2.20]
          duration          12.6 min in 18 → 15.9 min in 16 ×1.26 [×0.72, ×2.20]
          undo it with: skillopt-sleep revert a3
        ");
    }

    #[test]
    fn what_was_not_measured_is_said_to_be_nothing() {
        insta::assert_snapshot!(text(&impact(&Measures::default(), &side(2, 3, 1.0))), @r"
        a3 · 2026-10-12 · /home/dev/.claude/skills/triage/SKILL.md: too few to tell
          sessions that used it: 0 before, 5 after
          went well         none           → 67 % of 3
          corrected by you  none           → 33 % of 3
          a check failed    none           → 25 % of 4
          tokens            none           → 16.4k in 3
          duration          none           → 3.0 min in 3
        ");
    }

    #[test]
    fn without_sessions_there_is_nothing_to_compare() {
        let nothing = Measures::default();
        insta::assert_snapshot!(text(&impact(&nothing, &nothing)), @r"
        a3 · 2026-10-12 · /home/dev/.claude/skills/triage/SKILL.md: too few to tell
          no session that used it, before or after, is known
        ");
    }

    #[test]
    fn a_regression_is_one_sentence() {
        assert_eq!(
            regression(&impact(&side(15, 18, 1.0), &side(5, 16, 1.4))),
            "sessions go worse since a3 changed /home/dev/.claude/skills/triage/SKILL.md: 83 % went \
             well before, 31 % since"
        );
    }
}
