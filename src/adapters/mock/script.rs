//! Which reply a request gets. Matched by what the request is: a call that offers no tools is a side call
//! (a summary, a title) and never consumes a step of the conversation.

use std::collections::VecDeque;

use crate::domain::case::Reply;
use crate::domain::evidence::ReplyKind;

/// What a call beyond the script is told.
pub const OVERRUN_TEXT: &str = "(end of script)";

/// The replies of one launch that are still to be given.
#[derive(Debug, Default)]
pub struct Script {
    steps: Queue,
    side: Queue,
}

/// Steps with the number that they have in the file, from 1, and how often they still serve.
type Queue = VecDeque<(usize, Reply, u32)>;

impl Script {
    pub fn new(replies: Vec<Reply>) -> Self {
        let mut script = Self::default();
        for (idx, reply) in replies.into_iter().enumerate() {
            let times = reply.times.unwrap_or(1);
            let queue = if reply.is_side() {
                &mut script.side
            } else {
                &mut script.steps
            };
            queue.push_back((idx + 1, reply, times));
        }
        script
    }

    /// The reply to the next request of the conversation.
    pub fn step(&mut self) -> (ReplyKind, Option<Reply>) {
        next(&mut self.steps).unwrap_or_else(|| (ReplyKind::Overrun, Some(said(OVERRUN_TEXT))))
    }

    /// The reply to the next side call; `text` when the script has none.
    pub fn side(&mut self, text: String) -> (ReplyKind, Option<Reply>) {
        next(&mut self.side).unwrap_or_else(|| (ReplyKind::Side, Some(said(&text))))
    }
}

fn next(queue: &mut Queue) -> Option<(ReplyKind, Option<Reply>)> {
    let (number, reply, left) = queue.front_mut()?;
    let answer = (ReplyKind::Step(*number), Some(reply.clone()));
    *left -= 1;
    if *left == 0 {
        queue.pop_front();
    }
    Some(answer)
}

fn said(text: &str) -> Reply {
    Reply {
        say: Some(text.to_owned()),
        ..Reply::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::case::When;

    #[test]
    fn side_calls_consume_no_step() {
        let step = |text: &str, times| Reply {
            times,
            ..said(text)
        };
        let summary = Reply {
            when: Some(When::ToolsAbsent),
            ..said("summary")
        };
        let mut script = Script::new(vec![step("a", Some(2)), summary, step("b", None)]);
        let mut check = |side: bool, kind: ReplyKind, text: &str| {
            let (seen, reply) = match side {
                true => script.side("canned".to_owned()),
                false => script.step(),
            };
            let said = reply.expect("a reply").say;
            assert_eq!((seen, said.as_deref()), (kind, Some(text)));
        };
        check(false, ReplyKind::Step(1), "a");
        check(true, ReplyKind::Step(2), "summary");
        check(true, ReplyKind::Side, "canned");
        check(false, ReplyKind::Step(1), "a");
        check(false, ReplyKind::Step(3), "b");
        check(false, ReplyKind::Overrun, OVERRUN_TEXT);
        check(false, ReplyKind::Overrun, OVERRUN_TEXT);
    }
}
