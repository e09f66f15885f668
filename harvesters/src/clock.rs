//! Times as logs write them: RFC 3339 with any number of digits, epoch seconds or
//! milliseconds, as number or text (session-logs.md, rule 10).

use jiff::Timestamp;

use crate::node::Node;

/// 2022-01-01: no coding agent logged anything before.
const EARLIEST_SECOND: i64 = 1_640_995_200;
/// Numbers above this are milliseconds (in seconds it would be the year 5138).
const MILLISECONDS_ABOVE: i64 = 100_000_000_000;

/// The time that a field holds, unless it is no time or cannot be true.
pub(crate) fn time(node: Node<'_>) -> Option<Timestamp> {
    node.str()
        .and_then(parse)
        .or_else(|| node.int().and_then(epoch))
        .filter(|time| plausible(*time))
}

/// An RFC 3339 text; a text without offset is taken as UTC.
fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse::<Timestamp>().ok().or_else(|| {
        let civil = text.parse::<jiff::civil::DateTime>().ok()?;
        jiff::tz::TimeZone::UTC.to_timestamp(civil).ok()
    })
}

/// Seconds or milliseconds since 1970.
fn epoch(number: i64) -> Option<Timestamp> {
    if number > MILLISECONDS_ABOVE {
        Timestamp::from_millisecond(number).ok()
    } else {
        Timestamp::from_second(number).ok()
    }
}

/// Clocks jump and fields are zeroed: a time before 2022 or after tomorrow is none.
fn plausible(time: Timestamp) -> bool {
    let tomorrow = Timestamp::now().as_second().saturating_add(86_400);
    (EARLIEST_SECOND..=tomorrow).contains(&time.as_second())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tape::Json;

    fn read(value: serde_json::Value) -> Option<String> {
        time(Json::from(&value).node()).map(|time| time.to_string())
    }

    #[test]
    fn reads_every_way_of_writing_a_time() {
        let expected = Some("2025-10-05T08:39:15.1Z".to_owned());
        assert_eq!(read(json!("2025-10-05T08:39:15.1Z")), expected);
        assert_eq!(read(json!("2025-10-05T10:39:15.100000+02:00")), expected);
        assert_eq!(read(json!("2025-10-05T08:39:15.1")), expected);
        assert_eq!(read(json!(1_759_653_555_100_i64)), expected);
        assert_eq!(read(json!("1759653555100")), expected);
    }

    #[test]
    fn drops_times_that_cannot_be() {
        for value in [
            json!(0),
            json!("1970-01-01T00:00:00Z"),
            json!("9999-01-01T00:00:00Z"),
            json!("soon"),
            json!([1]),
        ] {
            assert_eq!(read(value), None);
        }
    }
}
