"""The command line: which flags there are, what they take, and which of them exclude each other."""

import re

from .errors import UsageError

NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Flag:
    """One flag; `metavar` is empty for a switch."""

    def __init__(self, name, help, metavar="", check=None, short="", repeats=False):
        self.name = name
        self.help = help
        self.metavar = metavar
        self.check = check
        self.short = short
        self.repeats = repeats


def _turns(text):
    return int(text) if re.fullmatch("[0-9]+", text) and int(text) > 0 else None


def _seconds(text):
    return text if NUMBER.fullmatch(text) and float(text) > 0 else None


def _id(text):
    return text if SESSION_ID.fullmatch(text) else None


def _mode(text):
    from .permissions import MODES

    return _one_of(text, MODES)


def _format(text):
    from .settings import FORMATS

    return _one_of(text, FORMATS)


def _one_of(text, words):
    if text not in words:
        raise ValueError("; it is one of " + ", ".join(words))
    return text


def _rule(text):
    from .permissions import Rule
    from .tools import NAMES

    try:
        Rule(text, "flag", NAMES)
    except ValueError as error:
        raise ValueError(f": {error}") from None
    return text


RUN_FLAGS = [
    Flag("print", "run one prompt without asking anybody; `-` reads it from standard input", "PROMPT", short="p"),
    Flag("output-format", "text, json or stream-json (with --print)", "FORMAT", _format),
    Flag("model", "name of the model", "NAME"),
    Flag("permission-mode", "ask, accept-edits, plan, auto or dont-ask", "MODE", _mode),
    Flag("allow", "add an allow rule (repeatable)", "RULE", _rule, repeats=True),
    Flag("deny", "add a deny rule (repeatable)", "RULE", _rule, repeats=True),
    Flag("agent", "role of the run (default build)", "NAME"),
    Flag("cwd", "workspace (default: the current directory)", "DIR"),
    Flag("add-dir", "further root for the file tools (repeatable)", "DIR", repeats=True),
    Flag("continue", "go on with the newest session of the workspace", short="c"),
    Flag("resume", "go on with the session ID", "ID", _id, short="r"),
    Flag("fork", "go on in a copy (with --continue or --resume)"),
    Flag("session-id", "id of the new session", "ID", _id),
    Flag("no-save", "do not store the conversation"),
    Flag("max-turns", "most rounds of one turn (default 50)", "N", _turns),
    Flag("timeout-s", "longest time of the run in seconds (with --print)", "N", _seconds),
    Flag("stream", "ask the model for streamed replies"),
    Flag("system-prompt", "replace the built-in text of the system message", "TEXT"),
    Flag("append-system-prompt", "add to the end of the system message", "TEXT"),
    Flag("settings", "one more settings file", "FILE"),
    Flag("no-memory", "leave memory out"),
    Flag("no-conventions", "leave convention files out"),
    Flag("quiet", "only errors on standard error", short="q"),
    Flag("verbose", "also say what requests and tool calls are made", short="v"),
    Flag("version", "print the version and end"),
    Flag("help", "print help and end", short="h"),
]
COMMAND_FLAGS = [
    Flag("json", "one JSON value as output"),
    Flag("user", "the file of the user"),
    Flag("project", "the file of the project"),
    Flag("local", "the local file"),
]
FLAGS = {flag.name: flag for flag in RUN_FLAGS + COMMAND_FLAGS}
SHORT = {flag.short: flag.name for flag in RUN_FLAGS if flag.short}


class CommandLine:
    """What was typed: arguments that are no flags, flag values, and mistakes in the order of their weight."""

    def __init__(self, argv):
        self.arguments = []
        self.values = {}
        self._typed = []  # pairs of name and flag as typed
        self._mistakes = []
        self._read(list(argv))

    def check(self):
        """Raise the mistake that counts; `--help` and `--version` lift all but unknown flags."""
        known = RUN_FLAGS + COMMAND_FLAGS if self.arguments else RUN_FLAGS
        for name, typed in self._typed:
            if name not in {flag.name for flag in known}:
                raise UsageError(f"unknown flag: {typed}")
        if self._mistakes and not ("help" in self.values or "version" in self.values):
            raise UsageError(self._mistakes[0])

    def _read(self, argv):
        while argv:
            argument = argv.pop(0)
            if argument == "--":
                self.arguments += argv
                return
            if not argument.startswith("-") or argument == "-":
                self.arguments.append(argument)
                continue
            typed, equals, value = argument.partition("=")
            if typed.startswith("--"):
                name = typed[2:]
            else:
                name = SHORT.get(typed[1:], "") if not equals else ""
            self._typed.append((name, typed))
            if name not in FLAGS:
                continue
            if not FLAGS[name].metavar:
                self._switch(name, equals)
            elif equals:
                self._value(name, value)
            elif argv and (not argv[0].startswith("-") or argv[0] == "-"):
                self._value(name, argv.pop(0))
            else:
                self._mistakes.append(f"--{name}: missing value")

    def _switch(self, name, equals):
        if equals:
            self._mistakes.append(f"--{name} takes no value")
        else:
            self.values[name] = True

    def _value(self, name, text):
        flag = FLAGS[name]
        if not text and name != "print":
            self._mistakes.append(f"--{name}: missing value")
            return
        value, hint = text, ""
        if flag.check:
            try:
                value = flag.check(text)
            except ValueError as error:
                value, hint = None, str(error)
            if value is None:
                self._mistakes.append(f'--{name}: invalid value "{text}"{hint}')
                return
        if flag.repeats:
            self.values.setdefault(name, []).append(value)
        else:
            self.values[name] = value


def check_conflicts(values):
    """Refuse flags of a run that contradict each other or lack what they need."""
    if "continue" in values and "resume" in values:
        raise UsageError("--continue and --resume exclude each other")
    for name in ("continue", "resume"):
        if "session-id" in values and name in values and "fork" not in values:
            raise UsageError(f"--session-id and --{name} exclude each other without --fork")
    if "quiet" in values and "verbose" in values:
        raise UsageError("--quiet and --verbose exclude each other")
    if "fork" in values and not ("continue" in values or "resume" in values):
        raise UsageError("--fork needs --continue or --resume")
    for name in ("output-format", "timeout-s"):
        if name in values and "print" not in values:
            raise UsageError(f"--{name} needs --print")
