"""Memory files: what the system message shows of them, and how a line is added."""

import os
import re

from .paths import Roots

MOST_LINES = 200
MOST_BYTES = 25_000
SCOPES = ("user", "project")


def memory_path(scope: str, workspace: str, home: str) -> str:
    return os.path.join(home, "memory.md") if scope == "user" else os.path.join(workspace, ".harness", "memory.md")


def read_memory(scope: str, roots: Roots, home: str, warn) -> bytes:
    """The content of a memory file; empty when there is none or it cannot be used."""
    path = memory_path(scope, roots.workspace, home)
    if scope == "project" and not is_inside(roots):
        warn(f"{path} is outside the workspace")
        return b""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        warn(f"{path}: {error.strerror}")
        return b""
    return data if data.strip() else b""


def is_inside(roots: Roots) -> bool:
    """Tell whether the project's file is where it seems to be, and no link out of the roots."""
    return roots.holds(os.path.realpath(memory_path("project", roots.workspace, "")))


def memory_blocks(roots: Roots, home: str, warn) -> str:
    """The blocks of the system message."""
    blocks = []
    for scope in SCOPES:
        data = read_memory(scope, roots, home, warn)
        if data:
            blocks.append(f'<memory scope="{scope}">\n{beginning(data)}\n</memory>')
    return "\n\n".join(blocks)


def beginning(data: bytes) -> str:
    """The part of a file that the limits allow, with a note about the rest."""
    lines = split_lines(data)
    shown, size = [], 0
    for line in lines[:MOST_LINES]:
        size += len(line)
        if size > MOST_BYTES:
            break
        shown.append(line)
    if len(shown) == len(lines):
        return data.decode("utf-8", "replace").rstrip()
    if shown:
        text = b"".join(shown).decode("utf-8", "replace").removesuffix("\n")
    else:
        text = whole_characters(lines[0][:MOST_BYTES]).decode("utf-8", "replace")
    return f"{text}\n[memory cut: {len(lines) - len(shown)} lines left out]"


def split_lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def whole_characters(data: bytes) -> bytes:
    """Cut off the beginning of a UTF-8 character at the end of `data`."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0xC0:  # the first byte of a character
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back else data
        if byte < 0x80:
            break
    return data


def remember(scope: str, text: str, workspace: str, home: str):
    """Append one line to a memory file, whatever others add at the same time."""
    line = "- " + re.sub(r"[\r\n]+", " ", text.strip()) + "\n"
    path = memory_path(scope, workspace, home)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX)
        size = os.fstat(handle).st_size
        unfinished = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        os.write(handle, ("\n" if unfinished else "").encode() + line.encode("utf-8", "surrogateescape"))
    finally:
        os.close(handle)
