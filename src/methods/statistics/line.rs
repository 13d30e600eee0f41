//! A straight line by least squares, and the band in which the true one lies.

use super::{TIE, t_quantile};

#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Line {
    pub slope: f64,
    pub intercept: f64,
    pub n: usize,
    /// The standard deviation of the residuals, with `n - 2` below the sum.
    pub residual_sd: f64,
    #[serde(skip)]
    centre: f64,
    /// The sum of squares of x around its mean.
    #[serde(skip)]
    squares: f64,
}

impl Line {
    /// `None` for fewer than three points, or when all have the same x.
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        if points.len() < 3 {
            return None;
        }
        let n = points.len() as f64;
        let centre = points.iter().map(|(x, _)| x).sum::<f64>() / n;
        let height = points.iter().map(|(_, y)| y).sum::<f64>() / n;
        let squares: f64 = points.iter().map(|(x, _)| (x - centre).powi(2)).sum();
        if squares <= n * TIE * TIE {
            return None;
        }
        let products = points.iter().map(|(x, y)| (x - centre) * (y - height));
        let slope = products.sum::<f64>() / squares;
        let intercept = height - slope * centre;
        let residuals = points.iter().map(|(x, y)| y - intercept - slope * x);
        let rest: f64 = residuals.map(|residual| residual * residual).sum();
        Some(Self {
            slope,
            intercept,
            n: points.len(),
            residual_sd: (rest / (n - 2.0)).sqrt(),
            centre,
            squares,
        })
    }

    pub fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }

    /// Half the height of the 95 % confidence band of the mean of y at x:
    /// `t(0.975; n - 2) × residual_sd × sqrt(1/n + (x - mean x)² / Σ (x - mean x)²)`.
    pub fn half_band(&self, x: f64) -> f64 {
        let n = self.n as f64;
        let distance = 1.0 / n + (x - self.centre).powi(2) / self.squares;
        t_quantile(0.975, n - 2.0) * self.residual_sd * distance.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::super::close;
    use super::*;

    #[test]
    fn by_hand() {
        // y = 1 + 2 x, with residuals 1, -2, 1 on x = -1, 0, 1: they change neither slope nor height.
        let line = Line::fit(&[(-1.0, 0.0), (0.0, -1.0), (1.0, 4.0)]).unwrap();
        close(Some(line.slope), 2.0);
        close(Some(line.intercept), 1.0);
        close(Some(line.residual_sd), 6.0_f64.sqrt());
        // In the middle: t(0.975; 1) = 12.7062 times sqrt(6) / sqrt(3).
        assert!((line.half_band(0.0) - 12.7062 * 2.0_f64.sqrt()).abs() < 1e-3);
        assert!(line.half_band(1.0) > line.half_band(0.0));
        assert_eq!(Line::fit(&[(0.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(Line::fit(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }
}
