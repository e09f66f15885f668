//! What `train` and `eval` take besides their own options: values on top of the configuration, in
//! our spelling and in SkillOpt's.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgMatches, Command, FromArgMatches};
use serde_json::Value;

use crate::config::flags::{Flag, all};

/// The part of the command line that becomes a configuration.
#[derive(Debug, Clone, clap::Args)]
pub struct ConfigArgs {
    /// Where the run is written; also `--out_root`.
    #[arg(long, alias = "out_root", value_name = "DIR")]
    pub out_root: Option<PathBuf>,
    /// Set one configuration key, such as `train.batch_size=20`; may be given often.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The same in SkillOpt's spelling: several at once.
    #[arg(long = "cfg-options", value_name = "KEY=VALUE", num_args = 1..)]
    cfg_options: Vec<String>,
    #[command(flatten)]
    flags: SkillOptFlags,
}

impl ConfigArgs {
    /// `--cfg-options`, then `--set`.
    #[must_use]
    pub fn overrides(&self) -> Vec<String> {
        self.cfg_options.iter().chain(&self.set).cloned().collect()
    }

    /// SkillOpt's flags that were given.
    #[must_use]
    pub fn flags(&self) -> &[(Flag, Value)] {
        &self.flags.given
    }
}

/// `--<flat name> value` for every setting. They are understood and not shown.
#[derive(Debug, Clone, Default)]
struct SkillOptFlags {
    given: Vec<(Flag, Value)>,
}

impl clap::Args for SkillOptFlags {
    fn augment_args(command: Command) -> Command {
        command.args(all().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(flag: Flag) -> Arg {
    let parser = if flag.choices.is_empty() {
        ValueParser::from(move |text: &str| flag.value(text).map(|_| text.to_owned()))
    } else {
        ValueParser::from(PossibleValuesParser::new(flag.choices))
    };
    Arg::new(flag.flat)
        .long(flag.name)
        .value_parser(parser)
        .allow_negative_numbers(true)
        .hide(true)
}

impl FromArgMatches for SkillOptFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for flag in all() {
            let Some(text) = matches.get_one::<String>(flag.flat) else {
                continue;
            };
            let value = flag
                .value(text)
                .map_err(|why| clap::Error::raw(clap::error::ErrorKind::ValueValidation, why))?;
            self.given.push((flag, value));
        }
        Ok(())
    }
}
