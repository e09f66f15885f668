//! How often the gates are wrong: both of them on simulated candidates.
//!
//! A simulated item is passed by the current skill with probability `p`, drawn from beta(1.5, 1),
//! and by the candidate with `p + gain`, clipped to `0..=1`; attempts are independent and score 0
//! or 1. At gain 0 both are the same skill (an A/A test), and every acceptance is a false one.
//!
//! Equal cost is made for the strict rule: it also runs with every item scored so often that it
//! takes at least the attempts that the confident rule takes on a useless candidate.

use serde::Serialize;

use super::confident::{ConfidentSettings, ConfidentTest, Decision, SettingsError};
use super::mt19937::Mt19937;

/// The true gains that are simulated, on the scale of the score.
pub const GAINS: [f64; 6] = [-0.05, 0.0, 0.05, 0.10, 0.20, 0.30];

/// One gate under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "name")]
pub enum Rule {
    /// The candidate's mean has to be strictly higher.
    Strict {
        /// How often each item is scored under either skill.
        passes: u32,
    },
    /// The sequential test.
    Confident,
}

/// How one gate fares with candidates of one true gain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cell {
    /// The true gain.
    pub gain: f64,
    /// Share of candidates accepted, 0 to 1. Where the gain is not above 0 these are mistakes;
    /// where it is, this is the power.
    pub accepted: f64,
    /// Share rejected; the rest is undecided.
    pub rejected: f64,
    /// Mean number of attempts, under both skills together.
    pub calls: f64,
}

/// One gate over all gains.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The gate.
    pub rule: Rule,
    /// One cell a gain, in the order of [`GAINS`].
    pub cells: Vec<Cell>,
}

/// What to simulate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Simulation {
    /// Selection items.
    pub items: usize,
    /// Candidates for each gain and gate.
    pub runs: u32,
    /// Where the random numbers start.
    pub seed: u64,
    /// The confident rule's settings.
    pub settings: ConfidentSettings,
}

/// Attempts and outcome of one candidate.
type Outcome = (Decision, usize);

impl Simulation {
    /// Runs the strict rule, the strict rule at equal cost, and the confident rule.
    ///
    /// # Errors
    /// When a setting of the confident rule is out of its range.
    pub fn run(&self) -> Result<Vec<Row>, SettingsError> {
        self.settings.check()?;
        let confident = self.row(Rule::Confident)?;
        let useless = confident
            .cells
            .iter()
            .find(|cell| cell.gain == 0.0)
            .map_or(0.0, |cell| cell.calls);
        let passes = (useless / (2 * self.items.max(1)) as f64).ceil().max(1.0) as u32;
        let mut rows = vec![self.row(Rule::Strict { passes: 1 })?];
        if passes > 1 {
            rows.push(self.row(Rule::Strict { passes })?);
        }
        rows.push(confident);
        Ok(rows)
    }

    fn row(&self, rule: Rule) -> Result<Row, SettingsError> {
        let cells = GAINS
            .iter()
            .map(|&gain| self.cell(rule, gain))
            .collect::<Result<_, _>>()?;
        Ok(Row { rule, cells })
    }

    fn cell(&self, rule: Rule, gain: f64) -> Result<Cell, SettingsError> {
        let mut world = World::new(self.seed, gain);
        let (mut accepted, mut rejected, mut calls) = (0_u32, 0_u32, 0_usize);
        for run in 0..self.runs {
            let items = world.items(self.items);
            let (decision, used) = match rule {
                Rule::Strict { passes } => strict(&mut world, &items, passes),
                Rule::Confident => {
                    let seed = self
                        .seed
                        .wrapping_add(u64::from(run))
                        .wrapping_mul(0x9e37_79b9);
                    let test = ConfidentTest::new(self.items, seed, self.settings)?;
                    confident(&mut world, &items, test)
                }
            };
            accepted += u32::from(decision == Decision::Accept);
            rejected += u32::from(decision == Decision::Reject);
            calls += used;
        }
        let runs = f64::from(self.runs.max(1));
        Ok(Cell {
            gain,
            accepted: f64::from(accepted) / runs,
            rejected: f64::from(rejected) / runs,
            calls: calls as f64 / runs,
        })
    }
}

/// Pass probabilities of one item.
#[derive(Debug, Clone, Copy)]
struct SimulatedItem {
    current: f64,
    candidate: f64,
}

struct World {
    random: Mt19937,
    gain: f64,
}

impl World {
    fn new(seed: u64, gain: f64) -> Self {
        Self {
            random: Mt19937::from_words(&[seed as u32, (seed >> 32) as u32, 1]),
            gain,
        }
    }

    fn items(&mut self, count: usize) -> Vec<SimulatedItem> {
        (0..count)
            .map(|_| {
                // The distribution function of beta(1.5, 1) is p^1.5.
                let current = self.random.next_f64().powf(1.0 / 1.5);
                SimulatedItem {
                    current,
                    candidate: (current + self.gain).clamp(0.0, 1.0),
                }
            })
            .collect()
    }

    /// Scores an item under both skills: candidate − current.
    fn difference(&mut self, item: SimulatedItem) -> i32 {
        let current = self.random.next_f64() < item.current;
        let candidate = self.random.next_f64() < item.candidate;
        i32::from(candidate) - i32::from(current)
    }
}

fn strict(world: &mut World, items: &[SimulatedItem], passes: u32) -> Outcome {
    let mut sum = 0;
    for &item in items {
        for _ in 0..passes {
            sum += world.difference(item);
        }
    }
    let decision = if sum > 0 {
        Decision::Accept
    } else {
        Decision::Reject
    };
    (decision, 2 * items.len() * passes as usize)
}

fn confident(world: &mut World, items: &[SimulatedItem], mut test: ConfidentTest) -> Outcome {
    let mut draws = 0;
    while let Some(&draw) = test.next(1).first() {
        let difference = world.difference(items[draw.item]);
        draws += 1;
        // The test drew it just now, so it takes the result.
        if test.record(draw, Some(f64::from(difference))).is_err() {
            break;
        }
    }
    (test.decision(), 2 * draws)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simulate(items: usize, runs: u32) -> Vec<Row> {
        Simulation {
            items,
            runs,
            seed: 1,
            settings: ConfidentSettings::default(),
        }
        .run()
        .unwrap()
    }

    fn accepted(row: &Row, gain: f64) -> f64 {
        row.cells
            .iter()
            .find(|cell| cell.gain == gain)
            .unwrap()
            .accepted
    }

    #[test]
    fn only_the_confident_rule_keeps_useless_candidates_out() {
        let rows = simulate(13, 600);
        assert_eq!(rows[0].rule, Rule::Strict { passes: 1 });
        assert_eq!(rows[2].rule, Rule::Confident);
        // Three standard deviations of 600 runs are 6 points around 40 % and 4 around 10 %.
        assert!((accepted(&rows[0], 0.0) - 0.40).abs() < 0.06, "{rows:#?}");
        assert!(accepted(&rows[1], 0.0) > 0.35, "{rows:#?}");
        assert!(accepted(&rows[2], 0.0) < 0.14, "{rows:#?}");
        assert!(accepted(&rows[2], -0.05) < 0.06, "{rows:#?}");
        assert!(accepted(&rows[2], 0.20) > 0.80, "{rows:#?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_table() {
        assert_eq!(simulate(7, 50), simulate(7, 50));
    }

    #[test]
    fn without_items_nothing_is_accepted() {
        for row in simulate(0, 3) {
            assert!(
                row.cells
                    .iter()
                    .all(|cell| cell.accepted == 0.0 && cell.calls == 0.0)
            );
        }
    }
}
