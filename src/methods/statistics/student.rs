//! Quantiles of Student's t distribution, for the band around a fitted line.

/// The quantile of Student's t at probability `p`, strictly between 0 and 1, with `df` > 0 degrees of freedom; found by
/// bisection on the distribution function.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    if p < 0.5 {
        return -t_quantile(1.0 - p, df);
    }
    let (mut low, mut high) = (0.0, 1.0);
    while cumulative(high, df) < p {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if cumulative(middle, df) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// P(T ≤ t) for t ≥ 0: 1 - ½ I(df / (df + t²); df / 2, ½).
fn cumulative(t: f64, df: f64) -> f64 {
    1.0 - 0.5 * incomplete_beta(df / (df + t * t), df / 2.0, 0.5)
}

/// The regularised incomplete beta function by its continued fraction (DLMF 8.17.22), evaluated by Lentz's method.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast on one side; the other is its mirror.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = (log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * x.ln() + b * (1.0 - x).ln())
        .exp()
        / a;
    let tiny = 1e-300;
    let keep = |value: f64| if value.abs() < tiny { tiny } else { value };
    let (mut c, mut d) = (1.0, 1.0 / keep(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / keep(1.0 + term * d);
            c = keep(1.0 + term / c);
            fraction *= c * d;
        }
        if (fraction / before - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * fraction
}

/// Lanczos' approximation with g = 7 and nine terms, for x > 0; its relative error is about 1e-15.
fn log_gamma(x: f64) -> f64 {
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        // The reflection formula.
        let pi = std::f64::consts::PI;
        return (pi / (pi * x).sin()).ln() - log_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let base = x + 7.5;
    let sum = TERMS[1..]
        .iter()
        .enumerate()
        .fold(TERMS[0], |sum, (idx, term)| {
            sum + term / (x + idx as f64 + 1.0)
        });
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * base.ln() - base + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_printed_tables() {
        let check = |df: f64, expected: f64| {
            let found = t_quantile(0.975, df);
            assert!((found - expected).abs() < 5e-4, "{found} is not {expected}");
            assert!((t_quantile(0.025, df) + found).abs() < 1e-12);
        };
        check(1.0, 12.7062);
        check(2.0, 4.3027);
        check(10.0, 2.2281);
        check(17.0, 2.1098);
        check(1e6, 1.9600);
        assert!(t_quantile(0.5, 3.0).abs() < 1e-9);
    }
}
