//! Drafts of one seed: what an operator made, with its title and origin, its controls, and the proof.

use std::collections::BTreeSet;
use std::path::Path;

use super::arguments::{self, Erroneous};
use super::case_text::CaseText;
use super::follow::Follow;
use super::forms::{self, Form, Relative};
use super::named::{self, Named};
use super::signature::Signatures;
use super::sites::{self, Site};
use super::tools::{self, Equivalent};
use super::ways::{self, Way};
use super::{Draft, Operators, Rejected, Seed, TO_MAKE, proof, scenario};
use crate::domain::case::{Case, CaseId, Variable};
use crate::domain::clause::Channel;
use crate::domain::document::Document;
use crate::domain::expect::Expect;
use crate::domain::suite::CONTROLS;

/// Applies every operator, in the order of the settings. Nothing that comes back is unproved.
pub fn drafts(
    seed: &Seed<'_>,
    document: &Document,
    operators: &Operators,
) -> (Vec<Draft>, Vec<Rejected>) {
    let mut workshop = Workshop {
        seed,
        document,
        drafts: Vec::new(),
        rejected: Vec::new(),
    };
    for equivalent in &operators.tool {
        workshop.tool(equivalent);
    }
    for form in &operators.form {
        workshop.form(form, &operators.relative);
    }
    for way in &operators.way {
        workshop.way(way);
    }
    workshop.erroneous(&operators.erroneous);
    workshop.named(&operators.named);
    for site in &operators.site {
        workshop.site(site, &operators.site);
    }
    (workshop.drafts, workshop.rejected)
}

/// Makes drafts of one seed.
struct Workshop<'s> {
    seed: &'s Seed<'s>,
    document: &'s Document,
    drafts: Vec<Draft>,
    rejected: Vec<Rejected>,
}

/// How a control came out of an operator.
enum Mapped {
    /// It fits as it is.
    Same,
    Text(String),
    /// A person has to make one; the text says why.
    No(String),
}

/// What an operator says of itself.
struct Said<'o> {
    variable: Variable,
    operator: String,
    title: &'o str,
    why: &'o str,
}

impl<'s> Workshop<'s> {
    fn tool(&mut self, equivalent: &Equivalent) {
        let title = format!("by `{}` in place of `{}`", equivalent.to, equivalent.from);
        let said = Said {
            variable: Variable::Tool,
            operator: format!("by-{}", equivalent.to),
            title: &title,
            why: &equivalent.why,
        };
        if scenario::asserted(self.seed.case).is_none_or(|call| call.tool != equivalent.from) {
            return;
        }
        let clause = self.seed.case.clause.as_str();
        match equivalent.is_for(clause) {
            Ok(true) => {}
            Ok(false) => {
                return self.reject(&said, format!("{clause} does not bind both tools alike"));
            }
            Err(why) => return self.reject(&said, why),
        }
        let Some(mut text) = self.text(&said, self.seed.case) else {
            return;
        };
        if let Err(why) = tools::apply(equivalent, self.seed.case, &mut text) {
            return self.reject(&said, why);
        }
        let controls = map_controls(&self.seed.controls, |control, text| {
            tools::apply_to_control(equivalent, control, text).map(|same| !same)
        });
        self.finish(&said, text, Follow::default(), controls);
    }

    fn form(&mut self, form: &Form, relative: &Relative) {
        let said = Said {
            variable: Variable::InputForm,
            operator: form.name.clone(),
            title: &form.title,
            why: &form.why,
        };
        let Some(input) = scenario::input(self.seed.case) else {
            return self.reject(&said, "the case works on no path");
        };
        // The fixture is shared with the controls: what they work on takes the form, too.
        let own = |control: &Case| scenario::input(control);
        let mut inputs = vec![input.clone()];
        for path in self.seed.controls.iter().filter_map(|control| own(control)) {
            if !inputs.contains(&path) {
                inputs.push(path);
            }
        }
        let (text, follow) = match formed(form, relative, self.seed.case, &inputs, &input) {
            Ok(formed) => formed,
            Err(why) => return self.reject(&said, why),
        };
        let controls = self.seed.controls.iter().map(|control| {
            let needed = own(control).unwrap_or_else(|| input.clone());
            let touches = control.text.contains(&needed);
            let mapped = match formed(form, relative, control, &inputs, &needed) {
                _ if !touches => Mapped::Same,
                Ok((text, _)) => Mapped::Text(text.finish(&[])),
                Err(why) => Mapped::No(why),
            };
            (*control, mapped)
        });
        let controls = controls.collect();
        self.finish(&said, text, follow, controls);
    }

    fn way(&mut self, way: &Way) {
        let said = Said {
            variable: Variable::InputForm,
            operator: way.name.clone(),
            title: &way.title,
            why: &way.why,
        };
        let Some(mut text) = self.text(&said, self.seed.case) else {
            return;
        };
        if let Err(why) = ways::apply(way, self.seed.case, &mut text) {
            return self.reject(&said, why);
        }
        let controls = map_controls(&self.seed.controls, |control, text| {
            match way.changes_the_fixture() {
                true => ways::apply(way, control, text).map(|()| true),
                false => Ok(false),
            }
        });
        self.finish(&said, text, Follow::default(), controls);
    }

    fn named(&mut self, values: &[Named]) {
        let seed = self.seed.case;
        let Some(mistake) = named::mistake(seed) else {
            return;
        };
        // Another mistake of the same sort: an unknown setting is only warned of, a wrong value of a known one is not.
        if !values.iter().any(|named| named.name == mistake.name) {
            return;
        }
        for named in values.iter().filter(|named| mistake.takes(named)) {
            let name = named
                .name
                .trim_start_matches('-')
                .to_lowercase()
                .replace('_', "-");
            let title = format!("with `{}` {}", named.name, named.label);
            let said = Said {
                variable: Variable::ErroneousParameter,
                operator: format!("{name}-{}", named.label),
                title: &title,
                why: &named.why,
            };
            let Some(mut text) = self.text(&said, seed) else {
                return;
            };
            let follow = named::apply(&mistake, named, seed, &mut text);
            let controls = (self.seed.controls.iter())
                .map(|control| (*control, Mapped::Same))
                .collect();
            self.finish(&said, text, follow, controls);
        }
    }

    fn erroneous(&mut self, values: &[Erroneous]) {
        let seed = self.seed.case;
        let signatures = Signatures::of(self.document);
        let changes = arguments::changes(&signatures, values, seed, &self.seed.controls);
        let changes = match changes {
            Ok(changes) => changes,
            Err(why) => {
                let said = Said {
                    variable: Variable::ErroneousParameter,
                    operator: "any".to_owned(),
                    title: "",
                    why: "",
                };
                return self.reject(&said, why);
            }
        };
        for change in changes {
            let name = change.parameter.to_lowercase().replace('_', "-");
            let title = format!("with `{}` {}", change.parameter, change.erroneous.name);
            let said = Said {
                variable: Variable::ErroneousParameter,
                operator: format!("{name}-{}", change.erroneous.name),
                title: &title,
                why: &change.erroneous.why,
            };
            let Some(mut text) = self.text(&said, seed) else {
                return;
            };
            arguments::apply(&change, &mut text);
            text.follow(&change.follow);
            // Controls use valid arguments of the same tool, so that they fit as they are.
            let controls = self
                .seed
                .controls
                .iter()
                .map(|control| (*control, Mapped::Same))
                .collect();
            self.finish(&said, text, change.follow, controls);
        }
    }

    fn site(&mut self, site: &Site, sites: &[Site]) {
        let said = Said {
            variable: Variable::ReturnSite,
            operator: site.name.clone(),
            title: &site.title,
            why: &site.why,
        };
        let Some(mut text) = self.text(&said, self.seed.case) else {
            return;
        };
        let moved = match sites::apply(sites, site, self.seed.case, &mut text) {
            Ok(moved) => moved,
            Err(why) => return self.reject(&said, why),
        };
        let id = &self.seed.case.id;
        let is_anchored = match parse(id, &text.clone().finish(&[])) {
            Ok(case) => self.is_anchored(&case),
            Err(why) => return self.reject(&said, why),
        };
        if !is_anchored {
            text.set("clause", moved.clause.as_str());
        }
        // What must be absent at the new site has to be seen there by a control; all else is gated as before.
        let controls = map_controls(&self.seed.controls, |control, text| match moved.absence {
            true => sites::apply_to_control(sites, site, control, text),
            false => Ok(false),
        });
        self.finish(&said, text, Follow::default(), controls);
    }

    /// Completes a variant: its title and origin, its controls, and the proof.
    fn finish(
        &mut self,
        said: &Said<'_>,
        mut text: CaseText,
        follow: Follow,
        mapped: Vec<(&'s Case, Mapped)>,
    ) {
        let seed = self.seed.case;
        let name = format!("{}--{}", seed.id.name(), said.operator);
        let mut names = Vec::new();
        let mut controls = Vec::new();
        let mut to_make = Vec::new();
        for (control, mapped) in mapped {
            match mapped {
                Mapped::Same => names.push(control.id.name().to_owned()),
                Mapped::No(why) => to_make.push(format!("{}: {why}", control.id.name())),
                Mapped::Text(mapped) => {
                    let mapped_name = format!("{name}--{}", control.id.name());
                    let title = format!("{}, {} (for {name})", control.title, said.title);
                    match control_text(&mapped, &title, &mapped_name) {
                        Ok(mapped) => {
                            controls
                                .push((CaseId::new(format!("{CONTROLS}/{mapped_name}")), mapped));
                            names.push(mapped_name);
                        }
                        Err(why) => to_make.push(format!("{}: {why}", control.id.name())),
                    }
                }
            }
        }
        text.set("title", &format!("{}, {}", seed.title, said.title));
        text.set("purpose", said.why);
        text.set_origin(seed.id.as_str(), said.variable);
        text.set_controls(&names);
        let comments: Vec<String> = to_make
            .iter()
            .map(|why| format!("{TO_MAKE}{why}."))
            .collect();
        let folder = text.text_of("category").unwrap_or(CONTROLS).to_owned();
        let text = text.finish(&comments);
        let id = CaseId::new(format!("{folder}/{name}"));
        let case = match parse(&id, &text) {
            Ok(case) => case,
            Err(why) => return self.reject(said, format!("the variant is no case: {why}")),
        };
        if !self.is_anchored(&case) {
            let why = format!("{} does not show itself where it looks", case.clause);
            return self.reject(said, why);
        }
        match proof::prove(seed, &case, &follow) {
            Ok(variable) if variable == said.variable => {}
            Ok(other) => {
                return self.reject(said, format!("it changed the {} instead", other.as_str()));
            }
            Err(faults) => return self.reject(said, faults.join("; ")),
        }
        self.drafts.push(Draft {
            id,
            variable: said.variable,
            operator: said.operator.clone(),
            text,
            case,
            follow,
            controls,
            to_make,
        });
    }

    /// Whether something is asserted on a channel on which the clause shows itself.
    fn is_anchored(&self, case: &Case) -> bool {
        self.document
            .clause(&case.clause)
            .is_some_and(|clause| !channels(&case.expects).is_disjoint(&clause.channels))
    }

    fn text(&mut self, said: &Said<'_>, case: &Case) -> Option<CaseText> {
        match CaseText::new(&without_marks(&case.text)) {
            Ok(text) => Some(text),
            Err(why) => {
                self.reject(said, why);
                None
            }
        }
    }

    fn reject(&mut self, said: &Said<'_>, why: impl Into<String>) {
        self.rejected.push(Rejected {
            variable: said.variable,
            operator: said.operator.clone(),
            why: why.into(),
        });
    }
}

/// Maps each control by a function that edits its text, and says whether it did.
fn map_controls<'s>(
    controls: &[&'s Case],
    map: impl Fn(&Case, &mut CaseText) -> Result<bool, String>,
) -> Vec<(&'s Case, Mapped)> {
    let mapped = |control: &Case| {
        let mut text = match CaseText::new(&control.text) {
            Ok(text) => text,
            Err(why) => return Mapped::No(why),
        };
        match map(control, &mut text) {
            Ok(false) => Mapped::Same,
            Ok(true) => Mapped::Text(text.finish(&[])),
            Err(why) => Mapped::No(why),
        }
    };
    controls
        .iter()
        .map(|control| (*control, mapped(control)))
        .collect()
}

/// Gives every input of a file the form; only for the one needed it is a fault when the form does not fit. A control's
/// input may have it already.
fn formed(
    form: &Form,
    relative: &Relative,
    case: &Case,
    inputs: &[String],
    needed: &str,
) -> Result<(CaseText, Follow), String> {
    let mut text = without_marks(&case.text);
    let mut follow = Follow::default();
    let mut n_applied = 0;
    for input in inputs {
        // Each input sees what was made for the one before, so that no name is taken twice.
        let now = parse(&case.id, &text)?;
        let mut edited = CaseText::new(&text)?;
        match forms::apply(form, relative, &now, &mut edited, input) {
            Ok(followed) => {
                text = edited.finish(&[]);
                n_applied += usize::from(input == needed);
                if input == needed {
                    follow = followed;
                }
            }
            Err(_) if input == needed && case.is_control() && forms::has(form, &now, input) => {
                n_applied += 1;
            }
            Err(why) if input == needed => return Err(why),
            Err(_) => {}
        }
    }
    if n_applied == 0 {
        return Err(format!("{needed} is none of the inputs"));
    }
    Ok((CaseText::new(&text)?, follow))
}

fn channels(expects: &[Expect]) -> BTreeSet<Channel> {
    let leaves = expects.iter().flat_map(Expect::leaves);
    leaves.filter_map(|leaf| leaf.channel).collect()
}

fn control_text(text: &str, title: &str, name: &str) -> Result<String, String> {
    let mut edited = CaseText::new(text)?;
    edited.set("title", title);
    let text = edited.finish(&[]);
    let id = CaseId::new(format!("{CONTROLS}/{name}"));
    parse(&id, &text).map(|_| text)
}

fn parse(id: &CaseId, text: &str) -> Result<Case, String> {
    Case::parse(id.clone(), Path::new(&format!("{id}.toml")), text).map_err(|findings| {
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        lines.join("; ")
    })
}

/// The text without the marks of an expansion before; a variant can be a seed.
fn without_marks(text: &str) -> String {
    let mark = format!("# {TO_MAKE}");
    text.lines()
        .filter(|line| !line.starts_with(&mark))
        .map(|line| format!("{line}\n"))
        .collect()
}
