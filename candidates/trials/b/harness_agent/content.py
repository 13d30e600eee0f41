"""Files that shape the system message: conventions, memory, skills, roles, own commands."""

import fcntl
import os
import re

from .base import (MODES, Console, HarnessError, critical, cut, home, is_inside)
from .rules import TOOLS

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class Broken(Exception):
    pass


def front_matter(text):
    """(keys, body); Broken when it cannot be understood."""
    if text.startswith("\ufeff"):
        text = text[1:]
    lines = text.split("\n")
    if lines[0].rstrip("\r") != "---":
        return {}, text
    keys = {}
    for n, line in enumerate(lines[1:], 1):
        line = line.rstrip("\r")
        if line == "---":
            return keys, "\n".join(lines[n + 1:])
        if not line.strip() or line.startswith("#"):
            continue
        key, colon, value = line.partition(":")
        if not colon:
            raise Broken(f"line {n + 1} of the front matter has no colon")
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        keys[key.strip()] = value
    raise Broken("the front matter does not end")


def as_list(value):
    value = value.strip()
    if value.startswith("[") and value.endswith("]"):
        value = value[1:-1]
    out = []
    for item in value.split(","):
        item = item.strip()
        if len(item) >= 2 and item[0] == item[-1] and item[0] in "\"'":
            item = item[1:-1]
        if item:
            out.append(item)
    return out


def _entries(folder):
    try:
        return sorted(os.listdir(folder), key=os.fsencode)
    except OSError:
        return []


def _read(path):
    try:
        with open(path, "rb") as handle:
            return handle.read().decode("utf-8", "replace")
    except OSError as error:
        raise Broken(error.strerror or str(error)) from None


def _left_out(path, why):
    Console.warn_once(("left out", path), f"{path}: left out: {why}")


# ---- skills

def skills(cwd):
    """name -> {source, description, path, body}"""
    found = {}
    for source, base in (("user", home()), ("project", os.path.join(cwd, ".harness"))):
        folder = os.path.join(base, "skills")
        for name in _entries(folder):
            path = os.path.join(folder, name, "SKILL.md")
            if not os.path.lexists(path):
                continue
            try:
                if not os.path.isfile(path):
                    raise Broken("not a file")
                keys, body = front_matter(_read(path))
                if not NAME.fullmatch(name):
                    raise Broken("the name has not the form of one")
                if keys.get("name") != name:
                    raise Broken("name is not that of the directory")
                if not keys.get("description"):
                    raise Broken("no description")
            except Broken as error:
                _left_out(path, error)
                continue
            found[name] = {"source": source, "description": keys["description"], "path": path, "body": body}
    return dict(sorted(found.items()))


def strip_blank_lines(text):
    lines = [line[:-1] if line.endswith("\r") else line for line in text.split("\n")]
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return "\n".join(lines)


# ---- roles

BUILT_IN = {
    "build": ("Builds and changes software with all tools.", None),
    "architect": ("Proposes changes and makes none.", ["read", "list", "glob", "grep", "job", "todo", "ask", "skill"]),
    "explore": ("Looks around in files.", ["read", "list", "glob", "grep"]),
}


class Role:
    def __init__(self, name, source="built-in", description="", tools=None, model=None, mode=None, text="", path=None):
        self.name, self.source, self.description = name, source, description
        self.tools, self.model, self.mode, self.text, self.path = tools, model, mode, text, path

    def has(self, tool, arguments=None):
        if self.source == "built-in" and self.name == "architect" and tool == "job":
            return arguments is None or arguments.get("action") != "kill"
        return self.tools is None or tool in self.tools


def _role(path, name, source):
    keys, body = front_matter(_read(path))
    tools = None
    if "tools" in keys:
        tools = as_list(keys["tools"])
        for tool in tools:
            if tool not in TOOLS:
                raise Broken(f"unknown tool {tool}")
    mode = keys.get("permission_mode")
    if mode is not None and mode not in MODES:
        raise Broken(f"unknown permission_mode {mode}")
    if keys.get("model") == "":
        raise Broken("model is empty")
    return Role(name, source, keys.get("description", ""), tools, keys.get("model"), mode, body.strip(), path)


def roles(cwd):
    found = {}
    for source, base in (("user", home()), ("project", os.path.join(cwd, ".harness"))):
        folder = os.path.join(base, "agents")
        for entry in _entries(folder):
            name = entry[:-3] if entry.endswith(".md") else ""
            path = os.path.join(folder, entry)
            if not NAME.fullmatch(name) or os.path.isdir(path):
                continue
            if name in BUILT_IN:
                _left_out(path, "the name of a built-in role")
                continue
            try:
                found[name] = _role(path, name, source)
            except Broken as error:
                _left_out(path, error)
                if source == "project":
                    found.pop(name, None)
    for name, (description, tools) in BUILT_IN.items():
        found[name] = Role(name, description=description, tools=tools)
    return dict(sorted(found.items()))


# ---- own commands

def own_commands(cwd, built_in, warn_built_in=False):
    """name -> {source, description, path, text}"""
    found = {}
    for source, base in (("user", home()), ("project", os.path.join(cwd, ".harness"))):
        folder = os.path.join(base, "commands")
        for entry in _entries(folder):
            name = entry[:-3] if entry.endswith(".md") else ""
            path = os.path.join(folder, entry)
            if not NAME.fullmatch(name) or os.path.isdir(path):
                continue
            if name in built_in:
                if warn_built_in:
                    _left_out(path, "the name of a built-in command")
                continue
            try:
                keys, body = front_matter(_read(path))
            except Broken as error:
                _left_out(path, error)
                continue
            found[name] = {"source": source, "description": keys.get("description", ""), "path": path,
                           "text": body.strip()}
    return dict(sorted(found.items()))


def fill_places(text, arguments):
    """The text of an own command with its arguments."""
    parts = [m.group(1) if m.group(1) is not None else m.group(2)
             for m in re.finditer(r'"([^"]*)"(?!\S)|(\S+)', arguments)]
    if not re.search(r"\$(ARGUMENTS|[1-9])", text):
        return (text + "\n\n" + arguments if text else arguments) if arguments else text

    def put(match):
        if match.group(1) == "ARGUMENTS":
            return arguments
        n = int(match.group(1)) - 1
        return parts[n] if n < len(parts) else ""

    return re.sub(r"\$(ARGUMENTS|[1-9])", put, text)


# ---- memory

MEMORY_LINES, MEMORY_BYTES = 200, 25000


def memory_path(cwd, scope):
    return os.path.join(home(), "memory.md") if scope == "user" else os.path.join(cwd, ".harness", "memory.md")


def read_memory(cwd, scope, roots):
    """The bytes of a memory file; None when there is no memory in this scope."""
    path = memory_path(cwd, scope)
    if scope == "project" and os.path.lexists(path):
        real = os.path.realpath(path)
        if not any(is_inside(real, root) for root in roots):
            Console.warn(f"{path}: left out: outside the workspace")
            return None
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise OSError(21, "Is a directory" if os.path.isdir(path) else "not a regular file")
        with open(path, "rb") as handle:
            data = handle.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        Console.warn(f"{path}: left out: {error.strerror or error}")
        return None
    return data if data.decode("utf-8", "replace").strip() else None


def memory_block(data, scope):
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    whole = [line + b"\n" for line in lines]
    if not data.endswith(b"\n"):
        whole[-1] = lines[-1]
    shown, size = 0, 0
    for line in whole:
        if shown == MEMORY_LINES or size + len(line) > MEMORY_BYTES:
            break
        shown += 1
        size += len(line)
    left = len(whole) - shown
    text = b"".join(whole[:shown])
    if left and not shown:
        text = whole[0][:MEMORY_BYTES]
        text = text.decode("utf-8", "ignore").encode() if _utf8(whole[0]) else text
    text = text.decode("utf-8", "replace").rstrip()
    if left:
        text += f"\n[memory cut: {left} lines left out]"
    return f'<memory scope="{scope}">\n{text}\n</memory>'


def _utf8(data):
    try:
        data.decode()
        return True
    except UnicodeDecodeError:
        return False


def memory_blocks(cwd, roots):
    out = []
    for scope in ("user", "project"):
        data = read_memory(cwd, scope, roots)
        if data is not None:
            out.append(memory_block(data, scope))
    return "\n\n".join(out)


def memory_line(text):
    return "- " + re.sub(r"[\r\n]+", " ", text.strip())


class MemoryOutside(Exception):
    pass


def append_memory(cwd, scope, text, roots):
    """Adds one line; OSError when that cannot be done."""
    path = memory_path(cwd, scope)
    if scope == "project":
        real = os.path.realpath(path)
        if not any(is_inside(real, root) for root in roots):
            raise MemoryOutside(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    line = (memory_line(text) + "\n").encode("utf-8", "replace")
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise OSError(22, "not a regular file")
    with critical():
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            size = os.fstat(fd).st_size
            if size and os.pread(fd, 1, size - 1) != b"\n":
                line = b"\n" + line
            os.write(fd, line)
        finally:
            os.close(fd)


def memory_show(cwd, scopes=("user", "project"), roots=None):
    """(text, object) of `harness memory show`."""
    texts, result = [], {}
    for scope in scopes:
        data = read_memory(cwd, scope, roots or [cwd])
        path = memory_path(cwd, scope)
        if data is None:
            result[scope] = None
            continue
        content = data.decode("utf-8", "replace").rstrip()
        texts.append(f"{scope}: {path}\n{content}")
        result[scope] = {"path": path, "content": content}
    return "\n\n".join(texts) or "no memory", result


# ---- convention files

CAP = 65536


def is_binary(path):
    with open(path, "rb") as handle:
        return b"\0" in handle.read(8192)


def git_root(cwd):
    folder = cwd
    while True:
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _capped(path):
    with open(path, "rb") as handle:
        data = handle.read()
    if len(data) <= CAP:
        return data.decode("utf-8", "replace").lstrip("\ufeff") if data.startswith(b"\xef\xbb\xbf") else data.decode(
            "utf-8", "replace")
    head = data[:CAP]
    if data[CAP] & 0xC0 == 0x80:  # in the middle of a character
        n = CAP
        while n > CAP - 4 and data[n] & 0xC0 == 0x80:
            n -= 1
        need = 2 if data[n] >> 5 == 6 else 3 if data[n] >> 4 == 14 else 4 if data[n] >> 3 == 30 else 0
        if need and n + need > CAP:
            head = data[:n]
    text = head.decode("utf-8", "replace")
    return text + ("" if text.endswith("\n") else "\n") + f"[{len(data) - len(head)} bytes left out]"


def _import(text, folder, chain, roots, ignore):
    lines = text.split("\n")
    fences = [n for n, line in enumerate(lines) if line.startswith("```")]
    fenced = set()
    for a, b in zip(fences[::2], fences[1::2]):
        fenced.update(range(a, b + 1))
    for n, line in enumerate(lines):
        match = re.fullmatch(r"@(\S+)", line.strip())
        if n in fenced or not match:
            continue
        path = os.path.join(folder, match.group(1))
        real = os.path.realpath(path) if "\0" not in path else ""
        why = None
        if not real or not any(is_inside(real, root) for root in roots):
            why = "outside the workspace"
        elif real in chain:
            why = "imported already"
        elif len(chain) > 5:
            why = "nested too deeply"
        elif ignore is not None and (ignore.covers(os.path.normpath(path)) or ignore.covers(real)):
            why = "ignored"
        elif os.path.isdir(real):
            why = "is a directory"
        elif not os.path.isfile(real):
            why = "no such file"
        else:
            try:
                if is_binary(real):
                    why = "binary"
                else:
                    body = _capped(real)
            except OSError as error:
                why = error.strerror or str(error)
        if why:
            Console.warn(f"not imported: {match.group(1)}: {why}")
            continue
        lines[n] = _import(body, os.path.dirname(path), chain + [real], roots, ignore).strip()
    return "\n".join(lines)


def conventions(cwd, roots, ignore):
    """All convention blocks."""
    blocks = []
    top = git_root(cwd) or cwd
    folders = [cwd]
    while folders[0] != top:
        folders.insert(0, os.path.dirname(folders[0]))
    files = [(os.path.join(home(), "AGENTS.md"), "$HARNESS_HOME/AGENTS.md", None)]
    files += [(os.path.join(f, "AGENTS.md"), os.path.relpath(os.path.join(f, "AGENTS.md"), cwd), f) for f in folders]
    inside = list(roots) + ([top] if git_root(cwd) else [])
    for path, shown, folder in files:
        if not os.path.lexists(path):
            continue
        own = folder is not None
        real = os.path.realpath(path)
        if own and os.path.islink(path) and not any(is_inside(real, r) for r in inside):
            Console.warn(f"{path}: left out: outside the workspace")
            continue
        try:
            if not os.path.isfile(real):
                raise OSError(0, "not a file" if os.path.exists(real) else "no such file")
            if is_binary(real):
                raise OSError(0, "binary file")
            text = _capped(real)
        except OSError as error:
            Console.warn(f"{path}: left out: {error.strerror or error}")
            continue
        text = _import(text, os.path.dirname(path), [real],
                       inside if own else [os.path.realpath(home())], ignore).strip()
        if text:
            blocks.append(f'<conventions path="{shown}">\n{text}\n</conventions>')
    return "\n\n".join(blocks)


def skills_block(found):
    lines = [f"- {name}: {cut(skill['description'], 1024)}" for name, skill in found.items()]
    return "<skills>\n" + "\n".join(lines) + "\n</skills>" if lines else ""


BUILT_IN_TEXT = """You are a coding agent. You work in a workspace by the tools that you are offered, and answer when the work is done.
Read a file before you change it. Prefer small changes. Say plainly what you did and what you could not do."""

ARCHITECT_TEXT = "Propose changes; do not make them."
EXPLORE_TEXT = "Look around in the files and report what you find."


def built_in_text(cwd, role):
    text = BUILT_IN_TEXT + f"\n\nWorkspace: {cwd}\nRole: {role.name}"
    if role.source == "built-in" and role.name == "architect":
        text += "\n" + ARCHITECT_TEXT
    elif role.source == "built-in" and role.name == "explore":
        text += "\n" + EXPLORE_TEXT
    return text
