"""list, glob and grep: what is in the workspace."""

import os
import re

from ..errors import ToolError
from ..paths import printable
from ..patterns import glob_regex
from .files import BYTE_ORDER_MARK, cut_line, is_binary, load, locate

LIST_LIMIT = 500
GLOB_LIMIT = 200
GREP_LIMIT = 100


def list_directory(context, path=".", depth=1):
    folder = locate_directory(context, path)
    lines = sorted(entry_lines(context, folder, "", depth), key=os.fsencode)
    if not lines:
        return "[empty directory]"
    return shortened([printable(line) for line in lines], LIST_LIMIT)


def glob(context, pattern, path="."):
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ToolError(f"outside the workspace: {pattern}")
    folder = context.roots.named(path, locate_directory(context, path))
    regex = glob_regex(pattern)
    found = [shown for shown, file in sorted_files(context, folder) if regex.match(os.path.relpath(file, folder))]
    return shortened([printable(shown) for shown in found], GLOB_LIMIT) if found else "[no files]"


def grep(context, pattern, path=".", include=None, limit=GREP_LIMIT):
    real = locate(context, path)
    try:
        regex = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(f'invalid pattern "{pattern}": {error}') from None
    place = context.roots.named(path, real)
    lines, n_found = [], 0
    for shown, file in files_to_search(context, path, real, place, include):
        for number, line in matching_lines(context, file, regex):
            n_found += 1
            if n_found <= limit:
                lines.append(f"{printable(shown)}:{number}:{cut_line(line)}")
    if n_found > limit:
        lines.append(f"[{n_found - limit} more]")
    return "\n".join(lines) if lines else "[no matches]"


def files_to_search(context, path, real, place, include):
    """The files of a search that `include` lets through, as pairs of shown and real name."""
    wanted = glob_regex(include) if include else None
    if not os.path.isdir(real):
        if is_binary(load(path, real)):
            raise ToolError(f"binary file: {path}")
        is_included = not wanted or wanted.match(os.path.basename(place))
        return [(context.roots.relative(place), place)] if is_included else []
    require_readable(path, real)
    files = sorted_files(context, place)
    if not wanted:
        return files
    if "/" in include:
        return [pair for pair in files if wanted.match(os.path.relpath(pair[1], place))]
    return [pair for pair in files if wanted.match(os.path.basename(pair[1]))]


def locate_directory(context, path):
    real = locate(context, path)
    if not os.path.lexists(real):
        raise ToolError(f"no such directory: {path}")
    if not os.path.isdir(real):
        raise ToolError(f"not a directory: {path}")
    require_readable(path, real)
    return real


def require_readable(path, folder):
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror}") from None


def entries(context, folder):
    """The entries of a directory that tools show; what cannot be read has none."""
    try:
        found = list(os.scandir(folder))
    except OSError:
        return []
    return [entry for entry in found if not context.hides(entry.path, entry.is_dir(follow_symlinks=False))]


def entry_lines(context, folder, prefix, depth):
    for entry in entries(context, folder):
        if entry.name == ".git":
            continue
        is_dir = entry.is_dir(follow_symlinks=False)
        yield prefix + entry.name + ("/" if is_dir else "")
        if is_dir and depth > 1:
            yield from entry_lines(context, entry.path, prefix + entry.name + "/", depth - 1)


def walk(context, folder):
    """Yield all below `folder` but directories and links to them; what is in `.git` is left out."""
    for entry in entries(context, folder):
        if entry.is_dir(follow_symlinks=False):
            if entry.name != ".git":
                yield from walk(context, entry.path)
        elif not entry.is_dir():
            yield entry.path


def sorted_files(context, folder):
    """Pairs of the path as results name it and the path itself, by the bytes of the first."""
    pairs = [(context.roots.relative(path), path) for path in walk(context, folder)]
    return sorted(pairs, key=lambda pair: os.fsencode(pair[0]))


def shortened(lines, limit) -> str:
    if len(lines) > limit:
        lines = lines[:limit] + [f"[{len(lines) - limit} more]"]
    return "\n".join(lines)


def matching_lines(context, file, regex):
    """Number and text of the lines that match; files that a search passes over have none."""
    if not os.path.isfile(file) or not context.roots.holds(os.path.realpath(file)) or context.denies_reading(file):
        return
    try:
        with open(file, "rb") as handle:
            data = handle.read()
    except OSError:
        return
    if is_binary(data):
        return
    lines = data.decode("utf-8", "replace").removeprefix(BYTE_ORDER_MARK).split("\n")
    if lines[-1] == "":
        lines.pop()
    for number, line in enumerate(lines, 1):
        line = line.removesuffix("\r") if number < len(lines) or data.endswith(b"\n") else line
        if regex.search(line):
            yield number, line
