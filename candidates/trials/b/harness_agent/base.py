"""Small things that every module needs: errors, output, JSON, files, signals."""

import hashlib
import json
import os
import sys
import tempfile
import threading
import time
from contextlib import contextmanager

START = time.monotonic()
VERSION = "0.1.0"

ERROR_NAMES = {
    1: "internal", 2: "usage", 3: "settings", 4: "model", 5: "turn_limit",
    6: "session_not_found", 7: "hook_blocked", 124: "time_limit", 130: "interrupted",
}
MODES = ["ask", "accept-edits", "plan", "auto", "dont-ask"]
STRICT = ["plan", "dont-ask", "ask", "accept-edits", "auto"]
FORMATS = ["text", "json", "stream-json"]


class HarnessError(Exception):
    """A failure with an exit code of the closed table."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
        self.message = message


class Stop(BaseException):
    """A signal or the time limit: ends the turn, whatever it is doing."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
        self.message = message


# Signals are held back while something must not be left half done.
_hold = {"depth": 0, "pending": None}


@contextmanager
def critical():
    main = threading.current_thread() is threading.main_thread()
    if not main:
        yield
        return
    _hold["depth"] += 1
    try:
        yield
    finally:
        _hold["depth"] -= 1
        if _hold["depth"] == 0 and _hold["pending"] is not None:
            stop, _hold["pending"] = _hold["pending"], None
            raise stop


def raise_stop(stop):
    """Called from signal handlers."""
    if _hold["depth"]:
        if _hold["pending"] is None:
            _hold["pending"] = stop
        return
    raise stop


class Console:
    """Standard output and standard error, both in UTF-8."""

    level = "normal"
    requests = 0
    _warned = set()

    @staticmethod
    def _write(stream, text):
        data = text.encode("utf-8", "surrogateescape") if _clean(text) else text.encode("utf-8", "replace")
        if stream is None:
            return
        try:
            buffer = getattr(stream, "buffer", None)
            if buffer is not None:
                stream.flush()
                buffer.write(data)
                buffer.flush()
            else:
                stream.write(data.decode("utf-8", "replace"))
                stream.flush()
        except (OSError, ValueError):
            # A closed output must not disturb the run, nor the end of the process.
            try:
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)
            except (OSError, ValueError, AttributeError):
                pass

    @classmethod
    def out(cls, text):
        cls._write(sys.stdout, text)

    @classmethod
    def err(cls, text):
        cls._write(sys.stderr, text)

    @classmethod
    def warn(cls, text):
        if cls.level != "quiet":
            cls.err("warning: " + one_line(text) + "\n")

    @classmethod
    def warn_once(cls, key, text):
        if key not in cls._warned:
            cls._warned.add(key)
            cls.warn(text)

    @classmethod
    def error(cls, text):
        cls.err("error: " + one_line(text) + "\n")

    @classmethod
    def verbose(cls, text):
        if cls.level == "verbose":
            cls.err(one_line(text) + "\n")


def _clean(text):
    try:
        text.encode("utf-8", "surrogateescape")
        return True
    except UnicodeEncodeError:
        return False


def one_line(text):
    return " ".join(text.splitlines()) if len(text.splitlines()) > 1 else text.rstrip("\r\n")


def js(value):
    """JSON on one line, without spaces, letters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_bytes(value):
    text = js(value)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def _constant(name):
    raise ValueError(f"{name} is not JSON")


def parse_json(text):
    """Strict JSON; ValueError for everything else."""
    try:
        return json.loads(text, parse_constant=_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def cut(text, limit):
    return text if len(text) <= limit else text[:limit] + "…"


def home():
    value = os.environ.get("HARNESS_HOME") or ""
    if not value:
        value = os.path.join(os.path.expanduser("~"), ".harness")
    return os.path.abspath(value)


def is_inside(path, root):
    return path == root or path.startswith(root.rstrip("/") + "/")


def show_name(name):
    """A file name as a result shows it."""
    return "".join("�" if 0xDC80 <= ord(c) <= 0xDCFF else c for c in name).replace("\n", "\\n")


def sort_key(name):
    return os.fsencode(name)


def digest(data):
    return hashlib.sha256(data).hexdigest()


def read_text(path):
    """The text of a file, bad bytes replaced."""
    with open(path, "rb") as handle:
        return handle.read().decode("utf-8", "replace")


def atomic_write(path, data, mode=None):
    """Put `data` in place by a rename; the target of a link is the caller's matter."""
    folder = os.path.dirname(path)
    with critical():
        name = os.path.join(folder, ".tmp-" + os.urandom(8).hex())
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view):]
            if mode is not None:
                os.fchmod(fd, mode)
            os.close(fd)
            fd = -1
            os.rename(name, path)
        except BaseException:
            if fd >= 0:
                os.close(fd)
            try:
                os.unlink(name)
            except OSError:
                pass
            raise


def reason(error):
    return error.strerror or str(error)


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[len(b)]


def near_names(name, names):
    if len(name) > 200:
        return []
    found = []
    for other in names:
        steps = distance(name, other)
        if steps <= 2 or (name and other.startswith(name)):
            found.append((steps, other.encode(), other))
    return [other for _, _, other in sorted(found)[:3]]


def utc(seconds=None):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
