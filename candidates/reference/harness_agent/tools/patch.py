"""patch: several files changed by one text, all of them or none."""

import os
import stat

from ..errors import ToolError
from ..interrupts import held
from . import files

BEGIN, END = "*** Begin Patch", "*** End Patch"
HEADERS = {"*** Add File:": "added", "*** Update File:": "updated", "*** Delete File:": "deleted"}


class Hunk:
    def __init__(self, anchor, number):
        self.anchor = anchor  # text after `@@`: a line that comes before the hunk
        self.number = number  # of its `@@` line
        self.lines = []  # pairs of sign and text

    def old(self) -> list[str]:
        return [text for sign, text in self.lines if sign != "+"]

    def changes(self) -> bool:
        return any(sign != " " for sign, _ in self.lines)


class Section:
    def __init__(self, verb, path, number):
        self.verb = verb
        self.path = path
        self.number = number  # of its header
        self.lines = []  # of an added file
        self.hunks = []  # of an updated file


class Change:
    """What one section does, worked out and not yet done."""

    def __init__(self, section, real, data):
        self.section = section
        self.real = real
        self.data = data  # None: the file is removed


def patch(context, text):
    for path in touched_paths(text):
        files.locate_for_change(context, path)
    sections = Parser(text).parse()
    reals = set()
    for section in sections:
        real = context.roots.real(section.path)
        if real in reals:
            raise ToolError(f"{section.path} occurs twice in the patch")
        reals.add(real)
    planned = [plan(context, section) for section in sections]
    carry_out(context, planned)
    return "\n".join(f"{change.section.verb} {change.section.path}" for change in planned)


def touched_paths(text) -> list[str]:
    """The paths that a patch names, also when the rest of it cannot be read."""
    return [path for line in text.split("\n") if (path := header_of(line.removesuffix("\r"))[1])]


def header_of(line):
    """Verb and path of a header line; no verb when it is none."""
    for header, verb in HEADERS.items():
        if line.rstrip() == header or line.startswith(header + " "):
            return verb, line[len(header) :].strip()
    return None, ""


class Parser:
    """Reads the sections of a patch; of several faults the one that stands first in the text counts."""

    def __init__(self, text):
        self.lines = [line.removesuffix("\r") for line in text.split("\n")]
        self.sections = []
        self.faults = []  # pairs of line number and reason
        self.n_empty = 0  # lines without a character since the last other one

    def parse(self) -> list[Section]:
        numbers = [number for number, line in enumerate(self.lines, 1) if line.strip()]
        first, last = (numbers[0], numbers[-1]) if numbers else (1, 1)
        if self.lines[first - 1].rstrip() != BEGIN:
            self.faults.append((first, f"`{BEGIN}` is missing"))
        has_end = last > first and self.lines[last - 1].rstrip() == END
        if not has_end:
            self.faults.append((last, f"`{END}` is missing"))
        for number in range(first + 1, last if has_end else last + 1):
            self._line(number, self.lines[number - 1])
        self._end_section()
        if not self.sections:
            self.faults.append((last, "no section"))
        if self.faults:
            number, reason = min(self.faults)
            raise ToolError(f"malformed patch, line {number}: {reason}")
        return self.sections

    def _line(self, number, line):
        if not line:
            self.n_empty += 1  # belongs to the section only when more of it follows
            return
        if line.startswith("*** "):
            self._header(number, line)
            return
        if not self.sections:
            self.faults.append((number, "a line before the first section"))
            return
        for earlier in range(number - self.n_empty, number):
            self._content(earlier, "")
        self.n_empty = 0
        self._content(number, line)

    def _header(self, number, line):
        self._end_section()
        self.n_empty = 0
        verb, path = header_of(line)
        if not verb:
            self.faults.append((number, "an unknown header"))
        elif not path:
            self.faults.append((number, "a header without a path"))
        self.sections.append(Section(verb, path, number))

    def _end_section(self):
        if not self.sections or self.sections[-1].verb != "updated":
            return
        section = self.sections[-1]
        if not section.hunks:
            self.faults.append((section.number, "an update without hunks"))
        for hunk in section.hunks:
            if not hunk.changes():
                self.faults.append((hunk.number, "a hunk without changes"))

    def _content(self, number, line):
        section, fault = self.sections[-1], None
        if section.verb == "added":
            fault = None if line[:1] == "+" else "a line of an added file begins with `+`"
            section.lines.append(line[1:])
        elif section.verb == "deleted":
            fault = "a deleted file has no lines" if line.strip() else None
        elif section.verb == "updated":
            fault = self._update_line(section, number, line)
        if fault:
            self.faults.append((number, fault))

    @staticmethod
    def _update_line(section, number, line):
        if line == "@@" or line.startswith("@@ "):
            section.hunks.append(Hunk(line[2:].strip(), number))
        elif not section.hunks:
            return "a line before the first `@@`"
        elif line[:1] not in ("", " ", "-", "+"):
            return "a line of a hunk begins with ` `, `-` or `+`"
        else:
            section.hunks[-1].lines.append((line[:1] or " ", line[1:]))
        return None


def plan(context, section) -> Change:
    """Check a section against the files as they are, and work out the new content."""
    path = section.path
    real = files.locate_for_change(context, path)
    if section.verb == "added":
        if os.path.lexists(context.roots.given(path)) or os.path.lexists(real):
            raise ToolError(f"already exists: {path}")
        files.require_place(path, real)
        return Change(section, real, "".join(line + "\n" for line in section.lines).encode("utf-8"))
    if section.verb == "deleted":
        link = os.path.join(os.path.realpath(os.path.dirname(context.roots.given(path))), os.path.basename(path))
        if os.path.islink(link):
            return Change(section, link, None)
        files.load(path, real)
        return Change(section, real, None)
    text = files.decode(path, files.load_text_bytes(path, real))
    return Change(section, real, apply_hunks(section, text).encode("utf-8"))


def apply_hunks(section, text) -> str:
    mark = files.BYTE_ORDER_MARK if text.startswith(files.BYTE_ORDER_MARK) else ""
    text = text.removeprefix(mark)
    lines = split_lines(text)
    new_end = "\r\n" if files.without_crlf(text)[1] else "\n"
    at = 0
    for number, hunk in enumerate(section.hunks, 1):
        place = find_hunk(lines, hunk, at)
        if place is None:
            raise ToolError(f"hunk {number} not found in {section.path}")
        replaced, at = [], place
        for sign, content in hunk.lines:
            if sign == "+":
                replaced.append((content, new_end))
            else:
                replaced += [lines[at]] if sign == " " else []
                at += 1
        lines[place:at] = replaced
        at = place + len(replaced)
    out = [content + (end or new_end) for content, end in lines]
    if out and text and not text.endswith("\n"):
        out[-1] = lines[-1][0]
    return mark + "".join(out)


def split_lines(text) -> list:
    """Pairs of a line and its line end, which the last line may lack."""
    lines = []
    for line in text.split("\n"):
        crlf = line.endswith("\r")
        lines.append((line[:-1], "\r\n") if crlf else (line, "\n"))
    last, end = lines.pop()
    if end == "\r\n":
        last += "\r"
    return lines + ([(last, "")] if last else [])


def find_hunk(lines, hunk, start):
    """The index at which the hunk's old lines stand, at or after `start`."""
    texts = [content for content, _ in lines]
    if hunk.anchor:
        anchors = (at for at in range(start, len(texts)) if texts[at].strip() == hunk.anchor)
        start = next(anchors, None)
        if start is None:
            return None
        start += 1
    old = hunk.old()
    if not old:
        return start if hunk.anchor else len(texts)
    for at in range(start, len(texts) - len(old) + 1):
        if texts[at : at + len(old)] == old:
            return at
    return None


def carry_out(context, planned):
    """Do every change; when the system refuses one, take back those before it."""
    done = []
    with held():
        try:
            for change in planned:
                done.append((change.real, keep(change.real), context.session.seen.get(change.real)))
                if change.data is None:
                    remove(context, change)
                else:
                    files.store(context, change.section.path, change.real, change.data)
        except ToolError:
            for real, before, seen in reversed(done):
                put_back(context, real, before)
                context.session.saw(real, seen)
            raise


def keep(real):
    """What is needed to put a file back: nothing, a link's target, or content and mode."""
    if os.path.islink(real):
        return os.readlink(real)
    if not os.path.lexists(real):
        return None
    with open(real, "rb") as file:
        return file.read(), stat.S_IMODE(os.stat(real).st_mode)


def remove(context, change):
    context.changes.before(change.real, None)
    try:
        os.unlink(change.real)
    except OSError as error:
        raise ToolError(f"cannot write {change.section.path}: {error.strerror}") from None
    finally:
        context.changes.after(change.real)
    context.session.saw(change.real, None)


def put_back(context, real, before):
    if before is None:
        if os.path.lexists(real):
            os.unlink(real)
    elif isinstance(before, str):
        if not os.path.lexists(real):
            os.symlink(before, real)
    else:
        data, mode = before
        files.replace_file(real, data, mode)
    context.changes.after(real)
