"""The harness of one process: its configuration, its turns, its calls."""

import os

from . import attach, content, shell
from .arguments import Fault, check, decode, function_of
from .base import Console, HarnessError, cut, js, parse_json
from .client import Client, ModelError, Overflow, base_url
from .files import ToolError, edit, patch, read, write
from .globs import Ignore
from .judge import Subject, judge, stricter, tools_offered
from .rules import FILE_TOOLS, TOOLS
from .search import glob_tool, grep_tool, list_tool
from .session import Session
from .settings import Settings
from .types import ToolResult

SUB_LIMIT = 20


class Nobody:
    """Answers approvals and questions where no user is."""

    def approve(self, question):
        return "needs"

    def ask(self, question, options):
        return None


class Turn:
    """What stays the same through one turn."""

    def __init__(self, harness):
        self.roles = content.roles(harness.cwd)
        name = harness.role_name()
        if name not in self.roles:
            raise HarnessError(2, f"--agent: unknown role {name}; known roles: " + ", ".join(self.roles))
        self.role = self.roles[name]
        self.ignore = Ignore(harness.cwd)
        roots = harness.roots()
        flags = harness.flags
        self.conventions = "" if flags.get("no-conventions") else content.conventions(harness.cwd, roots, self.ignore)
        self.memory = content.memory_blocks(harness.cwd, roots) if harness.memory_on() else ""
        self.skills = content.skills(harness.cwd)
        self.compacted_for_overflow = False
        self.no_compaction = False
        self.rounds = 0
        self.stops = 0

    def system(self, harness, role, offered, sub=False, hook_text=""):
        flags = {} if sub else harness.flags
        parts = [flags["system-prompt"] if "system-prompt" in flags else content.built_in_text(harness.cwd, role),
                 role.text, self.conventions, self.memory,
                 content.skills_block(self.skills) if "skill" in offered else "",
                 "" if sub else hook_text, flags.get("append-system-prompt", "")]
        return "\n\n".join(part for part in parts if part)


class Scope:
    """What a tool may know and touch: of the main conversation, or of a sub-agent."""

    def __init__(self, harness, turn, roles, mode, sub=False):
        self.harness, self.turn, self.role_list, self.mode, self.sub = harness, turn, roles, mode, sub
        self.cwd = harness.cwd
        self.ignore = turn.ignore
        self.sub_reads = {}
        self.offered = []

    @property
    def reads(self):
        return self.sub_reads if self.sub else self.harness.session.reads

    def roots(self):
        return self.harness.roots()

    def rules(self, name):
        return self.harness.rules(name)

    def note_read(self, path, sha):
        if not self.sub:
            self.harness.session.note_read(path, sha)
        elif sha is None:
            self.sub_reads.pop(path, None)
        else:
            self.sub_reads[path] = sha

    def announce(self, changes):
        session = self.harness.session
        return session.changes.announce(session.current_turn(), changes, session.save)

    def done(self, numbers):
        session = self.harness.session
        session.changes.done(numbers, session.save)

    def withdraw(self, numbers):
        self.harness.session.changes.withdraw(numbers)


def new_usage():
    return {"requests": 0, "input_tokens": 0, "output_tokens": 0}


class Harness:
    def __init__(self, flags, cwd, interactive=False):
        self.flags = flags
        self.cwd = cwd
        self.interactive = interactive
        self.options = {}  # of one run of the evaluation API, by the names of flags
        self.settings = None
        self.setting_dirs = []
        self.session = None
        self.typed_model = None
        self.typed_mode = None
        self.added = []
        self.approved = set()
        self.hook_texts = {}
        self.jobs = shell.Jobs()
        self.client = Client()
        self.client.on_retry = lambda n, wait, why: self.emit(
            {"type": "retry", "attempt": n, "wait_s": wait, "reason": why})
        self.total = new_usage()
        self.approver = Nobody()
        self.emit = lambda event: None
        self.left = False
        self.stopped = None  # the signal that ended a turn
        self.begin_run()

    # ---- configuration

    def begin_run(self):
        self.usage = new_usage()
        self.client.listeners = [self.total, self.usage]
        self.tool_calls = []
        self.denials = 0
        self.turns = 0

    def load_settings(self):
        settings = Settings(self.cwd, self.flags.get("settings"))
        self.settings = settings
        self.setting_dirs = settings.directories()

    def option(self, name):
        return self.options[name] if name in self.options else self.flags.get(name)

    def roots(self):
        out = [self.cwd]
        for path in self.setting_dirs + self.flag_dirs() + self.added:
            if path not in out:
                out.append(path)
        return out

    def flag_dirs(self):
        names = list(self.flags.get("add-dir", [])) + list(self.options.get("add-dir", []))
        return [os.path.realpath(os.path.join(self.cwd, name)) for name in names]

    def rules(self, name):
        more = list(self.flags.get(name, [])) + list(self.options.get(name, [])) if name != "ask" else []
        key = (id(self.settings), name, tuple(more))
        if getattr(self, "_rules", {}).get(name, (None,))[0] != key:
            self._rules = {**getattr(self, "_rules", {}), name: (key, self.settings.rules(name, more))}
        return self._rules[name][1]

    def role_name(self):
        return self.option("agent") or "build"

    def memory_on(self):
        return not self.flags.get("no-memory") and self.settings.get("memory")

    def run_mode(self):
        if "permission-mode" in self.options:
            return self.options["permission-mode"]
        return self.typed_mode or self.flags.get("permission-mode") or self.settings.get("permission_mode")

    def role(self):
        roles = content.roles(self.cwd)
        name = self.role_name()
        if name not in roles:
            raise HarnessError(2, f"--agent: unknown role {name}; known roles: " + ", ".join(roles))
        return roles[name]

    def mode(self, role=None):
        return stricter(self.run_mode(), (role or self.role()).mode)

    def model_name(self, role=None):
        if "model" in self.options:
            return self.options["model"]
        if self.typed_model:
            return self.typed_model
        if self.flags.get("model"):
            return self.flags["model"]
        if self.session is not None and self.session.model_choice:
            return self.session.model_choice
        if role is None:
            role = content.roles(self.cwd).get(self.role_name())
        if role is not None and role.model:
            return role.model
        return self.settings.get("model")

    def streaming(self):
        return bool(self.flags.get("stream")) or self.settings.get("stream")

    def max_turns(self):
        return self.option("max-turns") or self.settings.get("max_turns")

    def offered(self, role=None):
        role = role or self.role()
        return tools_offered([role], self.mode(role), self.rules("deny"), self.memory_on())

    # ---- sessions

    def adopt(self, session):
        """Moves to a session."""
        self.session = session
        session.save = not self.option("no-save")
        session.model_name = self.model_name
        self.approved = set()

    def new_session(self, session_id=None):
        self.adopt(Session(self.cwd, session_id))

    # ---- hooks

    def hooks(self, event, extra, tool=None):
        """(blocked or None, texts): runs the hooks of one event."""
        texts = []
        for hook in self.settings.get("hooks").get(event, []):
            if tool is not None:
                match = (hook.get("match") or "").strip()
                if match not in ("", "*") and tool not in [m.strip() for m in match.split("|")]:
                    continue
            timeout = hook.get("timeout_s", 10)
            data = {"event": event, "session_id": self.session.id, "cwd": self.cwd, **extra}
            try:
                status, out, err = shell.run_hook(
                    hook["command"], self.cwd, shell.environment(self.settings), timeout,
                    js(data).encode("utf-8", "replace") + b"\n")
            except (OSError, ValueError) as error:
                Console.warn(f"hook {event}: {getattr(error, 'strerror', None) or error}")
                continue
            if status == 2:
                return err.strip() or "blocked", texts
            if status is None:
                Console.warn(f"hook {event}: timed out after {timeout} s")
            elif status:
                Console.warn(f"hook {event}: exit {status}")
            elif out.strip():
                texts.append(f'<hook event="{event}">\n{cut(out.strip(), 10000)}\n</hook>')
        return None, texts

    # ---- prompts for the model

    def check_model(self):
        base_url()
        if not self.model_name():
            raise HarnessError(3, "no model is named: use --model, HARNESS_MODEL or the setting model")

    def ask_model(self, text):
        """One turn; returns the answer."""
        self.check_model()
        session = self.session
        session.repair()
        turn = Turn(self)
        role = turn.role
        prompt, reads = attach.attach(text, self, turn)
        if session.id not in self.hook_texts:
            source = "resumed" if session.entries else "new"
            blocked, texts = self.hooks("session_start", {"source": source})
            if blocked:
                raise HarnessError(7, f"blocked by a hook: {blocked}")
            self.hook_texts[session.id] = "\n\n".join(texts)
        blocked, texts = self.hooks("user_prompt", {"prompt": prompt})
        if blocked:
            raise HarnessError(7, f"blocked by a hook: {blocked}")
        for block in texts:
            prompt += "\n\n" + block
        session.add({"role": "user", "content": prompt})
        for path, sha in reads:
            session.note_read(path, sha)
        return self._loop(turn, role)

    def system_message(self, turn):
        offered = self.offered(turn.role)
        return turn.system(self, turn.role, offered, hook_text=self.hook_texts.get(self.session.id, ""))

    def body(self, model, system, messages, offered=None):
        body = {"model": model, "messages": [{"role": "system", "content": system}] + messages}
        if offered is not None:
            body["tools"] = [{"type": "function", "function": function_of(name)} for name in offered]
        body["stream"] = self.streaming()
        if body["stream"]:
            body["stream_options"] = {"include_usage": True}
        return body

    def _loop(self, turn, role):
        session = self.session
        scope = Scope(self, turn, [role], self.mode(role))
        system = self.system_message(turn)
        limit = self.max_turns()
        while True:
            self._maybe_compact(turn, system)
            scope.offered = self.offered(role)
            reply = self._main_request(turn, system, scope, role)
            turn.rounds += 1
            self.turns += 1
            message = assistant_message(reply, session.messages())
            session.add(message)
            calls = message.get("tool_calls", [])
            self.emit({"type": "assistant", "text": reply.content, "tool_calls": [
                {"id": c["id"], "name": c["function"]["name"], "arguments": decoded(c["function"]["arguments"])}
                for c in calls]})
            for call in calls:
                self._main_call(call, scope)
            if calls:
                if turn.rounds >= limit:
                    raise HarnessError(5, f"turn limit of {limit} reached")
                continue
            if turn.stops < 3:
                blocked, _ = self.hooks("stop", {"text": reply.content})
                if blocked:
                    turn.stops += 1
                    session.add({"role": "user", "content": f'<hook event="stop">\n{blocked}\n</hook>'}, "hook")
                    if turn.rounds >= limit:
                        raise HarnessError(5, f"turn limit of {limit} reached")
                    continue
            return reply.content

    def _main_call(self, call, scope):
        function = call["function"]
        value = decoded(function["arguments"])
        head = {"id": call["id"], "name": function["name"]}
        self.emit({"type": "tool_call", **head, "arguments": value})
        result = self.execute(function, scope)
        self.session.add({"role": "tool", "tool_call_id": call["id"], "content": result.text})
        self.tool_calls.append({"name": function["name"], "arguments": value, "result": result.text,
                                "denied": result.denied})
        self.emit({"type": "tool_result", **head, "result": result.text, "denied": result.denied})

    def _main_request(self, turn, system, scope, role):
        while True:
            body = self.body(self.model_name(role), system, self.session.messages(), scope.offered)
            try:
                return self.client.complete(body, self.settings)
            except Overflow as error:
                failure = ModelError(error.reason + ": context length exceeded")
                if turn.compacted_for_overflow or turn.no_compaction:
                    raise failure from None
                turn.compacted_for_overflow = True
                try:
                    done = self.compact("auto", "", system)
                except (ModelError, Blocked):
                    raise failure from None
                if not done:
                    raise failure from None

    # ---- compaction

    def estimate(self, system, messages):
        total = len(system)
        for message in messages:
            total += len(message["content"])
            for call in message.get("tool_calls", []):
                total += len(call["function"]["name"]) + len(call["function"]["arguments"])
        return -(-total // 4)

    def _maybe_compact(self, turn, system):
        if turn.no_compaction or len(self.session.entries) < 2:
            return
        limit = self.settings.get("compact_threshold") * self.settings.get("context_window")
        if self.estimate(system, self.session.messages()) <= limit:
            return
        try:
            self.compact("auto", "", system)
        except Blocked as error:
            turn.no_compaction = True
            Console.warn(f"compaction blocked by a hook: {error}")
        except ModelError as error:
            turn.no_compaction = True
            Console.warn(f"compaction failed: {error.message}")

    def compact(self, trigger, instructions, system):
        """The number of messages that were compacted; 0 when there are too few."""
        session = self.session
        count = len(session.entries)
        if count < 2:
            return 0
        blocked, _ = self.hooks("before_compact", {"trigger": trigger})
        if blocked:
            raise Blocked(blocked)
        text = "Summarize the conversation so far, so that the work can go on from the summary alone."
        if instructions:
            text += "\n\n" + instructions
        body = self.body(self.model_name(), system, session.messages() + [{"role": "user", "content": text}])
        try:
            reply = self.client.complete(body, self.settings)
        except Overflow as error:
            raise ModelError(error.reason + ": context length exceeded") from None
        kept = 1 if trigger == "auto" else 0
        session.record({"type": "compact", "trigger": trigger, "summary": reply.content, "kept": kept})
        session.compacted(reply.content, kept)
        self.emit({"type": "compact", "trigger": trigger, "summary": reply.content})
        return count

    # ---- calls

    def execute(self, function, scope):
        """The result of one call, and whether it was denied."""
        name = function["name"]
        Console.verbose(f"tool {name}")
        if name not in TOOLS or (name == "remember" and not self.memory_on()) or (name == "task" and scope.sub):
            known = ", ".join(scope.offered) or "none"
            return ToolResult(f'error: unknown tool "{name}"; known tools: {known}')
        try:
            raw = decode(function["arguments"])
            arguments = check(name, raw)
        except Fault as fault:
            return ToolResult(f"error: {fault}")
        blocked, _ = self.hooks("before_tool", {"tool": name, "arguments": raw}, name)
        if blocked:
            return self._denied(f"hook: {blocked}")
        role_name = scope.role_list[0].name
        subject = Subject(name, arguments, role_name)
        decision, why = judge(name, arguments, subject, scope.role_list, scope.mode, scope.rules, scope.cwd)
        if decision == "deny":
            return self._denied(why)
        if decision == "ask":
            refusal = self._approve(name, arguments, subject, why, scope)
            if refusal:
                return self._denied(refusal)
        try:
            text = self._run(name, arguments, scope)
        except ToolError as error:
            text = f"error: {error}"
        blocked, _ = self.hooks("after_tool", {"tool": name, "arguments": raw, "result": text}, name)
        if blocked:
            text += f"\n[hook: {blocked}]"
        return ToolResult(text)

    def _denied(self, why):
        self.denials += 1
        return ToolResult(f"error: denied: {why}", True)

    def _approve(self, name, arguments, subject, why, scope):
        if name == "patch":
            shown = ", ".join(subject.paths)
            key = (name, frozenset(os.path.realpath(os.path.join(self.cwd, p)) for p in subject.paths))
        elif name in FILE_TOOLS:
            shown = subject.paths[0]
            key = (name, os.path.realpath(os.path.join(self.cwd, shown)))
        elif name == "bash":
            shown = arguments["command"]
            key = (name, shown)
        else:
            shown = js(arguments)
            key = (name, subject.name)
        if key in self.approved:
            return None
        answer = self.approver.approve(f"allow {name} {shown}? [y/a/n] ".replace("\n", "\\n"))
        if answer == "all":
            self.approved.add(key)
            return None
        if answer == "allow":
            return None
        return "by the user" if answer == "deny" else f"needs approval ({why})"

    def _run(self, name, arguments, scope):
        simple = {"read": read, "write": write, "edit": edit, "patch": patch, "list": list_tool,
                  "glob": glob_tool, "grep": grep_tool}
        if name in simple:
            return simple[name](arguments, scope)
        return getattr(self, "_tool_" + name)(arguments, scope)

    def shell_text(self, command, timeout=None):
        try:
            return shell.run_foreground(command, self.cwd, shell.environment(self.settings),
                                        timeout or self.settings.get("bash_timeout_s"))
        except (OSError, ValueError) as error:
            raise ToolError(f"cannot run the command: {getattr(error, 'strerror', None) or error}") from None

    def _tool_bash(self, arguments, scope):
        if arguments.get("background"):
            try:
                name = self.jobs.start(arguments["command"], self.cwd, shell.environment(self.settings))
            except (OSError, ValueError) as error:
                raise ToolError(f"cannot run the command: {getattr(error, 'strerror', None) or error}") from None
            return f"[job {name} started]"
        return self.shell_text(arguments["command"], arguments.get("timeout_s"))

    def _tool_job(self, arguments, scope):
        job = self.jobs.jobs.get(arguments["id"])
        if job is None:
            known = ", ".join(self.jobs.jobs) or "none"
            raise ToolError(f'unknown job "{arguments["id"]}"; known jobs: {known}')
        return job.kill() if arguments["action"] == "kill" else job.output()

    def _tool_todo(self, arguments, scope):
        items = arguments["items"]
        if not scope.sub:
            self.session.set_todos(items)
        return todo_text(items)

    def _tool_ask(self, arguments, scope):
        answer = self.approver.ask(arguments["question"], arguments.get("options") or [])
        if answer is None:
            raise ToolError("no one to ask")
        return answer

    def _tool_remember(self, arguments, scope):
        where = arguments.get("scope", "project")
        try:
            content.append_memory(self.cwd, where, arguments["text"], self.roots())
        except content.MemoryOutside:
            raise ToolError("outside the workspace: .harness/memory.md") from None
        except OSError as error:
            path = content.memory_path(self.cwd, where)
            raise ToolError(f"cannot write {path}: {error.strerror or error}") from None
        return f"remembered ({where})"

    def _tool_skill(self, arguments, scope):
        found = content.skills(self.cwd)
        skill = found.get(arguments["name"])
        if skill is None:
            known = ", ".join(found) or "none"
            raise ToolError(f'unknown skill "{arguments["name"]}"; known skills: {known}')
        return content.strip_blank_lines(skill["body"]) or "[empty skill]"

    def _tool_task(self, arguments, scope):
        turn = scope.turn
        caller = scope.role_list[0]
        name = arguments.get("agent", caller.name)
        if name not in turn.roles:
            raise ToolError(f'unknown agent "{name}"; known agents: ' + ", ".join(turn.roles))
        role = turn.roles[name]
        roles = [role] if role is caller else [role, caller]
        mode = stricter(scope.mode, role.mode)
        inner = Scope(self, turn, roles, mode, sub=True)
        model = role.model or self.model_name(caller)
        inner.offered = tools_offered(roles, mode, self.rules("deny"), self.memory_on(), sub=True)
        system = turn.system(self, role, inner.offered, sub=True)
        messages = [{"role": "user", "content": arguments["prompt"]}]
        for _ in range(SUB_LIMIT):
            try:
                reply = self.client.complete(self.body(model, system, messages, inner.offered), self.settings)
            except ModelError as error:
                raise ToolError(f"sub-agent failed: {error.reason}") from None
            except Overflow as error:
                raise ToolError(f"sub-agent failed: {error.reason}: context length exceeded") from None
            message = assistant_message(reply, messages)
            messages.append(message)
            if not message.get("tool_calls"):
                return reply.content.strip()
            for call in message["tool_calls"]:
                result = self.execute(call["function"], inner)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result.text})
        raise ToolError(f"sub-agent reached its turn limit of {SUB_LIMIT}")


class Blocked(Exception):
    """A hook kept the conversation from being compacted."""


def todo_text(items):
    signs = {"pending": " ", "in_progress": ">", "done": "x"}
    return "\n".join(f"[{signs.get(i['status'], ' ')}] {i['text']}" for i in items) or "[no todos]"


def decoded(text):
    """Arguments as results show them: the value, or the text when it is no JSON."""
    try:
        return parse_json(text)
    except ValueError:
        return text


def assistant_message(reply, messages):
    message = {"role": "assistant", "content": reply.content}
    if reply.calls:
        used = {c["id"] for m in messages for c in m.get("tool_calls", [])} | {c["id"] for c in reply.calls}
        n = 0
        for call in reply.calls:
            if not call["id"]:
                n += 1
                while f"call_{n}" in used:
                    n += 1
                call["id"] = f"call_{n}"
                used.add(call["id"])
        message["tool_calls"] = reply.calls
    return message
