//! The generator of resampling: small enough to be the same for ever, so that an analysis can be made again.

/// SplitMix64 (Steele, Lea and Flood 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A whole number below `n`, which is not 0. The bias is below n ÷ 2⁶⁴.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// From 0, up to but without 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn every_value_comes_about_as_often() {
        let mut random = Random::new(1);
        let mut counts = [0; 7];
        for _ in 0..70_000 {
            counts[random.below(7)] += 1;
        }
        assert!(
            counts.iter().all(|n| (9_500..10_500).contains(n)),
            "{counts:?}"
        );
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.unit())));
    }
}
