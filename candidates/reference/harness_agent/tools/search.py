"""list, glob and grep: what is in the workspace."""

import os
import re

from ..errors import ToolError
from ..paths import printable
from ..patterns import glob_regex
from .files import cut_line, is_binary, load, locate

LIST_LIMIT = 500
GLOB_LIMIT = 200
GREP_LIMIT = 100


def list_directory(context, path=".", depth=1):
    folder = locate_directory(context, path)
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror}") from None
    lines = sorted(entry_lines(context, folder, "", depth), key=os.fsencode)
    if not lines:
        return "[empty directory]"
    return shortened([printable(line) for line in lines], LIST_LIMIT)


def glob(context, pattern, path="."):
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ToolError(f"outside the workspace: {pattern}")
    folder = locate_directory(context, path)
    regex = glob_regex(pattern)
    found = [shown for shown, file in sorted_files(context, folder) if regex.match(os.path.relpath(file, folder))]
    return shortened([printable(shown) for shown in found], GLOB_LIMIT) if found else "[no files]"


def grep(context, pattern, path=".", include=None, limit=GREP_LIMIT):
    real = locate(context, path)
    if not os.path.lexists(real):
        raise ToolError(f"no such directory: {path}")
    try:
        regex = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(f'invalid pattern "{pattern}": {error}') from None
    wanted = glob_regex(include) if include else None
    if os.path.isdir(real):
        files = sorted_files(context, real)
    else:
        if is_binary(load(path, real)):
            raise ToolError(f"binary file: {path}")
        files = [(context.roots.relative(real), real)]
    lines, n_found = [], 0
    for shown, file in files:
        name = os.path.basename(file) if not include or "/" not in include or file == real else os.path.relpath(file, real)
        if wanted and not wanted.match(name):
            continue
        for number, line in matching_lines(context, file, regex):
            n_found += 1
            if n_found <= limit:
                lines.append(f"{printable(shown)}:{number}:{cut_line(line)}")
    if n_found > limit:
        lines.append(f"[{n_found - limit} more]")
    return "\n".join(lines) if lines else "[no matches]"


def locate_directory(context, path):
    real = locate(context, path)
    if not os.path.lexists(real):
        raise ToolError(f"no such directory: {path}")
    if not os.path.isdir(real):
        raise ToolError(f"not a directory: {path}")
    return real


def entries(context, folder):
    """The entries of a directory that tools show; what cannot be listed has none."""
    if context.roots.in_repository_data(folder):
        return []
    try:
        found = list(os.scandir(folder))
    except OSError:
        return []
    return [
        entry
        for entry in found
        if entry.name != ".git" and not context.hides(entry.path, entry.is_dir(follow_symlinks=False))
    ]


def entry_lines(context, folder, prefix, depth):
    for entry in entries(context, folder):
        is_dir = entry.is_dir(follow_symlinks=False)
        yield prefix + entry.name + ("/" if is_dir else "")
        if is_dir and depth > 1:
            yield from entry_lines(context, entry.path, prefix + entry.name + "/", depth - 1)


def walk(context, folder):
    """Yield the path of every file below `folder` that tools show; links to directories are not followed."""
    for entry in entries(context, folder):
        if entry.is_dir(follow_symlinks=False):
            yield from walk(context, entry.path)
        elif not entry.is_symlink() or (os.path.exists(entry.path) and not entry.is_dir()):
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
    lines = data.decode("utf-8", "replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    for number, line in enumerate(lines, 1):
        line = line.removesuffix("\r") if number < len(lines) or data.endswith(b"\n") else line
        if regex.search(line):
            yield number, line
