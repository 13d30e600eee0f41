"""The tools that read and change files."""

import os
import stat

from .base import atomic_write, critical, cut, digest, is_inside, reason
from .changes import state_of
from .patches import PatchFault, apply_update, parse, paths_of

MAX_READ = 10 * 1024 * 1024


class ToolError(Exception):
    """The text that follows `error: `."""


class Place:
    """A path of a call: as given, made normal, and where it really leads."""

    def __init__(self, given, cwd):
        self.given = given
        self.full = os.path.join(cwd, given)
        self.lexical = os.path.normpath(self.full)
        if self.lexical.startswith("//"):
            self.lexical = self.lexical[1:]
        self.real = os.path.realpath(self.full)


def check_path(place, scope, changing, removing=False):
    """Outside, ignored, protected, in this order."""
    if not any(is_inside(place.real, root) for root in scope.roots()):
        raise ToolError(f"outside the workspace: {place.given}")
    slash = True if place.given.endswith("/") else None
    if scope.ignore.covers(place.lexical, slash) or scope.ignore.covers(place.real, slash):
        raise ToolError(f"ignored: {place.given}")
    if changing:
        settings = [os.path.join(scope.cwd, ".harness", n) for n in ("settings.json", "settings.local.json")]
        # of a link that is removed the place of the link itself counts too
        beside = os.path.join(os.path.realpath(os.path.dirname(place.full.rstrip("/")) or "/"),
                              os.path.basename(place.full.rstrip("/")))
        for path in (place.lexical, place.real, beside):
            if path in settings:
                raise ToolError(f"protected: {place.given}")
            for root in scope.roots():
                if is_inside(path, root) and ".git" in os.path.relpath(path, root).split("/"):
                    raise ToolError(f"protected: {place.given}")


def regular(place, changing=False):
    """The stat of an existing regular file; the errors of `read` for everything else."""
    try:
        info = os.stat(place.full)
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError(f"no such file: {place.given}") from None
    except OSError as error:
        raise ToolError(f"cannot read {place.given}: {reason(error)}") from None
    if stat.S_ISDIR(info.st_mode):
        raise ToolError(f"is a directory: {place.given}")
    if not stat.S_ISREG(info.st_mode):
        raise ToolError(f"not a regular file: {place.given}")
    return info


def content(place):
    try:
        with open(place.real, "rb") as handle:
            return handle.read()
    except OSError as error:
        raise ToolError(f"cannot read {place.given}: {reason(error)}") from None


def binary(data):
    return b"\0" in data[:8192]


def read(args, scope):
    place = Place(args["path"], scope.cwd)
    check_path(place, scope, False)
    info = regular(place)
    whole = "offset" not in args and "limit" not in args
    if info.st_size > MAX_READ and whole:
        raise ToolError(f"too large: {place.given} has {info.st_size} bytes; read it in parts by offset and limit")
    data = content(place)
    if binary(data):
        raise ToolError(f"binary file: {place.given}")
    scope.note_read(place.real, digest(data))
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    if not data:
        return "[empty file]"
    try:
        text, note = data.decode("utf-8"), False
    except UnicodeDecodeError:
        text, note = data.decode("utf-8", "replace"), True
    lines = text.split("\n")
    ended = lines[-1] == ""
    if ended:
        lines.pop()
    total = len(lines)
    first = args.get("offset", 1)
    if first > total:
        return f"[file has {total} lines]"
    last = min(total, first - 1 + args.get("limit", 2000))
    out = []
    for n in range(first, last + 1):
        line = lines[n - 1]
        if line.endswith("\r") and (n < total or ended):
            line = line[:-1]
        out.append(f"{n}\t{cut(line, 2000)}")
    if note:
        out.append("[not valid UTF-8: bytes replaced]")
    if last < total:
        out.append(f"[lines {first}-{last} of {total}; {total - last} more]")
    return "\n".join(out)


def _parents(place):
    """Errors for parts of the path that are files."""
    folder = os.path.dirname(place.real)
    while folder and not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise ToolError(f"not a directory: {place.given}")


def _known(place, scope, must_exist):
    """The present content of a file that the conversation must have read."""
    sha = scope.reads.get(place.real)
    if sha is None:
        raise ToolError(f"read it first: {place.given}")
    data = content(place)
    if digest(data) != sha:
        raise ToolError(f"changed since it was read: {place.given}")
    return data


def put(place, data, scope, mode=None):
    """Writes one file with its checkpoint."""
    before, old = state_of(place.real)
    if before is not None and not os.access(place.real, os.W_OK):
        raise ToolError(f"cannot write {place.given}: Permission denied")
    sha = digest(data)
    after = {"kind": "file", "sha": sha, "mode": before.get("mode") if before else None}
    numbers = scope.announce([(place.real, before, old, after)])
    made = []
    try:
        with critical():
            made = make_parents(os.path.dirname(place.real))
            atomic_write(place.real, data, before.get("mode") if before else None)
    except OSError as error:
        for folder in reversed(made):
            try:
                os.rmdir(folder)
            except OSError:
                break
        scope.withdraw(numbers)
        raise ToolError(f"cannot write {place.given}: {reason(error)}") from None
    scope.done(numbers)
    scope.note_read(place.real, sha)


def make_parents(folder):
    missing = []
    while not os.path.isdir(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    made = []
    for one in missing:
        os.mkdir(one)
        made.append(one)
    return made


def write(args, scope):
    place = Place(args["path"], scope.cwd)
    check_path(place, scope, True)
    try:
        info = os.stat(place.full.rstrip("/") or "/")
    except (FileNotFoundError, NotADirectoryError):
        info = None
    except OSError as error:
        raise ToolError(f"cannot write {place.given}: {reason(error)}") from None
    if info is not None and stat.S_ISDIR(info.st_mode):
        raise ToolError(f"is a directory: {place.given}")
    if place.given.endswith("/"):
        raise ToolError(f"{'is' if info is None else 'not'} a directory: {place.given}")
    if info is not None and not stat.S_ISREG(info.st_mode):
        raise ToolError(f"not a regular file: {place.given}")
    if info is None:
        _parents(place)
    else:
        _known(place, scope, False)
    data = args["content"].encode("utf-8")
    put(place, data, scope)
    return f"wrote {place.given} ({len(data)} bytes)"


def crlf_file(text):
    return "\n" in text and text.count("\n") == text.count("\r\n")


def edit(args, scope):
    place = Place(args["path"], scope.cwd)
    check_path(place, scope, True)
    regular(place)
    try:
        with open(place.real, "rb") as handle:
            head = handle.read(8192)
    except OSError as error:
        raise ToolError(f"cannot read {place.given}: {reason(error)}") from None
    if binary(head):
        raise ToolError(f"binary file: {place.given}")
    data = _known(place, scope, True)
    bom = data[:3] if data.startswith(b"\xef\xbb\xbf") else b""
    try:
        text = data[len(bom):].decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"not valid UTF-8: {place.given}") from None
    old, new = args["old"], args["new"]
    if crlf_file(text):
        old = old.replace("\r\n", "\n").replace("\n", "\r\n")
        new = new.replace("\r\n", "\n").replace("\n", "\r\n")
    count = text.count(old)
    if not count:
        raise ToolError(f"not found: old does not occur in {place.given}")
    if count > 1 and not args.get("all"):
        raise ToolError(f"old occurs {count} times in {place.given}")
    put(place, bom + text.replace(old, new).encode("utf-8"), scope)
    return f"edited {place.given} (replacements: {count})"


# ---- patch

def patch_subjects(text):
    return paths_of(text)


def patch_checks(args, scope):
    for path in paths_of(args["text"]):
        check_path(Place(path, scope.cwd), scope, True)


def patch(args, scope):
    patch_checks(args, scope)
    try:
        sections = parse(args["text"])
    except PatchFault as fault:
        raise ToolError(f"malformed patch, line {fault.line}: {fault.why}") from None
    seen = set()
    for section in sections:
        section.place = Place(section.path, scope.cwd)
        if section.place.real in seen:
            raise ToolError(f"{section.path} occurs twice in the patch")
        seen.add(section.place.real)
    jobs = []  # (section, path, before, old, after, data)
    for section in sections:
        jobs.append(_prepare(section, scope))
    numbers = scope.announce([(j[1], j[2], j[3], j[4]) for j in jobs])
    done = []
    made = []
    try:
        with critical():
            for section, path, before, old, after, data in jobs:
                section_path = section.path
                if data is None:
                    os.unlink(path)
                else:
                    made += make_parents(os.path.dirname(path))
                    atomic_write(path, data, before.get("mode") if before else None)
                done.append((path, before, old))
    except OSError as error:
        for path, before, old in reversed(done):
            try:
                if before is None:
                    os.unlink(path)
                elif before["kind"] == "link":
                    os.symlink(before["target"], path)
                else:
                    atomic_write(path, old, before["mode"])
            except OSError:
                pass
        for folder in reversed(made):
            try:
                os.rmdir(folder)
            except OSError:
                pass
        scope.withdraw(numbers)
        raise ToolError(f"cannot write {section_path}: {reason(error)}") from None
    scope.done(numbers)
    lines = []
    for section, path, before, old, after, data in jobs:
        scope.note_read(path, after["sha"] if after else None)
        lines.append({"Add": "added ", "Update": "updated ", "Delete": "deleted "}[section.kind] + section.path)
    return "\n".join(lines)


def _prepare(section, scope):
    place = section.place
    if section.kind == "Add":
        if os.path.lexists(place.full.rstrip("/")):
            raise ToolError(f"already exists: {section.path}")
        if section.path.endswith("/"):
            raise ToolError(f"is a directory: {section.path}")
        _parents(place)
        data = "".join(line + "\n" for line in section.lines).encode("utf-8")
        return section, place.real, None, None, {"kind": "file", "sha": digest(data), "mode": None}, data
    if section.kind == "Delete":
        path = os.path.join(os.path.realpath(os.path.dirname(place.full)), os.path.basename(place.full))
        if os.path.islink(place.full):
            before, _ = state_of(path)
            return section, path, before, None, None, None
        regular(place)
        before, old = state_of(place.real)
        if before["kind"] != "file":
            raise ToolError(f"cannot read {section.path}: Permission denied")
        return section, place.real, before, old, None, None
    regular(place)
    old = content(place)
    if binary(old):
        raise ToolError(f"binary file: {section.path}")
    bom = old[:3] if old.startswith(b"\xef\xbb\xbf") else b""
    try:
        text = old[len(bom):].decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"not valid UTF-8: {section.path}") from None
    new, fault = apply_update(text, section.hunks)
    if fault:
        raise ToolError(f"hunk {fault} not found in {section.path}")
    if not os.access(place.real, os.W_OK):
        raise ToolError(f"cannot write {section.path}: Permission denied")
    data = bom + new.encode("utf-8")
    before, _ = state_of(place.real)
    return section, place.real, before, old, {"kind": "file", "sha": digest(data), "mode": before["mode"]}, data
