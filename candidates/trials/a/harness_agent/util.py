"""Small helpers: JSON, text, files, errors, and the standard channels."""

import hashlib
import json
import os
import re
import secrets
import stat
import sys
import time

ERROR_CODES = {
    1: "internal", 2: "usage", 3: "settings", 4: "model", 5: "turn_limit",
    6: "session_not_found", 7: "hook_blocked", 124: "time_limit", 130: "interrupted",
}


class HarnessError(Exception):
    """A failure with an exit code; `note` holds further lines for standard error."""

    def __init__(self, code: int, message: str, note: str = ""):
        super().__init__(message)
        self.code = code
        self.message = message
        self.note = note


class Interrupted(BaseException):
    """A signal ended the process."""


class TimeLimit(BaseException):
    """`--timeout-s` is over."""


class TurnCancelled(BaseException):
    """Ctrl-C in a terminal while a turn runs."""


def dumps(value, **kw) -> str:
    """JSON as UTF-8 text; escapes everything when a half surrogate is in it."""
    text = json.dumps(value, ensure_ascii=False, **kw)
    try:
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=True, **kw)


def compact(value) -> str:
    return dumps(value, separators=(",", ":"))


def _no_constant(name):
    raise ValueError(f"{name} is not JSON")


def loads(text: str):
    """Strict JSON: no NaN, no Infinity; every fault is a ValueError."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def clean(text: str) -> str:
    """Text without half surrogates, which cannot be written as UTF-8."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def shown(name: str) -> str:
    """A file name on one line of a result."""
    return clean(name).replace("\n", "\\n")


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape") if _escapable(text) else clean(text).encode("utf-8")


def _escapable(text):
    try:
        text.encode("utf-8", "surrogateescape")
        return True
    except UnicodeEncodeError:
        return False


def name_bytes(name: str) -> bytes:
    return os.fsencode(name)


def utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + "…"


def reason_of(error: OSError) -> str:
    return error.strerror or str(error)


def write_fd(fd: int, data: bytes) -> None:
    """Writes all of it; a closed reader is no reason to stop."""
    while data:
        try:
            n = os.write(fd, data)
        except BlockingIOError:
            time.sleep(0.01)
            continue
        except OSError:
            return
        data = data[n:]


def ensure_standard_fds() -> None:
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != fd:
                os.dup2(null, fd)
                os.close(null)


def replace_file(path: str, data: bytes, mode=None) -> None:
    """Puts a file in place by a rename; an existing file keeps its mode unless one is given."""
    folder = os.path.dirname(path) or "."
    if mode is None:
        try:
            mode = stat.S_IMODE(os.stat(path).st_mode)
        except OSError:
            mode = None
    temp = os.path.join(folder, f".h{secrets.token_hex(6)}.tmp")
    try:
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view):]
            if mode is not None:
                os.fchmod(fd, mode)
        finally:
            os.close(fd)
        os.replace(temp, path)
    except BaseException:
        try:
            os.unlink(temp)
        except OSError:
            pass
        raise


def read_file(path: str) -> bytes:
    with open(path, "rb") as f:
        return f.read()


class Console:
    """Standard error: warnings, errors, and what `--verbose` adds."""

    def __init__(self, quiet=False, verbose=False):
        self.quiet = quiet
        self.verbose = verbose
        self.seen = set()

    def _line(self, text: str) -> None:
        try:
            sys.stdout.flush()
        except (OSError, ValueError, AttributeError):
            pass
        write_fd(2, (clean(text) + "\n").encode("utf-8"))

    def warning(self, text: str) -> None:
        if not self.quiet:
            self._line("warning: " + text)

    def warning_once(self, text: str) -> None:
        if text not in self.seen:
            self.seen.add(text)
            self.warning(text)

    def error(self, text: str, note: str = "") -> None:
        self._line("error: " + text)
        if note:
            self._line(note)

    def note(self, text: str) -> None:
        if self.verbose:
            self._line(text)
