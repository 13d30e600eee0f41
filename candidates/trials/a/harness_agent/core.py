"""The conversation of a process: turns, rounds, tool calls, compaction, sub-agents."""

from dataclasses import dataclass, field

from . import arguments, memory, store
from .config import Config
from .conventions import Conventions
from .globs import Ignore
from .hooks import Hooks, block
from .library import Role, stricter
from .mentions import attach
from .model import ChatModel, ModelError, base_url
from .permissions import Judge
from .rules import TOOL_NAMES
from .store import Session
from .tools import ToolBox
from .types import Message, ToolResult
from .util import HarnessError, loads

SUMMARIZE = "Summarize the conversation so far"


@dataclass
class Run:
    """The numbers of one run."""

    turns: int = 0
    denials: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    tool_calls: list = field(default_factory=list)

    def usage(self) -> dict:
        return {"requests": self.requests, "input_tokens": self.input_tokens, "output_tokens": self.output_tokens}


@dataclass
class Turn:
    """What stays the same within one turn."""

    system: Message
    role: Role
    ignore: Ignore
    blocks: tuple  # conventions and memory, for sub-agents
    skills: dict
    overflowed: bool = False
    no_compaction: bool = False
    just_compacted: bool = False  # after an overflow: not once more before the same request
    stops: int = 0
    rounds: int = 0


@dataclass
class Agent:
    """Who makes a call: the main conversation or a sub-agent."""

    role: Role
    roles: list  # its own and, in a sub-agent, its caller's
    mode: str
    turn: Turn
    sub: bool
    reads: object
    set_todos: object
    model: str = ""


class Reads:
    """What a sub-agent has read."""

    def __init__(self):
        self.known = {}

    def get(self, path):
        return self.known.get(path)

    def set(self, path, hash):
        self.known[path] = hash


class SessionReads:
    def __init__(self, session: Session):
        self.session = session

    def get(self, path):
        return self.session.reads.get(path)

    def set(self, path, hash):
        self.session.set_read(path, hash)


class Core:
    """Everything that one process knows about its conversation."""

    def __init__(self, config: Config, console, session: Session = None):
        self.console = console
        self.typed_model = None
        self.typed_mode = None
        self.option_model = None
        self.option_mode = None
        self.added_roots = []
        self.total = Run()
        self.run = Run()
        self.emit = lambda event: None
        self.approve = lambda question: None  # True, False, "all", or None: nobody is there
        self.question = None  # puts a question of `ask`; None: nobody can answer
        self.started = {}  # session id -> what its session_start hooks printed
        self.configure(config)
        self.session = session or self.new_session()

    def configure(self, config: Config) -> None:
        self.config = config
        self.workspace = config.workspace
        self.home = config.home
        self.judge = Judge(self.workspace, config.rules("deny"), config.rules("ask"), config.rules("allow"))
        self.env = config.value("env")
        self.hooks = Hooks(config.value("hooks"), self.workspace, self.env, self.console)

    def new_session(self, id="") -> Session:
        session = Session(self.home, self.workspace, id)
        session.saving = self.config.saving
        return session

    # What is in effect

    @property
    def roots(self) -> list[str]:
        return [self.workspace, *self.config.added, *self.added_roots]

    def run_mode(self) -> str:
        return self.option_mode or self.typed_mode or self.config.mode

    def mode(self, role: Role = None) -> str:
        return stricter(self.run_mode(), (role or self.config.role()).mode)

    def model_name(self, role: Role = None):
        if self.option_model:
            return self.option_model
        return self.config.model(self.typed_model, self.session.model, (role or self.config.role()).model)

    def offered(self, roles: list[Role], mode: str, sub=False) -> list[str]:
        return [t for t in TOOL_NAMES if not self.judge.hidden(t, roles, mode)
                and not (t == "remember" and not self.config.memory) and not (t == "task" and sub)]

    def offered_now(self) -> list[str]:
        role = self.config.role()
        return self.offered([role], self.mode(role))

    # The system message

    def _builtin(self, role: Role) -> str:
        text = ("You are a coding agent. You work on the files of a workspace with the tools that are offered. "
                "Read a file before you change it, keep changes small, and say briefly what you did.\n"
                f"Workspace: {self.workspace}\nRole: {role.name}")
        if role.builtin and role.name == "architect":
            text += "\nPropose changes; do not make them."
        return text

    def _skills_block(self, skills: dict, offered: list[str]) -> str:
        if not skills or "skill" not in offered:
            return ""
        lines = []
        for name, skill in skills.items():
            about = skill.description
            lines.append(f"- {name}: {about if len(about) <= 1024 else about[:1024] + '…'}")
        return "\n".join(["<skills>", *lines, "</skills>"])

    def begin_turn(self, role: Role) -> Turn:
        ignore = Ignore(self.workspace)
        conventions = []
        if not self.config.flags.get("no-conventions"):
            conventions = Conventions(self.workspace, self.home, self.roots, ignore, self.console).blocks()
        remembered = []
        if self.config.memory:
            remembered = memory.blocks(self.workspace, self.home, self.roots, self.console)
        skills = self.config.library.skills()
        blocks = (*conventions, *remembered)
        flags = self.config.flags
        parts = [flags.get("system-prompt") or self._builtin(role), role.text, *blocks,
                 self._skills_block(skills, self.offered([role], self.mode(role))),
                 *self.started.get(self.session.id, []), flags.get("append-system-prompt", "")]
        system = Message("system", "\n\n".join(p for p in parts if p))
        return Turn(system, role, ignore, blocks, skills)

    # Requests

    def _on_request(self):
        self.run.requests += 1
        self.total.requests += 1
        self.console.note(f"request {self.total.requests}")

    def _on_retry(self, attempt, wait, reason):
        self.emit({"type": "retry", "attempt": attempt, "wait_s": wait, "reason": reason})

    def need_model(self, role: Role = None) -> str:
        base_url()
        name = self.model_name(role)
        if not name:
            raise HarnessError(3, "no model is named: use --model, HARNESS_MODEL or the setting model")
        return name

    def ask_model(self, name: str, messages: list[Message], tools, side=False) -> Message:
        """One accepted reply; an empty one is repeated once."""
        model = ChatModel(name, self.config.stream, self.config.value("max_retries"),
                          self.config.value("retry_base_s"), self._on_request, self._on_retry)
        for _ in range(2):
            reply = model.complete(messages, tools)
            if (reply.content.strip() or reply.tool_calls) and not (side and reply.tool_calls):
                sent, received = model.last_usage
                for counts in (self.run, self.total):
                    counts.input_tokens += sent
                    counts.output_tokens += received
                return reply
        raise ModelError("empty reply")

    @staticmethod
    def name_calls(reply: Message, messages: list[Message]) -> None:
        """Gives every call without an id one that is unique in the conversation."""
        taken = {c.id for m in messages for c in m.tool_calls} | {c.id for c in reply.tool_calls}
        n = 0
        for call in reply.tool_calls:
            while not call.id:
                n += 1
                if f"call_{n}" not in taken:
                    call.id = f"call_{n}"
                    taken.add(call.id)

    @staticmethod
    def schemas(names: list[str]) -> list[dict]:
        return [{"type": "function", "function": arguments.function_of(n)} for n in names]

    # A turn

    def prompt(self, text: str) -> str:
        """One turn of the main conversation: the answer, or a HarnessError."""
        role = self.config.role()
        model = self.need_model(role)
        content, attached = attach(self, text)
        self._session_start()
        reason, printed = self.hooks.run("user_prompt", self.session.id, {"prompt": content})
        if reason:
            raise HarnessError(7, f"blocked by a hook: {reason}")
        content += "".join("\n\n" + block("user_prompt", p) for p in printed)
        self.session.used_model = self.session.used_model if self.session.stored else model
        turn = self.begin_turn(role)
        self.session.append(Message("user", content))
        for path, hash in attached.items():
            self.session.set_read(path, hash)
        try:
            return self._rounds(turn)
        except ModelError as e:
            raise HarnessError(4, f"model: {e.reason}") from None

    def _session_start(self) -> None:
        if self.session.id in self.started:
            return
        source = "resumed" if self.session.messages else "new"
        reason, printed = self.hooks.run("session_start", self.session.id, {"source": source})
        if reason:
            raise HarnessError(7, f"blocked by a hook: {reason}")
        self.started[self.session.id] = [block("session_start", p) for p in printed]

    def _agent(self, turn: Turn) -> Agent:
        return Agent(turn.role, [turn.role], self.mode(turn.role), turn, False, SessionReads(self.session),
                     self.session.set_todos, self.model_name(turn.role))

    def _rounds(self, turn: Turn) -> str:
        session = self.session
        while True:
            agent = self._agent(turn)
            names = self.offered(agent.roles, agent.mode)
            self._compact_if_full(turn)
            try:
                reply = self.ask_model(agent.model, [turn.system, *session.messages], self.schemas(names))
            except ModelError as e:
                if not e.overflow:
                    raise
                self._after_overflow(turn, e)
                continue
            turn.rounds += 1
            self.run.turns += 1
            self.name_calls(reply, session.messages)
            session.append(reply)
            self.emit({"type": "assistant", "text": reply.content, "tool_calls": [
                {"id": c.id, "name": c.name, "arguments": _decoded(c.arguments)} for c in reply.tool_calls]})
            if reply.tool_calls:
                self._main_calls(agent, names, reply)
            elif not self._stop_blocked(turn, reply):
                return reply.content
            limit = self.config.max_turns
            if turn.rounds >= limit:
                raise HarnessError(5, f"turn limit of {limit} reached")

    def _stop_blocked(self, turn: Turn, reply: Message) -> bool:
        if turn.stops >= 3:
            return False
        reason, _ = self.hooks.run("stop", self.session.id, {"text": reply.content})
        if not reason:
            return False
        turn.stops += 1
        self.session.append(Message("user", f'<hook event="stop">\n{reason}\n</hook>', kind="hook"))
        return True

    def _main_calls(self, agent: Agent, names: list[str], reply: Message) -> None:
        for call in reply.tool_calls:
            args = _decoded(call.arguments)
            self.emit({"type": "tool_call", "id": call.id, "name": call.name, "arguments": args})
            result = self.call(agent, names, call)
            self.session.append(Message("tool", result.text, tool_call_id=call.id))
            self.run.tool_calls.append({"name": call.name, "arguments": args, "result": result.text,
                                        "denied": result.denied})
            self.emit({"type": "tool_result", "id": call.id, "name": call.name, "result": result.text,
                       "denied": result.denied})

    # One call

    def call(self, agent: Agent, names: list[str], call) -> ToolResult:
        self.console.note(f"tool {call.name}")
        result = self._call(agent, names, call)
        if result.denied:
            self.run.denials += 1
        return result

    def _call(self, agent: Agent, names: list[str], call) -> ToolResult:
        tool = call.name
        absent = (tool == "remember" and not self.config.memory) or (tool == "task" and agent.sub)
        if tool not in TOOL_NAMES or absent:
            return ToolResult(f'error: unknown tool "{tool}"; known tools: {", ".join(names)}')
        args, fault = arguments.decode(call.arguments)
        if not fault:
            given = args
            args, fault = arguments.check(tool, args)
        if fault:
            return ToolResult(fault)
        reason, _ = self._tool_hooks("before_tool", tool, given)
        if reason:
            return ToolResult(f"error: denied: hook: {reason}", True)
        denied = self._judged(agent, tool, args)
        if denied:
            return ToolResult(f"error: denied: {denied}", True)
        text = ToolBox(self, agent).run(tool, args)
        reason, _ = self._tool_hooks("after_tool", tool, given, result=text)
        if reason:
            text += f"\n[hook: {reason}]"
        return ToolResult(text)

    def _tool_hooks(self, event, tool, args, **more):
        return self.hooks.run(event, self.session.id, {"tool": tool, "arguments": args, **more}, tool)

    def _judged(self, agent: Agent, tool: str, args: dict) -> str:
        """Why the call is denied, or ""."""
        verdict = self.judge.judge(tool, args, agent.roles, agent.mode)
        if verdict.decision == "allow":
            return ""
        if verdict.decision == "deny":
            return verdict.reason
        key = self.judge.approval_key(tool, args, agent.role.name)
        if key in self.session.approvals:
            return ""
        answer = self.approve(f"allow {tool} {self.judge.subject(tool, args)}? [y/a/n] ")
        if answer is None:
            return f"needs approval ({verdict.reason})"
        if answer == "all":
            self.session.approvals.add(key)
        return "" if answer else "by the user"

    # Sub-agents

    def sub_agent(self, caller: Agent, prompt: str, name: str) -> str:
        roles = self.config.library.roles()
        if name and name not in roles:
            return f'error: unknown agent "{name}"; known agents: {", ".join(roles)}'
        role = roles[name] if name else caller.role
        model = (role.model if name else "") or caller.model
        turn = caller.turn
        mode = stricter(caller.mode, role.mode)
        agent = Agent(role, [role, *caller.roles] if role is not caller.role else caller.roles, mode, turn, True,
                      Reads(), lambda items: None, model)
        names = self.offered(agent.roles, mode, True)
        parts = [self._builtin(role), role.text, *turn.blocks, self._skills_block(turn.skills, names)]
        messages = [Message("system", "\n\n".join(p for p in parts if p)), Message("user", prompt)]
        for _ in range(20):
            try:
                reply = self.ask_model(model, messages, self.schemas(names))
            except ModelError as e:
                return f"error: sub-agent failed: {e.reason}"
            self.name_calls(reply, messages)
            messages.append(reply)
            if not reply.tool_calls:
                return reply.content.strip()
            for call in reply.tool_calls:
                result = self.call(agent, names, call)
                messages.append(Message("tool", result.text, tool_call_id=call.id))
        return "error: sub-agent reached its turn limit of 20"

    # Compaction

    @staticmethod
    def estimate(messages: list[Message]) -> int:
        count = 0
        for m in messages:
            count += len(m.content) + sum(len(c.name) + len(c.arguments) for c in m.tool_calls)
        return -(-count // 4)

    def _compact_if_full(self, turn: Turn) -> None:
        session = self.session
        limit = self.config.value("compact_threshold") * self.config.value("context_window")
        if turn.just_compacted:
            turn.just_compacted = False
            return
        if turn.no_compaction or len(session.messages) < 2 \
                or self.estimate([turn.system, *session.messages]) <= limit:
            return
        try:
            self._compact(turn, "auto")
        except _Blocked as e:
            turn.no_compaction = True
            self.console.warning(f"compaction blocked by a hook: {e}")
        except ModelError as e:
            if e.overflow:
                raise
            turn.no_compaction = True
            self.console.warning(f"compaction failed: {e.reason}")

    def _after_overflow(self, turn: Turn, error: ModelError) -> None:
        """Compacts, so that the request can be sent again; else the turn ends."""
        if turn.overflowed or len(self.session.messages) < 2:
            raise error
        turn.overflowed = True
        try:
            self._compact(turn, "auto")
        except _Blocked as e:
            raise ModelError(f"{error.reason}; compaction blocked by a hook: {e}") from None
        turn.just_compacted = True

    def _compact(self, turn: Turn, trigger: str, instructions="") -> None:
        session = self.session
        reason, _ = self.hooks.run("before_compact", session.id, {"trigger": trigger})
        if reason:
            raise _Blocked(reason)
        request = SUMMARIZE + ", so that the work can go on from your summary alone."
        if instructions:
            request += "\n\n" + instructions
        reply = self.ask_model(self.need_model(turn.role), [turn.system, *session.messages, Message("user", request)],
                               None, side=True)
        session.compacted(trigger, reply.content, trigger == "auto")
        self.emit({"type": "compact", "trigger": trigger, "summary": reply.content})

    def compact_now(self, instructions: str) -> str:
        count = len(self.session.messages)
        if count < 2:
            return "nothing to compact"
        role = self.config.role()
        self.need_model(role)
        try:
            self._compact(self.begin_turn(role), "manual", instructions)
        except _Blocked as e:
            raise HarnessError(7, f"blocked by a hook: {e}") from None
        except ModelError as e:
            raise HarnessError(4, f"model: {e.reason}") from None
        return f"compacted {count} messages"

    # Moving between sessions

    def move_to(self, session: Session) -> None:
        self.session = session

    def resumed(self, id: str) -> Session:
        return store.resume(self.home, id, self.workspace, self.console, self.config.saving)

    def forked(self, source: Session, id="") -> Session:
        self_model = self.config.model(self.typed_model, source.model, self.config.role().model)
        return store.fork(source, self.workspace, self.option_model or self_model, self.config.saving, id)


class _Blocked(Exception):
    pass


def _decoded(text: str):
    try:
        return loads(text)
    except ValueError:
        return text


