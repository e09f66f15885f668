//! The confidence sequence: gains that the results have not refuted.
//!
//! For every gain `m` of a grid one account bets that the mean of `d` is above `m` and another
//! that it is below, with the gate's own rule of staking. An account whose `m` is true reaches its
//! line with probability at most `alpha`, at whatever moment the test stops; so each end is wrong
//! with probability at most `alpha`, and both hold together with at least `1 − 2·alpha`. The
//! account at 0 is the gate's own, and the lower end is at 0 or above only if the gate's evidence
//! reached its line.
//!
//! The grid loses nothing: for a true gain below the lower end, the first grid point at or above
//! it would have to have been refuted too, and its account is valid for every gain up to itself.

use super::account::Account;

/// Grid steps to the unit.
const STEPS: i32 = 200;

/// The ends of the interval after these `(position of the draw, difference)`, in order.
pub(super) fn bounds(measured: &[(usize, f64)], budget: usize, alpha: f64) -> (f64, f64) {
    let lower = refuted(|m| {
        let account = Account::new(1.0 + m, 1.0 - m, alpha);
        reaches(account, measured, budget, |d| d - m)
    });
    let upper = refuted(|m| {
        let account = Account::new(1.0 + m, 1.0 - m, alpha);
        reaches(account, measured, budget, |d| -d - m)
    });
    (lower, -upper)
}

/// The last grid point of an unbroken run of refuted ones from −1 up; −1 for none.
fn refuted(is_refuted: impl Fn(f64) -> bool) -> f64 {
    let point = |step: i32| f64::from(step) / f64::from(STEPS);
    (1 - STEPS..STEPS)
        .map(point)
        .take_while(|&m| is_refuted(m))
        .last()
        .unwrap_or(-1.0)
}

/// Whether the account ever reached its line.
fn reaches(
    mut account: Account,
    measured: &[(usize, f64)],
    budget: usize,
    x: impl Fn(f64) -> f64,
) -> bool {
    measured.iter().any(|&(position, d)| {
        account.take(x(d), budget - position);
        account.reached()
    })
}
