"""Where file tools may go: the roots, judged on real paths, and what inside them is protected."""

import os

from .errors import ToolError, UsageError

SETTINGS_FILES = ([".harness", "settings.json"], [".harness", "settings.local.json"])


class Roots:
    """The workspace and the added directories."""

    def __init__(self, workspace: str, added=()):
        self.workspace = os.path.realpath(workspace)
        self.added = []
        for directory in added:
            self.add(directory)

    def add(self, directory: str) -> str:
        """Add a directory (relative ones are relative to the workspace) and return its real path."""
        real = self.real(directory)
        if real not in self.all():
            self.added.append(real)
        return real

    def all(self) -> list[str]:
        return [self.workspace, *self.added]

    def given(self, path: str) -> str:
        """The absolute path as it was given: `..` and double slashes are taken out as text, links are kept."""
        absolute = os.path.normpath(os.path.join(self.workspace, path))
        return absolute.removeprefix("/") if absolute.startswith("//") else absolute  # normpath keeps two at the start

    def real(self, path: str) -> str:
        return os.path.realpath(os.path.join(self.workspace, path))

    def holds(self, real: str) -> bool:
        return any(is_within(real, root) for root in self.all())

    def resolve(self, path: str) -> str:
        """Return the real path of a path that a file tool was given; refuse one outside the roots."""
        real = self.real(path)
        if not self.holds(real):
            raise ToolError(f"outside the workspace: {path}")
        return real

    def relative(self, real: str) -> str:
        """The path relative to the workspace; an absolute path elsewhere."""
        if is_within(real, self.workspace):
            return os.path.relpath(real, self.workspace)
        return real

    def named(self, path: str, real: str) -> str:
        """The absolute path under the name that was given where that lies in a root, else the real one."""
        given = self.given(path)
        return given if self.holds(given) and os.path.realpath(given) == real else real

    def protected(self, path: str) -> bool:
        """Tell whether file tools must not change `path`, by its given or its real name."""
        for absolute in (self.given(path), self.real(path)):
            for root in self.all():
                if is_within(absolute, root):
                    parts = os.path.relpath(absolute, root).split(os.sep)
                    if ".git" in parts or (root == self.workspace and parts in SETTINGS_FILES):
                        return True
        return False


def find_workspace(options) -> str:
    """The real path of the workspace; raise UsageError when it is no directory."""
    given = options.cwd or options.flags.get("cwd") or "."
    workspace = os.path.realpath(given)
    if not os.path.isdir(workspace):
        raise UsageError(f"--cwd: no such directory: {given}")
    return workspace


def is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def printable(path: str) -> str:
    """A path for a line of output: a line feed as `\\n`, each byte that is not UTF-8 as U+FFFD."""
    return "".join("\ufffd" if "\udc80" <= char <= "\udcff" else char for char in path.replace("\n", "\\n"))
