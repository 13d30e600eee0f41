//! Which drafts are kept: those far enough from the seed and from each other.

use super::distance::Shape;
use super::{Draft, Operators};
use crate::domain::case::{Case, CaseId};

/// What is said about a draft.
#[derive(Debug, Clone)]
pub struct Judged {
    pub draft: Draft,
    /// From the seed.
    pub distance: f64,
    /// The nearest of those kept before and of the suite's cases, with its distance.
    pub nearest: Option<(CaseId, f64)>,
    /// None: kept. Else why it was dropped.
    pub dropped: Option<String>,
}

/// Keeps drafts that are far enough from the seed and from all that is kept, in their order. `present` are the other
/// cases of the suite.
pub fn select(
    seed: &Case,
    present: &[&Case],
    drafts: Vec<Draft>,
    operators: &Operators,
) -> Vec<Judged> {
    let least = operators.least_distance;
    let seed = Shape::of(seed);
    let mut kept: Vec<(CaseId, Shape)> = present
        .iter()
        .map(|case| (case.id.clone(), Shape::of(case)))
        .collect();
    let mut judged = Vec::new();
    for draft in drafts {
        let shape = Shape::of(&draft.case);
        let distance = shape.distance(&seed, operators.weights);
        let nearest = kept
            .iter()
            .filter(|(id, _)| *id != draft.id)
            .map(|(id, other)| (id.clone(), shape.distance(other, operators.weights)))
            .min_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
        let dropped = if present.iter().any(|case| case.id == draft.id) {
            Some("the suite has it".to_owned())
        } else if distance < least {
            Some(format!("too close to the seed: {distance:.3} < {least:.3}"))
        } else {
            match &nearest {
                Some((id, near)) if *near < least => Some(format!(
                    "too close to {}: {near:.3} < {least:.3}",
                    id.name()
                )),
                _ => None,
            }
        };
        if dropped.is_none() {
            kept.push((draft.id.clone(), shape));
        }
        judged.push(Judged {
            draft,
            distance,
            nearest,
            dropped,
        });
    }
    judged
}
