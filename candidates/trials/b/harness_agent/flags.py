"""Reading the command line."""

import os
import re

from .base import FORMATS, MODES, HarnessError, home
from .content import roles
from .rules import Rule
from .session import ID

SHORT = {"-p": "print", "-c": "continue", "-r": "resume", "-q": "quiet", "-v": "verbose", "-h": "help"}
SWITCHES = {"continue", "fork", "no-save", "no-memory", "no-conventions", "quiet", "verbose", "help", "version",
            "stream", "json", "user", "project", "local"}
VALUES = {"print", "output-format", "model", "max-turns", "timeout-s", "permission-mode", "allow", "deny", "agent",
          "cwd", "add-dir", "resume", "session-id", "system-prompt", "append-system-prompt", "settings"}
REPEATED = {"allow", "deny", "add-dir"}
COMMAND_ONLY = {"json", "user", "project", "local"}
NAMES = ["sessions", "config", "memory", "tools", "agents", "skills", "commands", "permissions", "init", "doctor",
         "api", "version", "help"]
COMMON = {"cwd", "settings", "quiet", "verbose", "help", "version"}
JUDGING = {"permission-mode", "allow", "deny", "agent", "add-dir"}

# command and part -> flags of its own
TAKES = {
    "sessions list": {"json"}, "sessions show": {"json"}, "sessions export": set(), "sessions delete": set(),
    "config list": {"json"}, "config get": set(), "config set": {"user", "project", "local"}, "config path": set(),
    "memory show": {"json", "user", "project"}, "memory add": {"user", "project"},
    "memory clear": {"user", "project"},
    "tools": {"json", "no-memory"} | JUDGING, "agents": {"json"}, "skills": {"json"}, "commands": {"json"},
    "permissions check": {"json"} | JUDGING, "init": set(), "doctor": {"json"}, "version": set(), "help": set(),
    "api": {"model", "permission-mode", "allow", "deny", "agent", "add-dir", "max-turns", "stream", "system-prompt",
            "append-system-prompt", "no-save", "no-memory", "no-conventions"},
}


class Line:
    """A command line that was read: its flags, and what is no flag."""

    def __init__(self):
        self.flags = {}
        self.words = []
        self.mistakes = []  # HarnessError, in the order typed


def _value(name, text):
    """The value as it is used; ValueError when it has not the form."""
    if name == "max-turns":
        if not re.fullmatch(r"[0-9]+", text) or len(text) > 18 or int(text) < 1:
            raise ValueError
        return int(text)
    if name == "timeout-s":
        if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) or float(text) <= 0:
            raise ValueError
        return text
    if name in ("resume", "session-id") and not ID.fullmatch(text):
        raise ValueError
    if name == "permission-mode" and text not in MODES:
        raise ValueError(": one of " + ", ".join(MODES))
    if name == "output-format" and text not in FORMATS:
        raise ValueError(": one of " + ", ".join(FORMATS))
    if name in ("allow", "deny"):
        try:
            Rule(text)
        except ValueError:
            raise ValueError(": not a rule") from None
    return text


def read(argv):
    """Collects flags and words; unknown flags are raised at once."""
    line = Line()
    unknown = []
    i = 0
    while i < len(argv):
        arg = argv[i]
        i += 1
        if arg == "--":
            line.words += argv[i:]
            break
        if not arg.startswith("-"):
            line.words.append(arg)
            continue
        head, equals, value = arg.partition("=")
        if arg.startswith("--"):
            name = head[2:]
        else:
            name = SHORT.get(head, "") if not equals else ""
        if name not in SWITCHES and name not in VALUES:
            unknown.append(head)
            continue
        if name in SWITCHES:
            if equals:
                line.mistakes.append(HarnessError(2, f'--{name}: takes no value: "{value}"'))
            line.flags[name] = True
            continue
        if not equals:
            if i >= len(argv) or (argv[i].startswith("-") and len(argv[i]) > 1):
                line.mistakes.append(HarnessError(2, f"--{name}: missing value"))
                continue
            value = argv[i]
            i += 1
        if value == "" and name != "print":
            line.mistakes.append(HarnessError(2, f"--{name}: missing value"))
            continue
        if name in ("print", "system-prompt", "append-system-prompt", "model"):
            value = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        try:
            if "\0" in value:
                raise ValueError
            value = _value(name, value)
        except ValueError as error:
            line.mistakes.append(HarnessError(2, f'--{name}: invalid value "{value}"{error}'))
            continue
        if name in REPEATED:
            line.flags.setdefault(name, []).append(value)
        else:
            line.flags[name] = value
    words = [w for w in line.words]
    if not unknown and not words:
        bad = [f for f in line.flags if f in COMMAND_ONLY]
        unknown += ["--" + f for f in bad]
    if unknown:
        raise HarnessError(2, f"unknown flag: {unknown[0]}")
    return line


def conflicts(flags):
    """The pairs that contradict each other."""
    def both(a, b):
        return HarnessError(2, f"--{a} cannot be combined with --{b}")

    def needs(a, b):
        return HarnessError(2, f"--{a} needs {b}")

    if "continue" in flags and "resume" in flags:
        raise both("continue", "resume")
    if "session-id" in flags and "fork" not in flags:
        for other in ("continue", "resume"):
            if other in flags:
                raise both("session-id", other)
    if "quiet" in flags and "verbose" in flags:
        raise both("quiet", "verbose")
    if "fork" in flags and "continue" not in flags and "resume" not in flags:
        raise needs("fork", "--continue or --resume")
    for name in ("output-format", "timeout-s"):
        if name in flags and "print" not in flags:
            raise needs(name, "--print")


def workspace(flags):
    name = flags.get("cwd", ".")
    try:
        if not os.path.isdir(name):
            raise HarnessError(2, f"--cwd: not a directory: {name}")
        return os.path.realpath(name)
    except OSError as error:
        raise HarnessError(2, f"--cwd: {name}: {error.strerror}") from None


def check_places(flags, cwd):
    """Directories and role that the command line names."""
    for name in flags.get("add-dir", []):
        if not os.path.isdir(os.path.join(cwd, name)):
            raise HarnessError(2, f"--add-dir: not a directory: {name}")
    if "agent" in flags:
        known = roles(cwd)
        if flags["agent"] not in known:
            raise HarnessError(2, f"--agent: unknown role {flags['agent']}; known roles: " + ", ".join(known))


__all__ = ["read", "conflicts", "workspace", "check_places", "home"]
