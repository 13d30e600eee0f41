"""The tools that search: list, glob, grep."""

import os
import re
import stat

from .base import cut, is_inside, reason, show_name
from .files import Place, ToolError, check_path
from .globs import compile_glob, glob_match
from .rules import path_match


def _limited(lines, limit):
    if len(lines) > limit:
        return "\n".join(lines[:limit] + [f"[{len(lines) - limit} more]"])
    return "\n".join(lines)


def _hidden(entry, lexical, scope):
    """Ignored itself, or a link to something ignored."""
    is_dir = entry.is_dir(follow_symlinks=False)
    if scope.ignore.covers(lexical, is_dir):
        return True
    if entry.is_symlink():
        return scope.ignore.covers(os.path.realpath(lexical))
    return False


def _scan(folder):
    with os.scandir(folder) as entries:
        return list(entries)


def _directory(args, scope):
    place = Place(args.get("path", "."), scope.cwd)
    check_path(place, scope, False)
    return place


def _must_be_directory(place):
    try:
        info = os.stat(place.full)
    except NotADirectoryError:
        raise ToolError(f"no such directory: {place.given}") from None
    except FileNotFoundError:
        raise ToolError(f"no such directory: {place.given}") from None
    except OSError as error:
        raise ToolError(f"cannot read {place.given}: {reason(error)}") from None
    if not stat.S_ISDIR(info.st_mode):
        raise ToolError(f"not a directory: {place.given}")
    try:
        os.scandir(place.real).close()
    except OSError as error:
        raise ToolError(f"cannot read {place.given}: {reason(error)}") from None


def list_entries(place, scope, depth=1):
    found = []

    def work(folder, prefix, level):
        try:
            entries = _scan(folder)
        except OSError as error:
            if level == 1:
                raise ToolError(f"cannot read {place.given}: {reason(error)}") from None
            return
        for entry in entries:
            path = os.path.join(folder, entry.name)
            if entry.name == ".git" or _hidden(entry, path, scope):
                continue
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                found.append(name + "/")
                if level < depth:
                    work(path, name + "/", level + 1)
            else:
                found.append(name)

    work(place.real, "", 1)
    found.sort(key=os.fsencode)
    return [show_name(name) for name in found]


def list_tool(args, scope):
    place = _directory(args, scope)
    _must_be_directory(place)
    lines = list_entries(place, scope, args.get("depth", 1))
    return _limited(lines, 500) or "[empty directory]"


def _walk(folder, scope):
    """(path relative to the folder, entry) of everything but directories."""
    stack = [("", folder)]
    while stack:
        prefix, current = stack.pop()
        try:
            entries = _scan(current)
        except OSError:
            continue
        for entry in entries:
            path = os.path.join(current, entry.name)
            if entry.is_dir(follow_symlinks=False):
                if entry.name != ".git" and not scope.ignore.covers(path, True):
                    stack.append((prefix + entry.name + "/", path))
                continue
            if _hidden(entry, path, scope):
                continue
            try:
                if entry.is_symlink() and entry.is_dir():
                    continue
            except OSError:
                pass
            yield prefix + entry.name, entry


def _base(place, scope):
    """What stands before the paths that are printed."""
    if is_inside(place.lexical, scope.cwd):
        rel = os.path.relpath(place.lexical, scope.cwd)
        return "" if rel == "." else rel + "/"
    if is_inside(place.real, scope.cwd) and not any(is_inside(place.lexical, r) for r in scope.roots()):
        rel = os.path.relpath(place.real, scope.cwd)
        return "" if rel == "." else rel + "/"
    return place.lexical.rstrip("/") + "/"


def glob_tool(args, scope):
    place = _directory(args, scope)
    pattern = args["pattern"]
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ToolError(f"outside the workspace: {pattern}")
    _must_be_directory(place)
    regex = compile_glob(pattern)
    base = _base(place, scope)
    found = [base + path for path, _ in _walk(place.real, scope) if regex.fullmatch(path)]
    found.sort(key=os.fsencode)
    return _limited([show_name(path) for path in found], 200) or "[no files]"


def _denied_read(path, scope):
    for rule in scope.rules("deny"):
        if rule.tool == "read" and (rule.pattern is None or path_match(rule, path, scope.cwd, False)):
            return True
    return False


def _included(include, rel):
    if include is None:
        return True
    return glob_match(include, rel if "/" in include else rel.rsplit("/", 1)[-1])


def grep_tool(args, scope):
    place = _directory(args, scope)
    try:
        regex = re.compile(args["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        raise ToolError(f'invalid pattern "{args["pattern"]}": {error}') from None
    include = args.get("include")
    try:
        info = os.stat(place.full)
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError(f"no such file: {place.given}") from None
    except OSError as error:
        raise ToolError(f"cannot read {place.given}: {reason(error)}") from None
    files = []  # (shown, real path, rel)
    if stat.S_ISDIR(info.st_mode):
        _must_be_directory(place)
        base = _base(place, scope)
        for rel, entry in _walk(place.real, scope):
            path = os.path.join(place.real, rel)
            if entry.is_symlink():
                real = os.path.realpath(path)
                if not any(is_inside(real, root) for root in scope.roots()):
                    continue
            if _included(include, rel):
                files.append((base + rel, path))
    elif stat.S_ISREG(info.st_mode):
        name = os.path.basename(place.lexical)
        if include is None or glob_match(include, name):
            files.append((_base(place, scope).rstrip("/"), place.real))
        try:
            with open(place.real, "rb") as handle:
                if b"\0" in handle.read(8192):
                    raise ToolError(f"binary file: {place.given}")
        except OSError as error:
            raise ToolError(f"cannot read {place.given}: {reason(error)}") from None
    files.sort(key=lambda item: os.fsencode(item[0]))
    limit = args.get("limit", 100)
    lines, more = [], 0
    for shown, path in files:
        if _denied_read(path, scope):
            continue
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                continue
            with open(path, "rb") as handle:
                data = handle.read()
        except OSError:
            continue
        if b"\0" in data[:8192]:
            continue
        if data.startswith(b"\xef\xbb\xbf"):
            data = data[3:]
        parts = data.decode("utf-8", "replace").split("\n")
        ended = parts[-1] == ""
        if ended:
            parts.pop()
        for n, line in enumerate(parts, 1):
            if line.endswith("\r") and (n < len(parts) or ended):
                line = line[:-1]
            if regex.search(line):
                if len(lines) < limit:
                    lines.append(f"{show_name(shown)}:{n}:{cut(line, 2000)}")
                else:
                    more += 1
    if more:
        lines.append(f"[{more} more]")
    return "\n".join(lines) or "[no matches]"
