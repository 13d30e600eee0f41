"""The tools `read`, `write` and `edit`, and the writing that `patch` shares."""

import os
import stat

from .paths import Place
from .util import digest, reason_of, replace_file

BOM = b"\xef\xbb\xbf"
LARGE = 10 * 1024 * 1024


class Refusal(Exception):
    """An error result."""


def kind_of(path: str) -> str:
    """missing, file, directory or special."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return "missing"
    return "file" if stat.S_ISREG(mode) else "directory" if stat.S_ISDIR(mode) else "special"


def load(place: Place) -> bytes:
    """The bytes of a regular file, or a Refusal."""
    kind = kind_of(place.real)
    if kind == "directory":
        raise Refusal(f"error: is a directory: {place.given}")
    if kind == "special":
        raise Refusal(f"error: not a regular file: {place.given}")
    if kind == "missing" or place.slash:
        try:
            os.stat(place.real)
        except PermissionError as e:
            raise Refusal(f"error: cannot read {place.given}: {reason_of(e)}") from None
        except OSError as e:
            if e.errno == 36:
                raise Refusal(f"error: cannot read {place.given}: {reason_of(e)}") from None
        raise Refusal(f"error: no such file: {place.given}")
    try:
        with open(place.real, "rb") as f:
            return f.read()
    except OSError as e:
        raise Refusal(f"error: cannot read {place.given}: {reason_of(e)}") from None


def is_binary(data: bytes) -> bool:
    return b"\0" in data[:8192]


def lines_of(data: bytes) -> tuple[list[str], bool]:
    """The lines of a file without their ends, and whether all bytes are UTF-8."""
    data = data.removeprefix(BOM)
    try:
        text, valid = data.decode("utf-8"), True
    except UnicodeDecodeError:
        text, valid = data.decode("utf-8", "replace"), False
    lines = text.split("\n")
    last = lines.pop()
    lines = [line[:-1] if line.endswith("\r") else line for line in lines]
    if last:
        lines.append(last)
    return lines, valid


def short(line: str) -> str:
    return line if len(line) <= 2000 else line[:2000] + "…"


def crlf(data: bytes) -> bool:
    feeds = data.count(b"\n")
    return feeds > 0 and data.count(b"\r\n") == feeds


class FileTools:
    """Works on places that have passed the path checks; `session` keeps what was read."""

    def __init__(self, reads, changes):
        self.reads = reads  # get(path), set(path, hash)
        self.changes = changes  # the turn's recorder: change(path, data or None)

    def read(self, place: Place, offset=None, limit=None) -> str:
        if kind_of(place.real) == "file" and not place.slash and offset is None and limit is None:
            size = os.stat(place.real).st_size
            if size > LARGE:
                try:
                    with open(place.real, "rb") as f:
                        if is_binary(f.read(8192)):
                            raise Refusal(f"error: binary file: {place.given}")
                except OSError as e:
                    raise Refusal(f"error: cannot read {place.given}: {reason_of(e)}") from None
                raise Refusal(f"error: too large: {place.given} has {size} bytes; read it in parts by offset and limit")
        data = load(place)
        if is_binary(data):
            raise Refusal(f"error: binary file: {place.given}")
        self.reads.set(place.real, digest(data))
        lines, valid = lines_of(data)
        if not lines:
            return "[empty file]"
        first, total = offset or 1, len(lines)
        if first > total:
            return f"[file has {total} lines]"
        last = min(total, first - 1 + (limit or 2000))
        out = [f"{n}\t{short(lines[n - 1])}" for n in range(first, last + 1)]
        if not valid:
            out.append("[not valid UTF-8: bytes replaced]")
        if last < total:
            out.append(f"[lines {first}-{last} of {total}; {total - last} more]")
        return "\n".join(out)

    def _must_be_read(self, place: Place, data: bytes) -> None:
        known = self.reads.get(place.real)
        if known is None or is_binary(data):
            raise Refusal(f"error: read it first: {place.given}")
        if known != digest(data):
            raise Refusal(f"error: changed since it was read: {place.given}")

    def write(self, place: Place, content: str) -> str:
        kind = kind_of(place.real)
        if kind == "directory" or (place.slash and kind == "missing"):
            raise Refusal(f"error: is a directory: {place.given}")
        if place.slash:
            raise Refusal(f"error: not a directory: {place.given}")
        if kind == "special":
            raise Refusal(f"error: not a regular file: {place.given}")
        data = content.encode("utf-8")
        if kind == "file":
            try:
                with open(place.real, "rb") as f:
                    old = f.read()
            except OSError:
                raise Refusal(f"error: read it first: {place.given}") from None
            self._must_be_read(place, old)
        self.put(place, place.real, data)
        return f"wrote {place.given} ({len(data)} bytes)"

    def put(self, place: Place, path: str, data: bytes) -> None:
        """Writes one file, and notes it for taking back and as read."""
        parent = os.path.dirname(path)
        probe = parent
        while not os.path.lexists(probe):
            probe = os.path.dirname(probe)
        if not os.path.isdir(probe):
            raise Refusal(f"error: not a directory: {place.given}")
        try:
            if os.path.lexists(path) and not os.access(path, os.W_OK):
                raise PermissionError(13, "Permission denied")
            if len(os.fsencode(os.path.basename(path))) > 255:
                raise OSError(36, os.strerror(36))
            if not os.path.isdir(parent):
                os.makedirs(parent, exist_ok=True)
            if not os.access(parent, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied")
            with self.changes.change(path, data):
                replace_file(path, data)
        except OSError as e:
            raise Refusal(f"error: cannot write {place.given}: {reason_of(e)}") from None
        self.reads.set(path, digest(data))

    def remove(self, place: Place, path: str) -> None:
        try:
            with self.changes.change(path, None):
                os.unlink(path)
        except OSError as e:
            raise Refusal(f"error: cannot write {place.given}: {reason_of(e)}") from None

    def edit(self, place: Place, old: str, new: str, every=False) -> str:
        data = load(place)
        if is_binary(data):
            raise Refusal(f"error: binary file: {place.given}")
        self._must_be_read(place, data)
        bom = BOM if data.startswith(BOM) else b""
        try:
            text = data[len(bom):].decode("utf-8")
        except UnicodeDecodeError:
            raise Refusal(f"error: not valid UTF-8: {place.given}") from None
        if crlf(data):
            old = old.replace("\r\n", "\n").replace("\n", "\r\n")
            new = new.replace("\r\n", "\n").replace("\n", "\r\n")
        count = text.count(old)
        if count == 0:
            raise Refusal(f"error: not found: old does not occur in {place.given}")
        if count > 1 and not every:
            raise Refusal(f"error: old occurs {count} times in {place.given}")
        self.put(place, place.real, bom + text.replace(old, new).encode("utf-8"))
        return f"edited {place.given} (replacements: {count})"
