//! What a cluster is called and where it belongs: id, representative, telling terms, clause.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::domain::clause::ClauseId;
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::mining::{ClauseScore, Cluster, Term};

/// An issue that is to be clustered, with what is known of it.
pub struct Item<'a> {
    pub issue: &'a Issue,
    /// Terms, by number, with their weights.
    pub terms: &'a [(u32, f32)],
    /// The best clauses.
    pub clauses: &'a [ClauseScore],
}

/// Terms that are kept with a cluster.
const N_TERMS: usize = 12;
/// Longer ids are cut at a word.
const MAX_ID_LEN: usize = 48;

/// Names groups of items, each a list of positions. Clusters come in the order of their size, then of their id.
///
/// Items are in the order of their keys; `taken` are ids of other clusters; `id_before` is the id of the cluster that an
/// item was in before; `similarity` is that of two items; `term` has the text of a term. The words that are shown for terms are not known
/// here: each is its term; nor is the shared effect: it is the title of the representative.
pub fn name<'t>(
    items: &[Item<'_>],
    groups: &[Vec<usize>],
    mut taken: BTreeSet<String>,
    id_before: impl Fn(usize) -> Option<&'t str>,
    similarity: impl Fn(usize, usize) -> f32,
    term: impl Fn(u32) -> &'t str,
) -> Vec<Cluster> {
    let kept = kept(groups, id_before);
    taken.extend(kept.iter().flatten().map(|id| (*id).to_owned()));
    let mut clusters: Vec<Cluster> = groups
        .iter()
        .zip(kept)
        .map(|(group, kept)| {
            let first = items[group[0]].issue;
            let representative = items[representative(group, &similarity)].issue;
            Cluster {
                id: kept.map_or_else(|| id(first, &mut taken), str::to_owned),
                label: representative.title.clone(),
                effect: representative.untagged_title().to_owned(),
                clause: clause(items, group),
                representative: representative.key.clone(),
                members: group
                    .iter()
                    .map(|item| items[*item].issue.key.clone())
                    .collect(),
                terms: terms(items, group, &term),
            }
        })
        .collect();
    clusters.sort_by(|a, b| (b.members.len().cmp(&a.members.len())).then_with(|| a.id.cmp(&b.id)));
    clusters
}

/// The title as words of an id: `Edit breaks CRLF` → `edit-breaks-crlf`; empty when nothing is left.
pub fn slug(title: &str) -> String {
    let mut slug = String::new();
    for word in title
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        if slug.len() + 1 + word.len() > MAX_ID_LEN {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(&word.to_ascii_lowercase());
    }
    slug
}

/// The id that each group keeps: an id goes where most of its items are, so that items which move away and come back
/// change none. Where as many are in two groups, or a group has as many of two ids, the id of which more is there goes
/// first, then that of the first item.
fn kept<'t>(
    groups: &[Vec<usize>],
    id_before: impl Fn(usize) -> Option<&'t str>,
) -> Vec<Option<&'t str>> {
    let mut n_of_id: BTreeMap<&str, usize> = BTreeMap::new();
    // By group and id: how many items, and the first of them.
    let mut shares: BTreeMap<(usize, &str), (usize, usize)> = BTreeMap::new();
    for (place, group) in groups.iter().enumerate() {
        for item in group {
            if let Some(id) = id_before(*item) {
                *n_of_id.entry(id).or_default() += 1;
                shares.entry((place, id)).or_insert((0, *item)).0 += 1;
            }
        }
    }
    let mut shares: Vec<_> = shares.into_iter().collect();
    shares.sort_by_key(|((_, id), (n, first))| (Reverse(*n), n_of_id[id], *first));
    let mut taken = BTreeSet::new();
    let mut kept = vec![None; groups.len()];
    for ((place, id), _) in shares {
        if kept[place].is_none() && taken.insert(id) {
            kept[place] = Some(id);
        }
    }
    kept
}

fn id(first: &Issue, taken: &mut BTreeSet<String>) -> String {
    let IssueKey { repository, number } = &first.key;
    let slug = match slug(first.untagged_title()) {
        slug if slug.is_empty() => "issue".to_owned(),
        slug => slug,
    };
    let with_repository = repository.replace('/', "-").to_lowercase();
    let named = format!("{slug}-{with_repository}-{number}");
    // Even an id with the issue's own number can belong to another cluster: an id stays where most of its issues are.
    let more = (2..).map(|n| format!("{named}-{n}"));
    let free = [slug.clone(), format!("{slug}-{number}"), named.clone()]
        .into_iter()
        .chain(more)
        .find(|id| !taken.contains(id))
        .expect("numbers do not end");
    taken.insert(free.clone());
    free
}

/// The item with the highest sum of similarities; ties go to the smaller key.
fn representative(group: &[usize], similarity: impl Fn(usize, usize) -> f32) -> usize {
    let sum = |item: usize| -> f32 { group.iter().map(|other| similarity(item, *other)).sum() };
    let mut best = (group[0], f32::MIN);
    for item in group {
        let sum = sum(*item);
        if sum > best.1 + 1e-6 {
            best = (*item, sum);
        }
    }
    best.0
}

fn terms<'t>(items: &[Item<'_>], group: &[usize], term: &impl Fn(u32) -> &'t str) -> Vec<Term> {
    let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
    for item in group {
        for (dim, weight) in items[*item].terms {
            *sums.entry(*dim).or_default() += f64::from(*weight);
        }
    }
    let mut sums: Vec<(&str, f64)> = sums
        .into_iter()
        .map(|(dim, sum)| (term(dim), sum))
        .collect();
    sums.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    sums.into_iter()
        .take(N_TERMS)
        .map(|(term, _)| Term {
            term: term.to_owned(),
            word: term.to_owned(),
        })
        .collect()
}

/// The clause with the highest sum of scores, each issue's best counting 1; ties go to the smaller id.
fn clause(items: &[Item<'_>], group: &[usize]) -> Option<ClauseId> {
    let mut sums: BTreeMap<&ClauseId, f64> = BTreeMap::new();
    for item in group {
        let clauses = items[*item].clauses;
        let best = clauses.first().map_or(1.0, |best| best.score);
        for score in clauses {
            *sums.entry(&score.clause).or_default() += score.score / best;
        }
    }
    let mut best: Option<(&ClauseId, f64)> = None;
    for (clause, sum) in sums {
        if best.is_none_or(|(_, most)| sum > most + 1e-9) {
            best = Some((clause, sum));
        }
    }
    best.map(|(clause, _)| clause.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_become_ids() {
        let check = |title: &str, expected: &str| assert_eq!(slug(title), expected, "{title}");
        check("Edit breaks CRLF!", "edit-breaks-crlf");
        check("`x` y", "x-y");
        check("权限", "");
        check(
            "a very long title that goes on and on until nobody reads it any more",
            "a-very-long-title-that-goes-on-and-on-until",
        );
    }

    fn issue(number: u64, title: &str) -> Issue {
        Issue {
            key: IssueKey {
                repository: "o/n".into(),
                number,
            },
            url: String::new(),
            title: title.into(),
            body: String::new(),
            labels: Vec::new(),
            state: None,
            created_at: None,
            updated_at: None,
            n_comments: None,
        }
    }

    #[test]
    fn clusters_are_named_by_their_members() {
        let issues = [
            issue(1, "Same title"),
            issue(2, "Same title"),
            issue(3, "Third"),
            issue(4, "权限"),
        ];
        let terms = [(0, 0.4), (1, 0.9)];
        let score = |clause: &str, score: f64| ClauseScore {
            clause: clause.parse().expect("an id"),
            score,
        };
        let clauses = [
            vec![score("a.a.a", 4.0), score("b.b.b", 3.0)],
            vec![score("b.b.b", 2.0), score("c.c.c", 1.0)],
            vec![score("c.c.c", 2.0), score("b.b.b", 1.9)],
            vec![],
        ];
        let items: Vec<Item<'_>> = issues
            .iter()
            .zip(&clauses)
            .map(|(issue, clauses)| Item {
                issue,
                terms: &terms,
                clauses,
            })
            .collect();
        // The third is most like the others.
        let similarity = |a: usize, b: usize| if a == 2 || b == 2 { 0.9 } else { 0.5 };
        let term = |dim: u32| ["rule", "deny"][dim as usize];
        let groups = [vec![0, 2], vec![1], vec![3]];
        let named = name(&items, &groups, BTreeSet::new(), |_| None, similarity, term);
        let ids: Vec<&str> = named.iter().map(|cluster| cluster.id.as_str()).collect();
        assert_eq!(ids, ["same-title", "issue", "same-title-2"]);
        let shown: Vec<(&str, &str)> = named[0]
            .terms
            .iter()
            .map(|term| (term.term.as_str(), term.word.as_str()))
            .collect();
        assert_eq!(shown, [("deny", "deny"), ("rule", "rule")]);
        assert_eq!(named[1].clause, None);
        let all = &name(
            &items,
            &[vec![0, 1, 2]],
            BTreeSet::new(),
            |_| None,
            similarity,
            term,
        )[0];
        assert_eq!(all.label, "Third");
        assert_eq!(all.clause.as_ref().map(ClauseId::as_str), Some("b.b.b"));
        // A group that had an id keeps it, and no other takes it.
        let kept = |item: usize| (item >= 2).then_some("same-title");
        let groups = [vec![0], vec![1], vec![2, 3]];
        let mut ids: Vec<String> = name(&items, &groups, BTreeSet::new(), kept, similarity, term)
            .into_iter()
            .map(|cluster| cluster.id)
            .collect();
        ids.sort();
        assert_eq!(ids, ["same-title", "same-title-1", "same-title-2"]);
        // Nor does one take that of a cluster which is not among these.
        let taken = BTreeSet::from(["same-title".to_owned()]);
        let named = name(&items, &[vec![0]], taken, |_| None, similarity, term);
        assert_eq!(named[0].id, "same-title-1");
        // Of a cluster that was split into halves the first one keeps the id.
        let split = name(
            &items,
            &[vec![2], vec![3]],
            BTreeSet::new(),
            kept,
            similarity,
            term,
        );
        assert_eq!(split[0].id, "issue");
        assert_eq!(
            (&*split[1].id, split[1].members[0].number),
            ("same-title", 3)
        );
    }

    #[test]
    fn an_id_is_found_whatever_ids_are_taken() {
        let issue = issue(7, "Same title");
        let mut taken = BTreeSet::new();
        for expected in [
            "same-title",
            "same-title-7",
            "same-title-o-n-7",
            "same-title-o-n-7-2",
            "same-title-o-n-7-3",
        ] {
            assert_eq!(id(&issue, &mut taken), expected);
        }
    }

    #[test]
    fn an_id_goes_where_most_of_its_items_are() {
        let check = |before: &[&'static str], groups: &[&[usize]], expected: &[Option<&str>]| {
            let groups: Vec<Vec<usize>> = groups.iter().map(|group| group.to_vec()).collect();
            let id = |item: usize| Some(before[item]).filter(|id| !id.is_empty());
            assert_eq!(kept(&groups, id), expected, "{before:?} {groups:?}");
        };
        let none = None::<&str>;
        // The first item moves to the other cluster, and comes back.
        let there: [&str; 5] = ["a", "a", "a", "b", "b"];
        check(&there, &[&[0, 3, 4], &[1, 2]], &[Some("b"), Some("a")]);
        let moved = ["b", "a", "a", "b", "b"];
        check(&moved, &[&[0, 1, 2], &[3, 4]], &[Some("a"), Some("b")]);
        // The same with as few items as there can be.
        check(&["a", "a", "b"], &[&[0, 2], &[1]], &[Some("b"), Some("a")]);
        check(&["b", "a", "b"], &[&[0, 1], &[2]], &[Some("a"), Some("b")]);
        // Parted and put together again, in halves.
        check(&["a", "a"], &[&[0], &[1]], &[Some("a"), none]);
        check(&["z", "a"], &[&[0, 1]], &[Some("z")]);
        check(&["", "a", ""], &[&[0, 1], &[2]], &[Some("a"), none]);
        check(&[""], &[&[0]], &[none]);
    }
}
