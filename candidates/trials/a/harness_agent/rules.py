"""Permission rules: their form, what they match, and how commands are split."""

import functools
import os
import re
from dataclasses import dataclass

from .globs import matches

TOOL_NAMES = ["read", "write", "edit", "patch", "list", "glob", "grep", "bash", "job",
              "todo", "task", "ask", "remember", "skill"]
FILE_TOOLS = {"read", "write", "edit", "patch", "list", "glob", "grep"}
DIRECTORY_TOOLS = {"list", "glob", "grep"}
NO_PATTERN = {"job", "todo", "ask", "remember"}


@dataclass(frozen=True)
class Rule:
    text: str
    tool: str
    pattern: str  # empty: a bare rule
    source: str = ""

    @property
    def bare(self):
        return not self.pattern


def parse_rule(text: str, source: str = ""):
    """A rule, or None when the text is not one."""
    tool, bracket, rest = text.partition("(")
    if tool not in TOOL_NAMES:
        return None
    if not bracket:
        return Rule(text, tool, "", source)
    if not rest.endswith(")") or tool in NO_PATTERN:
        return None
    pattern = rest[:-1].strip()
    return Rule(text, tool, pattern, source) if pattern else None


# Paths

def path_matches(pattern: str, absolute: str, workspace: str, directory_tool: bool) -> bool:
    """Whether a pattern matches one absolute path."""
    if pattern.endswith("/") and pattern != "/":
        pattern += "**"
    while pattern.startswith("./") and len(pattern) > 2:
        pattern = pattern[2:]
    if pattern.startswith("/"):
        subject = absolute
    elif absolute == workspace:
        subject = "."
    elif absolute.startswith(workspace.rstrip("/") + "/"):
        subject = absolute[len(workspace.rstrip("/")) + 1:]
    else:
        return False
    if subject == ".":
        return pattern == "." or (directory_tool and pattern == "**")
    if matches(pattern, subject):
        return True
    return directory_tool and pattern.endswith("/**") and matches(pattern[:-3] or "/", subject)


# Commands

def name_matches(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(re.escape(p) for p in pattern.split("*")), text, re.S) is not None


class _Splitter:
    def __init__(self, text: str, quotes: bool):
        self.s = text
        self.quotes = quotes
        self.parts = []
        self.closed = True

    def level(self, i: int, inner: bool) -> int:
        """Splits from i on; in a substitution up to its `)`. Returns the index after it."""
        s, n = self.s, len(self.s)
        part, depth = "", 0

        def end():
            nonlocal part
            if part.strip():
                self.parts.append(part.strip())
            part = ""

        while i < n:
            c = s[i]
            if c == "\\" and i + 1 < n:
                if s[i + 1] != "\n":
                    part += s[i:i + 2]
                i += 2
                continue
            if c == "'" and self.quotes:
                j = s.find("'", i + 1)
                if j < 0:
                    self.closed = False
                    j = n - 1
                part += s[i:j + 1]
                i = j + 1
                continue
            if c == '"' and self.quotes:
                j = self.double(i + 1)
                part += self.joined(s[i:j])
                i = j
                continue
            if c == "`":
                j = self.backtick(i + 1)
                part += s[i:j]
                i = j
                continue
            if c in "$<>" and s[i + 1:i + 2] == "(":
                j = self.level(i + 2, True)
                part += self.joined(s[i:j])
                i = j
                continue
            if c == ")" and inner and depth == 0:
                end()
                return i + 1
            if c in "()":
                depth += 1 if c == "(" else -1 if depth else 0
                end()
                i += 1
                continue
            if c in ";\n|":
                end()
                i += 2 if s[i:i + 2] in ("||", "|&") else 1
                continue
            if c == "&":
                if s[i:i + 2] == "&&":
                    end()
                    i += 2
                    continue
                near = (s[i - 1:i] if i else "") + s[i + 1:i + 2]
                if ">" not in near and "<" not in near:
                    end()
                    i += 1
                    continue
            part += c
            i += 1
        end()
        if inner:
            self.closed = False
        return n

    @staticmethod
    def joined(text):
        return text.replace("\\\n", "")

    def double(self, i: int) -> int:
        s, n = self.s, len(self.s)
        while i < n:
            c = s[i]
            if c == "\\":
                i += 2
            elif c == '"':
                return i + 1
            elif c == "`":
                i = self.backtick(i + 1)
            elif c == "$" and s[i + 1:i + 2] == "(":
                i = self.level(i + 2, True)
            else:
                i += 1
        self.closed = False
        return n

    def backtick(self, i: int) -> int:
        s, n, j = self.s, len(self.s), i
        while j < n and s[j] != "`":
            j += 2 if s[j] == "\\" else 1
        if j >= n:
            self.closed = False
        inner = re.sub(r"\\([`\\$])", r"\1", s[i:min(j, n)])
        sub = _Splitter(inner, self.quotes)
        sub.level(0, False)
        self.parts += sub.parts
        self.closed = self.closed and sub.closed
        return min(j + 1, n)


@functools.lru_cache(maxsize=64)
def split_command(command: str) -> tuple[tuple, bool]:
    """The parts of a command, and whether all its quotes close."""
    splitter = _Splitter(command, True)
    splitter.level(0, False)
    if splitter.closed:
        return tuple(splitter.parts), True
    loose = _Splitter(command, False)
    loose.level(0, False)
    return tuple(loose.parts), False


_WORDS = {"if", "then", "elif", "else", "while", "until", "do", "{", "!"}


def without_prefix(part: str) -> list[str]:
    """The part itself, and the part without each further word that may stand before a command."""
    out = [part]
    while True:
        assignment = re.match(r"[A-Za-z_]\w*=", part)
        if assignment:
            end = _word_end(part, assignment.end())
        else:
            word = re.match(r"\S+", part)
            if not word or word.group() not in _WORDS:
                return out
            end = word.end()
        part = part[end:].strip()
        if not part:
            return out
        out.append(part)


def _word_end(s: str, i: int) -> int:
    probe = _Splitter(s, True)
    while i < len(s) and not s[i].isspace():
        if s[i] == "\\":
            i += 2
        elif s[i] == "'":
            j = s.find("'", i + 1)
            i = len(s) if j < 0 else j + 1
        elif s[i] == '"':
            i = probe.double(i + 1)
        elif s[i] == "`":
            i = probe.backtick(i + 1)
        elif s[i] in "$<>" and s[i + 1:i + 2] == "(":
            i = probe.level(i + 2, True)
        else:
            i += 1
    return min(i, len(s))


_HARMLESS = re.compile(r">&(\d+|-)(?![^\s;&|()<>`])|>>?\|?\s*/dev/null(?![^\s;&|()<>`\"])")


def redirects(part: str) -> bool:
    """Whether a `>` outside quotes writes to a file."""
    stack = [""]  # contexts: "" plain, '"' in double quotes
    i = 0
    while i < len(part):
        c, top = part[i], stack[-1]
        if c == "\\":
            i += 2
            continue
        if top != '"' and c == "'":
            j = part.find("'", i + 1)
            i = len(part) if j < 0 else j + 1
            continue
        if c == '"':
            stack.pop() if top == '"' else stack.append('"')
        elif c == "`":
            if "`" in stack:
                while stack.pop() != "`":
                    pass
            else:
                stack.append("`")
        elif c == "$" and part[i + 1:i + 2] == "(":
            stack.append("(")
            i += 2
            continue
        elif c == "(" and top != '"':
            stack.append("(")
        elif c == ")" and top == "(":
            stack.pop()
        elif c == ">" and top != '"':
            harmless = _HARMLESS.match(part, i)
            if not harmless:
                return True
            i = harmless.end()
            continue
        i += 1
        if not stack:
            stack = [""]
    return False


def command_denied_by(rule: Rule, command: str) -> bool:
    """Deny and ask rules: one part, or the whole, is enough."""
    if rule.bare:
        return True
    parts, _ = split_command(command)
    texts = [command, command.strip()]
    for part in parts:
        texts += without_prefix(part)
    return any(name_matches(rule.pattern, t) for t in texts)


def command_allowed_by(rules: list[Rule], command: str):
    """Allow rules: each part must be matched; gives the first rule in use, or None."""
    for rule in rules:
        if rule.bare:
            return rule
    parts, closed = split_command(command)
    if not closed or not parts:
        return None
    used = []
    for part in parts:
        writes = redirects(part)
        hit = next((r for r in rules if name_matches(r.pattern, part)
                    and not (writes and ">" not in r.pattern)), None)
        if hit is None:
            return None
        used.append(hit)
    return next(r for r in rules if r in used)


def absolute_text(path: str, workspace: str) -> str:
    """The path as given, free of `.`, `..` and double slashes."""
    out = os.path.normpath(os.path.join(workspace, path))
    return "/" + out.lstrip("/") if out.startswith("//") else out
