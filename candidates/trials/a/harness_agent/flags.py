"""Reading the command line."""

import re
from dataclasses import dataclass, field

from .settings import FORMATS, MODES
from .util import HarnessError

ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
COMMANDS = ["sessions", "config", "memory", "tools", "agents", "skills", "commands", "permissions",
            "init", "doctor", "api", "version", "help"]


def _mode(v):
    return v in MODES


def _digits(v):
    return re.fullmatch(r"[0-9]+", v) is not None and len(v) < 4000 and int(v) >= 1


def _seconds(v):
    return re.fullmatch(r"[0-9]+(\.[0-9]+)?", v) is not None and 0 < float(v) < 1e12


def _id(v):
    return ID.match(v) is not None


# name -> (kind, check, what the value must be); kind: switch, value or list
FLAGS = {
    "print": ("value", None, ""), "output-format": ("value", lambda v: v in FORMATS, ", ".join(FORMATS)),
    "cwd": ("value", None, ""), "settings": ("value", None, ""), "model": ("value", None, ""),
    "stream": ("switch", None, ""), "max-turns": ("value", _digits, "an integer from 1"),
    "timeout-s": ("value", _seconds, "a number above 0"),
    "permission-mode": ("value", _mode, ", ".join(MODES)),
    "allow": ("list", None, ""), "deny": ("list", None, ""), "agent": ("value", None, ""),
    "add-dir": ("list", None, ""), "continue": ("switch", None, ""), "resume": ("value", _id, "a session id"),
    "fork": ("switch", None, ""), "session-id": ("value", _id, "a session id"), "no-save": ("switch", None, ""),
    "system-prompt": ("value", None, ""), "append-system-prompt": ("value", None, ""),
    "no-memory": ("switch", None, ""), "no-conventions": ("switch", None, ""),
    "quiet": ("switch", None, ""), "verbose": ("switch", None, ""),
    "help": ("switch", None, ""), "version": ("switch", None, ""),
    "json": ("switch", None, ""), "user": ("switch", None, ""), "project": ("switch", None, ""),
    "local": ("switch", None, ""),
}
SHORT = {"-p": "print", "-c": "continue", "-r": "resume", "-q": "quiet", "-v": "verbose", "-h": "help"}
ONLY_COMMANDS = {"json", "user", "project", "local"}
COMMON = {"cwd", "settings", "quiet", "verbose", "help", "version"}
JUDGING = {"permission-mode", "allow", "deny", "agent", "add-dir"}
API_FLAGS = {"cwd", "settings", "model", "permission-mode", "allow", "deny", "agent", "add-dir", "max-turns",
             "stream", "system-prompt", "append-system-prompt", "no-save", "no-memory", "no-conventions",
             "quiet", "verbose", "help", "version"}


@dataclass
class Line:
    flags: dict = field(default_factory=dict)
    words: list = field(default_factory=list)


def check_value(name: str, value: str) -> None:
    _, check, form = FLAGS[name]
    if check and not check(value):
        raise HarnessError(2, f'--{name}: invalid value "{value}"; it must be {form}'
                           if "," not in form else f'--{name}: invalid value "{value}"; known: {form}')


def parse(argv: list[str]) -> Line:
    """Flags and words; raises exit code 2. `--help` and `--version` win over all but an unknown flag."""
    line, faults, plain = Line(), [], False
    i = 0
    while i < len(argv):
        arg = argv[i]
        i += 1
        if plain or not arg.startswith("-") or arg == "-":
            line.words.append(arg)
            continue
        if arg == "--":
            plain = True
            continue
        typed, equals, value = arg.partition("=")
        name = typed[2:] if typed.startswith("--") else SHORT.get(typed, "")
        if name not in FLAGS or (equals and not typed.startswith("--")):
            raise HarnessError(2, f"unknown flag: {typed}")
        kind = FLAGS[name][0]
        if kind == "switch":
            if equals:
                faults.append(f"--{name}: takes no value")
            line.flags[name] = True
            continue
        if not equals:
            if i >= len(argv) or (argv[i].startswith("-") and len(argv[i]) > 1):
                faults.append(f"--{name}: missing value")
                continue
            value = argv[i]
            i += 1
        if not value and name != "print":
            faults.append(f"--{name}: missing value")
            continue
        try:
            check_value(name, value)
        except HarnessError as e:
            faults.append(e.message)
            continue
        if kind == "list":
            line.flags.setdefault(name, []).append(value)
        else:
            line.flags[name] = value
    if "help" in line.flags or "version" in line.flags:
        return line
    if faults:
        raise HarnessError(2, faults[0])
    return line


def conflicts(flags: dict) -> None:
    def both(a, b):
        if flags.get(a) and flags.get(b):
            raise HarnessError(2, f"--{a} and --{b} cannot be combined")

    both("continue", "resume")
    if not flags.get("fork"):
        both("session-id", "continue")
        both("session-id", "resume")
    both("quiet", "verbose")
    if flags.get("fork") and not (flags.get("continue") or flags.get("resume")):
        raise HarnessError(2, "--fork needs --continue or --resume")
    for name in ("output-format", "timeout-s"):
        if name in flags and "print" not in flags:
            raise HarnessError(2, f"--{name} needs --print")
