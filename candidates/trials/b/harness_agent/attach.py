"""Mentions of files in a prompt."""

import os
import stat

from .base import Console, digest, is_inside
from .files import Place, ToolError
from .rules import path_match
from .search import list_entries, _limited

LIMIT = 100000


def mentions(text):
    """(path as typed, may be shortened) of each mention."""
    i = 0
    while True:
        i = text.find("@", i)
        if i < 0:
            return
        if i and not text[i - 1].isspace():
            i += 1
            continue
        i += 1
        if text[i:i + 1] == '"':
            end = text.find('"', i + 1)
            if end > i + 1:
                yield text[i + 1:end], False
                i = end + 1
            continue
        end = i
        while end < len(text) and not text[end].isspace():
            end += 1
        if end > i:
            yield text[i:end], True
        i = end


def _exists(path, cwd):
    return "\0" not in path and os.path.lexists(os.path.join(cwd, path))


def attach(text, harness, turn):
    """(the user message, files read as (real path, digest))"""
    blocks, reads, seen = [], [], set()
    scope = _Scope(harness, turn)
    for typed, shorten in mentions(text):
        path = typed
        try:
            if shorten:
                while path and not _exists(path, harness.cwd) and path[-1] in ".,;:!?)":
                    path = path[:-1]
            if not path or not _exists(path, harness.cwd):
                Console.warn(f"not attached: {typed}")
                continue
            _one(path, scope, blocks, reads, seen)
        except (ToolError, OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            Console.warn(f"not attached: {typed}" + (f": {why}" if why else ""))
    return text + "".join("\n\n" + block for block in blocks), reads


class _Scope:
    def __init__(self, harness, turn):
        self.harness, self.ignore, self.cwd = harness, turn.ignore, harness.cwd

    def roots(self):
        return self.harness.roots()


def _one(path, scope, blocks, reads, seen):
    place = Place(path, scope.cwd)
    if not any(is_inside(place.real, root) for root in scope.roots()):
        raise ToolError("outside the workspace")
    if scope.ignore.covers(place.lexical) or scope.ignore.covers(place.real):
        raise ToolError("ignored")
    for rule in scope.harness.rules("deny"):
        if rule.tool == "read" and (rule.pattern is None or path_match(rule, path, scope.cwd, False)):
            raise ToolError("denied")
    info = os.stat(place.full)
    if place.real in seen:
        return
    shown = os.path.relpath(place.real, scope.cwd) if is_inside(place.real, scope.cwd) else place.real
    if stat.S_ISDIR(info.st_mode):
        listing = _limited(list_entries(place, scope), 500) or "[empty directory]"
        seen.add(place.real)
        blocks.append(f'<directory path="{shown}">\n{listing}\n</directory>')
        return
    if not stat.S_ISREG(info.st_mode):
        raise ToolError("not a regular file")
    with open(place.real, "rb") as handle:
        data = handle.read()
    if b"\0" in data[:8192]:
        raise ToolError("binary")
    seen.add(place.real)
    reads.append((place.real, digest(data)))
    part, tail = data, ""
    if len(data) > LIMIT:
        end = data.rfind(b"\n", 0, LIMIT) + 1
        part = data[:end] if end else data[:LIMIT]
        tail = f"[{len(data) - len(part)} bytes left out]\n"
    body = part.decode("utf-8", "replace")
    if body and not body.endswith("\n"):
        body += "\n"
    blocks.append(f'<file path="{shown}">\n{body}{tail}</file>')
