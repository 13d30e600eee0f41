"""Settings files: reading, checking, joining."""

import os

from .base import FORMATS, MODES, Console, HarnessError, home, js, parse_json
from .rules import Rule

EVENTS = ["session_start", "user_prompt", "before_tool", "after_tool", "before_compact", "stop"]
LISTS = ["allow", "ask", "deny"]


def _integer(low, high=None):
    return lambda v: type(v) is int and v >= low and (high is None or v <= high)


def _number(check):
    return lambda v: type(v) in (int, float) and check(v)


def _strings(v):
    return type(v) is list and all(type(x) is str for x in v)


def _env(v):
    return type(v) is dict and all(
        type(x) is str and k and "=" not in k and "\0" not in k and "\0" not in x for k, x in v.items())


# key -> (check, default)
KEYS = {
    "model": (lambda v: type(v) is str and v != "", None),
    "stream": (lambda v: type(v) is bool, False),
    "memory": (lambda v: type(v) is bool, True),
    "permission_mode": (lambda v: type(v) is str and v in MODES, "ask"),
    "output_format": (lambda v: type(v) is str and v in FORMATS, "text"),
    "permissions": (lambda v: type(v) is dict, {}),
    "max_turns": (_integer(1), 50),
    "max_retries": (_integer(0), 3),
    "retry_base_s": (_number(lambda v: v >= 0), 0.5),
    "context_window": (_integer(100), 128000),
    "compact_threshold": (_number(lambda v: 0 < v <= 1), 0.8),
    "bash_timeout_s": (_integer(1, 600), 120),
    "hooks": (lambda v: type(v) is dict, {}),
    "add_dirs": (_strings, []),
    "env": (_env, {}),
}
STRING_KEYS = {"model", "permission_mode", "output_format"}


def flat_keys():
    names = [k for k in KEYS if k != "permissions"] + ["permissions." + x for x in LISTS]
    return sorted(names)


def places(cwd):
    return {
        "user": os.path.join(home(), "settings.json"),
        "project": os.path.join(cwd, ".harness", "settings.json"),
        "local": os.path.join(cwd, ".harness", "settings.local.json"),
    }


def read_object(path):
    """The object in a settings file, None when it is missing; code 3 when it is broken."""
    try:
        with open(path, "rb") as handle:
            text = handle.read().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        raise HarnessError(3, f"{path}: not valid UTF-8") from None
    except OSError as error:
        raise HarnessError(3, f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        value = parse_json(text)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        if line is None:
            line = 1
        raise HarnessError(3, f"{path}: not valid JSON: line {line}: {getattr(error, 'msg', error)}") from None
    if type(value) is not dict:
        raise HarnessError(3, f"{path}: not a JSON object")
    return value


def check_hooks(value, path):
    """Yields warnings; raises for faults."""
    warnings = []
    for event, hooks in value.items():
        if event not in EVENTS:
            warnings.append(f"{path}: unknown key hooks.{event}")
            continue
        fault = HarnessError(3, f"{path}: invalid value of hooks.{event}: {js(hooks)}")
        if type(hooks) is not list:
            raise fault
        for hook in hooks:
            if type(hook) is not dict:
                raise fault
            command = hook.get("command")
            if type(command) is not str or not command.strip() or "\0" in command:
                raise fault
            if "match" in hook and type(hook["match"]) is not str:
                raise fault
            if "timeout_s" in hook and not _integer(1, 600)(hook["timeout_s"]):
                raise fault
            for key in hook:
                if key not in ("match", "command", "timeout_s"):
                    warning = f"{path}: unknown key hooks.{event}.{key}"
                    if warning not in warnings:
                        warnings.append(warning)
    return warnings


def check_value(key, value, path):
    """Raises code 3 for a wrong value of a known key; returns warnings."""
    if not KEYS[key][0](value):
        raise HarnessError(3, f"{path}: invalid value of {key}: {js(value)}")
    warnings = []
    if key == "permissions":
        for name, rules in value.items():
            if name not in LISTS:
                warnings.append(f"{path}: unknown key permissions.{name}")
                continue
            if not _strings(rules):
                raise HarnessError(3, f"{path}: invalid value of permissions.{name}: {js(rules)}")
            for rule in rules:
                try:
                    Rule(rule)
                except ValueError:
                    raise HarnessError(3, f"{path}: permissions.{name}: invalid rule: {rule}") from None
    elif key == "hooks":
        warnings += check_hooks(value, path)
    return warnings


def check_object(value, path):
    warnings = []
    for key, item in value.items():
        if key in KEYS:
            warnings += check_value(key, item, path)
        else:
            warnings.append(f"{path}: unknown key {key}")
    return warnings


class Settings:
    """All levels of settings of one workspace, without the flags."""

    def __init__(self, cwd, file=None):
        self.cwd = cwd
        self.levels = []  # (source, object), highest first
        where = places(cwd)
        order = [(source, where[source]) for source in ("user", "project", "local")]
        if file is not None:
            path = os.path.normpath(os.path.join(cwd, file))
            order.append(("settings", path))
        found, warnings = [], []
        for source, path in order:
            value = read_object(path)
            if value is None:
                if source == "settings":
                    raise HarnessError(3, f"{path}: no such settings file ({file})")
                value = {}
            warnings += check_object(value, path)
            found.append((source, value))
        for warning in warnings:
            Console.warn(warning)
        self.levels = list(reversed(found))

    def lookup(self, key):
        """(value, source) of the highest level that sets a key; lists and env are joined."""
        if key.startswith("permissions."):
            name = key.split(".", 1)[1]
            sets = [(s, v["permissions"][name]) for s, v in self.levels if name in v.get("permissions", {})]
            return self._join(sets)
        if key == "add_dirs":
            return self._join([(s, v[key]) for s, v in self.levels if key in v])
        if key == "env":
            sets = [(s, v[key]) for s, v in self.levels if key in v]
            joined = {}
            for _, value in reversed(sets):
                joined.update(value)
            return joined, sets[0][0] if sets else "default"
        for source, value in self.levels:
            if key == "model" and source != "settings" and os.environ.get("HARNESS_MODEL"):
                return os.environ["HARNESS_MODEL"], "environment"
            if key in value:
                return value[key], source
        if key == "model" and os.environ.get("HARNESS_MODEL"):
            return os.environ["HARNESS_MODEL"], "environment"
        return KEYS[key][1], "default"

    @staticmethod
    def _join(sets):
        joined = []
        for _, value in reversed(sets):
            joined += [x for x in dict.fromkeys(value) if x not in joined]
        return joined, sets[0][0] if sets else "default"

    def get(self, key):
        return self.lookup(key)[0]

    def file_model(self):
        """The model of the file of `--settings`."""
        for source, value in self.levels:
            if source == "settings":
                return value.get("model")
        return None

    def rules(self, name, more=()):
        """Rules of one list, in the order of `/permissions`; `more` are those of flags."""
        texts = {}
        for source in ("user", "project", "local", "settings"):
            for level, value in self.levels:
                if level == source:
                    for text in value.get("permissions", {}).get(name, []):
                        texts.setdefault(text, source)
        for text in more:
            texts.setdefault(text, "flag")
        return [Rule(text, source) for text, source in texts.items()]

    def directories(self):
        """Real paths of `add_dirs`; missing ones are warned of."""
        found = []
        for entry in self.get("add_dirs"):
            path = os.path.join(self.cwd, entry) if entry and "\0" not in entry else ""
            if path and os.path.isdir(path):
                found.append(os.path.realpath(path))
            else:
                Console.warn(f"add_dirs: no such directory: {entry}")
        return found
