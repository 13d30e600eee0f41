"""Sessions on disk: one file of JSON lines each."""

import fcntl
import os
import secrets
import shutil
import time

from .checkpoints import Checkpoints
from .flags import ID
from .types import Message, ToolCall
from .util import HarnessError, compact, loads, reason_of, utc


def sessions_dir(home):
    return os.path.join(home, "sessions")


def session_path(home, id):
    return os.path.join(sessions_dir(home), f"{id}.jsonl")


def checkpoint_dir(home, id):
    return os.path.join(home, "checkpoints", id)


def new_id() -> str:
    return secrets.token_hex(6)


def summary_message(text: str) -> Message:
    return Message("user", f"<summary>{text}</summary>", kind="summary")


def message_from(data: dict, origin=None) -> Message:
    message = Message(str(data.get("role", "")), data.get("content") if isinstance(data.get("content"), str) else "")
    for call in data.get("tool_calls") or []:
        f = call.get("function") or {}
        message.tool_calls.append(ToolCall(str(call.get("id", "")), str(f.get("name", "")), str(f.get("arguments", ""))))
    if message.role == "tool":
        message.tool_call_id = str(data.get("tool_call_id", ""))
    if message.role == "user":
        if origin == "hook":
            message.kind = "hook"
        elif message.content.startswith("<shell>\n$ ") and message.content.endswith("\n</shell>"):
            message.kind = "shell"
    return message


def _results_after(messages, n) -> int:
    """Index after the tool messages that directly follow the assistant message n."""
    k = n + 1
    while k < len(messages) and messages[k].role == "tool":
        k += 1
    return k


def _unanswered(messages, n) -> list[str]:
    left = [c.id for c in messages[n].tool_calls]
    for m in messages[n + 1:_results_after(messages, n)]:
        if m.tool_call_id in left:
            left.remove(m.tool_call_id)
    return left


def place_result(messages, result: Message) -> bool:
    """Puts a tool message after the results of the reply that it answers."""
    for n in range(len(messages) - 1, -1, -1):
        if messages[n].role == "assistant" and result.tool_call_id in _unanswered(messages, n):
            messages.insert(_results_after(messages, n), result)
            return True
    return False


class Session:
    """One conversation, kept on disk as it grows."""

    def __init__(self, home: str, workspace: str, id: str = ""):
        self.home = home
        self.id = id or new_id()
        self.cwd = workspace  # of the first line
        self.created = ""
        self.parent = None
        self.header_title = None
        self.named = None  # the last title record
        self.first_prompt = None
        self.model = None  # the choice of /model
        self.messages: list[Message] = []
        self.todos: list[dict] = []
        self.reads: dict[str, str] = {}
        self.stored = False  # a file exists
        self.saving = True
        self.pending: list[dict] = []  # records that wait for the file
        self.used_model = None  # what the first line will say
        self.approvals: set = set()
        self.updated = 0.0
        self.mtime_ns = 0
        self.warnings: list[str] = []
        self._checkpoints = None

    @property
    def path(self):
        return session_path(self.home, self.id)

    @property
    def checkpoints(self) -> Checkpoints:
        if self._checkpoints is None:
            self._checkpoints = Checkpoints(checkpoint_dir(self.home, self.id), self.stored)
        self._checkpoints.saving = self.saving
        return self._checkpoints

    # Writing

    def _header(self) -> dict:
        self.created = self.created or utc(time.time())
        return {"type": "session", "id": self.id, "cwd": self.cwd, "created": self.created,
                "title": self.header_title, "model": self.used_model, "parent": self.parent}

    def _write(self, data: bytes, first=False) -> None:
        try:
            os.makedirs(sessions_dir(self.home), exist_ok=True)
            flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT | os.O_EXCL if first else 0)
            fd = os.open(self.path, flags, 0o666)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                size = os.fstat(fd).st_size
                if size and os.pread(fd, 1, size - 1) != b"\n":
                    data = b"\n" + data
                while data:
                    data = data[os.write(fd, data):]
            finally:
                os.close(fd)
        except OSError as e:
            raise HarnessError(1, f"internal: cannot write {self.path}: {reason_of(e)}") from None

    def create(self) -> None:
        """Makes the file with its first line."""
        if self.saving and not self.stored:
            lines = [self._header()] + self.pending
            self._write("".join(compact(r) + "\n" for r in lines).encode("utf-8"), True)
            self.pending = []
            self.stored = True

    def record(self, *records: dict) -> None:
        if not self.saving:
            return
        if not self.stored:
            self.pending += records
            self.create()
            return
        self._write("".join(compact(r) + "\n" for r in records).encode("utf-8"))

    def append(self, message: Message) -> None:
        record = {"type": "message", "message": message.wire()}
        if message.kind == "hook":
            record["origin"] = "hook"
        self.record(record)
        self.messages.append(message)
        self._note_prompt(message)

    def _note_prompt(self, message):
        if self.first_prompt is None and message.role == "user" and message.kind == "":
            self.first_prompt = message.content

    def rename(self, title: str) -> None:
        self.named = title
        self.record({"type": "title", "title": title})

    def choose_model(self, name: str) -> None:
        self.model = name
        record = {"type": "model", "model": name}
        if self.stored:
            self.record(record)
        elif self.saving:
            self.pending = [r for r in self.pending if r["type"] != "model"] + [record]

    def set_todos(self, items: list[dict]) -> None:
        self.todos = items
        self.record({"type": "todo", "items": items})

    def set_read(self, path: str, hash: str) -> None:
        if self.reads.get(path) != hash:
            self.reads[path] = hash
            self.record({"type": "read", "path": path, "hash": hash})

    def turn_key(self) -> str:
        """The key under which file changes of the present turn are kept."""
        for message in reversed(self.messages):
            if message.begins_turn():
                if not message.turn:
                    message.turn = secrets.token_hex(8)
                    self.record({"type": "changes", "turn": message.turn})
                return message.turn
        return "none"

    def compacted(self, trigger: str, summary: str, kept: bool) -> None:
        self.record({"type": "compact", "trigger": trigger, "summary": summary, "kept": 1 if kept else 0})
        self._apply_compact(summary, kept)

    def _apply_compact(self, summary, kept):
        newest = [m for m in self.messages if m.begins_turn()][-1:] if kept else []
        self.messages = [summary_message(summary)] + newest

    def turns(self) -> list[int]:
        """Indexes of the messages that begin a turn."""
        return [n for n, m in enumerate(self.messages) if m.begins_turn()]

    def rewind(self, count: int) -> None:
        self.record({"type": "rewind", "turns": count})
        self._apply_rewind(count)

    def _apply_rewind(self, count):
        starts = self.turns()
        if 0 < count <= len(starts):
            self.messages = self.messages[:starts[-count]]

    # Reading

    @property
    def title(self):
        if self.named is not None:
            return self.named
        if self.header_title is not None:
            return self.header_title
        if self.first_prompt is None:
            return None
        return self.first_prompt.split("\n", 1)[0].strip()[:60] or None

    def _apply(self, record: dict) -> None:
        kind = record.get("type")
        if kind == "message" and isinstance(record.get("message"), dict):
            message = message_from(record["message"], record.get("origin"))
            if message.role == "tool":
                place_result(self.messages, message)
            elif message.role in ("user", "assistant"):
                self.messages.append(message)
                self._note_prompt(message)
        elif kind == "compact":
            self._apply_compact(str(record.get("summary", "")), record.get("kept") == 1)
        elif kind == "rewind" and isinstance(record.get("turns"), int):
            self._apply_rewind(record["turns"])
        elif kind == "todo" and isinstance(record.get("items"), list):
            self.todos = record["items"]
        elif kind == "model" and isinstance(record.get("model"), str):
            self.model = record["model"]
        elif kind == "title" and isinstance(record.get("title"), str):
            self.named = record["title"]
        elif kind == "read" and isinstance(record.get("path"), str):
            self.reads[record["path"]] = str(record.get("hash"))
        elif kind == "changes":
            for message in reversed(self.messages):
                if message.begins_turn():
                    message.turn = str(record.get("turn", ""))
                    break

    def missing_results(self) -> list[Message]:
        """Answers for calls that were cut off, put in their places."""
        out = []
        for n in range(len(self.messages) - 1, -1, -1):
            if self.messages[n].role == "assistant":
                answers = [Message("tool", "error: interrupted", tool_call_id=i) for i in _unanswered(self.messages, n)]
                at = _results_after(self.messages, n)
                self.messages[at:at] = answers
                out = answers + out
        return out


def load(home: str, id: str) -> Session | None:
    """The stored session, without changing it; None when the file is no session."""
    path = session_path(home, id)
    try:
        with open(path, "rb") as f:
            data = f.read()
            info = os.fstat(f.fileno())
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None
    except OSError as e:
        raise HarnessError(1, f"internal: cannot read {path}: {reason_of(e)}") from None
    lines = data.split(b"\n")
    last = len(lines) - 1
    if not lines[-1]:
        lines.pop()
    session = None
    for n, line in enumerate(lines):
        try:
            record = loads(line.decode("utf-8"))
            if not isinstance(record, dict):
                raise ValueError("not an object")
        except ValueError:
            if n == 0:
                return None
            if n != last:
                session.warnings.append(f"session file {path}: line {n + 1} is broken and left out")
            continue
        if n == 0:
            if record.get("type") != "session":
                return None
            session = Session(home, str(record.get("cwd", "")), id)
            session.stored = True
            session.created = str(record.get("created") or "")
            session.parent = record.get("parent")
            session.header_title = record.get("title") if isinstance(record.get("title"), str) else None
            session.used_model = record.get("model")
            session.updated = info.st_mtime
            session.mtime_ns = info.st_mtime_ns
            continue
        try:
            session._apply(record)
        except (AttributeError, TypeError, ValueError):
            session.warnings.append(f"session file {path}: line {n + 1} is broken and left out")
    return session


def resume(home: str, id: str, workspace: str, console, saving=True, repair=True) -> Session:
    """A stored session to go on with; raises exit code 6."""
    session = load(home, id) if ID.match(id) else None
    if session is None:
        raise HarnessError(6, f"session not found: {id}")
    for text in session.warnings:
        console.warning(text)
    session.saving = saving
    if session.cwd != workspace:
        console.warning(f"session {id} belongs to another workspace: {session.cwd}")
    if repair:
        settle(session)
    return session


def settle(session: Session) -> None:
    answers = session.missing_results()
    if answers:
        session.record(*({"type": "message", "message": m.wire()} for m in answers))


def stored(home: str, workspace: str) -> list[Session]:
    """The sessions of a workspace, newest first."""
    out = []
    try:
        names = os.listdir(sessions_dir(home))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as e:
        raise HarnessError(1, f"internal: cannot read {sessions_dir(home)}: {reason_of(e)}") from None
    for name in names:
        if name.endswith(".jsonl") and ID.match(name[:-6]):
            session = load(home, name[:-6])
            if session and session.cwd == workspace:
                out.append(session)
    out.sort(key=lambda s: (s.mtime_ns, s.created, s.id), reverse=True)
    return out


def fork(source: Session, workspace: str, model, saving: bool, id: str = "") -> Session:
    """A copy that is a session of its own."""
    copy = Session(source.home, workspace, id)
    copy.parent = source.id
    copy.header_title = source.title
    copy.used_model = model
    copy.saving = saving
    copy.model = source.model
    copy.messages = [Message(m.role, m.content, list(m.tool_calls), m.tool_call_id, m.kind, m.turn)
                     for m in source.messages]
    copy.todos = list(source.todos)
    copy.reads = dict(source.reads)
    copy.first_prompt = source.first_prompt
    copy.named = None
    if saving:
        rest = b""
        if source.stored:
            try:
                with open(source.path, "rb") as f:
                    rest = f.read().partition(b"\n")[2]
            except OSError as e:
                raise HarnessError(1, f"internal: cannot read {source.path}: {reason_of(e)}") from None
            whole, feed, tail = rest.rpartition(b"\n")
            rest = whole + feed
            if tail:
                try:
                    loads(tail.decode("utf-8"))
                    rest += tail + b"\n"
                except ValueError:
                    pass
            folder = checkpoint_dir(source.home, source.id)
            if os.path.isdir(folder):
                shutil.copytree(folder, checkpoint_dir(source.home, copy.id))
        copy._write((compact(copy._header()) + "\n").encode("utf-8") + rest, True)
        copy.stored = True
        settle(copy)
    else:
        copy._header()
        copy._checkpoints = source.checkpoints.clone(checkpoint_dir(source.home, copy.id))
    copy.named = source.named
    return copy


def delete(home: str, id: str) -> None:
    path = session_path(home, id)
    try:
        os.unlink(path)
        shutil.rmtree(checkpoint_dir(home, id), ignore_errors=True)
    except OSError as e:
        raise HarnessError(1, f"internal: cannot remove {path}: {reason_of(e)}") from None
