"""What can be typed at a prompt: commands, shell lines, own commands."""

import os

from . import content, session as sessions
from .agent import Blocked, Turn, todo_text
from .arguments import DESCRIPTIONS
from .base import MODES, HarnessError, is_inside, near_names, one_line, reason
from .files import ToolError, make_parents

# name -> (arguments, description)
COMMANDS = {
    "add-dir": ("DIR", "Adds a root for the rest of the process."),
    "agents": ("", "Lists the roles."),
    "clear": ("", "Starts a new session in the same process."),
    "compact": ("INSTRUCTIONS", "Replaces the conversation by a summary."),
    "context": ("", "Shows how full the context window is."),
    "diff": ("", "Shows what the file tools changed in this session."),
    "exit": ("", "Leaves the interactive session."),
    "export": ("FILE", "Shows the conversation as Markdown, or writes it to a file."),
    "fork": ("", "Copies the session and goes on in the copy."),
    "help": ("", "Lists what can be typed."),
    "init": ("", "Prepares the workspace."),
    "memory": ("", "Shows the memory files."),
    "mode": ("MODE", "Shows or changes the permission mode."),
    "model": ("NAME", "Shows or changes the model."),
    "permissions": ("", "Shows what is allowed."),
    "rename": ("TITLE", "Gives the session a title."),
    "resume": ("ID", "Moves to another stored session."),
    "rewind": ("N", "Goes back by N turns, in the conversation and in the files."),
    "sessions": ("", "Lists the stored sessions of this workspace."),
    "skills": ("", "Lists the skills."),
    "todos": ("", "Shows the list of todos."),
    "tools": ("", "Lists the tools."),
    "undo": ("", "Takes back the file changes of the last turn that made any."),
    "usage": ("", "Shows what the process has used so far."),
}


def init_files(cwd):
    lines = []
    for name, text in (("AGENTS.md", f"# {os.path.basename(cwd)}\n"), (".harness/settings.json", "{}\n")):
        path = os.path.join(cwd, name)
        if os.path.lexists(path):
            lines.append(f"exists {name}")
            continue
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "x", encoding="utf-8", errors="surrogateescape") as handle:
                handle.write(text)
        except OSError as error:
            raise HarnessError(1, f"internal: cannot write {path}: {reason(error)}") from None
        lines.append(f"created {name}")
    return "\n".join(lines)


def tools_text(names):
    return "\n".join(f"{name}\t{DESCRIPTIONS[name].splitlines()[0]}" for name in names)


def agents_list(cwd):
    return [{"name": r.name, "source": r.source, "description": r.description, "path": r.path}
            for r in content.roles(cwd).values()]


def skills_list(cwd):
    return [{"name": n, "source": s["source"], "description": s["description"], "path": s["path"]}
            for n, s in content.skills(cwd).items()]


def commands_list(cwd):
    found = [{"name": n, "source": "built-in", "description": d, "path": None} for n, (_, d) in COMMANDS.items()]
    found += [{"name": n, "source": c["source"], "description": c["description"], "path": c["path"]}
              for n, c in content.own_commands(cwd, COMMANDS, True).items()]
    return sorted(found, key=lambda item: item["name"])


def rows(items, empty=""):
    return "\n".join(f"{i['name']}\t{i['source']}\t{one_line(i['description'])}" for i in items) or empty


class Prompt:
    """Works out one prompt. `answer` gives the text; failures are raised."""

    def __init__(self, harness):
        self.h = harness

    def answer(self, text):
        """(text of the answer, whether it came from a command)"""
        h = self.h
        if text.startswith("//"):
            return h.ask_model(text[1:]), False
        if text.startswith("!"):
            return self._shell(text[1:]), True
        if not text.startswith("/"):
            return h.ask_model(text), False
        parts = text[1:].split(None, 1) if text[1:2] and not text[1].isspace() else ["", text[1:]]
        name = parts[0] if parts else ""
        arguments = parts[1].strip() if len(parts) > 1 else ""
        if name in COMMANDS:
            takes = COMMANDS[name][0]
            if arguments and not takes:
                raise HarnessError(2, f"/{name}: takes no argument: {arguments}")
            return getattr(self, "_" + name.replace("-", "_"))(arguments), True
        own = content.own_commands(h.cwd, COMMANDS)
        if name in own:
            prompt = content.fill_places(own[name]["text"], arguments)
            if not prompt.strip():
                raise HarnessError(2, f"/{name}: the text is empty")
            return h.ask_model(prompt), False
        near = near_names(name, list(COMMANDS) + list(own))
        hint = "; did you mean " + ", ".join("/" + n for n in near) + "?" if near else ""
        raise HarnessError(2, f"unknown command: /{name}{hint}")

    def _shell(self, command):
        if not command.strip():
            raise HarnessError(2, "empty command")
        session = self.h.session
        session.repair()
        try:
            if "\0" in command:
                raise ToolError("cannot run the command: it holds a NUL character")
            text = self.h.shell_text(command)
        except ToolError as error:
            text = f"error: {error}"
        session.add({"role": "user", "content": f"<shell>\n$ {command}\n{text}\n</shell>"})
        return text

    # ---- help and listings

    def _help(self, _):
        lines = [f"/{name}{' ' + takes if takes else ''}  {about}" for name, (takes, about) in COMMANDS.items()]
        for name, own in content.own_commands(self.h.cwd, COMMANDS).items():
            lines.append(f"/{name}" + (f"  {own['description']}" if own["description"] else ""))
        return "\n".join(lines)

    def _sessions(self, _):
        return sessions.list_text(self.h.cwd)

    def _tools(self, _):
        return tools_text(self.h.offered())

    def _agents(self, _):
        return rows(agents_list(self.h.cwd))

    def _skills(self, _):
        return rows(skills_list(self.h.cwd), "no skills")

    def _memory(self, _):
        return content.memory_show(self.h.cwd, roots=self.h.roots())[0]

    def _init(self, _):
        return init_files(self.h.cwd)

    def _todos(self, _):
        return todo_text(self.h.session.todos)

    def _usage(self, _):
        total = self.h.total
        return (f"requests: {total['requests']}\ninput tokens: {total['input_tokens']}\n"
                f"output tokens: {total['output_tokens']}")

    def _context(self, _):
        h = self.h
        system = h.system_message(Turn(h))
        messages = h.session.messages()
        window = h.settings.get("context_window")
        return (f"messages: {len(messages)}\nestimate: {h.estimate(system, messages)} tokens\n"
                f"window: {window} tokens\ncompact at: {int(h.settings.get('compact_threshold') * window)} tokens")

    def _permissions(self, _):
        lines = [f"mode: {self.h.mode()}"]
        for name in ("deny", "ask", "allow"):
            lines += [f"{name} {rule.text} ({rule.source})" for rule in self.h.rules(name)]
        return "\n".join(lines)

    # ---- sessions

    def _clear(self, _):
        h = self.h
        h.new_session()
        h.session.ensure_file()
        return f"new session {h.session.id}"

    def _fork(self, _):
        h = self.h
        old = h.session
        if not old.entries:
            return "nothing to fork"
        old.repair()
        h.adopt(old.fork(h.cwd, None, h.model_name(), old.save))
        return f"forked {old.id} to {h.session.id}"

    def _resume(self, session_id):
        h = self.h
        if not session_id:
            session_id = sessions.newest(h.cwd, h.session.id)
            if session_id is None:
                return "no other session"
        elif not sessions.ID.fullmatch(session_id):
            raise HarnessError(2, f"/resume: invalid value: {session_id}")
        if session_id != h.session.id:
            move_to(h, session_id)
        return f"resumed {session_id}"

    def _rename(self, title):
        title = " ".join(title.split())[:200]
        if not title:
            raise HarnessError(2, "/rename: missing argument TITLE")
        self.h.session.set_title(title)
        return f"renamed to {title}"

    def _export(self, file):
        session = self.h.session
        if not session.entries:
            return "nothing to export"
        text = sessions.export_text(session).rstrip("\n")
        if not file:
            return text
        path = os.path.join(self.h.cwd, file)
        if os.path.lexists(path):
            return f"export refused: {file} exists"
        try:
            make_parents(os.path.dirname(path))
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            with os.fdopen(fd, "wb") as handle:
                handle.write((text + "\n").encode("utf-8", "replace"))
        except (OSError, ValueError) as error:
            raise HarnessError(2, f"/export: cannot write {file}: {getattr(error, 'strerror', error)}") from None
        return f"exported to {file}"

    def _exit(self, _):
        self.h.left = True
        return ""

    # ---- model, mode, roots

    def _model(self, name):
        h = self.h
        if not name:
            return f"model: {h.model_name() or ''}"
        if len(name.split()) > 1:
            raise HarnessError(2, f"/model: a name has no white space: {name}")
        h.typed_model = name
        session = h.session
        session.model_choice = name
        if session.save:
            if session.header is not None:
                session.record({"type": "model", "model": name})
            else:
                session.pending_model = name
        return f"model: {name}"

    def _mode(self, mode):
        h = self.h
        if not mode:
            return f"mode: {h.mode()}"
        if mode not in MODES:
            raise HarnessError(2, f"/mode: unknown mode {mode}; modes: " + ", ".join(MODES))
        h.typed_mode = mode
        return f"mode: {mode}"

    def _add_dir(self, name):
        h = self.h
        if not name:
            raise HarnessError(2, "/add-dir: missing argument DIR")
        path = os.path.join(h.cwd, name)
        if not os.path.isdir(path):
            raise HarnessError(2, f"/add-dir: not a directory: {name}")
        real = os.path.realpath(path)
        if not any(is_inside(real, root) for root in h.roots()):
            h.added.append(real)
        return f"added {real}"

    # ---- compaction and taking back

    def _compact(self, instructions):
        h = self.h
        if len(h.session.entries) < 2:
            return "nothing to compact"
        h.check_model()
        h.session.repair()
        turn = Turn(h)
        try:
            count = h.compact("manual", instructions, h.system_message(turn))
        except Blocked as error:
            raise HarnessError(7, f"blocked by a hook: {error}") from None
        return f"compacted {count} messages"

    def _diff(self, _):
        return self.h.session.changes.diff(self.h.cwd) or "no changes"

    def _undo(self, _):
        session = self.h.session
        turn = session.changes.last_turn()
        if turn is None:
            return "nothing to undo"
        lines, conflicts = session.changes.take_back({turn}, self.h.cwd, session.save)
        if conflicts:
            return f"undo refused: {', '.join(conflicts)} changed since"
        return "\n".join([f"undone {len(lines)} files"] + lines)

    def _rewind(self, text):
        session = self.h.session
        text = text or "1"
        if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) < 1:
            raise HarnessError(2, f"/rewind: invalid value: {text}")
        count = int(text)
        available = len(session.turn_starts())
        if count > available:
            return f"cannot rewind {count} turns: {available} available"
        lines, conflicts = session.changes.take_back(session.turn_ids(count), self.h.cwd, session.save)
        if conflicts:
            return f"rewind refused: {', '.join(conflicts)} changed since"
        session.drop_turns(count)
        session.record({"type": "rewind", "turns": count})
        return "\n".join([f"rewound {count} turns"] + lines)


def move_to(harness, session_id, fork=False, new_id=None):
    """Makes a stored session, or a copy of it, the present one."""
    from .base import Console
    found = sessions.load(session_id)
    if found is None:
        raise HarnessError(6, f"session not found: {session_id}")
    if found.cwd != harness.cwd:
        Console.warn(f"session {session_id} belongs to {found.cwd}")
    if fork:
        save = not harness.option("no-save")
        # the model in effect, of which the stored choice is a part
        harness.session, before = found, harness.session
        try:
            model = harness.model_name()
        finally:
            harness.session = before
        found = found.fork(harness.cwd, new_id, model, save)
    harness.adopt(found)
    if not fork:
        found.cwd = harness.cwd
    found.repair()
