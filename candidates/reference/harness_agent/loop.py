"""The turn: ask the model, carry out its calls, until a reply has none."""

from . import compaction
from .errors import ContextOverflow, ModelError, ToolError, TurnLimit
from .front import ALWAYS, NO, ONCE
from .hooks import Blocked, context_block
from .permissions import ALLOW, DENY, Call
from .texts import from_json
from .tools import NAMES, TOOLS
from .types import Message, ToolCall, ToolResult

MOST_STOP_BLOCKS = 3


class Agent:
    """A main conversation or a sub-agent at work on one turn."""

    def __init__(self, context, policy, system_text, model_name, most_rounds, is_sub_agent=False):
        self.context = context  # what tools see; its session holds the conversation
        self.conversation = context.conversation
        self.session = context.session
        self.policy = policy
        self.system = Message("system", system_text)
        self.model_name = model_name
        self.most_rounds = most_rounds
        self.is_sub_agent = is_sub_agent
        self.n_rounds = 0
        self.compaction_is_off = is_sub_agent
        self.had_overflow = False

    def offered(self) -> list[str]:
        """The names of the tools that the next request carries."""
        return [name for name in NAMES if self._exists(name) and self.policy.offers(name)]

    def run(self) -> str:
        """Work until a reply ends the turn, and return its text."""
        n_stop_blocks = 0
        while True:
            offered = self.offered()
            reply = self._next_reply(offered)
            self.n_rounds += 1
            self._name_calls(reply)
            self.session.append(reply)
            self._report_reply(reply)
            for call in reply.tool_calls:
                self._answer(call, offered)
            if not reply.tool_calls:
                reason = self._stop_hook(reply.content) if n_stop_blocks < MOST_STOP_BLOCKS else None
                if reason is None:
                    return reply.content
                n_stop_blocks += 1
                self.session.append(Message("user", context_block("stop", reason), origin="hook"))
            if self.n_rounds >= self.most_rounds:
                raise TurnLimit(f"turn limit of {self.most_rounds} reached")

    # One round.

    def _next_reply(self, offered):
        """Send the conversation until there is a reply that counts."""
        schemas = [TOOLS[name].schema() for name in offered]
        model = self.conversation.model
        self._compact_when_full()
        was_empty = False
        while True:
            try:
                reply = model.complete(self.model_name, [self.system, *self.session.messages], schemas)
            except ContextOverflow as overflow:
                if self.compaction_is_off or self.had_overflow or len(self.session.messages) < 2:
                    raise
                self.had_overflow = True
                self._compact_after(overflow)
                continue
            if reply.tool_calls or reply.content.strip():
                model.accept(reply)
                return Message("assistant", reply.content, reply.tool_calls)
            if was_empty:
                raise ModelError("model: empty reply")
            was_empty = True

    def _compact_when_full(self):
        settings = self.conversation.settings
        estimate = compaction.estimate_tokens([self.system, *self.session.messages])
        is_full = estimate > settings["compact_threshold"] * settings["context_window"]
        if self.compaction_is_off or not is_full or len(self.session.messages) < 2:
            return
        try:
            self.conversation.compact("auto", "", self.system, self.model_name)
        except Blocked as blocked:
            self.compaction_is_off = True
            self.conversation.front.warn(f"compaction blocked by a hook: {blocked}")
        except ModelError as error:
            self.compaction_is_off = True
            self.conversation.front.warn(f"compaction failed: {error}")

    def _compact_after(self, overflow: ContextOverflow):
        try:
            self.conversation.compact("auto", "", self.system, self.model_name)
        except Blocked as blocked:
            raise ModelError(f"{overflow}; compaction blocked by a hook: {blocked}") from None

    def _name_calls(self, reply):
        """Give calls without an id one that the conversation does not have yet."""
        taken = {call.id for message in self.session.messages for call in message.tool_calls}
        taken |= {call.id for call in reply.tool_calls}
        number = 0
        for call in reply.tool_calls:
            while not call.id:
                number += 1
                if f"call_{number}" not in taken:
                    call.id = f"call_{number}"
                    taken.add(call.id)

    def _report_reply(self, reply):
        if self.is_sub_agent:
            return
        self.conversation.outcome.turns += 1
        calls = [{"id": call.id, "name": call.name, "arguments": decoded(call.arguments)} for call in reply.tool_calls]
        self.conversation.front.event({"type": "assistant", "text": reply.content, "tool_calls": calls})

    def _stop_hook(self, text):
        """The reason why the turn goes on, or None."""
        if self.is_sub_agent:
            return None
        try:
            self.conversation.hooks.run("stop", self.session.id, text=text)
        except Blocked as blocked:
            return str(blocked)
        return None

    # One call.

    def _answer(self, call: ToolCall, offered):
        """Carry out a call and put its result into the conversation."""
        front, outcome = self.conversation.front, self.conversation.outcome
        facts = {"id": call.id, "name": call.name}
        arguments = decoded(call.arguments)
        front.verbose(f"tool {call.name}")
        if not self.is_sub_agent:
            front.event({"type": "tool_call", **facts, "arguments": arguments})
        result = self._result(call, offered)
        self.session.append(Message("tool", result.text, tool_call_id=call.id))
        outcome.denials += result.denied
        if not self.is_sub_agent:
            outcome.tool_calls.append(
                {"name": call.name, "arguments": arguments, "result": result.text, "denied": result.denied}
            )
            front.event({"type": "tool_result", **facts, "result": result.text, "denied": result.denied})

    def _exists(self, name) -> bool:
        if name == "task" and self.is_sub_agent:
            return False
        return name in TOOLS and (name != "remember" or self.conversation.settings["memory"])

    def _result(self, call: ToolCall, offered) -> ToolResult:
        """The checks in their order, then the tool, then the hooks after it."""
        if not self._exists(call.name):
            return ToolResult(f'error: unknown tool "{call.name}"; known tools: {", ".join(offered) or "none"}')
        hooks, session_id = self.conversation.hooks, self.conversation.session.id
        tool = TOOLS[call.name]
        try:
            arguments = tool.parse(call.arguments)
        except ToolError as error:
            return ToolResult(f"error: {error}")
        try:
            hooks.run("before_tool", session_id, tool=call.name, arguments=arguments)
        except Blocked as blocked:
            return ToolResult(f"error: denied: hook: {blocked}", denied=True)
        if denial := self._denial(call.name, arguments):
            return ToolResult(f"error: denied: {denial}", denied=True)
        try:
            text = tool.run(self.context, arguments).removesuffix("\n")
        except ToolError as error:
            text = f"error: {error}"
        except OSError as error:
            text = f"error: {call.name}: {error.strerror}"
        try:
            hooks.run("after_tool", session_id, tool=call.name, arguments=arguments, result=text)
        except Blocked as blocked:
            text += f"\n[hook: {blocked}]"
        return ToolResult(text)

    def _denial(self, name, arguments) -> str:
        """Why the call is denied, or nothing; asks for approval where that decides."""
        role_of_task = arguments.get("agent") or self.policy.role.name if name == "task" else ""
        call = Call(name, arguments, role_of_task)
        decision = self.policy.judge(call)
        if decision.verdict == ALLOW:
            return ""
        if decision.verdict == DENY:
            return decision.ground
        answer = self.conversation.front.approve(name, call.subject())
        if answer == ALWAYS:
            self.policy.approve_for_session(call)
        if answer in (ONCE, ALWAYS):
            return ""
        return "by the user" if answer == NO else f"needs approval ({decision.ground})"


def decoded(arguments: str):
    """The value of the arguments when they are JSON, else the text."""
    try:
        return from_json(arguments)
    except ValueError:
        return arguments
