"""The text of a patch: its grammar, and how an update is worked out."""

import re

HEADER = re.compile(r"\*\*\* (Add|Update|Delete) File:(?: (.*))?$", re.S)
BEGIN, END = "*** Begin Patch", "*** End Patch"


class PatchFault(Exception):
    def __init__(self, line, why):
        super().__init__(why)
        self.line, self.why = line, why


class Section:
    def __init__(self, kind, path, line):
        self.kind, self.path, self.line = kind, path, line
        self.body = []  # (number, text)
        self.lines = []
        self.hunks = []


class Hunk:
    def __init__(self, anchor, line):
        self.anchor, self.line, self.rows = anchor, line, []


def _lines(text):
    return [line[:-1] if line.endswith("\r") else line for line in text.split("\n")]


def paths_of(text):
    """The paths of all section headers, also of a faulty patch."""
    found = []
    for line in _lines(text):
        match = HEADER.match(line.rstrip())
        if match and (match.group(2) or "").strip():
            found.append(match.group(2).strip())
    return found


def parse(text):
    lines = _lines(text)
    filled = [n for n, line in enumerate(lines) if line.strip()]
    if not filled:
        raise PatchFault(1, f"the first line is not {BEGIN}")
    first, last = filled[0], filled[-1]
    if lines[first].rstrip() != BEGIN:
        raise PatchFault(first + 1, f"the first line is not {BEGIN}")
    faults = []
    stop = last
    if lines[last].rstrip() != END or last == first:
        faults.append((last + 1, f"the last line is not {END}"))
        stop = last + 1
    sections = []
    for n in range(first + 1, stop):
        line = lines[n]
        match = HEADER.match(line.rstrip())
        if match:
            path = (match.group(2) or "").strip()
            if not path:
                faults.append((n + 1, "the path is absent"))
            sections.append(Section(match.group(1), path, n + 1))
        elif line.startswith("***"):
            faults.append((n + 1, f"unknown header {line.rstrip()}"))
        elif not sections:
            faults.append((n + 1, "a line before the first section"))
        else:
            sections[-1].body.append((n + 1, line))
    if not sections:
        faults.append((last + 1, "no section"))
    for section in sections:
        while section.body and section.body[-1][1] == "":
            section.body.pop()
        faults += list(_body(section))
    if faults:
        raise PatchFault(*min(faults))
    return sections


def _body(section):
    if section.kind == "Delete":
        for n, line in section.body:
            if line.strip():
                yield n, "a line in a section that deletes"
        return
    if section.kind == "Add":
        for n, line in section.body:
            if line.startswith("+"):
                section.lines.append(line[1:])
            else:
                yield n, "a line without +"
        return
    hunk = None
    for n, line in section.body:
        if line.startswith("@@"):
            rest = line[2:]
            if rest and not rest[0].isspace():
                yield n, "@@ is not followed by a space"
                continue
            hunk = Hunk(rest.strip(), n)
            section.hunks.append(hunk)
        elif hunk is None:
            yield n, "a line before the first @@"
        elif line == "":
            hunk.rows.append((" ", ""))
        elif line[0] in " -+":
            hunk.rows.append((line[0], line[1:]))
        else:
            yield n, "a line that begins with none of space, - and +"
    if not section.hunks:
        yield section.line, "an update without hunks"
    for hunk in section.hunks:
        if not any(sign in "-+" for sign, _ in hunk.rows):
            yield hunk.line, "a hunk that changes nothing"


def apply_update(text, hunks):
    """(new text, 0), or (None, number of the hunk that was not found)."""
    rows = []  # [text, line end]
    parts = text.split("\n")
    for part in parts[:-1]:
        rows.append((part[:-1], "\r\n") if part.endswith("\r") else (part, "\n"))
    if parts[-1]:
        rows.append((parts[-1], ""))
    ended = not parts[-1]
    crlf = "\n" in text and text.count("\n") == text.count("\r\n")
    newline = "\r\n" if crlf else "\n"
    out = []
    at = 0
    for number, hunk in enumerate(hunks, 1):
        start = at
        if hunk.anchor:
            start = next((n + 1 for n in range(at, len(rows)) if rows[n][0].strip() == hunk.anchor), None)
            if start is None:
                return None, number
        old = [line for sign, line in hunk.rows if sign != "+"]
        if old:
            place = next((n for n in range(start, len(rows) - len(old) + 1)
                          if all(rows[n + k][0] == line for k, line in enumerate(old))), None)
            if place is None:
                return None, number
        else:
            place = start if hunk.anchor else len(rows)
        out += rows[at:place]
        at = place
        for sign, line in hunk.rows:
            if sign == "+":
                out.append((line, None))
            else:
                if sign == " ":
                    out.append(rows[at])
                at += 1
    out += rows[at:]
    final = []
    for n, (line, end) in enumerate(out):
        last = n == len(out) - 1
        if last and not ended:
            end = ""
        elif not end:
            end = newline
        final.append(line + end)
    return "".join(final), 0
