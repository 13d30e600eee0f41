"""Permission rules: their form, and what they match."""

import os
import re

from .base import is_inside
from .globs import glob_match

TOOLS = ["read", "write", "edit", "patch", "list", "glob", "grep", "bash", "job", "todo", "task", "ask",
         "remember", "skill"]
FILE_TOOLS = {"read", "write", "edit", "patch", "list", "glob", "grep"}
READING = {"read", "list", "glob", "grep", "todo", "skill", "ask"}
EDITING = {"write", "edit", "patch", "remember"}
PATTERN_TOOLS = FILE_TOOLS | {"bash", "task", "skill"}


class Rule:
    def __init__(self, text, source=""):
        """ValueError when the text is no rule."""
        self.text = text
        self.source = source
        self.pattern = None
        name, paren, rest = text.partition("(")
        if paren:
            if not rest.endswith(")"):
                raise ValueError(text)
            self.pattern = rest[:-1].strip()
            if not self.pattern or name not in PATTERN_TOOLS:
                raise ValueError(text)
        if name not in TOOLS:
            raise ValueError(text)
        self.tool = name


def star_match(pattern, text):
    return re.fullmatch(".*".join(re.escape(p) for p in pattern.split("*")), text, re.S) is not None


# ---- paths

def _path_one(pattern, path, cwd, directory):
    """Does a pattern match one absolute, normal path?"""
    if pattern.endswith("/"):
        pattern += "**"
    if pattern.startswith("/"):
        subject = path
    else:
        if not is_inside(path, cwd):
            return False
        subject = os.path.relpath(path, cwd)
        if pattern.startswith("./") and len(pattern) > 2:
            pattern = pattern[2:]
    if directory:
        if pattern == "**":
            return True
        if pattern.endswith("/**") and glob_match(pattern[:-3] or "/", subject):
            return True
    if pattern == "/**":
        return subject != "/"
    if subject == ".":
        return pattern == "."
    return glob_match(pattern, subject)


def path_match(rule, path, cwd, strict):
    """`strict` is for allow rules: only the real path counts."""
    given = os.path.normpath(os.path.join(cwd, path))
    real = os.path.realpath(os.path.join(cwd, path))
    directory = rule.tool in ("list", "glob", "grep")
    if _path_one(rule.pattern, real, cwd, directory):
        return True
    return not strict and _path_one(rule.pattern, given, cwd, directory)


# ---- commands

class Splitter:
    """Splits a shell command into its parts."""

    def __init__(self, text, quotes=True):
        self.s = text
        self.quotes = quotes
        self.parts = []
        self.closed = True
        self.i = 0
        self._list("")

    def _flush(self, buf):
        part = "".join(buf).strip()
        if part:
            self.parts.append(part)
        buf.clear()

    def _list(self, end):
        s, buf, depth = self.s, [], 0
        while self.i < len(s):
            i, c = self.i, s[self.i]
            two = s[i:i + 2]
            if c == "\\":
                if two == "\\\n":
                    pass
                else:
                    buf.append(two)
                self.i += 2
            elif c == "'" and self.quotes:
                j = s.find("'", i + 1)
                if j < 0:
                    self.closed = False
                    j = len(s)
                buf.append(s[i:j + 1])
                self.i = j + 1
            elif c == '"' and self.quotes:
                self._double()
                buf.append(s[i:self.i])
            elif c == "`":
                self.i += 1
                if end == "`":
                    self._flush(buf)
                    return
                self._list("`")
                buf.append(s[i:self.i])
            elif two in ("$(", "<(", ">("):
                self.i += 2
                self._list(")")
                buf.append(s[i:self.i])
            elif c == "(":
                self._flush(buf)
                depth += 1
                self.i += 1
            elif c == ")":
                self._flush(buf)
                self.i += 1
                if end == ")" and depth == 0:
                    return
                depth = max(0, depth - 1)
            elif two in ("&&", "||", "|&"):
                self._flush(buf)
                self.i += 2
            elif c == "&" and (s[i - 1:i] in ("<", ">") and i > 0 or s[i + 1:i + 2] in ("<", ">") and i + 1 < len(s)):
                buf.append(c)
                self.i += 1
            elif c in ";|&\n":
                self._flush(buf)
                self.i += 1
            else:
                buf.append(c)
                self.i += 1
        self._flush(buf)
        if end:
            self.closed = False

    def _double(self):
        s = self.s
        self.i += 1
        while self.i < len(s):
            c = s[self.i]
            if c == "\\":
                self.i += 2
            elif c == '"':
                self.i += 1
                return
            elif c == "`":
                self.i += 1
                self._list("`")
            elif s[self.i:self.i + 2] == "$(":
                self.i += 2
                self._list(")")
            else:
                self.i += 1
        self.i = len(s)
        self.closed = False


class _Word(Splitter):
    """Finds the end of the first word of a part."""

    def __init__(self, text):
        self.s, self.quotes, self.parts, self.closed, self.i = text, True, [], True, 0
        s = text
        while self.i < len(s) and not s[self.i].isspace():
            c = s[self.i]
            if c == "\\":
                self.i += 2
            elif c == "'":
                j = s.find("'", self.i + 1)
                self.i = len(s) if j < 0 else j + 1
            elif c == '"':
                self._double()
            elif c == "`":
                self.i += 1
                self._list("`")
            elif s[self.i:self.i + 2] in ("$(", "<(", ">("):
                self.i += 2
                self._list(")")
            else:
                self.i += 1


_WORDS = {"if", "then", "elif", "else", "while", "until", "do", "{", "!"}


def variants(part):
    """A part as it is, and less the words before its command."""
    found = [part]
    while True:
        end = _Word(part).i
        word = part[:end]
        if word not in _WORDS and not re.match(r"[A-Za-z_][A-Za-z0-9_]*=", word):
            return found
        part = part[end:].strip()
        if not part:
            return found
        found.append(part)


def _mask(text):
    """The part with everything in quotes made invisible, but for substitutions."""
    out = []
    stack = [""]  # what closes the present context: "", ")", "`", '"'
    i = 0
    while i < len(text):
        c = text[i]
        quoted = stack[-1] == '"'
        if c == "\\" and i + 1 < len(text):
            out.append("\0" if quoted else c)
            out.append("\0" if quoted else text[i + 1])
            i += 2
            continue
        if not quoted and c == "'":
            j = text.find("'", i + 1)
            j = len(text) - 1 if j < 0 else j
            out.append("\0" * (j + 1 - i))
            i = j + 1
            continue
        if c == stack[-1]:
            stack.pop()
            out.append("\0" if c == '"' else c)
        elif c == '"':
            stack.append('"')
            out.append("\0")
        elif c == "`":
            stack.append("`")
            out.append(c)
        elif text[i:i + 2] == "$(" or (not quoted and text[i:i + 2] in ("<(", ">(")):
            stack.append(")")
            out.append(text[i:i + 2])
            i += 2
            continue
        elif c == "(" and not quoted:
            stack.append(")")
            out.append(c)
        else:
            out.append("\0" if quoted else c)
        i += 1
    return "".join(out)


_HARMLESS = re.compile(r"(?:\d*>&\d+|(?:\d*|&)>>?[ \t]*/dev/null)(?=$|[\s;&|()<>`])")


def writes_file(part):
    return ">" in _HARMLESS.sub(" ", _mask(part))


class Command:
    """One shell command, ready to be compared with rules."""

    def __init__(self, text):
        self.text = text
        split = Splitter(text)
        self.parts = split.parts
        self.closed = split.closed
        tried = list(self.parts)
        if not self.closed:
            tried += Splitter(text, quotes=False).parts
        self.tried = [v for part in tried for v in variants(part)] + [text.strip()]
        self.redirects = [writes_file(part) for part in self.parts]

    def hit(self, rule):
        """For deny and ask rules."""
        return rule.pattern is None or any(star_match(rule.pattern, part) for part in self.tried)

    def allowed_by(self, rules):
        if any(rule.pattern is None for rule in rules):
            return next(rule for rule in rules if rule.pattern is None)
        if not self.closed or not self.parts:
            return None
        first = None
        for part, writes in zip(self.parts, self.redirects):
            found = [r for r in rules if star_match(r.pattern, part) and (not writes or ">" in r.pattern)]
            if not found:
                return None
            if first is None or rules.index(found[0]) < rules.index(first):
                first = found[0]
        return first
