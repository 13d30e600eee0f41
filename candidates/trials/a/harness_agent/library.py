"""Files with front matter: roles, skills and own commands."""

import os
import re
from dataclasses import dataclass

from .rules import TOOL_NAMES
from .settings import MODES

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}\Z")
STRICTNESS = ["plan", "dont-ask", "ask", "accept-edits", "auto"]


class Broken(Exception):
    pass


def front_matter(text: str) -> tuple[dict, str]:
    text = text.removeprefix("\ufeff")
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {}, text
    head = {}
    for n, line in enumerate(lines[1:], 1):
        line = line.rstrip("\r")
        if line.rstrip() == "---":
            return head, "\n".join(lines[n + 1:])
        if not line.strip() or line.startswith("#"):
            continue
        key, colon, value = line.partition(":")
        if not colon:
            raise Broken(f"line {n + 1} has no colon")
        head[key.strip()] = unquoted(value.strip())
    raise Broken("the front matter does not end")


def unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def words(value: str) -> list[str]:
    if value.startswith("[") and value.endswith("]"):
        value = value[1:-1]
    return [unquoted(w.strip()) for w in value.split(",") if w.strip()]


def read_text(path: str) -> str:
    with open(path, "rb") as f:
        return f.read().decode("utf-8", "replace")


@dataclass
class Role:
    name: str
    source: str
    description: str = ""
    path: str = ""
    tools: list = None  # None: all
    model: str = ""
    mode: str = ""
    text: str = ""
    builtin: bool = False

    def has(self, tool: str, args: dict) -> bool:
        if self.tools is None:
            return True
        if self.builtin and self.name == "architect" and tool == "job":
            return args.get("action", "output") == "output"
        return tool in self.tools


@dataclass
class Skill:
    name: str
    source: str
    description: str
    path: str


@dataclass
class OwnCommand:
    name: str
    source: str
    description: str
    path: str
    text: str


def builtin_roles() -> dict:
    return {
        "build": Role("build", "built-in", "Changes files and runs commands.", builtin=True),
        "architect": Role("architect", "built-in", "Proposes changes and makes none.", builtin=True,
                          tools=["read", "list", "glob", "grep", "job", "todo", "ask", "skill"]),
        "explore": Role("explore", "built-in", "Looks around in files.", builtin=True,
                        tools=["read", "list", "glob", "grep"]),
    }


class Library:
    """Looks in the workspace and in the state directory, anew at each call."""

    def __init__(self, workspace: str, home: str, console):
        self.console = console
        self.places = [("project", os.path.join(workspace, ".harness")), ("user", home)]

    def _files(self, kind: str):
        """(source, name, path) of the Markdown files of one kind, the project's first."""
        for source, root in self.places:
            folder = os.path.join(root, kind)
            try:
                names = sorted(os.listdir(folder), key=os.fsencode)
            except OSError:
                continue
            for file in names:
                path = os.path.join(folder, file)
                if file.endswith(".md") and NAME.match(file[:-3]) and os.path.isfile(path):
                    yield source, file[:-3], path

    def _left_out(self, path: str, why) -> None:
        self.console.warning_once(f"{path} is left out: {why}")

    def roles(self) -> dict:
        builtin = builtin_roles()
        out = dict(builtin)
        blocked = set()
        for source, name, path in self._files("agents"):
            try:
                role = self._role(source, name, path)
            except (Broken, OSError) as e:
                self._left_out(path, e)
                if source == "project":
                    blocked.add(name)
                    out.pop(name, None)
                continue
            if name in builtin:
                self._left_out(path, f"{name} is a built-in role")
            elif name not in blocked and name not in out:
                out[name] = role
        return dict(sorted(out.items()))

    @staticmethod
    def _role(source, name, path) -> Role:
        head, body = front_matter(read_text(path))
        role = Role(name, source, head.get("description", ""), path, text=body.strip())
        if "tools" in head:
            named = words(head["tools"])
            for tool in named:
                if tool not in TOOL_NAMES:
                    raise Broken(f'unknown tool "{tool}"')
            role.tools = [t for t in TOOL_NAMES if t in named]
        if "model" in head:
            if not head["model"].strip():
                raise Broken("empty model")
            role.model = head["model"]
        if "permission_mode" in head:
            if head["permission_mode"] not in MODES:
                raise Broken(f'unknown permission_mode "{head["permission_mode"]}"')
            role.mode = head["permission_mode"]
        return role

    def skills(self) -> dict:
        out = {}
        for source, root in self.places:
            folder = os.path.join(root, "skills")
            try:
                names = sorted(os.listdir(folder), key=os.fsencode)
            except OSError:
                continue
            for name in names:
                path = os.path.join(folder, name, "SKILL.md")
                if not os.path.lexists(path):
                    continue
                try:
                    head, _ = front_matter(read_text(path))
                    if not NAME.match(name):
                        raise Broken("the directory's name is not of the form of a skill")
                    if head.get("name") != name:
                        raise Broken("its name is not that of its directory")
                    if not head.get("description", "").strip():
                        raise Broken("it has no description")
                except (Broken, OSError) as e:
                    self._left_out(path, e)
                    continue
                out.setdefault(name, Skill(name, source, head["description"], path))
        return dict(sorted(out.items()))

    def commands(self, builtin, warn_builtin=False) -> dict:
        out = {}
        for source, name, path in self._files("commands"):
            if name in builtin:
                if warn_builtin:
                    self._left_out(path, f"/{name} is a built-in command")
                continue
            try:
                head, body = front_matter(read_text(path))
            except (Broken, OSError) as e:
                self._left_out(path, e)
                continue
            out.setdefault(name, OwnCommand(name, source, head.get("description", ""), path, body.strip()))
        return dict(sorted(out.items()))


def skill_body(path: str) -> str:
    _, body = front_matter(read_text(path))
    lines = body.replace("\r\n", "\n").split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return "\n".join(lines)


def stricter(a: str, b: str) -> str:
    return a if not b or STRICTNESS.index(a) <= STRICTNESS.index(b) else b
