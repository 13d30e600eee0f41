"""Settings: three files, one more by flag, the environment, and the defaults below them."""

import json
import os

from .errors import SettingsError
from .permissions import LISTS, MODES, Rule
from .texts import as_json, from_json
from .tools import NAMES as TOOL_NAMES

FORMATS = ("text", "json", "stream-json")
JOINED_LISTS = ("add_dirs",)

DEFAULTS = {
    "model": "",
    "stream": False,
    "memory": True,
    "permission_mode": "ask",
    "output_format": "text",
    "max_turns": 50,
    "max_retries": 3,
    "retry_base_s": 0.5,
    "context_window": 128000,
    "compact_threshold": 0.8,
    "bash_timeout_s": 120,
    "permissions": {"deny": [], "ask": [], "allow": []},
    "hooks": {},
    "add_dirs": [],
    "env": {},
}


def home_directory() -> str:
    """The state directory."""
    home = os.environ.get("HARNESS_HOME") or os.path.join(os.environ.get("HOME") or "/", ".harness")
    return os.path.abspath(home)


def places(workspace: str) -> dict:
    """The settings files by level, lowest first."""
    return {
        "user": os.path.join(home_directory(), "settings.json"),
        "project": os.path.join(workspace, ".harness", "settings.json"),
        "local": os.path.join(workspace, ".harness", "settings.local.json"),
    }


class Settings:
    """The values in effect, and for each where it comes from."""

    def __init__(self):
        self.values = {key: value for key, value in DEFAULTS.items()}
        self.sources = {}
        self.rules = {kind: [] for kind in LISTS}
        self.warnings = []

    def __getitem__(self, key):
        return self.values[key]

    @classmethod
    def load(cls, workspace: str, extra_file: str = "") -> "Settings":
        """Read all levels but the flags; raise SettingsError for what cannot be used."""
        settings = cls()
        for level, path in places(workspace).items():
            settings.add_file(level, path, must_exist=False)
        if os.environ.get("HARNESS_MODEL"):
            settings.set("model", os.environ["HARNESS_MODEL"], "environment")
        if extra_file:
            settings.add_file("settings", os.path.join(workspace, extra_file), must_exist=True)
        return settings

    def set(self, key, value, source):
        """Let a value of a higher level take effect; lists and `env` are joined."""
        if key == "permissions":
            for kind, rules in value.items():
                self.sources[f"permissions.{kind}"] = source
                for rule in rules:
                    self.add_rule(kind, rule, source)
        elif key in JOINED_LISTS:
            self.values[key] = list(dict.fromkeys(self.values[key] + value))
        elif key == "env":
            self.values[key] = {**self.values[key], **value}
        else:
            self.values[key] = value
        self.sources[key] = source

    def add_rule(self, kind, text, source):
        """Add a rule; raise ValueError when it is not valid. A rule that is there already counts once."""
        rule = Rule(text, source, TOOL_NAMES)
        if all(other.text != text for other in self.rules[kind]):
            self.rules[kind].append(rule)

    def add_file(self, level, path, must_exist):
        """Let the values of one file take effect; raise SettingsError when it cannot be used."""
        content, warnings = read_file(path, must_exist)
        self.warnings += warnings
        for key, value in content.items():
            try:
                self.set(key, value, level)
            except ValueError as error:
                raise SettingsError(f"{path}: {error}") from None


def read_file(path: str, must_exist=False):
    """Return the checked content of one settings file and the warnings about it."""
    return _checked(path, read_object(path, must_exist))


def read_object(path: str, must_exist=False) -> dict:
    """The JSON object in a file, empty for a missing file; raise SettingsError for anything else."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        if must_exist:
            raise SettingsError(f"{path}: no such file") from None
        return {}
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    try:
        content = from_json(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: not valid UTF-8") from None
    except json.JSONDecodeError as error:
        raise SettingsError(f"{path}: not valid JSON, line {fault_line(error)}: {error.msg}") from None
    except ValueError as error:
        raise SettingsError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(content, dict):
        raise SettingsError(f"{path}: not a JSON object")
    return content


def fault_line(error: json.JSONDecodeError) -> int:
    """The line of a mistake; a comma too many is reported at the bracket after it by every Python."""
    if "trailing comma" in error.msg:
        rest = error.doc[error.pos + 1 :]
        return error.lineno + rest[: len(rest) - len(rest.lstrip())].count("\n")
    return error.lineno


def _checked(path, content):
    known, warnings = {}, []
    for key, value in content.items():
        if key not in DEFAULTS:
            warnings.append(f"{path}: unknown key {key}")
            continue
        try:
            known[key] = check_value(key, value)
        except ValueError as error:
            raise SettingsError(f"{path}: {error}") from None
        if key == "hooks":
            from .hooks import unknown_keys

            warnings += [f"{path}: unknown key {name}" for name in unknown_keys(value)]
        if key == "permissions":
            for inner in list(known[key]):
                if inner not in LISTS:
                    warnings.append(f"{path}: unknown key permissions.{inner}")
                    del known[key][inner]
    return known, warnings


def check_value(key: str, value):
    """Return the value of a key in its proper type; raise ValueError that names the key."""
    if key in ("stream", "memory"):
        return _require(key, value, isinstance(value, bool), "a boolean")
    if key == "model":
        return _require(key, value, isinstance(value, str) and bool(value), "a non-empty string")
    if key == "permission_mode":
        return _require(key, value, isinstance(value, str) and value in MODES, "one of " + ", ".join(MODES))
    if key == "output_format":
        return _require(key, value, isinstance(value, str) and value in FORMATS, "one of " + ", ".join(FORMATS))
    if key in ("max_turns", "max_retries", "context_window", "bash_timeout_s"):
        return _integer(key, value)
    if key in ("retry_base_s", "compact_threshold"):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        fits = number and (value >= 0 if key == "retry_base_s" else 0 < value <= 1)
        return _require(key, value, fits, "a number from 0" if key == "retry_base_s" else "a number above 0 up to 1")
    if key == "permissions":
        _require(key, value, isinstance(value, dict), "an object")
        for kind in LISTS:
            if kind in value:
                _require(f"permissions.{kind}", value[kind], _is_strings(value[kind]), "a list of strings")
        return dict(value)
    if key == "add_dirs":
        return _require(key, value, _is_strings(value), "a list of strings")
    if key == "env":
        fits = isinstance(value, dict) and _is_strings(list(value.values()))
        fits = fits and all(name and "=" not in name for name in value) and "\0" not in "".join([*value, *value.values()])
        return _require(key, value, fits, "an object of strings whose names can be variables")
    from .hooks import check_hooks

    return check_hooks(value)


def _integer(key, value):
    lowest, highest = {"max_retries": (0, None), "context_window": (100, None), "bash_timeout_s": (1, 600)}.get(key, (1, None))
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    fits = is_integer and value >= lowest and (highest is None or value <= highest)
    wanted = f"an integer from {lowest}" + (f" to {highest}" if highest else "")
    return _require(key, value, fits, wanted)


def _is_strings(value) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _require(key, value, fits, wanted):
    if not fits:
        raise ValueError(f"{key} must be {wanted}, not {as_json(value)}")
    return value
