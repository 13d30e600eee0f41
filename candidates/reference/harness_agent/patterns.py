"""Pattern languages: path globs, command wildcards, and gitignore rules."""

import re
from functools import lru_cache


def expand_braces(pattern: str) -> list[str]:
    """The patterns that `{a,b}` stands for; braces do not nest, unclosed ones are literal."""
    start = pattern.find("{")
    end = pattern.find("}", start)
    if start < 0 or end < 0:
        return [pattern]
    tails = expand_braces(pattern[end + 1 :])
    middles = pattern[start + 1 : end].split(",")
    if len(middles) == 1:
        middles = [pattern[start : end + 1]]
    return [pattern[:start] + middle + tail for middle in middles for tail in tails]


def glob_source(pattern: str, gitignore=False) -> str:
    """Translate one glob without braces into the source of a regular expression.

    `*` and `?` stay inside a path part, `**` as a whole part spans parts. Unclosed brackets are
    literal. Gitignore adds `\\` as escape and `^` as a second sign of negation.
    """
    out, index = [], 0
    while index < len(pattern):
        char = pattern[index]
        starts_part = index == 0 or pattern[index - 1] == "/"
        if starts_part and pattern.startswith("**/", index):
            out.append("(?:[^/]+/)*")
            index += 3
        elif starts_part and pattern[index:] == "**":
            out.append(".+")
            index += 2
        elif char == "[" and (found := _bracket_set(pattern, index, gitignore)):
            out.append(found[0])
            index = found[1]
        elif char == "\\" and gitignore and index + 1 < len(pattern):
            out.append(re.escape(pattern[index + 1]))
            index += 2
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(char) or re.escape(char))
            index += 1
    return "".join(out)


def _bracket_set(pattern, start, gitignore):
    """Translate the set that begins at `start`; return it and the index after it, None when it is no set."""
    negated = pattern[start + 1 : start + 2] in (("!", "^") if gitignore else ("!",))
    first = start + 1 + negated
    end = pattern.find("]", first + 1)
    if end < 0:
        return None
    body = pattern[first:end].replace("\\", r"\\")
    for sign in "[]^&~|":
        body = body.replace(sign, "\\" + sign)
    source = "(?!/)[" + ("^" if negated else "") + body + "]"
    try:
        re.compile(source)
    except re.error:
        return None
    return source, end + 1


@lru_cache(maxsize=256)
def glob_regex(pattern: str, directories=False):
    """Compile a path glob; it has to match the whole path.

    With `directories` a pattern that ends in `/**` matches the directory before it too.
    """
    sources = []
    for plain in expand_braces(pattern):
        plain = plain.removeprefix("./")
        if directories and plain.endswith("/**"):
            above = glob_source(plain[:-3])
            sources.append(above + "(?:/.+)?" if above else "/.*")
        else:
            sources.append(glob_source(plain))
    return re.compile("(?s:" + "|".join(sources) + r")\Z")


@lru_cache(maxsize=256)
def command_regex(pattern: str):
    """Compile a command pattern: `*` stands for any text, everything else for itself."""
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")) + r"\Z", re.DOTALL)


class IgnoreRules:
    """The rules of one ignore file in gitignore syntax; the last rule that matches decides."""

    def __init__(self, text: str):
        self.rules = []
        for line in text.splitlines():
            rule = self._parse(line)
            if rule:
                self.rules.append(rule)

    def matches(self, path: str, is_dir: bool) -> bool:
        """Tell whether `path` (relative, `/` between parts) or a directory above it is ignored."""
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            if self._matches_one("/".join(parts[:depth]), is_dir or depth < len(parts)):
                return True
        return False

    def _matches_one(self, path, is_dir):
        ignored = False
        for regex, negated, only_dirs in self.rules:
            if (is_dir or not only_dirs) and regex.match(path):
                ignored = not negated
        return ignored

    @staticmethod
    def _parse(line):
        line = line.rstrip("\r\n")
        while line.endswith(" ") and not line.endswith("\\ "):
            line = line[:-1]
        if not line or line.startswith("#"):
            return None
        negated = line.startswith("!")
        line = line[negated:]
        only_dirs = line.endswith("/")
        line = line.rstrip("/") if only_dirs else line
        if not line:
            return None
        anchored = "/" in line
        line = line.removeprefix("/")
        prefix = "" if anchored else "(?:.*/)?"
        return re.compile("(?s:" + prefix + glob_source(line, gitignore=True) + r")\Z"), negated, only_dirs
