"""What a run works with: flags, environment and settings put together."""

import os

from .flags import FLAGS, check_value
from .library import Library
from .rules import Rule, parse_rule
from .settings import Settings
from .util import HarnessError


def home_dir() -> str:
    value = os.environ.get("HARNESS_HOME", "")
    if not value:
        value = os.path.join(os.environ.get("HOME") or os.path.expanduser("~"), ".harness")
    return os.path.abspath(value)


def workspace_of(cwd: str) -> str:
    path = os.path.realpath(cwd or ".")
    if not os.path.isdir(path):
        raise HarnessError(2, f"--cwd: not a directory: {cwd}")
    return path


def normal_flags(flags: dict) -> dict:
    """Flag names with dashes; values checked like those of the command line."""
    out = {}
    for name, value in flags.items():
        name = name.lstrip("-").replace("_", "-")
        if value is None or value is False:
            continue
        if name not in FLAGS:
            raise HarnessError(2, f"unknown flag: --{name}")
        kind = FLAGS[name][0]
        if kind == "list":
            value = [value] if isinstance(value, str) else list(value)
        elif kind == "value":
            value = str(value)
            if name != "print":
                check_value(name, value)
        else:
            value = True
        out[name] = value
    return out


def checked_dirs(dirs, workspace, name="--add-dir") -> list[str]:
    out = []
    for given in dirs:
        path = os.path.realpath(os.path.join(workspace, given))
        if not os.path.isdir(path):
            raise HarnessError(2, f"{name}: not a directory: {given}")
        out.append(path)
    return out


class Config:
    """One start: the command line is checked first, then the settings are read."""

    def __init__(self, flags: dict, cwd: str, console, home: str = ""):
        self.flags = flags
        self.console = console
        self.home = home or home_dir()
        self.workspace = workspace_of(cwd or flags.get("cwd", ""))
        self.flag_rules = {name: [] for name in ("deny", "allow")}
        for name in ("allow", "deny"):
            for text in flags.get(name, []):
                rule = parse_rule(text, "flag")
                if rule is None:
                    raise HarnessError(2, f'--{name}: invalid rule "{text}"')
                self.flag_rules[name].append(rule)
        self.library = Library(self.workspace, self.home, console)
        self.role_name = flags.get("agent", "build")
        self.role()
        self.flag_dirs = checked_dirs(flags.get("add-dir", []), self.workspace)
        self.settings = None

    def load_settings(self):
        self.settings = Settings(self.workspace, self.home, self.flags.get("settings", ""))
        self.settings.warn(self.console)
        self.added = []
        for given in self.settings.value("add_dirs"):
            path = os.path.realpath(os.path.join(self.workspace, given))
            if os.path.isdir(path):
                self.added.append(path)
            else:
                self.console.warning_once(f"add_dirs: not a directory: {given}")
        self.added += self.flag_dirs
        return self

    def role(self):
        roles = self.library.roles()
        if self.role_name not in roles:
            raise HarnessError(2, f'--agent: unknown role "{self.role_name}"; known roles: {", ".join(roles)}')
        return roles[self.role_name]

    def value(self, key: str):
        return self.settings.value(key)

    @property
    def mode(self) -> str:
        return self.flags.get("permission-mode") or self.value("permission_mode")

    @property
    def memory(self) -> bool:
        return not self.flags.get("no-memory") and self.value("memory")

    @property
    def stream(self) -> bool:
        return bool(self.flags.get("stream")) or self.value("stream")

    @property
    def max_turns(self) -> int:
        return int(self.flags["max-turns"]) if "max-turns" in self.flags else self.value("max_turns")

    @property
    def saving(self) -> bool:
        return not self.flags.get("no-save")

    def rules(self, name: str) -> list[Rule]:
        out = self.settings.rules(name)
        texts = {r.text for r in out}
        for rule in self.flag_rules.get(name, []):
            if rule.text not in texts:
                texts.add(rule.text)
                out.append(rule)
        return out

    def model(self, typed, stored, role_model: str):
        """The name of the model, or None."""
        settings = self.settings
        return (typed or self.flags.get("model") or stored or role_model
                or settings.level_value("settings", "model") or settings.level_value("environment", "model")
                or settings.level_value("local", "model") or settings.level_value("project", "model")
                or settings.level_value("user", "model"))
