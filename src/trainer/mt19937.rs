//! CPython's random generator, bit for bit.
//!
//! Data splits and batches of published runs were drawn with Python's `random`; with the same
//! generator the same seed gives the same split here (engine 5.6). It is the Mersenne Twister
//! MT19937, seeded by the words of the seed, with rejection sampling for bounded numbers.

const SIZE: usize = 624;
const PERIOD: usize = 397;

/// The generator.
#[derive(Debug, Clone)]
pub struct Mt19937 {
    state: [u32; SIZE],
    next: usize,
}

impl Mt19937 {
    /// The generator that Python makes for this integer seed; the sign does not matter there
    /// either.
    #[must_use]
    pub fn new(seed: i64) -> Mt19937 {
        let magnitude = seed.unsigned_abs();
        let [a, b, c, d, e, f, g, h] = magnitude.to_le_bytes();
        let (low, high) = (
            u32::from_le_bytes([a, b, c, d]),
            u32::from_le_bytes([e, f, g, h]),
        );
        if high == 0 {
            Mt19937::from_words(&[low])
        } else {
            Mt19937::from_words(&[low, high])
        }
    }

    /// The generator for a seed of any size, given as little-endian 32-bit words without leading
    /// zero words. No words mean zero.
    #[must_use]
    pub fn from_words(words: &[u32]) -> Mt19937 {
        let words = if words.is_empty() { &[0] } else { words };
        let mut state = [0_u32; SIZE];
        state[0] = 19_650_218;
        for i in 1..SIZE {
            state[i] = spread(state[i - 1])
                .wrapping_mul(1_812_433_253)
                .wrapping_add(i as u32);
        }
        let (mut i, mut j) = (1, 0);
        for _ in 0..SIZE.max(words.len()) {
            state[i] = (state[i] ^ spread(state[i - 1]).wrapping_mul(1_664_525))
                .wrapping_add(words[j])
                .wrapping_add(j as u32);
            (i, j) = (advance(&mut state, i), (j + 1) % words.len());
        }
        for _ in 1..SIZE {
            state[i] = (state[i] ^ spread(state[i - 1]).wrapping_mul(1_566_083_941))
                .wrapping_sub(i as u32);
            i = advance(&mut state, i);
        }
        state[0] = 0x8000_0000;
        Mt19937 { state, next: SIZE }
    }

    /// The next 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.next == SIZE {
            self.refill();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// The next random number in `0..1`, with 53 random bits.
    pub fn next_f64(&mut self) -> f64 {
        let (high, low) = (self.next_u32() >> 5, self.next_u32() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    /// The next `bits` random bits, of 1 to 32.
    pub fn bits(&mut self, bits: u32) -> u32 {
        self.next_u32() >> (32 - bits.clamp(1, 32))
    }

    /// The next random number below `bound`; 0 when there is none.
    pub fn below(&mut self, bound: u32) -> u32 {
        if bound == 0 {
            return 0;
        }
        let width = 32 - bound.leading_zeros();
        loop {
            let drawn = self.bits(width);
            if drawn < bound {
                return drawn;
            }
        }
    }

    /// Shuffles in place.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u32 + 1) as usize;
            items.swap(i, j);
        }
    }

    fn refill(&mut self) {
        for i in 0..SIZE {
            let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % SIZE] & 0x7fff_ffff);
            let twist = if y & 1 == 0 { 0 } else { 0x9908_b0df };
            self.state[i] = self.state[(i + PERIOD) % SIZE] ^ (y >> 1) ^ twist;
        }
        self.next = 0;
    }
}

/// The numbers `0..count` in the order into which this seed shuffles them.
#[must_use]
pub fn permutation(count: usize, seed: i64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    Mt19937::new(seed).shuffle(&mut order);
    order
}

fn spread(word: u32) -> u32 {
    word ^ (word >> 30)
}

fn advance(state: &mut [u32; SIZE], i: usize) -> usize {
    if i + 1 == SIZE {
        state[0] = state[SIZE - 1];
        1
    } else {
        i + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_numbers_are_those_of_python() {
        assert_eq!(Mt19937::new(0).next_u32(), 3_626_764_237);
        assert_eq!(permutation(10, 1), [6, 8, 9, 7, 5, 3, 0, 4, 1, 2]);
        assert!((Mt19937::new(42).next_f64() - 0.639_426_798_457_883_8).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn a_shuffle_is_a_permutation(count in 0..300_usize, seed in any::<i64>()) {
            let mut order = permutation(count, seed);
            order.sort_unstable();
            prop_assert_eq!(order, (0..count).collect::<Vec<_>>());
        }
    }
}
