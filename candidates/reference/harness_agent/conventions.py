"""Convention files (`AGENTS.md`) with their imports, and the ignore file."""

import os

from .memory import whole_characters
from .paths import Roots, is_within
from .patterns import IgnoreRules
from .tools.files import is_binary

FILE_NAME = "AGENTS.md"
MOST_BYTES = 65_536
DEEPEST_IMPORT = 5


def git_root(workspace: str) -> str:
    """The nearest directory upwards that holds `.git`; empty when there is none."""
    folder = workspace
    while True:
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent


def convention_blocks(roots: Roots, home: str, ignore, warn) -> str:
    """The blocks of the system message, outermost file first."""
    root = git_root(roots.workspace)
    blocks = []
    text = Reader([os.path.realpath(home)], None, warn).file(os.path.join(home, FILE_NAME), anywhere=True)
    if text:
        blocks.append(block("$HARNESS_HOME/" + FILE_NAME, text))
    allowed = roots.all() + ([root] if root else [])
    for folder in folders_down(root or roots.workspace, roots.workspace):
        text = Reader(allowed, ignore, warn).file(os.path.join(folder, FILE_NAME))
        if text:
            blocks.append(block(os.path.relpath(os.path.join(folder, FILE_NAME), roots.workspace), text))
    return "\n\n".join(blocks)


def block(path, text) -> str:
    return f'<conventions path="{path}">\n{text}\n</conventions>'


def folders_down(top, bottom):
    """The directories from `top` to `bottom`, both included."""
    folders = [bottom]
    while folders[0] != top:
        folders.insert(0, os.path.dirname(folders[0]))
    return folders


class Reader:
    """Reads one convention file and what it imports."""

    def __init__(self, allowed, ignore, warn):
        self.allowed = allowed
        self.ignore = ignore
        self.warn = warn

    def file(self, path, anywhere=False) -> str:
        """The text of a convention file, empty when there is none or it is left out."""
        if not os.path.lexists(path):
            return ""
        real = os.path.realpath(path)
        if not anywhere and not self._is_allowed(real):
            self.warn(f"{path} leads outside the workspace and is left out")
            return ""
        data = self._read(real)
        if data is None:
            self.warn(f"{path} cannot be read and is left out")
            return ""
        return self._expand(data, real, [real])

    def _is_allowed(self, real):
        return any(is_within(real, root) for root in self.allowed)

    @staticmethod
    def _read(real):
        """The bytes of a text file, or None."""
        try:
            with open(real, "rb") as file:
                data = file.read()
        except OSError:
            return None
        return None if is_binary(data) else data

    def _expand(self, data, real, chain) -> str:
        text = self._capped(data).strip()
        lines = text.split("\n")
        fences = [index for index, line in enumerate(lines) if line.lstrip().startswith("```")]
        pairs = list(zip(fences[::2], fences[1::2], strict=False))
        for index, line in enumerate(lines):
            stripped = line.strip()
            is_import = len(stripped) > 1 and stripped[0] == "@" and len(stripped.split()) == 1
            if is_import and not any(start < index < end for start, end in pairs):
                imported = self._import(stripped[1:], real, chain)
                lines[index] = line if imported is None else imported
        return "\n".join(lines).strip()

    def _import(self, path, real, chain):
        """The text of an imported file, or None when the line stays as it is."""
        target = os.path.realpath(os.path.join(os.path.dirname(real), path))
        if len(chain) > DEEPEST_IMPORT or target in chain:
            reason = "nested too deep" if target not in chain else "imports itself"
        elif not self._is_allowed(target):
            reason = "outside the roots"
        elif self.ignore and self.ignore(target):
            reason = "ignored"
        elif (data := self._read(target)) is None:
            reason = "cannot be read"
        else:
            return self._expand(data, target, [*chain, target])
        self.warn(f"not imported: {path} ({reason})")
        return None

    @staticmethod
    def _capped(data) -> str:
        if len(data) <= MOST_BYTES:
            return data.decode("utf-8", "replace")
        shown = whole_characters(data[:MOST_BYTES])
        return f"{shown.decode('utf-8', 'replace')}\n[{len(data) - len(shown)} bytes left out]"


def read_ignore_rules(workspace: str):
    """The rules of `.harnessignore`; none when it is missing."""
    try:
        with open(os.path.join(workspace, ".harnessignore"), "rb") as file:
            return IgnoreRules(file.read().decode("utf-8", "surrogateescape"))
    except OSError:
        return IgnoreRules("")
