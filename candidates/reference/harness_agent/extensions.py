"""Roles, skills and own commands: files of the project and of the user, the project's first."""

import os
import re

from . import frontmatter
from .permissions import MODES
from .tools import NAMES as TOOL_NAMES

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


BUILT_IN = ("build", "architect", "explore")


class Extension:
    """One role, skill or command; `path` is None for what is built in."""

    def __init__(self, name, source, path, description="", body=""):
        self.name = name
        self.source = source  # built-in, project or user
        self.path = path
        self.description = description
        self.body = body


class Role(Extension):
    """A text for the model with a choice of tools; `tools` None means all of them."""

    def __init__(self, name, source, path, description="", body="", tools=None, model="", permission_mode=""):
        super().__init__(name, source, path, description, body)
        self.tools = tools
        self.model = model
        self.permission_mode = permission_mode
        self.only_job_output = False

    def has(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools

    def allows(self, call) -> bool:
        return self.has(call.tool) and not (self.only_job_output and call.tool == "job" and not call.is_reading())


def built_in_roles() -> dict:
    build = Role("build", "built-in", None, "Works on the task with all tools.")
    architect = Role(
        "architect",
        "built-in",
        None,
        "Proposes changes and makes none.",
        "Propose changes; do not make them.",
        ("read", "list", "glob", "grep", "job", "todo", "ask", "skill"),
    )
    architect.only_job_output = True
    explore = Role(
        "explore",
        "built-in",
        None,
        "Only looks around in files.",
        "Look around in the files and report what you find.",
        ("read", "list", "glob", "grep"),
    )
    return {role.name: role for role in (build, architect, explore)}


def places(workspace: str, home: str, folder: str):
    """The directories of one kind by source, the one that counts last first."""
    return [("user", os.path.join(home, folder)), ("project", os.path.join(workspace, ".harness", folder))]


def find_roles(workspace: str, home: str, warn) -> dict:
    """All roles by name; faulty files are left out with a warning."""
    roles = built_in_roles()
    for source, folder in places(workspace, home, "agents"):
        for name, path in markdown_files(folder):
            if name in BUILT_IN:
                warn(f"{path}: a built-in role cannot be replaced")
                continue
            role = read_role(name, source, path, warn)
            if role:
                roles[name] = role
            elif source == "project":
                roles.pop(name, None)  # nothing takes the place of a faulty role, as it may have had fewer limits
    return dict(sorted(roles.items()))


def read_role(name, source, path, warn):
    """The role of a file, or None after a warning."""
    found = read_extension(path, warn)
    try:
        return make_role(name, source, path, *found) if found else None
    except ValueError as error:
        warn(f"{path}: {error}")
    return None


def make_role(name, source, path, fields, body) -> Role:
    tools = None
    if "tools" in fields:
        tools = frontmatter.as_list(fields["tools"])
        unknown = [tool for tool in tools if tool not in TOOL_NAMES]
        if unknown:
            raise ValueError(f"unknown tool {unknown[0]}")
    if fields.get("permission_mode", MODES[0]) not in MODES:
        raise ValueError(f"unknown permission_mode {fields['permission_mode']}")
    if not fields.get("model", "-"):
        raise ValueError("empty model")
    mode, model = fields.get("permission_mode", ""), fields.get("model", "")
    return Role(name, source, path, fields.get("description", ""), body.strip(), tools, model, mode)


def find_skills(workspace: str, home: str, warn) -> dict:
    skills = {}
    for source, folder in places(workspace, home, "skills"):
        for name in sorted(directory_names(folder)):
            path = os.path.join(folder, name, "SKILL.md")
            if not os.path.lexists(path):
                continue
            found = read_extension(path, warn)
            if not found:
                continue
            fields, body = found
            if not NAME.fullmatch(name) or fields.get("name") != name:
                warn(f"{path}: the name of a skill is that of its directory")
            elif not fields.get("description"):
                warn(f"{path}: a skill has a description")
            else:
                skills[name] = Extension(name, source, path, fields["description"], body)
    return dict(sorted(skills.items(), key=lambda pair: pair[0].encode()))


def find_commands(workspace: str, home: str, built_in, warn) -> dict:
    """Own commands by name, those left out that are named like a built-in one."""
    commands = {}
    for source, folder in places(workspace, home, "commands"):
        for name, path in markdown_files(folder):
            if name in built_in:
                warn(f"{path}: a built-in command cannot be replaced")
                continue
            found = read_extension(path, warn)
            if found:
                fields, body = found
                commands[name] = Extension(name, source, path, fields.get("description", ""), body)
    return dict(sorted(commands.items()))


def markdown_files(folder):
    """Name and path of the files NAME.md of a directory whose NAME has the right form."""
    for entry in sorted(directory_names(folder)):
        path = os.path.join(folder, entry)
        if entry.endswith(".md") and NAME.fullmatch(entry[:-3]) and not os.path.isdir(path):
            yield entry[:-3], path


def directory_names(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


def read_extension(path, warn):
    """Return fields and body of a file, or None after a warning."""
    try:
        with open(path, "rb") as file:
            text = file.read().decode("utf-8", "replace")
        return frontmatter.split(text)
    except OSError as error:
        warn(f"{path}: {error.strerror}")
    except frontmatter.Broken as error:
        warn(f"{path}: {error}")
    return None
