"""Cuts a shell command into the single commands that permission rules are held against.

Only quotes, separators and substitutions are looked at; nothing is expanded. See the chapter on
permissions for what counts as a separator.
"""

import re

ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
WORDS_BEFORE = {"if", "then", "elif", "else", "while", "until", "do", "{", "!"}
HARMLESS_REDIRECTION = re.compile(r"(?:\d*>&\d+|(?:\d*|&)>>?\s*/dev/null)(?=[\s<>()&|;]|$)")


def split(command: str, quotes=True):
    """Return the parts of a command and whether its quotes and substitutions close."""
    splitter = Splitter(command, quotes)
    splitter.run(None)
    parts = [part.replace("\\\n", "").strip() for part in splitter.parts]
    return [part for part in parts if part], splitter.closed


def forms(part: str):
    """The part, and what is left each time that an assignment or a word such as `if` is taken off its beginning."""
    yield part
    while part:
        word = part[: Splitter(part).word_end()]
        if word not in WORDS_BEFORE and not ASSIGNMENT.match(word):
            return
        part = part[len(word) :].lstrip()
        yield part


def writes_file(part: str) -> bool:
    """Tell whether a part has a `>` outside quotes that can change a file."""
    splitter = Splitter(part)
    splitter.run(None)
    return ">" in HARMLESS_REDIRECTION.sub("", "".join(splitter.plain))


class Splitter:
    """One pass over a command; inner commands are read by recursion."""

    def __init__(self, text, quotes=True):
        self.text = text
        self.quotes = quotes
        self.at = 0
        self.parts = []
        self.plain = []  # what stands outside quotes, also in substitutions; a quoted text is one Q
        self.closed = True

    def run(self, closer):
        """Read parts up to `closer`, which is left where it is, or up to the end of the text."""
        start, depth = self.at, 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == closer and depth == 0:
                break
            if char == "\\":
                self.at += 2
            elif char in "'\"" and self.quotes:
                self._quoted(char)
            elif self._substitution():
                pass
            elif char in "&|;()\n" and not self._redirects():
                depth += {"(": 1, ")": -1 if depth else 0}.get(char, 0)
                self.plain.append(char)
                self.parts.append(self.text[start : self.at])
                self.at += 1
                start = self.at
            else:
                self.plain.append(char)
                self.at += 1
        self.parts.append(self.text[start : self.at])
        if closer and self.at >= len(self.text):
            self.closed = False

    def word_end(self) -> int:
        """Where the word at the beginning ends: at white space outside quotes and substitutions."""
        while self.at < len(self.text) and not self.text[self.at].isspace():
            char = self.text[self.at]
            if char == "\\":
                self.at += 2
            elif char in "'\"":
                self._quoted(char)
            elif not self._substitution():
                self.at += 1
        return min(self.at, len(self.text))

    def _redirects(self):
        """Tell whether the `&` here belongs to a redirection such as `2>&1`."""
        around = self.text[max(self.at - 1, 0) : self.at] + self.text[self.at + 1 : self.at + 2]
        return self.text[self.at] == "&" and (">" in around or "<" in around)

    def _quoted(self, quote):
        self.plain.append("Q")
        self.at += 1
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == quote:
                self.at += 1
                return
            if quote == '"' and char == "\\":
                self.at += 2
            elif quote == "'" or not self._substitution(("$(",)):
                self.at += 1
        self.closed = False

    def _substitution(self, openers=("$(", "<(", ">(")) -> bool:
        """Read the `$(...)`, `<(...)`, `>(...)` or backticks that begin here, if any."""
        if self.text[self.at] == "`":
            self._backticks()
        elif self.text[self.at : self.at + 2] in openers:
            self.plain.append(self.text[self.at] + "(")
            self.at += 2
            self.run(")")
            self.at += 1
            self.plain.append(")")
        else:
            return False
        return True

    def _backticks(self):
        end = re.compile(r"(?:[^`\\]|\\.)*", re.DOTALL).match(self.text, self.at + 1).end()
        inner = Splitter(re.sub(r"\\([`\\$])", r"\1", self.text[self.at + 1 : end]), self.quotes)
        inner.run(None)
        self.parts += inner.parts
        self.plain += ["(", *inner.plain, ")"]
        self.closed = self.closed and inner.closed and end < len(self.text)
        self.at = end + 1
