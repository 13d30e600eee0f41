"""patch: several files changed by one text, all of them or none."""

import os
import stat

from ..errors import ToolError
from . import files

BEGIN, END = "*** Begin Patch", "*** End Patch"
HEADERS = {"*** Add File:": "added", "*** Update File:": "updated", "*** Delete File:": "deleted"}


class Hunk:
    def __init__(self, anchor):
        self.anchor = anchor  # text after `@@`: a line that comes before the hunk
        self.old = []
        self.new = []
        self.changes = False  # whether a line is added or removed


class Section:
    def __init__(self, verb, path):
        self.verb = verb
        self.path = path
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
    parsed = list(sections(text))
    reals = set()
    for section in parsed:
        real = context.roots.real(section.path)
        if real in reals:
            raise ToolError(f"{section.path} occurs twice in the patch")
        reals.add(real)
    planned = [plan(context, section) for section in parsed]
    carry_out(context, planned)
    return "\n".join(f"{change.section.verb} {change.section.path}" for change in planned)


def touched_paths(text) -> list[str]:
    """The paths that a patch names, also when the rest of it cannot be read."""
    return [
        line[len(header) :].strip()
        for line in text.split("\n")
        for header in HEADERS
        if line.startswith(header) and line[len(header) :].strip()
    ]


def malformed(number, reason):
    return ToolError(f"malformed patch, line {number}: {reason}")


def sections(text):
    """Yield the sections of a patch; raise at the first line that breaks the grammar."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    first, last = 0, len(lines) - 1
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last].strip():
        last -= 1
    if lines[first].rstrip() != BEGIN:
        raise malformed(first + 1, f"`{BEGIN}` is missing")
    section, hunk_line, n_empty = None, 0, 0
    for number, line in enumerate(lines[first + 1 : last + 1], first + 2):
        if not line and section:
            n_empty += 1  # belongs to the section only when more of it follows
            continue
        verb = next((verb for header, verb in HEADERS.items() if line == header or line.startswith(header + " ")), None)
        at_end = number == last + 1 and line.rstrip() == END
        if verb or at_end or line.startswith("*** "):
            if section:
                check_hunk(section, hunk_line)
                if section.verb == "updated" and not section.hunks:
                    raise malformed(hunk_line, "an update without hunks")
                yield section
            if at_end:
                if not section:
                    raise malformed(number, "no section")
                return
            path = line.partition(":")[2].strip() if verb else ""
            if not path:
                raise malformed(number, "a header without a path" if verb else "an unknown header")
            section, hunk_line, n_empty = Section(verb, path), number, 0
            continue
        if not section:
            raise malformed(number, "a line before the first section")
        for earlier in range(number - n_empty, number):
            add_line(section, "", earlier)
        n_empty = 0
        if section.verb == "updated" and (line == "@@" or line.startswith("@@ ")):
            check_hunk(section, hunk_line)
            section.hunks.append(Hunk(line[2:].strip()))
            hunk_line = number
        else:
            add_line(section, line, number)
    raise malformed(last + 1, f"`{END}` is missing")


def check_hunk(section, number):
    if section.hunks:
        if not section.hunks[-1].changes:
            raise malformed(number, "a hunk without changes")


def add_line(section, line, number):
    mark = line[:1]
    if section.verb == "added":
        if mark != "+":
            raise malformed(number, "a line of an added file begins with `+`")
        section.lines.append(line[1:])
    elif section.verb == "deleted":
        if line.strip():
            raise malformed(number, "a deleted file has no lines")
    elif not section.hunks:
        raise malformed(number, "a line before the first `@@`")
    elif mark not in ("", " ", "-", "+"):
        raise malformed(number, "a line of a hunk begins with ` `, `-` or `+`")
    else:
        hunk = section.hunks[-1]
        hunk.changes = hunk.changes or mark in ("-", "+")
        if mark != "+":
            hunk.old.append(line[1:])
        if mark != "-":
            hunk.new.append(line[1:])


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
    text, crlf = files.without_crlf(text.removeprefix(mark))
    lines = text.split("\n")
    ends_with_newline = lines[-1] == ""
    if ends_with_newline:
        lines.pop()  # an empty file counts as one that ends with a line feed
    at = 0
    for number, hunk in enumerate(section.hunks, 1):
        place = find_hunk(lines, hunk, at)
        if place is None:
            raise ToolError(f"hunk {number} not found in {section.path}")
        lines[place : place + len(hunk.old)] = hunk.new
        at = place + len(hunk.new)
    if not lines:
        return mark
    ending = "\r\n" if crlf else "\n"
    return mark + ending.join(lines) + (ending if ends_with_newline else "")


def find_hunk(lines, hunk, start):
    """The index at which the hunk's old lines stand, at or after `start`."""
    if hunk.anchor:
        anchors = (at for at in range(start, len(lines)) if lines[at].strip() == hunk.anchor)
        start = next(anchors, None)
        if start is None:
            return None
        start += 1
    if not hunk.old:
        return start if hunk.anchor else len(lines)
    for at in range(start, len(lines) - len(hunk.old) + 1):
        if lines[at : at + len(hunk.old)] == hunk.old:
            return at
    return None


def carry_out(context, planned):
    """Do every change; when the system refuses one, take back those before it."""
    done = []
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
