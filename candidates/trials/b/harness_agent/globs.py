"""Path patterns: those of tools and rules, and those of `.harnessignore`."""

import functools
import os
import re


def _set_at(text, i, escape=False):
    """The regular expression of a `[…]` that begins at `i`, and where it ends; or None."""
    j = i + 1
    negate = j < len(text) and text[j] == "!" or (escape and j < len(text) and text[j] == "^")
    if negate:
        j += 1
    items = []
    first = True
    while True:
        if j >= len(text):
            return None
        c = text[j]
        if c == "]" and not first:
            break
        first = False
        if escape and c == "\\" and j + 1 < len(text):
            j += 1
            c = text[j]
        if j + 2 < len(text) and text[j + 1] == "-" and text[j + 2] != "]":
            end = text[j + 2]
            if c > end:
                return None if not escape else ("(?!)", text.index("]", j + 2) + 1 if "]" in text[j + 2:] else len(text))
            items.append(re.escape(c) + "-" + re.escape(end))
            j += 3
        else:
            items.append(re.escape(c))
            j += 1
    return "(?!/)[" + ("^" if negate else "") + "".join(items) + "]", j + 1


def _literal_set_end(text, i):
    j = text.find("]", i + 2)
    return len(text) if j < 0 else j + 1


def _part(text, escape=False):
    out = []
    i = 0
    while i < len(text):
        c = text[i]
        if c == "*":
            while i + 1 < len(text) and text[i + 1] == "*":
                i += 1
            out.append("[^/]*")
        elif c == "?":
            out.append("[^/]")
        elif c == "[":
            found = _set_at(text, i, escape)
            if found:
                out.append(found[0])
                i = found[1]
                continue
            # not a set: its text is literal up to the bracket that would close it
            end = _literal_set_end(text, i) if "]" in text[i + 2:] else i + 1
            out.append(re.escape(text[i:end]))
            i = end
            continue
        elif escape and c == "\\" and i + 1 < len(text):
            i += 1
            out.append(re.escape(text[i]))
        else:
            out.append(re.escape(c))
        i += 1
    return "".join(out)


def _expand(pattern):
    """All texts that the braces of a pattern stand for."""
    i = 0
    while i < len(pattern):
        c = pattern[i]
        if c == "[":
            found = _set_at(pattern, i)
            if found and "/" not in pattern[i:found[1]]:
                i = found[1]
                continue
        if c == "{":
            j = pattern.find("}", i)
            if j < 0:
                break
            inner = pattern[i + 1:j]
            if "," in inner:
                tails = _expand(pattern[j + 1:])
                texts = inner.split(",")
                if len(tails) * len(texts) > 5000:
                    return [pattern]
                return [pattern[:i] + text + tail for text in texts for tail in tails]
            tails = _expand(pattern[j + 1:])
            return [pattern[:j + 1] + tail for tail in tails]
        i += 1
    return [pattern]


def _path(pattern):
    parts = pattern.split("/")
    out = []
    for n, part in enumerate(parts):
        last = n == len(parts) - 1
        if part == "**":
            out.append("(?:[^/]+/)*[^/]+" if last else "(?:[^/]+/)*")
        else:
            out.append(_part(part) + ("" if last else "/"))
    return "".join(out)


@functools.lru_cache(maxsize=512)
def compile_glob(pattern):
    if pattern.startswith("./"):
        pattern = pattern[2:]
    return re.compile("|".join(f"(?:{_path(one)})" for one in _expand(pattern)), re.S)


def glob_match(pattern, path):
    return compile_glob(pattern).fullmatch(path) is not None


class Ignore:
    """The lines of `.harnessignore` of a workspace."""

    def __init__(self, cwd):
        self.cwd = cwd
        self.lines = []
        self.cache = {}
        try:
            with open(os.path.join(cwd, ".harnessignore"), "rb") as handle:
                text = handle.read().decode("utf-8", "surrogateescape")
        except OSError:
            return
        if text.startswith("\ufeff"):
            text = text[1:]
        for line in text.split("\n"):
            self._add(line[:-1] if line.endswith("\r") else line)

    def _add(self, line):
        if not line.strip() or line.startswith("#"):
            return
        while line.endswith(" ") and not line.endswith("\\ "):
            line = line[:-1]
        negate = line.startswith("!")
        if negate:
            line = line[1:]
        only_dirs = line.endswith("/")
        if only_dirs:
            line = line[:-1]
        if not line:
            return
        anchored = "/" in line
        parts = line.lstrip("/").split("/")
        out = []
        if not anchored:
            out.append("(?:[^/]+/)*")
        for n, part in enumerate(parts):
            last = n == len(parts) - 1
            if part == "**":
                out.append(".+" if last else "(?:[^/]+/)*")
            else:
                out.append(_part(part, True) + ("" if last else "/"))
        try:
            self.lines.append((re.compile("".join(out), re.S), negate, only_dirs))
        except re.error:
            pass

    def _one(self, rel, is_dir):
        result = False
        for regex, negate, only_dirs in self.lines:
            if (is_dir or not only_dirs) and regex.fullmatch(rel):
                result = not negate
        return result

    def covers(self, path, is_dir=None):
        """Is this absolute path ignored? Paths elsewhere than in the workspace never are."""
        if not self.lines or path == self.cwd or not path.startswith(self.cwd.rstrip("/") + "/"):
            return False
        parts = path[len(self.cwd.rstrip("/")) + 1:].split("/")
        for n in range(1, len(parts)):
            rel = "/".join(parts[:n])
            if rel not in self.cache:
                self.cache[rel] = self._one(rel, True)
            if self.cache[rel]:
                return True
        if is_dir is None:
            is_dir = os.path.isdir(path)
        return self._one("/".join(parts), is_dir)
