//! Values out of a flat configuration, with errors that say where a bad one came from.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::config::flatten::{COMMON_ENV, by_flat};
use crate::config::layer::Loaded;
use crate::config::modes::Mode;
use crate::config::yaml::join;
use crate::config::{ConfigError, Origin};

/// Takes typed values by their flat names. What it takes is kept, with defaults filled in, so that
/// the run's record shows what really counts.
pub(super) struct Reader<'a> {
    loaded: &'a Loaded,
    settled: Map<String, Value>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(loaded: &'a Loaded) -> Reader<'a> {
        Reader {
            loaded,
            settled: loaded.flat.as_object().cloned().unwrap_or_default(),
        }
    }

    /// The flat configuration with what was settled.
    pub(super) fn finish(self) -> Map<String, Value> {
        self.settled
    }

    fn raw(&self, name: &str) -> Option<&'a Value> {
        self.loaded.flat.get(name).filter(|value| !value.is_null())
    }

    /// The key as the user wrote it, and where.
    fn place(&self, name: &str) -> (String, Origin) {
        let within = by_flat(name).map(|setting| setting.place()).or_else(|| {
            COMMON_ENV
                .iter()
                .any(|(common, _)| *common == name)
                .then(|| join("env", name))
        });
        if let Some(place) = within {
            let origin = self.loaded.origins.of(&place);
            if origin != Origin::Default {
                return (place, origin);
            }
        }
        (name.to_owned(), self.loaded.origins.of(name))
    }

    pub(super) fn wrong(&self, name: &str, reason: impl Into<String>) -> ConfigError {
        let (key, origin) = self.place(name);
        ConfigError::Value {
            origin,
            key,
            reason: reason.into(),
        }
    }

    fn settle(&mut self, name: &str, value: impl Into<Value>) {
        self.settled.insert(name.to_owned(), value.into());
    }

    fn missing(name: &str) -> ConfigError {
        ConfigError::Missing {
            key: by_flat(name).map_or_else(|| name.to_owned(), |setting| setting.place()),
            reason: "set it, or inherit the shipped values with `_base_: default`".to_owned(),
        }
    }

    /// Text; blank when absent.
    pub(super) fn text(&mut self, name: &str, default: &str) -> Result<String, ConfigError> {
        let text = match self.raw(name) {
            None => default.to_owned(),
            Some(Value::String(text)) => text.clone(),
            // A model may be called 12345.
            Some(Value::Number(number)) => number.to_string(),
            Some(other) => return Err(self.wrong(name, format!("is {other}; it must be a text"))),
        };
        self.settle(name, text.as_str());
        Ok(text)
    }

    /// A path; none when absent or blank.
    pub(super) fn path(&mut self, name: &str) -> Result<Option<PathBuf>, ConfigError> {
        let text = self.text(name, "")?;
        Ok((!text.trim().is_empty()).then(|| PathBuf::from(text)))
    }

    /// A whole number that must be there.
    pub(super) fn required(&mut self, name: &str, least: i64) -> Result<i64, ConfigError> {
        self.optional(name, least)?
            .ok_or_else(|| Self::missing(name))
    }

    /// A whole number.
    pub(super) fn integer(
        &mut self,
        name: &str,
        least: i64,
        default: i64,
    ) -> Result<i64, ConfigError> {
        let value = self.optional(name, least)?.unwrap_or(default);
        self.settle(name, value);
        Ok(value)
    }

    /// A whole number that need not be there.
    pub(super) fn optional(&mut self, name: &str, least: i64) -> Result<Option<i64>, ConfigError> {
        let number = match self.raw(name) {
            None => return Ok(None),
            Some(Value::Number(number)) => number
                .as_i64()
                .or_else(|| whole(number.as_f64().unwrap_or(f64::NAN))),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(_) => None,
        };
        let shown = self.raw(name).map(Value::to_string).unwrap_or_default();
        let number = number
            .ok_or_else(|| self.wrong(name, format!("is {shown}; it must be a whole number")))?;
        if number < least {
            return Err(self.wrong(name, format!("is {number}; it must be at least {least}")));
        }
        self.settle(name, number);
        Ok(Some(number))
    }

    /// A count; none when 0 or absent, which stands for "all".
    pub(super) fn count(&mut self, name: &str) -> Result<Option<usize>, ConfigError> {
        let number = self.optional(name, i64::MIN)?.unwrap_or(0);
        Ok(usize::try_from(number).ok().filter(|count| *count > 0))
    }

    /// A number within a range.
    pub(super) fn number(
        &mut self,
        name: &str,
        range: std::ops::RangeInclusive<f64>,
        default: f64,
    ) -> Result<f64, ConfigError> {
        let number = self.optional_number(name, range)?.unwrap_or(default);
        self.settle(name, number);
        Ok(number)
    }

    /// A number within a range that need not be there.
    pub(super) fn optional_number(
        &mut self,
        name: &str,
        range: std::ops::RangeInclusive<f64>,
    ) -> Result<Option<f64>, ConfigError> {
        let number = match self.raw(name) {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_f64(),
            // `1e-1` is text in YAML 1.1 and a number to everybody who writes it.
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(_) => None,
        };
        let shown = self.raw(name).map(Value::to_string).unwrap_or_default();
        let number =
            number.ok_or_else(|| self.wrong(name, format!("is {shown}; it must be a number")))?;
        if !range.contains(&number) {
            return Err(self.wrong(
                name,
                format!(
                    "is {number}; it must be from {} to {}",
                    range.start(),
                    range.end()
                ),
            ));
        }
        self.settle(name, number);
        Ok(Some(number))
    }

    /// True or false. Other values are errors rather than one of the two (W-C6).
    pub(super) fn switch(&mut self, name: &str, default: bool) -> Result<bool, ConfigError> {
        let switch = match self.raw(name) {
            None => Some(default),
            Some(Value::Bool(switch)) => Some(*switch),
            Some(Value::String(text)) => match text.trim().to_lowercase().as_str() {
                "true" | "yes" | "on" => Some(true),
                "false" | "no" | "off" => Some(false),
                _ => None,
            },
            Some(_) => None,
        };
        let shown = self.raw(name).map(Value::to_string).unwrap_or_default();
        let switch = switch
            .ok_or_else(|| self.wrong(name, format!("is {shown}; it must be true or false")))?;
        self.settle(name, switch);
        Ok(switch)
    }

    /// True or false, and it must be there.
    pub(super) fn required_switch(&mut self, name: &str) -> Result<bool, ConfigError> {
        match self.raw(name) {
            Some(_) => self.switch(name, false),
            None => Err(Self::missing(name)),
        }
    }

    /// One of a few names.
    pub(super) fn mode<M: Mode + std::fmt::Display>(
        &mut self,
        name: &str,
        default: M,
    ) -> Result<M, ConfigError> {
        let mode = match self.raw(name) {
            None => M::BLANK.unwrap_or(default),
            Some(Value::String(text)) => M::parse(text).map_err(|why| self.wrong(name, why))?,
            Some(other) => return Err(self.wrong(name, format!("is {other}; it must be a name"))),
        };
        self.settle(name, mode.to_string());
        Ok(mode)
    }

    /// A list of words; none when absent.
    pub(super) fn words(&mut self, name: &str) -> Result<Option<Vec<String>>, ConfigError> {
        let wrong = |reader: &Self| reader.wrong(name, "must be a list of words");
        match self.raw(name) {
            None => Ok(None),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>()
                .map(Some)
                .ok_or_else(|| wrong(self)),
            Some(Value::String(text)) => {
                let words = text
                    .split(',')
                    .map(str::trim)
                    .filter(|word| !word.is_empty());
                Ok(Some(words.map(str::to_owned).collect()))
            }
            Some(_) => Err(wrong(self)),
        }
    }
}

/// A number without a fraction, as a whole one.
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}
