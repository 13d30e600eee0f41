"""Sessions on disk: records, reading them again, copies, listings."""

import copy
import fcntl
import os
import re
import shutil

from .base import Console, HarnessError, critical, home, json_bytes, parse_json, utc
from .changes import Changes

ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def new_id():
    return os.urandom(6).hex()


def folder():
    return os.path.join(home(), "sessions")


def path_of(session_id):
    return os.path.join(folder(), session_id + ".jsonl")


def checkpoints_of(session_id):
    return os.path.join(home(), "checkpoints", session_id)


class Entry:
    """One message of the conversation; `kind` says what began it."""

    __slots__ = ("message", "kind", "turn")

    def __init__(self, message, kind, turn=None):
        self.message, self.kind, self.turn = message, kind, turn


def kind_of(message, origin=None):
    if message["role"] != "user":
        return message["role"]
    if origin == "hook":
        return "hook"
    text = message["content"]
    if text.startswith("<shell>\n$ ") and text.endswith("\n</shell>"):
        return "shell"
    return "user"


def summary_message(text):
    return {"role": "user", "content": f"<summary>{text}</summary>"}


def _good_message(message):
    if type(message) is not dict or message.get("role") not in ("user", "assistant", "tool"):
        return None
    content = message.get("content")
    if content is None:
        content = ""
    if type(content) is not str:
        return None
    out = {"role": message["role"]}
    if message["role"] == "tool":
        out["tool_call_id"] = message.get("tool_call_id") if type(message.get("tool_call_id")) is str else ""
        out["content"] = content
        return out
    out["content"] = content
    if message["role"] == "assistant" and type(message.get("tool_calls")) is list and message["tool_calls"]:
        calls = []
        for call in message["tool_calls"]:
            function = call.get("function") if type(call) is dict else None
            if type(function) is not dict:
                return None
            calls.append({"id": str(call.get("id") or ""), "type": "function", "function": {
                "name": str(function.get("name") or ""), "arguments": str(function.get("arguments") or "")}})
        out["tool_calls"] = calls
    return out


class Session:
    """One conversation. Whether records are written is said with each one."""

    def __init__(self, cwd, session_id=None):
        self.id = session_id or new_id()
        self.cwd = cwd
        self.header = None  # None while there is no file
        self.parent = None
        self.base_title = None
        self.entries = []
        self.todos = []
        self.title_record = None
        self.first_user = None
        self.model_choice = None  # stored choice of /model
        self.pending_model = None  # choice that waits for the first message
        self.reads = {}
        self.changes = Changes(checkpoints_of(self.id))
        self.save = True
        self.model_name = lambda: None  # name in effect, for the first line

    # ---- writing

    def path(self):
        return path_of(self.id)

    def _write(self, data):
        path = self.path()
        try:
            with critical():
                fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX)
                    size = os.fstat(fd).st_size
                    if size and os.pread(fd, 1, size - 1) != b"\n":
                        data = b"\n" + data
                    view = memoryview(data)
                    while view:
                        view = view[os.write(fd, view):]
                finally:
                    os.close(fd)
        except OSError as error:
            raise HarnessError(1, f"internal: cannot write {path}: {error.strerror or error}") from None

    def ensure_file(self):
        if not self.save or self.header is not None:
            return
        try:
            os.makedirs(folder(), exist_ok=True)
        except OSError as error:
            raise HarnessError(1, f"internal: cannot write {self.path()}: {error.strerror or error}") from None
        self.header = {"type": "session", "id": self.id, "cwd": self.cwd, "created": utc(),
                       "title": self.base_title, "model": self.model_name(), "parent": self.parent}
        self._write(json_bytes(self.header) + b"\n")

    def record(self, value):
        if not self.save:
            return
        self.ensure_file()
        self._write(json_bytes(value) + b"\n")

    def add(self, message, origin=None):
        """A message joins the conversation, in the file first."""
        kind = kind_of(message, origin)
        if self.pending_model is not None and self.save:
            self.ensure_file()
            name, self.pending_model = self.pending_model, None
            self.record({"type": "model", "model": name})
        value = {"type": "message", "message": message}
        if origin:
            value["origin"] = origin
        self.record(value)
        self._note_user(message, kind)
        self.entries.append(Entry(message, kind))

    def _note_user(self, message, kind):
        if kind == "user" and self.first_user is None:
            self.first_user = message["content"]

    def messages(self):
        return [entry.message for entry in self.entries]

    def set_title(self, text):
        self.title_record = text
        self.record({"type": "title", "title": text})

    def title(self):
        if self.title_record is not None:
            return " ".join(self.title_record.split()) or None
        title = self.header.get("title") if self.header else self.base_title
        if type(title) is str:
            return " ".join(title.split()) or None
        for line in (self.first_user or "").split("\n"):
            if line.strip():
                return " ".join(line.split())[:60].rstrip()
        return None

    def set_todos(self, items):
        self.todos = items
        self.record({"type": "todo", "items": items})

    def note_read(self, path, sha):
        if self.reads.get(path) == sha:
            return
        if sha is None:
            if path not in self.reads:
                return
            self.reads.pop(path)
        else:
            self.reads[path] = sha
        self.record({"type": "read", "path": path, "sha": sha})

    # ---- turns

    def turn_starts(self):
        """Indexes of the messages that begin the turns that /rewind can reach."""
        first = 0
        for n, entry in enumerate(self.entries):
            if entry.kind == "summary":
                first = n + 1
        return [n for n, e in enumerate(self.entries) if n >= first and e.kind in ("user", "shell")]

    def current_turn(self):
        """The id of the turn that runs, made when it is first needed."""
        for entry in reversed(self.entries):
            if entry.kind in ("user", "shell"):
                if entry.turn is None:
                    entry.turn = os.urandom(8).hex()
                    self.record({"type": "turn", "turn": entry.turn})
                return entry.turn
        return "none"

    def drop_turns(self, count):
        """Drops the last turns; returns their ids."""
        starts = self.turn_starts()
        at = starts[max(0, len(starts) - count)] if starts else len(self.entries)
        dropped = {e.turn for e in self.entries[at:] if e.turn}
        del self.entries[at:]
        return dropped

    def turn_ids(self, count):
        starts = self.turn_starts()
        at = starts[len(starts) - count]
        return {e.turn for e in self.entries[at:] if e.turn}

    def compacted(self, summary, kept):
        newest = next((e for e in reversed(self.entries) if e.kind in ("user", "shell")), None) if kept else None
        self.entries = [Entry(summary_message(summary), "summary")] + ([newest] if newest else [])

    def repair(self):
        """Answers calls that have no result; they are stored too."""
        n = 0
        while n < len(self.entries):
            entry = self.entries[n]
            n += 1
            calls = entry.message.get("tool_calls") if entry.kind == "assistant" else None
            if not calls:
                continue
            end = n
            answered = []
            while end < len(self.entries) and self.entries[end].kind == "tool":
                answered.append(self.entries[end].message["tool_call_id"])
                end += 1
            for call in calls:
                if call["id"] in answered:
                    answered.remove(call["id"])
                    continue
                message = {"role": "tool", "tool_call_id": call["id"], "content": "error: interrupted"}
                self.record({"type": "message", "message": message})
                self.entries.insert(end, Entry(message, "tool"))
                end += 1
            n = end

    # ---- copies

    def fork(self, cwd, session_id, model, save):
        """A copy with an id of its own, in memory and, when saved, on disk."""
        other = copy.copy(self)
        other.id = session_id or new_id()
        other.cwd = cwd
        other.parent = self.id
        other.base_title = self.title()
        other.entries = [Entry(e.message, e.kind, e.turn) for e in self.entries]
        other.todos = list(self.todos)
        other.reads = dict(self.reads)
        other.save = save
        other.header = None
        lines = []
        if save and self.header is not None:
            try:
                with open(self.path(), "rb") as handle:
                    raw = handle.read().split(b"\n")
            except OSError as error:
                raise HarnessError(1, f"internal: cannot read {self.path()}: {error.strerror or error}") from None
            for line in raw[1:]:
                if line.strip() and _record(line) is not None:
                    lines.append(line)
        source, target = checkpoints_of(self.id), checkpoints_of(other.id)
        other.changes = self.changes.copy(target)
        if save:
            try:
                if os.path.isdir(source):
                    shutil.copytree(source, target, dirs_exist_ok=True)
                os.makedirs(folder(), exist_ok=True)
            except OSError as error:
                raise HarnessError(1, f"internal: cannot write {target}: {error.strerror or error}") from None
            other.header = {"type": "session", "id": other.id, "cwd": cwd, "created": utc(),
                            "title": other.base_title, "model": model, "parent": self.id}
            data = b"".join(line + b"\n" for line in [json_bytes(other.header)] + lines)
            other._write(data)
        return other


def _record(line):
    try:
        value = parse_json(line.decode("utf-8"))
    except ValueError:
        return None
    return value if type(value) is dict else None


def read_header(path):
    try:
        with open(path, "rb") as handle:
            line = handle.readline()
    except FileNotFoundError:
        return None
    except OSError as error:
        if os.path.isdir(path):
            return None
        raise HarnessError(1, f"internal: cannot read {path}: {error.strerror or error}") from None
    value = _record(line) if line else None
    if value is None or value.get("type") != "session":
        return None
    return value


def load(session_id, warn=True):
    """The stored session, or None when there is none."""
    path = path_of(session_id)
    header = read_header(path)
    if header is None:
        return None
    session = Session(str(header.get("cwd") or ""), session_id)
    session.header = header
    parent = header.get("parent")
    session.parent = parent if type(parent) is str else None
    try:
        with open(path, "rb") as handle:
            lines = handle.read().split(b"\n")
    except OSError as error:
        raise HarnessError(1, f"internal: cannot read {path}: {error.strerror or error}") from None
    last = len(lines) - 1
    for n, line in enumerate(lines):
        if n == 0 or (n == last and not line.strip()):
            continue
        value = _record(line)
        if value is None:
            if n != last and warn:
                Console.warn(f"{path}: line {n + 1} is damaged and left out")
            continue
        _replay(session, value)
    return session


def _replay(session, value):
    kind = value.get("type")
    if kind == "message":
        message = _good_message(value.get("message"))
        if message is None:
            return
        what = kind_of(message, value.get("origin"))
        entry = Entry(message, what)
        session._note_user(message, what)
        if what == "tool":
            at = _place_of(session.entries, message["tool_call_id"])
            if at is not None:
                session.entries.insert(at, entry)
                return
        session.entries.append(entry)
    elif kind == "compact":
        session.compacted(str(value.get("summary") or ""), value.get("kept") == 1)
    elif kind == "rewind":
        if type(value.get("turns")) is int and value["turns"] > 0:
            session.drop_turns(value["turns"])
    elif kind == "title" and type(value.get("title")) is str:
        session.title_record = value["title"]
    elif kind == "todo" and type(value.get("items")) is list:
        session.todos = [i for i in value["items"] if type(i) is dict and type(i.get("text")) is str
                         and type(i.get("status")) is str]
    elif kind == "model" and type(value.get("model")) is str:
        session.model_choice = value["model"]
    elif kind == "read" and type(value.get("path")) is str:
        if value.get("sha") is None:
            session.reads.pop(value["path"], None)
        else:
            session.reads[value["path"]] = value["sha"]
    elif kind == "turn":
        for entry in reversed(session.entries):
            if entry.kind in ("user", "shell"):
                entry.turn = value.get("turn")
                break


def _place_of(entries, call_id):
    """Where a result belongs that was written later than its neighbours."""
    for n in range(len(entries) - 1, -1, -1):
        entry = entries[n]
        if entry.kind != "assistant" or not entry.message.get("tool_calls"):
            continue
        wanted = [c["id"] for c in entry.message["tool_calls"]].count(call_id)
        end = n + 1
        while end < len(entries) and entries[end].kind == "tool":
            wanted -= entries[end].message["tool_call_id"] == call_id
            end += 1
        if wanted > 0:
            return end
    return None


def stored(cwd, warn=False):
    """Sessions of a workspace, newest first: (session, mtime)."""
    try:
        names = os.listdir(folder())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise HarnessError(1, f"internal: cannot read {folder()}: {error.strerror or error}") from None
    found = []
    for name in names:
        if not name.endswith(".jsonl") or not ID.fullmatch(name[:-6]):
            continue
        path = os.path.join(folder(), name)
        header = read_header(path)
        if header is None or header.get("cwd") != cwd:
            continue
        try:
            changed = os.stat(path).st_mtime_ns
        except OSError:
            continue
        found.append((changed, str(header.get("created") or ""), name[:-6]))
    return sorted(found, reverse=True)


def newest(cwd, but=None):
    for _, _, session_id in stored(cwd):
        if session_id != but:
            return session_id
    return None


def facts(session_id, warn=False):
    """The object of `sessions list --json`; None when not stored."""
    session = load(session_id, warn)
    if session is None:
        return None, None
    updated = utc(int(os.stat(path_of(session_id)).st_mtime))
    return {"id": session_id, "cwd": session.header.get("cwd"), "created": session.header.get("created"),
            "updated": updated, "title": session.title(), "messages": len(session.entries),
            "parent": session.parent}, session


def list_text(cwd):
    lines = []
    for _, _, session_id in stored(cwd):
        fact, _ = facts(session_id)
        if fact:
            lines.append(f"{fact['id']}\t{fact['updated']}\t{fact['messages']}\t{fact['title'] or ''}")
    return "\n".join(lines) or "no sessions"


def export_text(session):
    out = ["# " + (session.title() or session.id)]
    names = {}
    for entry in session.entries:
        message = entry.message
        role = message["role"]
        heading = "## " + role
        content = message["content"]
        if role == "tool":
            queue = names.get(message["tool_call_id"])
            if queue:
                name = queue.pop(0) if len(queue) > 1 else queue[0]
                heading = f"## tool {name}" if name else "## tool"
        body = [content] if content or not message.get("tool_calls") else []
        for call in message.get("tool_calls", []):
            function = call["function"]
            names.setdefault(call["id"], []).append(function["name"])
            body.append(f"call `{function['name']}` {function['arguments']}")
        out.append(f"\n{heading}\n\n" + "\n".join(body))
    return "\n".join(out)
