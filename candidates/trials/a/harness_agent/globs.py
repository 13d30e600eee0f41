"""Path patterns of `glob`, of permission rules and of the ignore file."""

import functools
import os
import re


def _part(text: str, i: int) -> tuple[str, int]:
    """One sign of a pattern part as a regular expression, and the next index."""
    c = text[i]
    if c == "*":
        while i < len(text) and text[i] == "*":
            i += 1
        return "[^/]*", i
    if c == "?":
        return "[^/]", i + 1
    if c == "[":
        j = i + 1
        negate = j < len(text) and text[j] == "!"
        if negate:
            j += 1
        end = text.find("]", j + 1)
        if end > 0 and "/" not in text[j:end]:
            body = text[j:end]
            out = ""
            k = 0
            while k < len(body):
                if k + 2 < len(body) and body[k + 1] == "-":
                    if body[k] <= body[k + 2]:
                        out += re.escape(body[k]) + "-" + re.escape(body[k + 2])
                    k += 3
                else:
                    out += re.escape(body[k])
                    k += 1
            if not out:
                return ("[^/]" if negate else "(?!)"), end + 1
            return (f"(?!/)[^{out}]" if negate else f"[{out}]"), end + 1
    return re.escape(c), i + 1


def _segment(text: str) -> str:
    out, i = "", 0
    while i < len(text):
        piece, i = _part(text, i)
        out += piece
    return out


def _braces(pattern: str) -> list[str]:
    """Expands `{a,b}`; braces do not nest, unclosed ones are literal."""
    i = 0
    while True:
        start = pattern.find("{", i)
        if start < 0:
            return [pattern]
        end = pattern.find("}", start)
        if end < 0:
            return [pattern]
        body = pattern[start + 1:end]
        if "{" in body:
            i = start + 1
            continue
        if "," not in body:
            i = end + 1
            continue
        tails = _braces(pattern[end + 1:])
        return [pattern[:start] + word + tail for word in body.split(",") for tail in tails]


def _plain(pattern: str) -> str:
    parts = pattern.split("/")
    out = ""
    for n, part in enumerate(parts):
        last = n == len(parts) - 1
        if part == "**":
            out += "(?:[^/]+/)*[^/]+" if last else "(?:[^/]+/)*"
        else:
            out += _segment(part) + ("" if last else "/")
    return out


@functools.lru_cache(maxsize=512)
def compiled(pattern: str):
    while pattern.startswith("./"):
        pattern = pattern[2:]
    return re.compile("|".join(f"(?:{_plain(p)})" for p in _braces(pattern)), re.S)


def matches(pattern: str, path: str) -> bool:
    return compiled(pattern).fullmatch(path) is not None


class Ignore:
    """The file `.harnessignore` of a workspace, in the syntax of gitignore."""

    def __init__(self, workspace: str):
        self.workspace = workspace
        self.rules = []
        try:
            with open(os.path.join(workspace, ".harnessignore"), "rb") as f:
                text = f.read().decode("utf-8", "surrogateescape")
        except OSError:
            return
        for line in text.removeprefix("\ufeff").split("\n"):
            self._add(line.removesuffix("\r"))

    def _add(self, line: str) -> None:
        if not line.strip(" ") or line.startswith("#"):
            return
        while line.endswith(" ") and not line.endswith("\\ "):
            line = line[:-1]
        take_out = line.startswith("!")
        if take_out:
            line = line[1:]
        line = re.sub(r"\\([#! ])", r"\1", line)
        only_dirs = line.endswith("/")
        line = line.rstrip("/") if only_dirs else line
        anchored = "/" in line
        line = line.lstrip("/")
        if not line:
            return
        parts = line.split("/")
        regex = ""
        for n, part in enumerate(parts):
            last = n == len(parts) - 1
            if part == "**":
                regex += ".+" if last else "(?:[^/]+/)*"
            else:
                regex += self._words(part) + ("" if last else "/")
        if not anchored:
            regex = "(?:[^/]+/)*" + regex
        self.rules.append((re.compile(regex, re.S), take_out, only_dirs))

    @staticmethod
    def _words(part: str) -> str:
        out, i = "", 0
        while i < len(part):
            if part[i] == "\\" and i + 1 < len(part):
                out += re.escape(part[i + 1])
                i += 2
            elif part[i] == "[" and part[i + 1:i + 2] == "^":
                piece, i = _part(part[:i + 1] + "!" + part[i + 2:], i)
                out += piece
            else:
                piece, i = _part(part, i)
                out += piece
        return out

    def _one(self, rel: str, is_dir: bool) -> bool:
        hit = False
        for regex, take_out, only_dirs in self.rules:
            if (is_dir or not only_dirs) and regex.fullmatch(rel):
                hit = not take_out
        return hit

    def covers(self, path: str, is_dir=None) -> bool:
        """Whether an absolute path (as text) is ignored."""
        if not self.rules or not path.startswith(self.workspace.rstrip("/") + "/"):
            return False
        rel = path[len(self.workspace.rstrip("/")) + 1:]
        parts = rel.split("/")
        for n in range(1, len(parts)):
            if self._one("/".join(parts[:n]), True):
                return True
        if is_dir is None:
            is_dir = os.path.isdir(path) and not os.path.islink(path)
        return self._one(rel, is_dir)
