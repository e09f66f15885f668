//! Spans of time and points in time as people write them: `72h`, `3d`, `45m`, `2026-11-01`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, SpanRelativeTo, Timestamp, Unit};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A span of time; a day has 24 hours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeSpan(Duration);

impl TimeSpan {
    /// So many hours.
    #[must_use]
    pub const fn from_hours(hours: u64) -> TimeSpan {
        TimeSpan(Duration::from_secs(hours * 3600))
    }

    /// The span.
    #[must_use]
    pub fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for TimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeSpan, String> {
        let reason = || format!("`{text}` is not a span of time such as 72h, 3d or 45m");
        let span: jiff::Span = text.trim().parse().map_err(|_| reason())?;
        if span.get_years() != 0 || span.get_months() != 0 {
            return Err(format!(
                "`{text}` has months or years, whose length varies; use days"
            ));
        }
        span.to_duration(SpanRelativeTo::days_are_24_hours())
            .ok()
            .and_then(|duration| Duration::try_from(duration).ok())
            .map(TimeSpan)
            .ok_or_else(reason)
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (count, unit) = if seconds > 0 && seconds.is_multiple_of(86_400) && seconds > 3 * 86_400
        {
            (seconds / 86_400, "d")
        } else if seconds > 0 && seconds.is_multiple_of(3600) {
            (seconds / 3600, "h")
        } else if seconds > 0 && seconds.is_multiple_of(60) {
            (seconds / 60, "m")
        } else {
            (seconds, "s")
        };
        write!(f, "{count}{unit}")
    }
}

impl<'de> Deserialize<'de> for TimeSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TimeSpan, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl Serialize for TimeSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The moment that `--since` means: a span before `now`, the start of a day in `zone`, or an exact
/// time such as `2026-11-01T08:30:00Z`.
///
/// # Errors
/// A sentence that quotes the text and says what it could be.
pub fn since(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, String> {
    let text = text.trim();
    let reason = || {
        format!(
            "`{text}` is neither a span of time such as 72h or 3d nor a date such as 2026-11-01"
        )
    };
    if let Ok(exact) = text.parse::<Timestamp>() {
        return Ok(exact);
    }
    if let Ok(date) = text.parse::<jiff::civil::Date>() {
        return date
            .to_zoned_datetime(zone.clone())
            .map(|start| start.timestamp())
            .map_err(|_| reason());
    }
    let span: TimeSpan = text.parse().map_err(|_| reason())?;
    let span = SignedDuration::try_from(span.duration()).map_err(|_| reason())?;
    now.checked_sub(span)
        .map(|moment| moment.round(Unit::Second).unwrap_or(moment))
        .map_err(|_| reason())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them_and_written_back() {
        for (text, seconds, written) in [
            ("72h", 259_200, "72h"),
            ("3d", 259_200, "72h"),
            ("14 days", 1_209_600, "14d"),
            ("45m", 2700, "45m"),
            ("1h 30m", 5400, "90m"),
            ("90s", 90, "90s"),
            ("2w", 1_209_600, "14d"),
            ("0s", 0, "0s"),
        ] {
            let span: TimeSpan = text.parse().unwrap();
            assert_eq!(span.duration().as_secs(), seconds, "{text}");
            assert_eq!(span.to_string(), written);
            assert_eq!(written.parse::<TimeSpan>(), Ok(span));
        }
        for text in ["", "soon", "72", "-3h", "1mo", "3 parsecs"] {
            assert!(text.parse::<TimeSpan>().is_err(), "{text}");
        }
    }

    #[test]
    fn since_is_a_span_a_day_or_a_moment() {
        let now: Timestamp = "2026-11-29T12:00:00Z".parse().unwrap();
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let at = |text| since(text, now, &zone).map(|moment| moment.to_string());
        assert_eq!(at("36h").unwrap(), "2026-11-28T00:00:00Z");
        assert_eq!(at("2026-11-01").unwrap(), "2026-10-31T22:00:00Z");
        assert_eq!(at("2026-11-01T08:30:00Z").unwrap(), "2026-11-01T08:30:00Z");
        assert!(at("yesterday").unwrap_err().contains("`yesterday`"));
    }
}
