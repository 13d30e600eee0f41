//! What is wrong with an assertion in itself or beside the launches that it looks at.

use super::{Condition, Expect, Pick, PickNamed, Stream};
use crate::domain::case::{Bindings, Launch, Route, check_path, check_pattern};
use crate::domain::clause::Channel;
use crate::domain::evidence::KEPT_HEADERS;

impl Expect {
    /// What is wrong with it in itself or beside these launches.
    pub(in crate::domain) fn faults(&self, launches: &[Launch]) -> Vec<String> {
        if self.members().next().is_some() {
            return self.group_faults(launches);
        }
        let Some(channel) = self.channel else {
            return vec![
                "an assertion has a `channel`, or is a group: `any`, `all` or `not`".to_owned(),
            ];
        };
        let mut faults = Vec::new();
        let mut fault = |wrong: bool, text: &str| {
            if wrong {
                faults.push(text.to_owned());
            }
        };
        let texts = self.has.is_some()
            || self.lacks.is_some()
            || self.matches.is_some()
            || self.lacks_match.is_some();
        let values = self.equals.is_some() || self.not_equals.is_some();
        let files_only = self.exists.is_some()
            || self.unchanged.is_some()
            || self.mode.is_some()
            || self.changed.is_some();
        fault(
            !(texts
                || values
                || files_only
                || !self.order.is_empty()
                || self.bind.is_some()
                || self.after_ms.is_some()
                || self.count.is_some()
                || !self.one_of.is_empty()),
            "it asserts nothing: give has, lacks, matches, lacks_match, equals, not_equals, order, bind, one_of, after_ms, count, exists, unchanged, mode or changed",
        );
        fault(
            channel != Channel::Requests && (self.header.is_some() || self.after_ms.is_some()),
            "`header` and `after_ms` belong to channel \"requests\"",
        );
        fault(
            self.header.is_some() && self.at.is_some(),
            "`header` looks at a header and `at` into the body: give one of them",
        );
        let named = matches!(
            self.request,
            Some(Pick::Nth(2..) | Pick::Named(PickNamed::Last))
        );
        fault(
            self.after_ms.is_some() && !named,
            "`after_ms` goes with `request`, from 2 or \"last\"",
        );
        fault(
            self.changed.is_some()
                && (self.exists.is_some()
                    || self.unchanged.is_some()
                    || self.mode.is_some()
                    || texts
                    || values
                    || self.at.is_some()),
            "`changed` stands alone beside `path`, the folder that it looks at",
        );
        fault(
            self.order
                .iter()
                .any(|condition| *condition == Condition::default()),
            "a condition of `order` has has, matches, equals or like",
        );
        fault(
            self.bind
                .as_deref()
                .is_some_and(|name| !Bindings::is_name(name)),
            "a value is bound to a name in a-z, 0-9 and -",
        );
        fault(
            channel != Channel::Requests && self.request.is_some(),
            "`request` belongs to channel \"requests\"",
        );
        fault(
            (channel == Channel::Files) != self.path.is_some(),
            "`path` belongs to channel \"files\", always",
        );
        fault(
            channel != Channel::Files && files_only,
            "`exists`, `unchanged`, `mode` and `changed` belong to channel \"files\"",
        );
        fault(
            channel != Channel::Output && self.stream.is_some(),
            "`stream` belongs to channel \"output\"",
        );
        fault(
            channel == Channel::Exit
                && (texts
                    || self.at.is_some()
                    || self.count.is_some()
                    || self.bind.is_some()
                    || !self.order.is_empty()),
            "channel \"exit\" takes equals, not_equals or one_of",
        );
        fault(
            channel != Channel::Exit && !self.one_of.is_empty(),
            "`one_of` belongs to channel \"exit\"",
        );
        fault(
            channel == Channel::Files && self.launch.is_some(),
            "files are looked at after the last launch; `launch` has no meaning here",
        );
        fault(self.lines && self.at.is_none(), "`lines` goes with `at`");
        fault(
            self.lines && !matches!(channel, Channel::Files | Channel::Output),
            "`lines` belongs to the channels \"files\" and \"output\"",
        );
        fault(
            channel == Channel::Requests
                && self.at.is_none()
                && self.header.is_none()
                && self.count.is_none()
                && self.after_ms.is_none(),
            "a request is looked at through `at`, a JSONPath such as $.messages[-1].content",
        );
        fault(
            self.count.is_some() && self.at.is_none() && channel != Channel::Requests,
            "`count` goes with `at`",
        );
        if let Some(path) = &self.at {
            faults.extend(check_path(path).err());
        }
        let conditions = self.order.iter().map(|condition| &condition.matches);
        for pattern in [&self.matches, &self.lacks_match]
            .into_iter()
            .chain(conditions)
        {
            faults.extend(
                pattern
                    .as_deref()
                    .and_then(|text| check_pattern(text).err()),
            );
        }
        if let Some(name) = &self.header
            && !KEPT_HEADERS.contains(&name.as_str())
        {
            let kept = KEPT_HEADERS.join(", ");
            faults.push(format!(
                "of a request these headers are kept: {kept}; {name:?} is not"
            ));
        }
        let conditions = self.order.iter().map(|condition| &condition.has);
        let texts = [&self.has, &self.lacks].into_iter().chain(conditions);
        for text in texts.flatten() {
            if text.as_slice().is_empty() || text.as_slice().iter().any(String::is_empty) {
                faults.push("an empty text is in everything".to_owned());
            }
        }
        faults.extend(self.unreachable(channel, launches));
        faults
    }

    /// Assertions that no run can ever reach.
    fn unreachable(&self, channel: Channel, launches: &[Launch]) -> Vec<String> {
        let mut faults = Vec::new();
        if let Some(n) = self.launch
            && (n == 0 || n > launches.len())
        {
            faults.push(format!(
                "launch {n} is never reached: the case has {}",
                launches.len()
            ));
            return faults;
        }
        let looked_at: Vec<&Launch> = match (self.launch, channel) {
            (Some(n), _) => vec![&launches[n - 1]],
            (None, Channel::Output | Channel::Exit) => launches.last().into_iter().collect(),
            (None, _) => launches.iter().collect(),
        };
        if let Some(Pick::Nth(n)) = self.request {
            let n_reachable: usize = looked_at.iter().map(|launch| launch.n_steps()).sum();
            if n == 0 || n > n_reachable {
                faults.push(format!(
                    "request {n} is never reached: the script answers {n_reachable}"
                ));
            }
        }
        let terminal = looked_at
            .iter()
            .any(|launch| launch.route == Route::Terminal);
        if self.stream == Some(Stream::Screen) && !terminal {
            faults.push("there is no screen: no launch looked at is a terminal".to_owned());
        }
        faults
    }

    fn group_faults(&self, launches: &[Launch]) -> Vec<String> {
        let members = self.members();
        let mut faults: Vec<String> = members.flat_map(|one| one.faults(launches)).collect();
        let bare = |any: &[Self], all: &[Self], not: Option<&Self>| Self {
            any: any.to_vec(),
            all: all.to_vec(),
            not: not.cloned().map(Box::new),
            ..Self::default()
        };
        let alone = *self == bare(&self.any, &[], None)
            || *self == bare(&[], &self.all, None)
            || *self == bare(&[], &[], self.not.as_deref());
        if !alone {
            faults.push("a group stands alone; put the rest into its members".to_owned());
        }
        if self.leaves().iter().any(|leaf| leaf.bind.is_some()) {
            faults.push("`bind` has no meaning inside a group".to_owned());
        }
        faults
    }
}
