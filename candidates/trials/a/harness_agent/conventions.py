"""Convention files: `AGENTS.md` and what it imports."""

import os

from .paths import in_roots
from .rules import absolute_text
from .util import reason_of

CAP = 65536
DEPTH = 5


def git_root(workspace: str):
    folder = workspace
    while True:
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _capped(data: bytes) -> str:
    if len(data) <= CAP:
        return data.decode("utf-8", "replace")
    end = CAP
    if data[end] & 0xC0 == 0x80:
        start = end
        while start > end - 4 and data[start] & 0xC0 == 0x80:
            start -= 1
        if data[start] & 0xC0 == 0xC0:
            end = start
    text = data[:end].decode("utf-8", "replace")
    return text + ("" if text.endswith("\n") else "\n") + f"[{len(data) - end} bytes left out]"


class Conventions:
    def __init__(self, workspace, home, roots, ignore, console):
        self.workspace, self.home, self.console = workspace, home, console
        self.ignore = ignore
        self.git = git_root(workspace)
        self.roots = roots + ([self.git] if self.git else [])

    def blocks(self) -> list[str]:
        out = []
        state = os.path.join(self.home, "AGENTS.md")
        text = self._text(state, None)
        if text:
            out.append(self._block("$HARNESS_HOME/AGENTS.md", text))
        folders = [self.workspace]
        while self.git and folders[0] != self.git:
            folders.insert(0, os.path.dirname(folders[0]))
        for n, folder in enumerate(folders):
            text = self._text(os.path.join(folder, "AGENTS.md"), self.roots)
            if text:
                out.append(self._block("../" * (len(folders) - 1 - n) + "AGENTS.md", text))
        return out

    @staticmethod
    def _block(path, text):
        return f'<conventions path="{path}">\n{text}\n</conventions>'

    def _text(self, path: str, roots):
        if not os.path.lexists(path):
            return ""
        why = ""
        try:
            if roots is not None and not in_roots(os.path.realpath(path), roots):
                why = "outside the workspace"
            else:
                with open(path, "rb") as f:
                    data = f.read()
                if b"\0" in data[:8192]:
                    why = "binary file"
        except OSError as e:
            why = reason_of(e)
        if why:
            self.console.warning_once(f"{path} is left out: {why}")
            return ""
        import_roots = roots if roots is not None else [os.path.realpath(self.home)]
        return self._expanded(_capped(data), path, import_roots, [os.path.realpath(path)]).strip()

    def _expanded(self, text: str, path: str, roots, chain) -> str:
        lines = text.split("\n")
        fences = [n for n, line in enumerate(lines) if line.startswith("```")]
        fenced = set()
        for a, b in zip(fences[::2], fences[1::2]):
            fenced.update(range(a, b + 1))
        for n, line in enumerate(lines):
            word = line.strip()
            if n in fenced or len(word) < 2 or word[0] != "@" or len(word.split()) != 1:
                continue
            target = word[1:]
            body, why = self._import(target, path, roots, chain)
            if body is None:
                self.console.warning_once(f"{target} not imported in {path}: {why}")
            else:
                lines[n] = body
        return "\n".join(lines)

    def _import(self, target, path, roots, chain):
        given = os.path.join(os.path.dirname(path), target)
        try:
            real = os.path.realpath(given)
        except ValueError:
            return None, "no such file"
        if not in_roots(real, roots):
            return None, "outside the workspace"
        if self.ignore.covers(absolute_text(given, "/")) or self.ignore.covers(real):
            return None, "ignored"
        if real in chain:
            return None, "it is being imported already"
        if len(chain) > DEPTH:
            return None, "nested too deeply"
        if not os.path.exists(real):
            return None, "no such file"
        if not os.path.isfile(real):
            return None, "not a file"
        try:
            with open(real, "rb") as f:
                data = f.read()
        except OSError as e:
            return None, reason_of(e)
        if b"\0" in data[:8192]:
            return None, "binary file"
        return self._expanded(_capped(data), given, roots, chain + [real]).strip(), ""
