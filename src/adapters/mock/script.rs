//! Which reply a request gets. Matched by what the request is: a call that offers no tools is a side call
//! (a summary, a title) and never consumes a step of the conversation.

use std::collections::VecDeque;

use crate::domain::case::Reply;
use crate::domain::evidence::ReplyKind;

/// What a call without tools is told when the script has nothing for it.
pub const SIDE_TEXT: &str = "(side reply)";
/// What a call beyond the script is told.
pub const OVERRUN_TEXT: &str = "(end of script)";

/// The replies of one launch that are still to be given.
#[derive(Debug, Default)]
pub struct Script {
    /// Steps with the number that they have in the file, from 1, and how often they still serve.
    steps: VecDeque<(usize, Reply, u32)>,
    side: VecDeque<(usize, Reply, u32)>,
}

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

    /// The reply to the next request; `side` says that it offers no tools.
    pub fn next(&mut self, side: bool) -> (ReplyKind, Reply) {
        let queue = if side {
            &mut self.side
        } else {
            &mut self.steps
        };
        match queue.front_mut() {
            Some((number, reply, left)) => {
                let answer = (ReplyKind::Step(*number), reply.clone());
                *left -= 1;
                if *left == 0 {
                    queue.pop_front();
                }
                answer
            }
            None if side => (ReplyKind::Side, said(SIDE_TEXT)),
            None => (ReplyKind::Overrun, said(OVERRUN_TEXT)),
        }
    }
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
            let (seen, reply) = script.next(side);
            assert_eq!((seen, reply.say.as_deref()), (kind, Some(text)));
        };
        check(false, ReplyKind::Step(1), "a");
        check(true, ReplyKind::Step(2), "summary");
        check(true, ReplyKind::Side, SIDE_TEXT);
        check(false, ReplyKind::Step(1), "a");
        check(false, ReplyKind::Step(3), "b");
        check(false, ReplyKind::Overrun, OVERRUN_TEXT);
        check(false, ReplyKind::Overrun, OVERRUN_TEXT);
    }
}
