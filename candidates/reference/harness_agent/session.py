"""One conversation and its file of JSON lines, which only ever grows."""

import json
import os
import time

from .errors import HarnessError, SessionNotFound
from .interrupts import held
from .types import Message

INTERRUPTED = "error: interrupted"
TITLE_LENGTH = 60
SHELL_START = "<shell>\n"


class Turn:
    """A user message and all up to the next one; `key` names it in the change log."""

    def __init__(self, key, start):
        self.key = key
        self.start = start


class Session:
    """Messages, todos, title, model choice and read files; records go to the file when `saving` is on."""

    def __init__(self, session_id: str, path: str, cwd: str, model_name=lambda: "", saving=True):
        self.id = session_id
        self.path = path
        self.cwd = cwd
        self.model_name = model_name  # function that names the model in effect, for the first line of a new file
        self.created = timestamp(time.time())
        self.parent = None
        self.header_title = None
        self.title_record = None
        self.first_prompt = None
        self.model_choice = None
        self.messages = []
        self.turns = []  # those that can still be taken back
        self.todos = []
        self.seen = {}  # real path -> digest of the content that the model knows
        self.saving = saving
        self.has_file = False
        self.warnings = []
        self._n_users_stored = 0
        self._n_users_unsaved = 0
        self._pending = []  # records that wait for the file to be made
        self._ends_with_newline = True

    @property
    def title(self):
        """The title that listings show, or None."""
        title = self.title_record if self.title_record is not None else self.header_title
        return self.first_prompt if title is None else " ".join(title.split())

    # Changes of the conversation, each with its record.

    def append(self, message: Message):
        record = {"type": "message", "message": message.wire()}
        if message.origin:
            record["origin"] = message.origin
        with held():
            self._take_message(message)
            self._write(record, makes_file=True)

    def saw(self, real: str, digest):
        """Remember which content of a file the model knows; None forgets it."""
        if self.seen.get(real) != digest:
            self._take_read(real, digest)
            self._write({"type": "read", "path": real, "digest": digest})

    def set_todos(self, items):
        self.todos = items
        self._write({"type": "todo", "items": items})

    def set_title(self, title):
        self.title_record = title
        record = {"type": "title", "title": title}
        if self.saving and not self.has_file:
            self._pending.insert(0, record)
            self.make_file()
        else:
            self._write(record)

    def set_model(self, name):
        self.model_choice = name
        self._write({"type": "model", "model": name})

    def compact(self, trigger, summary):
        kept = 1 if trigger == "auto" else 0
        with held():
            self._take_compact(summary, kept)
            self._write({"type": "compact", "trigger": trigger, "summary": summary, "kept": kept}, makes_file=True)

    def rewind(self, n_turns):
        with held():
            self._take_rewind(n_turns)
            self._write({"type": "rewind", "turns": n_turns}, makes_file=True)

    def answer_open_calls(self):
        """Answer calls that a run left without a result, each right after its reply."""
        index = 0
        while index < len(self.messages):
            message = self.messages[index]
            index += 1
            if message.tool_calls:
                place = self._after_results(index)
                for call_id in open_calls(message, self.messages[index:place]):
                    answer = Message("tool", INTERRUPTED, tool_call_id=call_id)
                    self._insert(place, answer)
                    self._write({"type": "message", "message": answer.wire()}, makes_file=True)
                    place += 1
                index = place

    def last_turn_key(self):
        """The name of the running turn in the change log."""
        return self.turns[-1].key if self.turns else "s0"

    # The file.

    def make_file(self):
        """Write the first line, and what waited for it."""
        if self.has_file or not self.saving:
            return
        header = {
            "type": "session",
            "id": self.id,
            "cwd": self.cwd,
            "created": self.created,
            "title": self.header_title,
            "model": self.model_name() or None,
            "parent": self.parent,
        }
        self.has_file = True
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
        except OSError as error:
            raise HarnessError(f"internal: cannot write {self.path}: {error.strerror}") from None
        self._append_lines([header, *self._pending])
        self._pending = []

    def _write(self, record, makes_file=False):
        if not self.saving:
            return
        if not self.has_file and not makes_file:
            self._pending.append(record)
            return
        self.make_file()
        self._append_lines([record])

    def _append_lines(self, records):
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        data = text.encode("utf-8", "replace")
        if not self._ends_with_newline:
            data = b"\n" + data
        self._ends_with_newline = True
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, data)
            finally:
                os.close(handle)
        except OSError as error:
            raise HarnessError(f"internal: cannot write {self.path}: {error.strerror}") from None

    # What a record does, the same for one that is made and one that is read.

    def _take_message(self, message, stored=None):
        if message.role == "user" and not message.origin:
            if self.saving if stored is None else stored:
                self._n_users_stored += 1
                key = f"s{self._n_users_stored}"
            else:
                self._n_users_unsaved += 1
                key = f"u{self._n_users_unsaved}"
            if self.first_prompt is None and not message.content.startswith(SHELL_START):
                first_line = message.content.strip().split("\n")[0]
                self.first_prompt = " ".join(first_line.split())[:TITLE_LENGTH] or None
            self.turns.append(Turn(key, len(self.messages)))
        self.messages.append(message)

    def _take_tool_message(self, message):
        """Put a stored result where it belongs: after its reply, even when a user message came between."""
        for index in range(len(self.messages) - 1, -1, -1):
            asked = self.messages[index]
            if asked.tool_calls:
                place = self._after_results(index + 1)
                if message.tool_call_id in open_calls(asked, self.messages[index + 1 : place]):
                    self._insert(place, message)
                    return
        self.messages.append(message)

    def _take_read(self, real, digest):
        if digest is None:
            self.seen.pop(real, None)
        else:
            self.seen[real] = digest

    def _take_compact(self, summary, kept):
        newest = self.turns[-1] if self.turns and kept else None
        kept_message = self.messages[newest.start] if newest else None
        self.messages = [Message("user", f"<summary>{summary}</summary>")]
        self.turns = []
        if newest:
            self.turns = [Turn(newest.key, 1)]
            self.messages.append(kept_message)

    def _take_rewind(self, n_turns):
        n_turns = min(n_turns, len(self.turns))
        if n_turns > 0:
            first = self.turns[-n_turns]
            del self.messages[first.start :]
            del self.turns[-n_turns:]

    def _after_results(self, index):
        while index < len(self.messages) and self.messages[index].role == "tool":
            index += 1
        return index

    def _insert(self, place, message):
        self.messages.insert(place, message)
        for turn in self.turns:
            if turn.start >= place:
                turn.start += 1

    def take_record(self, record):
        """Apply one record of a file; what is unknown or has another form is passed over."""
        kind = record.get("type")
        if kind == "message" and isinstance(record.get("message"), dict):
            message = Message.from_wire(record["message"])
            message.origin = "hook" if record.get("origin") == "hook" else ""
            if message.role == "tool":
                self._take_tool_message(message)
            else:
                self._take_message(message, stored=True)
        elif kind == "todo" and isinstance(record.get("items"), list):
            self.todos = record["items"]
        elif kind == "title" and isinstance(record.get("title"), str):
            self.title_record = record["title"]
        elif kind == "model" and isinstance(record.get("model"), str):
            self.model_choice = record["model"]
        elif kind == "read" and isinstance(record.get("path"), str):
            self._take_read(record["path"], record.get("digest"))
        elif kind == "compact" and isinstance(record.get("summary"), str):
            self._take_compact(record["summary"], record.get("kept", 0))
        elif kind == "rewind" and isinstance(record.get("turns"), int):
            self._take_rewind(record["turns"])


def open_calls(asked: Message, results) -> list[str]:
    """The ids of the calls of a reply that have no result yet; equal ids count one by one."""
    answered = [result.tool_call_id for result in results]
    still_open = []
    for call in asked.tool_calls:
        if call.id in answered:
            answered.remove(call.id)
        else:
            still_open.append(call.id)
    return still_open


def timestamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def read_session(path: str) -> Session:
    """Read a session file; raise SessionNotFound when it is no session."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        raise not_found(path) from None
    except OSError as error:
        raise HarnessError(f"internal: cannot read {path}: {error.strerror}") from None
    lines = data.split(b"\n")
    ends_with_newline = lines[-1] == b""
    if ends_with_newline:
        lines.pop()
    header = parse_record(lines[0]) if lines else None
    if not header or header.get("type") != "session":
        raise not_found(path)
    session = Session(os.path.basename(path)[: -len(".jsonl")], path, str(header.get("cwd") or ""))
    session.created = str(header.get("created") or "")
    session.header_title = header["title"] if isinstance(header.get("title"), str) else None
    session.parent = header["parent"] if isinstance(header.get("parent"), str) else None
    session.has_file = True
    session._ends_with_newline = ends_with_newline
    for number, line in enumerate(lines[1:], 2):
        record = parse_record(line)
        try:
            if record is None:
                raise ValueError
            session.take_record(record)
        except (ValueError, KeyError, TypeError, AttributeError):
            if number < len(lines) or ends_with_newline:
                session.warnings.append(f"{path}: line {number} is damaged and left out")
    return session


def parse_record(line: bytes):
    """The object on a line, or None."""
    try:
        record = json.loads(line.decode("utf-8"))
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def not_found(path: str) -> SessionNotFound:
    return SessionNotFound(f"session not found: {os.path.basename(path)[: -len('.jsonl')]}")
