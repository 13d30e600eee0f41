"""The tool `patch`: its grammar, and its change of several files at once."""

import os
from dataclasses import dataclass, field

from .filetools import BOM, FileTools, Refusal, crlf, is_binary, kind_of, load
from .paths import Place

HEADERS = {"*** Add File:": "add", "*** Update File:": "update", "*** Delete File:": "delete"}


@dataclass
class Hunk:
    anchor: str
    lines: list = field(default_factory=list)  # (sign, text)
    number: int = 0  # line of the patch


@dataclass
class Section:
    action: str
    path: str
    number: int
    body: list = field(default_factory=list)  # (line number, text)
    hunks: list = field(default_factory=list)
    place: Place = None


def _header(line: str):
    for head, action in HEADERS.items():
        if line.startswith(head):
            return action, line[len(head):].strip()
    return None


def _lines(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.split("\n")]


def paths_of(text: str) -> list[str]:
    """The paths of all section headers, also of a malformed patch."""
    found = (_header(line) for line in _lines(text))
    return [h[1] for h in found if h and h[1]]


def _bad(number, reason):
    return Refusal(f"error: malformed patch, line {number}: {reason}")


def parse(text: str) -> list[Section]:
    lines = list(enumerate(_lines(text), 1))
    while lines and not lines[0][1].strip():
        lines.pop(0)
    while lines and not lines[-1][1].strip():
        lines.pop()
    if not lines or lines[0][1].rstrip() != "*** Begin Patch":
        raise _bad(lines[0][0] if lines else 1, "the first line is not *** Begin Patch")
    if len(lines) < 2 or lines[-1][1].rstrip() != "*** End Patch":
        raise _bad(lines[-1][0], "the last line is not *** End Patch")
    sections = []
    for number, line in lines[1:-1]:
        header = _header(line)
        if header:
            if not header[1]:
                raise _bad(number, "a path is absent")
            if "\0" in header[1]:
                raise _bad(number, "a path holds a character that cannot be used")
            sections.append(Section(header[0], header[1], number))
        elif line.startswith("***"):
            raise _bad(number, "unknown header")
        elif not sections:
            if line.strip():
                raise _bad(number, "a line before the first section")
        else:
            sections[-1].body.append((number, line))
    if not sections:
        raise _bad(lines[-1][0], "no section")
    for section in sections:
        while section.body and section.body[-1][1] == "":
            section.body.pop()
        _check(section)
    return sections


def _check(section: Section) -> None:
    if section.action == "add":
        for number, line in section.body:
            if not line.startswith("+"):
                raise _bad(number, "a line of a new file does not begin with +")
    elif section.action == "delete":
        for number, line in section.body:
            if line.strip():
                raise _bad(number, "a line after *** Delete File")
    else:
        _hunks(section)


def _hunks(section: Section) -> None:
    for number, line in section.body:
        if line == "@@" or line.startswith("@@ "):
            section.hunks.append(Hunk(line[2:].strip(), number=number))
        elif not section.hunks:
            raise _bad(number, "a line before the first @@")
        elif line == "":
            section.hunks[-1].lines.append((" ", ""))
        elif line[0] in " -+":
            section.hunks[-1].lines.append((line[0], line[1:]))
        else:
            raise _bad(number, "a line of a hunk begins with another character")
    if not section.hunks:
        raise _bad(section.number, "an update without hunks")
    for hunk in section.hunks:
        if all(sign == " " for sign, _ in hunk.lines):
            raise _bad(hunk.number, "a hunk without changes")


def _updated(section: Section, data: bytes) -> bytes:
    path = section.path
    if is_binary(data):
        raise Refusal(f"error: binary file: {path}")
    bom = BOM if data.startswith(BOM) else b""
    try:
        text = data[len(bom):].decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal(f"error: not valid UTF-8: {path}") from None
    end = "\r\n" if crlf(data) else "\n"
    lines = text.split(end)
    closed = lines[-1] == ""
    if closed:
        lines.pop()
    at = 0
    for n, hunk in enumerate(section.hunks, 1):
        old = [t for sign, t in hunk.lines if sign != "+"]
        new = [t for sign, t in hunk.lines if sign != "-"]
        missing = Refusal(f"error: hunk {n} not found in {path}")
        start = at
        if hunk.anchor:
            start = next((i + 1 for i in range(at, len(lines)) if lines[i].strip() == hunk.anchor), None)
            if start is None:
                raise missing
        if not old:
            where = start if hunk.anchor else len(lines)
        else:
            where = next((i for i in range(start, len(lines) - len(old) + 1) if lines[i:i + len(old)] == old), None)
            if where is None:
                raise missing
        lines[where:where + len(old)] = new
        at = where + len(new)
    out = end.join(lines) + (end if lines and closed else "")
    return bom + out.encode("utf-8")


def run(text: str, places: dict, tools: FileTools) -> str:
    """Checks all sections, then makes all changes or none. The path checks are done."""
    sections = parse(text)
    seen = set()
    for section in sections:
        section.place = places[section.path]
        if section.place.real in seen:
            raise Refusal(f"error: {section.path} occurs twice in the patch")
        seen.add(section.place.real)
    plans = [_plan(section) for section in sections]
    made = []
    try:
        for section, (path, data) in zip(sections, plans):
            made.append((path, tools.reads.get(path), tools.changes.mark(path)))
            if data is None:
                tools.remove(section.place, path)
            else:
                tools.put(section.place, path, data)
    except BaseException:
        for path, known, mark in reversed(made):
            if tools.changes.take_back(mark) and known is not None:
                tools.reads.set(path, known)
        raise
    word = {"add": "added", "update": "updated", "delete": "deleted"}
    return "\n".join(f"{word[s.action]} {s.path}" for s in sections)


def _plan(section: Section):
    """(path, new content or None) of one section, or a Refusal."""
    place = section.place
    if section.action == "add":
        joined = place.text
        if os.path.lexists(joined) or os.path.lexists(place.real):
            raise Refusal(f"error: already exists: {section.path}")
        probe = os.path.dirname(place.real)
        while not os.path.lexists(probe):
            probe = os.path.dirname(probe)
        if not os.path.isdir(probe):
            raise Refusal(f"error: not a directory: {section.path}")
        return place.real, "".join(line[1:] + "\n" for _, line in section.body).encode("utf-8")
    if section.action == "delete":
        folder = os.path.realpath(os.path.dirname(place.text))
        own = os.path.join(folder, os.path.basename(place.text))
        if os.path.islink(own):
            return own, None
        kind = kind_of(place.real)
        if kind != "file":
            word = {"directory": "is a directory", "missing": "no such file"}.get(kind, "not a regular file")
            raise Refusal(f"error: {word}: {section.path}")
        return place.real, None
    return place.real, _updated(section, load(place))
