"""Settings files: reading, checking, and joining their levels."""

import os
from dataclasses import dataclass, field

from .rules import Rule, parse_rule
from .util import HarnessError, loads

MODES = ["ask", "accept-edits", "plan", "auto", "dont-ask"]
FORMATS = ["text", "json", "stream-json"]
LISTS = ["deny", "ask", "allow"]
EVENTS = ["session_start", "user_prompt", "before_tool", "after_tool", "before_compact", "stop"]
DEFAULTS = {
    "model": None, "stream": False, "memory": True, "permission_mode": "ask", "output_format": "text",
    "max_turns": 50, "max_retries": 3, "retry_base_s": 0.5, "context_window": 128000,
    "compact_threshold": 0.8, "bash_timeout_s": 120, "hooks": {}, "add_dirs": [], "env": {},
}
KEYS = [*DEFAULTS, "permissions"]
LEVELS = ["user", "project", "local", "environment", "settings"]  # from low to high
STRING_KEYS = {"model", "permission_mode", "output_format"}


def _is_int(v):
    return isinstance(v, int) and not isinstance(v, bool)


def _is_number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool)


def _strings(v):
    return isinstance(v, list) and all(isinstance(s, str) for s in v)


def _env(v):
    return isinstance(v, dict) and all(
        isinstance(s, str) and "\0" not in s and k and "=" not in k and "\0" not in k for k, s in v.items())


CHECKS = {
    "model": lambda v: isinstance(v, str) and v != "",
    "stream": lambda v: isinstance(v, bool),
    "memory": lambda v: isinstance(v, bool),
    "permission_mode": lambda v: isinstance(v, str) and v in MODES,
    "output_format": lambda v: isinstance(v, str) and v in FORMATS,
    "max_turns": lambda v: _is_int(v) and v >= 1,
    "max_retries": lambda v: _is_int(v) and v >= 0,
    "retry_base_s": lambda v: _is_number(v) and 0 <= v < float("inf"),
    "context_window": lambda v: _is_int(v) and v >= 100,
    "compact_threshold": lambda v: _is_number(v) and 0 < v <= 1,
    "bash_timeout_s": lambda v: _is_int(v) and 1 <= v <= 600,
    "hooks": lambda v: isinstance(v, dict),
    "add_dirs": _strings,
    "env": _env,
}


@dataclass
class Level:
    name: str
    path: str
    values: dict = field(default_factory=dict)
    unknown: list = field(default_factory=list)


def check_hooks(hooks: dict):
    """Yields (fault, key): fault is true for a wrong value, false for an unknown key."""
    for event, entries in hooks.items():
        if event not in EVENTS:
            yield False, f"hooks.{event}"
            continue
        if not isinstance(entries, list) or not all(isinstance(h, dict) for h in entries):
            yield True, f"hooks.{event}"
            continue
        for hook in entries:
            command = hook.get("command")
            fine = (isinstance(command, str) and command.strip() and "\0" not in command
                    and isinstance(hook.get("match", ""), str))
            limit = hook.get("timeout_s", 10)
            if not fine or not _is_int(limit) or not 1 <= limit <= 600:
                yield True, f"hooks.{event}"
            for key in hook:
                if key not in ("match", "command", "timeout_s"):
                    yield False, f"hooks.{event}.{key}"


def faults_of(values: dict):
    """Yields (fault, key, text) for everything that is wrong or unknown in one file."""
    for key, value in values.items():
        if key == "permissions":
            if not isinstance(value, dict):
                yield True, "permissions", "wrong value"
                continue
            for name, rules in value.items():
                if name not in LISTS:
                    yield False, f"permissions.{name}", ""
                elif not _strings(rules):
                    yield True, f"permissions.{name}", "wrong value"
                else:
                    for rule in rules:
                        if parse_rule(rule) is None:
                            yield True, f"permissions.{name}", f'invalid rule "{rule}"'
        elif key not in CHECKS:
            yield False, key, ""
        elif not CHECKS[key](value):
            yield True, key, "wrong value"
        elif key == "hooks":
            for fault, name in check_hooks(value):
                yield fault, name, "wrong value"


def read_object(path: str, must_exist=False):
    """The JSON object of a file, None when it is missing; raises exit code 3."""
    try:
        with open(path, "rb") as f:
            data = f.read()
    except (FileNotFoundError, NotADirectoryError):
        if must_exist:
            raise HarnessError(3, f"settings file {path}: no such file") from None
        return None
    except OSError as e:
        raise HarnessError(3, f"settings file {path}: {e.strerror}") from None
    try:
        value = loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise HarnessError(3, f"settings file {path}: not UTF-8") from None
    except ValueError as e:
        line = getattr(e, "lineno", 1)
        raise HarnessError(3, f"settings file {path}: not valid JSON, line {line}: {e}") from None
    if not isinstance(value, dict):
        raise HarnessError(3, f"settings file {path}: not a JSON object")
    return value


def read_level(name: str, path: str, must_exist=False) -> Level:
    values = read_object(path, must_exist)
    level = Level(name, path, values or {})
    for fault, key, text in faults_of(level.values):
        if fault:
            raise HarnessError(3, f"settings file {path}: {key}: {text}")
        level.unknown.append(key)
    return level


def places(workspace: str, home: str) -> dict:
    return {"user": os.path.join(home, "settings.json"),
            "project": os.path.join(workspace, ".harness", "settings.json"),
            "local": os.path.join(workspace, ".harness", "settings.local.json")}


class Settings:
    """All levels of one start."""

    def __init__(self, workspace: str, home: str, extra: str = ""):
        self.levels = [read_level(name, path) for name, path in places(workspace, home).items()]
        model = os.environ.get("HARNESS_MODEL", "")
        self.levels.append(Level("environment", "", {"model": model} if model else {}))
        if extra:
            self.levels.append(read_level("settings", os.path.join(workspace, extra), True))

    def warn(self, console) -> None:
        for level in self.levels:
            for key in dict.fromkeys(level.unknown):
                console.warning_once(f"unknown key {key} in {level.path}")

    def get(self, key: str):
        """(value, source) of one key; joined where levels are joined."""
        if key.startswith("permissions."):
            name = key.partition(".")[2]
            return self._joined(lambda v: v.get("permissions", {}).get(name))
        if key == "add_dirs":
            return self._joined(lambda v: v.get("add_dirs"))
        if key == "env":
            value, source = {}, "default"
            for level in self.levels:
                if "env" in level.values:
                    value.update(level.values["env"])
                    source = level.name
            return value, source
        for level in reversed(self.levels):
            if key in level.values:
                return level.values[key], level.name
        return DEFAULTS[key], "default"

    def _joined(self, pick):
        out, source = [], "default"
        for level in self.by_source():
            items = pick(level.values)
            if items is not None:
                out += [i for i in items if i not in out]
        for level in self.levels:
            if pick(level.values) is not None:
                source = level.name
        return list(dict.fromkeys(out)), source

    def by_source(self):
        return [level for level in self.levels if level.name != "environment"]

    def value(self, key):
        return self.get(key)[0]

    def level_value(self, name: str, key: str):
        for level in self.levels:
            if level.name == name:
                return level.values.get(key)
        return None

    def rules(self, name: str) -> list[Rule]:
        out, seen = [], set()
        for level in self.by_source():
            for text in level.values.get("permissions", {}).get(name, []):
                if text not in seen:
                    seen.add(text)
                    out.append(parse_rule(text, level.name))
        return out


LISTED = sorted([*DEFAULTS, "permissions.allow", "permissions.ask", "permissions.deny"])



def settable(key: str) -> bool:
    if key in KEYS:
        return True
    head, _, tail = key.partition(".")
    return (head == "permissions" and tail in LISTS) or (head == "env" and tail != "")
