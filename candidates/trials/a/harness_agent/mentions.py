"""Mentions of files in a prompt, and what they attach."""

import os
import re

from .filetools import Refusal, is_binary, kind_of
from .globs import Ignore
from .paths import Place, in_roots, relative
from .searchtools import Search
from .util import digest, shown

LIMIT = 100_000
_MENTION = re.compile(r'(?:(?<=\s)|\A)@(?:"([^"]*)"|([^\s"]\S*))')


def _part(data: bytes) -> str:
    if len(data) <= LIMIT:
        return data.decode("utf-8", "replace")
    end = data.rfind(b"\n", 0, LIMIT) + 1 or LIMIT
    text = data[:end].decode("utf-8", "replace")
    return text + ("" if text.endswith("\n") else "\n") + f"[{len(data) - end} bytes left out]"


def _found(typed: str, quoted: bool, workspace: str):
    """The place of a mention; trailing marks are left off until a path exists."""
    text = typed
    while True:
        place = Place(text, workspace)
        if os.path.lexists(os.path.join(workspace, text)):
            return place
        if quoted or not text or text[-1] not in ".,;:!?)":
            return None
        text = text[:-1]
        if not text:
            return None


def attach(core, text: str) -> tuple[str, dict]:
    """The user message of a prompt, and the files that count as read with their hashes."""
    workspace, roots = core.workspace, core.roots
    ignore = Ignore(workspace)
    blocks, reads, seen = [], {}, set()
    for match in _MENTION.finditer(text):
        quoted = match.group(1) is not None
        typed = match.group(1) if quoted else match.group(2)
        if not typed or "\0" in typed:
            continue

        def refuse(why):
            core.console.warning(f"not attached: {typed}: {why}")

        place = _found(typed, quoted, workspace)
        if place is None:
            refuse("no such file")
            continue
        if not in_roots(place.real, roots):
            refuse("outside the workspace")
            continue
        if ignore.covers(place.text) or ignore.covers(place.real):
            refuse("ignored")
            continue
        path = relative(place.text, workspace)
        if place.real in seen:
            continue
        if core.judge.unread(place.text, place.real):
            refuse("denied")
            continue
        kind = kind_of(place.real)
        if kind == "directory":
            try:
                listed = Search(workspace, roots, ignore, core.judge.unread).list(place)
            except Refusal as e:
                refuse(str(e))
                continue
            seen.add(place.real)
            blocks.append(f'<directory path="{shown(path)}">\n{listed}\n</directory>')
            continue
        if kind != "file":
            refuse("no such file" if kind == "missing" else "not a regular file")
            continue
        try:
            with open(place.real, "rb") as f:
                data = f.read()
        except OSError as e:
            refuse(e.strerror)
            continue
        if is_binary(data):
            refuse("binary")
            continue
        seen.add(place.real)
        reads[place.real] = digest(data)
        body = _part(data)
        blocks.append(f'<file path="{shown(path)}">\n{body}{"" if body.endswith(chr(10)) or not body else chr(10)}</file>')
    return text + "".join("\n\n" + b for b in blocks), reads
