//! Where configuration and state are on this machine.
//!
//! Everything can be moved by environment variables, so that tests and trials never touch real
//! data. Nothing is created here.

use std::path::{Path, PathBuf};

use super::ConfigError;
use crate::model::stack::Environment;

/// The name of our folder within the platform's.
const FOLDER: &str = "skillopt-sleep";

/// The places of one installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The night's configuration; the file need not exist.
    pub config: PathBuf,
    /// The folder of all state; it need not exist.
    pub state: PathBuf,
}

impl Paths {
    /// Finds the places: `explicit_config` (`--config`), else `SKILLOPT_SLEEP_CONFIG`, else the
    /// platform's configuration folder; `SKILLOPT_SLEEP_HOME`, else the platform's state folder.
    /// On Linux these are the XDG folders.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`] when nothing says where a place is.
    pub fn find(
        explicit_config: Option<&Path>,
        env: Environment<'_>,
    ) -> Result<Paths, ConfigError> {
        let given = |variable: &str| {
            env(variable)
                .filter(|text| !text.is_empty())
                .map(PathBuf::from)
        };
        let config = explicit_config
            .map(Path::to_owned)
            .or_else(|| given("SKILLOPT_SLEEP_CONFIG"))
            .or_else(|| Some(platform_config(env)?.join(FOLDER).join("config.yaml")))
            .ok_or(ConfigError::NoHome {
                what: "the configuration",
                variable: "SKILLOPT_SLEEP_CONFIG",
            })?;
        let state = given("SKILLOPT_SLEEP_HOME")
            .or_else(|| Some(platform_state(env)?.join(FOLDER)))
            .ok_or(ConfigError::NoHome {
                what: "the state",
                variable: "SKILLOPT_SLEEP_HOME",
            })?;
        Ok(Paths { config, state })
    }

    /// The SQLite database of nights, sessions and tasks.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.state.join("skillopt-sleep.db")
    }

    /// Proposals that wait for review.
    #[must_use]
    pub fn staging(&self) -> PathBuf {
        self.state.join("staging")
    }

    /// The reports, one folder a night.
    #[must_use]
    pub fn nights(&self) -> PathBuf {
        self.state.join("nights")
    }

    /// One folder a night: the trainer's run directory.
    #[must_use]
    pub fn runs(&self) -> PathBuf {
        self.state.join("runs")
    }

    /// Daily log files.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.state.join("logs")
    }

    /// Records of what was adopted.
    #[must_use]
    pub fn adoptions(&self) -> PathBuf {
        self.state.join("adoptions")
    }

    /// Live documents as they were before an adoption.
    #[must_use]
    pub fn backups(&self) -> PathBuf {
        self.state.join("backups")
    }

    /// The lock that a running night holds.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.state.join("night.lock")
    }
}

/// The user's home directory.
pub fn home(env: Environment<'_>) -> Option<PathBuf> {
    env("HOME")
        .filter(|text| !text.is_empty())
        .map(PathBuf::from)
        .or_else(dirs::home_dir)
}

/// An XDG variable counts only when its path is absolute, as its specification says.
#[cfg(not(any(target_os = "macos", windows)))]
fn xdg(env: Environment<'_>, variable: &str, below_home: &str) -> Option<PathBuf> {
    env(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(home(env)?.join(below_home)))
}

#[cfg(not(any(target_os = "macos", windows)))]
fn platform_config(env: Environment<'_>) -> Option<PathBuf> {
    xdg(env, "XDG_CONFIG_HOME", ".config")
}

#[cfg(not(any(target_os = "macos", windows)))]
fn platform_state(env: Environment<'_>) -> Option<PathBuf> {
    xdg(env, "XDG_STATE_HOME", ".local/state")
}

#[cfg(target_os = "macos")]
fn platform_config(env: Environment<'_>) -> Option<PathBuf> {
    Some(home(env)?.join("Library/Application Support"))
}

#[cfg(target_os = "macos")]
fn platform_state(env: Environment<'_>) -> Option<PathBuf> {
    platform_config(env)
}

#[cfg(windows)]
fn platform_config(_env: Environment<'_>) -> Option<PathBuf> {
    dirs::config_dir()
}

#[cfg(windows)]
fn platform_state(_env: Environment<'_>) -> Option<PathBuf> {
    dirs::data_local_dir()
}

/// The path with a leading `~` replaced by the home directory.
#[must_use]
pub fn expand(path: &Path, env: Environment<'_>) -> PathBuf {
    match (path.strip_prefix("~"), home(env)) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    fn find(explicit: Option<&str>, pairs: &[(&str, &str)]) -> Paths {
        let env = |name: &str| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        };
        Paths::find(explicit.map(Path::new), &env).unwrap()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn options_beat_our_variables_which_beat_the_platform() {
        let home = ("HOME", "/h");
        let paths = find(None, &[home]);
        assert_eq!(
            paths.config,
            Path::new("/h/.config/skillopt-sleep/config.yaml")
        );
        assert_eq!(paths.state, Path::new("/h/.local/state/skillopt-sleep"));
        let xdg = [
            home,
            ("XDG_CONFIG_HOME", "/c"),
            ("XDG_STATE_HOME", "relative"),
        ];
        let paths = find(None, &xdg);
        assert_eq!(paths.config, Path::new("/c/skillopt-sleep/config.yaml"));
        assert_eq!(paths.state, Path::new("/h/.local/state/skillopt-sleep"));
        let own = [
            home,
            ("SKILLOPT_SLEEP_CONFIG", "/o.yaml"),
            ("SKILLOPT_SLEEP_HOME", "/s"),
        ];
        assert_eq!(find(None, &own).config, Path::new("/o.yaml"));
        let paths = find(Some("x.yaml"), &own);
        assert_eq!(paths.config, Path::new("x.yaml"));
        assert_eq!(paths.database(), Path::new("/s/skillopt-sleep.db"));
        assert_eq!(paths.runs(), Path::new("/s/runs"));
    }

    #[test]
    fn a_tilde_is_the_home_directory() {
        let env = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        assert_eq!(expand(Path::new("~/a/b"), &env), Path::new("/h/a/b"));
        assert_eq!(expand(Path::new("/a/~"), &env), Path::new("/a/~"));
    }
}
