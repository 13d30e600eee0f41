"""read, write and edit: whole files and replacements in them.

The helpers above the tools are the rules that every file tool obeys; `patch` and `search` use them too.
"""

import os
import stat

from ..errors import ToolError
from ..interrupts import held

READ_LIMIT = 2000
LONGEST_LINE = 2000
LARGEST_FILE = 10 * 1024 * 1024
PROBE_BYTES = 8192
BYTE_ORDER_MARK = "\ufeff"


def digest(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


def is_binary(data: bytes) -> bool:
    return b"\0" in data[:PROBE_BYTES]


def locate(context, path: str) -> str:
    """The real path of a file tool's argument: inside the roots and not ignored."""
    real = context.roots.resolve(path)
    if context.ignores(path):
        raise ToolError(f"ignored: {path}")
    return real


def locate_for_change(context, path: str) -> str:
    """As `locate`, for a file that is to be changed: not protected either."""
    real = locate(context, path)
    if context.roots.protected(path):
        raise ToolError(f"protected: {path}")
    return real


def require_file(path: str, real: str):
    """Refuse what is not an existing regular file."""
    if os.path.isdir(real):
        raise ToolError(f"is a directory: {path}")
    try:
        mode = os.stat(real).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError(f"no such file: {path}") from None
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror}") from None
    if path.endswith("/"):
        raise ToolError(f"no such file: {path}")
    if not stat.S_ISREG(mode):
        raise ToolError(f"not a regular file: {path}")


def load(path: str, real: str) -> bytes:
    require_file(path, real)
    try:
        with open(real, "rb") as file:
            return file.read()
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror}") from None


def load_text_bytes(path: str, real: str) -> bytes:
    """The content of a file that is to be changed in places."""
    data = load(path, real)
    if is_binary(data):
        raise ToolError(f"binary file: {path}")
    return data


def decode(path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"not valid UTF-8: {path}") from None


def require_read(context, path: str, real: str):
    """Refuse to change a file whose present content this conversation has not seen."""
    seen = context.session.seen.get(real)
    if seen is None:
        raise ToolError(f"read it first: {path}")
    if digest(load(path, real)) != seen:
        raise ToolError(f"changed since it was read: {path}")


def require_place(path: str, real: str):
    """Refuse a path at which no file can stand: a directory, or something below a file."""
    if os.path.isdir(real) or (path.endswith("/") and not os.path.lexists(real)):
        raise ToolError(f"is a directory: {path}")
    parent = os.path.dirname(real)
    while not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    if not os.path.isdir(parent) or path.endswith("/"):
        raise ToolError(f"not a directory: {path}")
    if os.path.lexists(real) and not stat.S_ISREG(os.lstat(real).st_mode):
        raise ToolError(f"not a regular file: {path}")


def store(context, path: str, real: str, data: bytes):
    """Write a file as a whole, keep what it was for undo, and remember what it is now."""
    with held():
        context.changes.before(real, data)
        try:
            if os.path.exists(real) and not os.access(real, os.W_OK):
                raise PermissionError(13, "Permission denied")
            replace_file(real, data)
        except OSError as error:
            raise ToolError(f"cannot write {path}: {error.strerror}") from None
        finally:
            context.changes.after(real)
        context.session.saw(real, digest(data))


def replace_file(real: str, data: bytes, mode=None):
    """Put `data` at `real` in one step; an existing file keeps its mode."""
    folder = os.path.dirname(real)
    os.makedirs(folder, exist_ok=True)
    if mode is None:
        try:
            mode = stat.S_IMODE(os.stat(real).st_mode)
        except FileNotFoundError:
            mode = 0o666 & ~current_umask()
    temporary = os.path.join(folder, f".harness-{os.urandom(8).hex()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, mode)
        os.replace(temporary, real)
    except BaseException:
        os.unlink(temporary)
        raise


def current_umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def read(context, path, offset=None, limit=None):
    real = locate(context, path)
    require_file(path, real)
    size = os.path.getsize(real)
    if size > LARGEST_FILE and offset is None and limit is None:
        raise ToolError(f"too large: {path} has {size} bytes; give offset or limit")
    data = load(path, real)
    if is_binary(data):
        raise ToolError(f"binary file: {path}")
    context.session.saw(real, digest(data))
    if not data:
        return "[empty file]"
    return number_lines(data, offset or 1, limit or READ_LIMIT)


def number_lines(data: bytes, first: int, limit: int) -> str:
    notes = []
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        notes.append("[not valid UTF-8: bytes replaced]")
    text = text.removeprefix(BYTE_ORDER_MARK)
    if not text:
        return "[empty file]"
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += "\n"  # so that a carriage return at the very end is not taken for a line end
    total = len(lines)
    if first > total:
        return f"[file has {total} lines]"
    shown = lines[first - 1 : first - 1 + limit]
    last = first + len(shown) - 1
    if last < total:
        notes.append(f"[lines {first}-{last} of {total}; {total - last} more]")
    texts = (line[:-1] if line.endswith("\n") else line.removesuffix("\r") for line in shown)
    return "\n".join([f"{number}\t{cut_line(line)}" for number, line in enumerate(texts, first)] + notes)


def cut_line(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…"


def write(context, path, content):
    real = locate_for_change(context, path)
    require_place(path, real)
    if os.path.lexists(real):
        require_read(context, path, real)
    data = content.encode("utf-8")
    store(context, path, real, data)
    return f"wrote {path} ({len(data)} bytes)"


def edit(context, path, old, new, all=False):
    real = locate_for_change(context, path)
    data = load_text_bytes(path, real)
    require_read(context, path, real)
    text = decode(path, data)
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    text, crlf = without_crlf(text.removeprefix(mark))
    if crlf:
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    count = text.count(old)
    if count == 0:
        raise ToolError(f"not found: old does not occur in {path}")
    if count > 1 and not all:
        raise ToolError(f"old occurs {count} times in {path}")
    text = text.replace(old, new)
    store(context, path, real, (mark + (text.replace("\n", "\r\n") if crlf else text)).encode("utf-8"))
    return f"edited {path} (replacements: {count})"


def without_crlf(text: str):
    """Return the text with LF line ends when all of them are CRLF, and whether they are."""
    n_crlf = text.count("\r\n")
    crlf = n_crlf > 0 and n_crlf == text.count("\n")
    return (text.replace("\r\n", "\n") if crlf else text), crlf
