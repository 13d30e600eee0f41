"""Memory files: their block in the system message, and additions."""

import fcntl
import os
import re

from .paths import in_roots
from .util import reason_of

MAX_LINES = 200
MAX_BYTES = 25000


def path_of(scope: str, workspace: str, home: str) -> str:
    return os.path.join(home, "memory.md") if scope == "user" else os.path.join(workspace, ".harness", "memory.md")


def content(scope: str, workspace: str, home: str, roots: list[str], console):
    """The bytes of a memory file, or None; what is wrong with it is a warning."""
    path = path_of(scope, workspace, home)
    if scope == "project" and os.path.lexists(path) and not in_roots(os.path.realpath(path), roots):
        console.warning_once(f"memory file {path} is left out: outside the workspace")
        return None
    try:
        with open(path, "rb") as f:
            data = f.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as e:
        console.warning_once(f"memory file {path} is left out: {reason_of(e)}")
        return None
    return data if data.decode("utf-8", "replace").strip() else None


def _beginning(data: bytes) -> str:
    """The part of a file that the limits let through."""
    text = data.decode("utf-8", "replace").rstrip()
    lines = data.splitlines(keepends=True) if b"\r" not in data else re.findall(rb"[^\n]*\n|[^\n]+", data)
    kept, size = 0, 0
    for line in lines[:MAX_LINES]:
        if size + len(line) > MAX_BYTES:
            break
        size += len(line)
        kept += 1
    if kept == len(lines):
        return text
    if kept == 0:
        first = data[:MAX_BYTES].decode("utf-8", "ignore") if _cut_inside(data) else \
            data[:MAX_BYTES].decode("utf-8", "replace")
        return f"{first}\n[memory cut: {len(lines)} lines left out]"
    shown = b"".join(lines[:kept]).decode("utf-8", "replace").rstrip()
    return f"{shown}\n[memory cut: {len(lines) - kept} lines left out]"


def _cut_inside(data: bytes) -> bool:
    return len(data) > MAX_BYTES and data[MAX_BYTES] & 0xC0 == 0x80


def blocks(workspace, home, roots, console) -> list[str]:
    out = []
    for scope in ("user", "project"):
        data = content(scope, workspace, home, roots, console)
        if data is not None:
            out.append(f'<memory scope="{scope}">\n{_beginning(data)}\n</memory>')
    return out


def show(workspace, home, roots, console, scopes=("user", "project")) -> str:
    parts = []
    for scope in scopes:
        data = content(scope, workspace, home, roots, console)
        if data is not None:
            text = data.decode("utf-8", "replace").rstrip()
            parts.append(f"{scope}: {path_of(scope, workspace, home)}\n{text}")
    return "\n\n".join(parts) or "no memory"


def one_line(text: str) -> str:
    return re.sub(r"[\r\n]+", " ", text.strip())


def add(text: str, scope: str, workspace: str, home: str, roots: list[str]) -> str:
    """Appends one line; gives the text that the `remember` tool returns."""
    path = path_of(scope, workspace, home)
    shown = ".harness/memory.md" if scope == "project" else path
    if scope == "project" and not in_roots(os.path.realpath(path), roots):
        return f"error: outside the workspace: {shown}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            size = os.fstat(fd).st_size
            lead = b"\n" if size and os.pread(fd, 1, size - 1) != b"\n" else b""
            data = lead + f"- {one_line(text)}\n".encode("utf-8", "replace")
            while data:
                data = data[os.write(fd, data):]
        finally:
            os.close(fd)
    except OSError as e:
        return f"error: cannot write {shown}: {reason_of(e)}"
    return f"remembered ({scope})"
