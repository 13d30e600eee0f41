"""Where a path of a call really leads, and whether it may be touched."""

import os

from .rules import absolute_text


def inside(real: str, root: str) -> bool:
    return real == root or real.startswith(root.rstrip("/") + "/")


def in_roots(real: str, roots: list[str]) -> bool:
    return any(inside(real, root) for root in roots)


class Place:
    """One path of a call: as given, as text, and resolved."""

    def __init__(self, given: str, workspace: str):
        self.given = given
        joined = os.path.join(workspace, given)
        self.text = absolute_text(given, workspace)
        try:
            self.real = os.path.realpath(joined)
        except (OSError, ValueError):
            self.real = self.text
        self.slash = given.endswith("/")

    def fault(self, workspace: str, roots: list[str], ignore, protect: bool) -> str:
        """The first of the path checks that fails, as an error text, else ""."""
        if not in_roots(self.real, roots):
            return f"error: outside the workspace: {self.given}"
        if ignore.covers(self.text) or ignore.covers(self.real):
            return f"error: ignored: {self.given}"
        if protect and protected(self, workspace, roots):
            return f"error: protected: {self.given}"
        return ""


def protected(place: Place, workspace: str, roots: list[str]) -> bool:
    for name in ("settings.json", "settings.local.json"):
        path = os.path.join(workspace, ".harness", name)
        if place.text == path or place.real in (path, os.path.realpath(path)):
            return True
    for path in (place.real, place.text):
        for root in roots:
            if inside(path, root) and ".git" in path[len(root.rstrip("/")):].split("/"):
                return True
    return False


def relative(path: str, workspace: str) -> str:
    """Relative to the workspace when inside it, else absolute."""
    if path == workspace:
        return "."
    if inside(path, workspace):
        return path[len(workspace.rstrip("/")) + 1:]
    return path
