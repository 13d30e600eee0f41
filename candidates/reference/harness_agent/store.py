"""The state directory's sessions: making, finding, copying and deleting them."""

import os
import time

from .errors import HarnessError, SessionNotFound, UsageError
from .flags import SESSION_ID
from .session import Session, parse_record, read_session, timestamp
from .settings import home_directory


def sessions_directory() -> str:
    return os.path.join(home_directory(), "sessions")


def session_path(session_id: str) -> str:
    return os.path.join(sessions_directory(), session_id + ".jsonl")


def checkpoint_directory(session_id: str) -> str:
    return os.path.join(home_directory(), "checkpoints", session_id)


def new_session(workspace: str, model_name, saving: bool, session_id: str = "") -> Session:
    """A session without a file; `model_name` is called when it gets one."""
    if session_id and os.path.lexists(session_path(session_id)):
        raise UsageError(f"session exists: {session_id}")
    session_id = session_id or fresh_id()
    return Session(session_id, session_path(session_id), workspace, model_name, saving)


def fresh_id() -> str:
    while True:
        session_id = os.urandom(6).hex()
        if not os.path.lexists(session_path(session_id)):
            return session_id


def load(session_id: str) -> Session:
    return read_session(session_path(session_id))


class Listed:
    """What a listing knows about a session file without reading all of it."""

    def __init__(self, session_id, path, header, mtime_ns):
        self.id = session_id
        self.path = path
        self.cwd = header.get("cwd")
        self.created = str(header.get("created") or "")
        self.mtime_ns = mtime_ns

    @property
    def updated(self):
        return timestamp(self.mtime_ns // 10**9)


def updated(path: str) -> str:
    """The time of the last change of a session file."""
    return timestamp(os.stat(path).st_mtime_ns // 10**9)


def listed(workspace: str) -> list[Listed]:
    """The sessions of a workspace, the one that changed last first."""
    found = []
    try:
        entries = list(os.scandir(sessions_directory()))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise HarnessError(f"internal: cannot read {sessions_directory()}: {error.strerror}") from None
    for entry in entries:
        session_id = entry.name[: -len(".jsonl")]
        if not entry.name.endswith(".jsonl") or not SESSION_ID.fullmatch(session_id):
            continue
        try:
            with open(entry.path, "rb") as file:
                header = parse_record(file.readline())
            mtime_ns = entry.stat().st_mtime_ns
        except OSError:
            continue
        if header and header.get("type") == "session" and header.get("cwd") == workspace:
            found.append(Listed(session_id, entry.path, header, mtime_ns))
    found.sort(key=lambda one: (one.mtime_ns, one.created, one.id), reverse=True)
    return found


def newest(workspace: str, other_than: str = "") -> str:
    """The id of the session that changed last; raise SessionNotFound when there is none."""
    for one in listed(workspace):
        if one.id != other_than:
            return one.id
    raise SessionNotFound(f"no session in {workspace}")


def fork(source: Session, workspace: str, model_name, saving: bool, session_id: str = "") -> Session:
    """Store a copy of a session under a new id and return it."""
    target = new_session(workspace, model_name, saving, session_id)
    target.parent = source.id
    target.header_title = source.title
    target.created = timestamp(time.time())
    if source.has_file:
        with open(source.path, "rb") as file:
            lines = file.read().split(b"\n")[1:]
        for line in lines:
            if record := parse_record(line):
                target.take_record(record)
    if not saving or not source.has_file:
        take_over(target, source)
    if saving:
        target.make_file()
        if source.has_file:
            with open(target.path, "ab") as file:
                file.write(b"".join(line + b"\n" for line in lines if parse_record(line)))
            copy_checkpoints(source.id, target.id)
    return target


def take_over(target: Session, source: Session):
    """Give the copy what the source holds in memory only."""
    target.messages = list(source.messages)
    target.turns = list(source.turns)
    target.todos, target.seen = source.todos, dict(source.seen)
    target.title_record, target.first_prompt = source.title_record, source.first_prompt
    target.model_choice = source.model_choice


def copy_checkpoints(source_id: str, target_id: str):
    source = checkpoint_directory(source_id)
    if os.path.isdir(source):
        import shutil

        shutil.copytree(source, checkpoint_directory(target_id))


def delete(session_id: str):
    """Remove a session, a damaged one too."""
    path = session_path(session_id)
    if not os.path.lexists(path):
        raise SessionNotFound(f"session not found: {session_id}")
    os.unlink(path)
    import shutil

    shutil.rmtree(checkpoint_directory(session_id), ignore_errors=True)
