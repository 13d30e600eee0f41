"""What can be typed at a prompt: commands, shell lines, own commands."""

import difflib
import os
import re

from . import listings, memory, store
from .library import OwnCommand
from .paths import relative
from .proc import environment, run_shell
from .settings import MODES
from .tools import todo_text
from .types import Message
from .util import HarnessError, reason_of

# name -> (arguments, description)
BUILTIN = {
    "add-dir": ("DIR", "Add a root for the rest of the process."),
    "agents": ("", "List the roles."),
    "clear": ("", "Start a new session."),
    "compact": ("[INSTRUCTIONS]", "Replace the conversation by a summary."),
    "context": ("", "Show how full the context window is."),
    "diff": ("", "Show what the file tools changed in this session."),
    "exit": ("", "Leave the session."),
    "export": ("[FILE]", "Show the conversation as Markdown, or write it to a file."),
    "fork": ("", "Copy the session and go on in the copy."),
    "help": ("", "List what can be typed."),
    "init": ("", "Make the usual files of a workspace."),
    "memory": ("", "Show the memory files."),
    "mode": ("[MODE]", "Show or change the permission mode."),
    "model": ("[NAME]", "Show or change the model."),
    "permissions": ("", "Show the mode and the rules."),
    "rename": ("TITLE", "Give the session a title."),
    "resume": ("[ID]", "Move to another stored session."),
    "rewind": ("[N]", "Go back by N turns, in the conversation and in the files."),
    "sessions": ("", "List the stored sessions of this workspace."),
    "skills": ("", "List the skills."),
    "todos": ("", "Show the list of todos."),
    "tools": ("", "List the tools."),
    "undo": ("", "Take back the file changes of the last turn that made any."),
    "usage": ("", "Show what the process has used so far."),
}


class Leave(Exception):
    """`/exit` was typed."""


def split(line: str) -> tuple[str, str]:
    """NAME and ARGUMENTS of a line that begins with a slash."""
    m = re.match(r"/(\S*)(.*)", line, re.S)
    return m.group(1), m.group(2).strip()


def needs_model(library, line: str) -> bool:
    """Whether a line is a prompt for the model."""
    if line.startswith("//"):
        return True
    if line.startswith("!"):
        return False
    if not line.startswith("/"):
        return True
    name = split(line)[0]
    return name not in BUILTIN and name in library.commands(BUILTIN)


def handle(core, line: str) -> str:
    """Does what a line says; gives the output or the answer."""
    if line.startswith("//"):
        return core.prompt(line[1:])
    if line.startswith("!"):
        return _shell(core, line[1:])
    if not line.startswith("/"):
        return core.prompt(line)
    name, args = split(line)
    if name in BUILTIN:
        if args and not BUILTIN[name][0]:
            raise HarnessError(2, f"/{name}: takes no argument: {args}")
        return Commands(core).run(name, args)
    own = core.config.library.commands(BUILTIN)
    if name not in own:
        raise HarnessError(2, f"unknown command: /{name}" + listings.did_you_mean(name, [*BUILTIN, *own], "/"))
    text = expanded(own[name], args)
    if not text.strip():
        raise HarnessError(2, f"/{name}: empty prompt")
    return core.prompt(text)


def expanded(command: OwnCommand, args: str) -> str:
    parts = [m.group(0) if m.group(1) is None else m.group(1) for m in re.finditer(r'"([^"]*)"|\S+', args)]
    place = re.compile(r"\$(ARGUMENTS|[1-9])")
    if not place.search(command.text):
        return command.text + (("\n\n" if command.text else "") + args if args else "")

    def fill(m):
        if m.group(1) == "ARGUMENTS":
            return args
        n = int(m.group(1))
        return parts[n - 1] if n <= len(parts) else ""

    return place.sub(fill, command.text)


def _shell(core, command: str) -> str:
    if not command.strip():
        raise HarnessError(2, "!: empty command")
    if "\0" in command:
        raise HarnessError(2, "!: a command cannot hold a NUL character")
    output = run_shell(command, core.workspace, environment(core.env), core.config.value("bash_timeout_s"))
    session = core.session
    if not session.stored:
        session.used_model = core.model_name()
    session.append(Message("user", f"<shell>\n$ {command}\n{output}\n</shell>", kind="shell"))
    return output


class Commands:
    def __init__(self, core):
        self.core = core

    def run(self, name: str, args: str) -> str:
        return getattr(self, "c_" + name.replace("-", "_"))(args)

    def c_help(self, _):
        lines = [f"/{n}{' ' + a if a else ''}  {about}" for n, (a, about) in sorted(BUILTIN.items())]
        for own in self.core.config.library.commands(BUILTIN).values():
            lines.append(f"/{own.name}" + (f"  {own.description}" if own.description else ""))
        return "\n".join(lines)

    # Sessions

    def c_clear(self, _):
        core = self.core
        session = core.new_session()
        session.saving = core.session.saving
        core.move_to(session)
        session.used_model = core.model_name()
        session.create()
        return f"new session {session.id}"

    def c_fork(self, _):
        core = self.core
        if not core.session.messages:
            return "nothing to fork"
        old = core.session
        core.move_to(core.forked(old))
        return f"forked {old.id} to {core.session.id}"

    def c_resume(self, args):
        core = self.core
        if args:
            if args == core.session.id:
                return f"resumed {args}"
            if not store.ID.match(args):
                raise HarnessError(2, f'/resume: invalid value "{args}"')
            core.move_to(core.resumed(args))
            return f"resumed {args}"
        for other in store.stored(core.home, core.workspace):
            if other.id != core.session.id:
                core.move_to(core.resumed(other.id))
                return f"resumed {other.id}"
        return "no other session"

    def c_sessions(self, _):
        return listings.sessions(self.core.home, self.core.workspace)

    def c_rename(self, args):
        title = " ".join(args.split())[:200]
        if not title:
            raise HarnessError(2, "/rename: a title is missing")
        session = self.core.session
        if not session.stored:
            session.used_model = self.core.model_name()
        session.rename(title)
        return f"renamed to {title}"

    def c_export(self, args):
        core = self.core
        if not core.session.messages:
            return "nothing to export"
        text = listings.export(core.session).rstrip("\n")
        if not args:
            return text
        path = os.path.join(core.workspace, args)
        if os.path.lexists(path):
            return f"export refused: {args} exists"
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "xb") as f:
                f.write((text + "\n").encode("utf-8", "replace"))
        except (OSError, ValueError) as e:
            why = reason_of(e) if isinstance(e, OSError) else e
            raise HarnessError(2, f"/export: cannot write {args}: {why}") from None
        return f"exported to {args}"

    def c_exit(self, _):
        raise Leave

    # Model, mode and roots

    def c_model(self, args):
        core = self.core
        if not args:
            return f"model: {core.model_name() or ''}".rstrip()
        if len(args.split()) != 1:
            raise HarnessError(2, f'/model: invalid value "{args}"')
        core.typed_model = args
        core.session.choose_model(args)
        return f"model: {args}"

    def c_mode(self, args):
        core = self.core
        if not args:
            return f"mode: {core.mode()}"
        if args not in MODES:
            raise HarnessError(2, f'/mode: invalid value "{args}"; known modes: {", ".join(MODES)}')
        core.typed_mode = args
        return f"mode: {args}"

    def c_permissions(self, _):
        core = self.core
        lines = [f"mode: {core.mode()}"]
        for name, rules in (("deny", core.judge.deny), ("ask", core.judge.ask), ("allow", core.judge.allow)):
            lines += [f"{name} {r.text} ({r.source})" for r in rules]
        return "\n".join(lines)

    def c_add_dir(self, args):
        core = self.core
        if not args:
            raise HarnessError(2, "/add-dir: a directory is missing")
        path = os.path.realpath(os.path.join(core.workspace, args))
        if not os.path.isdir(path):
            raise HarnessError(2, f"/add-dir: not a directory: {args}")
        if not any(path == r or path.startswith(r.rstrip("/") + "/") for r in core.roots):
            core.added_roots.append(path)
        return f"added {path}"

    # Looking

    def c_usage(self, _):
        t = self.core.total
        return f"requests: {t.requests}\ninput tokens: {t.input_tokens}\noutput tokens: {t.output_tokens}"

    def c_context(self, _):
        core = self.core
        system = core.begin_turn(core.config.role()).system
        window = core.config.value("context_window")
        return "\n".join([f"messages: {len(core.session.messages)}",
                          f"estimate: {core.estimate([system, *core.session.messages])} tokens",
                          f"window: {window} tokens",
                          f"compact at: {int(core.config.value('compact_threshold') * window)} tokens"])

    def c_tools(self, _):
        return listings.tools(self.core.offered_now())

    def c_agents(self, _):
        return listings.named(self.core.config.library.roles().values())

    def c_skills(self, _):
        return listings.named(self.core.config.library.skills().values(), "no skills")

    def c_todos(self, _):
        return todo_text(self.core.session.todos)

    def c_memory(self, _):
        core = self.core
        return memory.show(core.workspace, core.home, core.roots, core.console)

    def c_init(self, _):
        try:
            return listings.init(self.core.workspace)
        except OSError as e:
            raise HarnessError(1, f"internal: cannot write {e.filename}: {reason_of(e)}") from None

    def c_diff(self, _):
        core = self.core
        points = core.session.checkpoints
        out = []
        for path, before in sorted(points.first_states().items(),
                                   key=lambda item: os.fsencode(relative(item[0], core.workspace))):
            now, data = points.now(path)
            old = points.content(before)
            if (before is None) == (now is None) and old == data and (before or {}).get("link") == (now or {}).get("link"):
                continue
            name = relative(path, core.workspace)
            out += unified(old, data, f"a/{name}" if before else "/dev/null", f"b/{name}" if now else "/dev/null")
        return "\n".join(out) or "no changes"

    # Compaction and taking back

    def c_compact(self, args):
        return self.core.compact_now(args)

    def _shown(self, paths) -> list[str]:
        return sorted((relative(p, self.core.workspace) for p in paths), key=os.fsencode)

    def _took(self, head: str, done) -> str:
        core = self.core
        for path, _ in done:
            core.session.set_read(path, "taken back")
        kinds = {relative(p, core.workspace): restored for p, restored in done}
        lines = [f"{'restored' if kinds[p] else 'removed'} {p}" for p in self._shown(p for p, _ in done)]
        return "\n".join([head, *lines])

    def c_undo(self, _):
        points = self.core.session.checkpoints
        turn = points.last_turn()
        if turn is None:
            return "nothing to undo"
        bad, done = points.take_back([turn])
        if bad:
            return f"undo refused: {', '.join(self._shown(bad))} changed since"
        return self._took(f"undone {len(done)} files", done)

    def c_rewind(self, args):
        session = self.core.session
        if args and (not re.fullmatch(r"[0-9]{1,9}", args) or int(args) == 0):
            raise HarnessError(2, f'/rewind: invalid value "{args}"')
        count = int(args or 1)
        starts = session.turns()
        if count > len(starts):
            return f"cannot rewind {count} turns: {len(starts)} available"
        keys = [session.messages[n].turn for n in starts[-count:] if session.messages[n].turn]
        bad, done = session.checkpoints.take_back(keys) if keys else ([], [])
        if bad:
            return f"rewind refused: {', '.join(self._shown(bad))} changed since"
        session.rewind(count)
        return self._took(f"rewound {count} turns", done)


def unified(old: bytes, new: bytes, a: str, b: str) -> list[str]:
    def lines(data):
        text = data.decode("utf-8", "replace")
        return [line + "\n" for line in text.split("\n")[:-1]] + ([text.rsplit("\n", 1)[-1]] if text and not text.endswith("\n") else [])

    out = []
    for line in difflib.unified_diff(lines(old), lines(new), a, b, n=3):
        if line.endswith("\n"):
            out.append(line[:-1])
        else:
            out += [line, "\\ No newline at end of file"]
    return out or [f"--- {a}", f"+++ {b}"]
