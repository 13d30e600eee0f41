"""The commands of the command line; none of them needs a model."""

import os
import re

from . import arguments, listings, memory, store
from .config import Config, home_dir, workspace_of
from .core import Core
from .flags import API_FLAGS, COMMANDS, COMMON, FLAGS, ID, JUDGING
from .insession import BUILTIN
from .permissions import Judge
from .rules import FILE_TOOLS, TOOL_NAMES
from .settings import CHECKS, LISTED, LISTS, STRING_KEYS, Settings, check_hooks, faults_of, places, read_level, \
    read_object, settable
from .store import Session
from .util import HarnessError, dumps, loads, reason_of, replace_file

VERSION = "0.1.0"

# name -> (parts with their arguments, further flags, description)
HELP = {
    "sessions": (["list", "show ID", "delete ID", "export ID"], ["json"], "Look at stored sessions."),
    "config": (["list", "get KEY", "set KEY VALUE", "path"], ["json", "user", "project", "local"],
               "Show or change settings."),
    "memory": (["show", "add TEXT", "clear"], ["json", "user", "project"], "Show or change the memory files."),
    "tools": ([""], ["json", *sorted(JUDGING), "no-memory"], "List the tools that a run would offer."),
    "agents": ([""], ["json"], "List the roles."),
    "skills": ([""], ["json"], "List the skills."),
    "commands": ([""], ["json"], "List the in-session commands."),
    "permissions": (["check TOOL [ARG]"], ["json", *sorted(JUDGING)], "Tell how a call would be judged."),
    "init": ([""], [], "Make the usual files of a workspace."),
    "doctor": ([""], ["json"], "Check what a run needs."),
    "api": ([""], sorted(API_FLAGS - COMMON), "Answer JSON requests, one a line."),
    "version": ([""], [], "Print the version."),
    "help": (["[COMMAND]"], [], "Print help."),
}

# the flags of each part beyond the common ones
PART_FLAGS = {
    ("sessions", "list"): {"json"}, ("sessions", "show"): {"json"}, ("config", "list"): {"json"},
    ("config", "set"): {"user", "project", "local"}, ("memory", "show"): {"json", "user", "project"},
    ("memory", "add"): {"user", "project"}, ("memory", "clear"): {"user", "project"},
    ("tools", ""): {"json", "no-memory"} | JUDGING, ("agents", ""): {"json"}, ("skills", ""): {"json"},
    ("commands", ""): {"json"}, ("permissions", "check"): {"json"} | JUDGING, ("doctor", ""): {"json"},
}
# part -> (least, most) arguments
COUNTS = {("sessions", "list"): (0, 0), ("sessions", "show"): (1, 1), ("sessions", "delete"): (1, 1),
          ("sessions", "export"): (1, 1), ("config", "list"): (0, 0), ("config", "get"): (1, 1),
          ("config", "set"): (2, 2), ("config", "path"): (0, 0), ("memory", "show"): (0, 0),
          ("memory", "add"): (1, 1), ("memory", "clear"): (0, 0), ("permissions", "check"): (1, 2)}


def overview() -> str:
    lines = ["usage: harness [FLAGS]                interactive session",
             "       harness -p PROMPT [FLAGS]      one headless run",
             "       harness COMMAND [FLAGS]", "", "commands:"]
    lines += [f"  {n:<12} {HELP[n][2]}" for n in COMMANDS]
    lines += ["", "flags:"]
    short = {"print": "-p", "continue": "-c", "resume": "-r", "quiet": "-q", "verbose": "-v", "help": "-h"}
    for name, (kind, _, _) in FLAGS.items():
        if name not in ("json", "user", "project", "local"):
            lines.append(f"  {short.get(name, '  ')} --{name}" + ("" if kind == "switch" else " VALUE"))
    return "\n".join(lines)


def topic(name: str) -> str:
    parts, flags, about = HELP[name]
    lines = [f"usage: harness {name}" + (f" {parts[0]}" if len(parts) == 1 and parts[0] else
                                         " PART" if len(parts) > 1 else ""), "", about]
    if len(parts) > 1:
        lines += ["", "parts:"] + [f"  {p}" for p in parts]
    lines += ["", "flags:"] + [f"  --{f}" for f in [*flags, "cwd", "settings", "quiet", "verbose", "help"]]
    return "\n".join(lines)


def unknown_command(name: str) -> HarnessError:
    return HarnessError(2, f"unknown command: {name}" + listings.did_you_mean(name, COMMANDS))


def run(words: list[str], flags: dict, console) -> tuple[int, str]:
    """(exit code, output) of a command; raises HarnessError."""
    name = words[0]
    if name not in COMMANDS:
        raise unknown_command(name)
    usage = f"usage: harness {name}"
    part, rest = "", words[1:]
    has_parts = any(key[0] == name for key in COUNTS)
    if has_parts:
        if not rest:
            raise HarnessError(2, f"{name}: a part is missing", usage)
        part, rest = rest[0], rest[1:]
        if (name, part) not in COUNTS:
            raise HarnessError(2, f'{name}: unknown part "{part}"', usage)
    allowed = COMMON | (API_FLAGS if name == "api" else PART_FLAGS.get((name, part), set()))
    for flag in flags:
        if flag not in allowed or (name == "api" and flag not in API_FLAGS):
            raise HarnessError(2, f"--{flag} is not for {name}{' ' + part if part else ''}")
    least, most = (0, 1) if name == "help" else COUNTS.get((name, part), (0, 0))
    if len(rest) > most:
        raise HarnessError(2, f'{name}: surplus argument "{rest[most]}"', usage)
    if len(rest) < least:
        raise HarnessError(2, f"{name} {part}: an argument is missing".replace("  ", " "), usage)
    for word in rest:
        if word == "" and (name, part) != ("memory", "add"):
            raise HarnessError(2, f'{name}: empty argument ""' + (": invalid value" if part == "set" else ""), usage)
    if flags.get("user") and flags.get("project"):
        raise HarnessError(2, "--user and --project cannot be combined")
    command = Command(flags, console)
    return getattr(command, f"{name}_{part}".rstrip("_"))(*rest)


class Command:
    def __init__(self, flags: dict, console):
        self.flags = flags
        self.console = console
        self.home = home_dir()
        self.json = bool(flags.get("json"))

    @property
    def workspace(self) -> str:
        return workspace_of(self.flags.get("cwd", ""))

    @property
    def roots(self) -> list[str]:
        try:
            return [self.workspace, *self._config().added]
        except HarnessError:
            return [self.workspace]

    def _config(self) -> Config:
        return Config(self.flags, "", self.console).load_settings()

    def _settings(self) -> Settings:
        settings = Settings(self.workspace, self.home, self.flags.get("settings", ""))
        settings.warn(self.console)
        return settings

    def help(self, name=""):
        if not name:
            return 0, overview()
        if name not in COMMANDS:
            raise unknown_command(name)
        return 0, topic(name)

    def version(self):
        return 0, f"harness {VERSION}"

    # Sessions

    def sessions_list(self):
        if self.json:
            return 0, dumps([listings.session_object(s) for s in store.stored(self.home, self.workspace)])
        return 0, listings.sessions(self.home, self.workspace)

    def _session(self, id: str) -> Session:
        self._check_id(id)
        session = store.load(self.home, id)
        if session is None:
            raise HarnessError(6, f"session not found: {id}")
        for text in session.warnings:
            self.console.warning(text)
        session.missing_results()
        return session

    @staticmethod
    def _check_id(id):
        if not ID.match(id):
            raise HarnessError(2, f'invalid value "{id}" for a session id')

    def sessions_show(self, id):
        session = self._session(id)
        facts = listings.session_object(session)
        if self.json:
            return 0, dumps({**facts, "messages": [m.wire() for m in session.messages], "todos": session.todos})
        keys = ("id", "title", "cwd", "created", "updated", "parent", "messages")
        return 0, "\n".join(f"{k}: {'' if facts[k] is None else facts[k]}" for k in keys)

    def sessions_export(self, id):
        return 0, listings.export(self._session(id))

    def sessions_delete(self, id):
        self._check_id(id)
        if not os.path.isfile(store.session_path(self.home, id)):
            raise HarnessError(6, f"session not found: {id}")
        store.delete(self.home, id)
        return 0, f"deleted {id}"

    # Configuration

    def config_list(self):
        settings = self._settings()
        facts = {key: settings.get(key) for key in LISTED}
        if self.json:
            return 0, dumps({k: {"value": v, "source": s} for k, (v, s) in facts.items()})
        return 0, "\n".join(f"{k} = {dumps(v)} ({s})" for k, (v, s) in facts.items())

    def config_get(self, key):
        if not (settable(key)):
            raise HarnessError(2, f"unknown key: {key}")
        settings = self._settings()
        if key == "permissions":
            value = {name: settings.value(f"permissions.{name}") for name in LISTS}
        elif key.startswith("env."):
            value = settings.value("env").get(key[4:])
        else:
            value = settings.value(key)
        return 0, value if isinstance(value, str) else dumps(value)

    def config_set(self, key, text):
        chosen = [f for f in ("user", "project", "local") if self.flags.get(f)]
        if len(chosen) > 1:
            raise HarnessError(2, f"--{chosen[0]} and --{chosen[1]} cannot be combined")
        if not settable(key):
            raise HarnessError(2, f"unknown key: {key}")
        value = self._value(key, text)
        path = places(self.workspace, self.home)[chosen[0] if chosen else "project"]
        values = read_object(path) or {}
        head, _, tail = key.partition(".")
        if tail:
            inner = values.setdefault(head, {})
            if not isinstance(inner, dict):
                raise HarnessError(3, f"settings file {path}: {head}: wrong value")
            inner[tail] = value
        else:
            values[key] = value
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            replace_file(os.path.realpath(path), (dumps(values, indent=2) + "\n").encode("utf-8"))
        except OSError as e:
            raise HarnessError(1, f"internal: cannot write {path}: {reason_of(e)}") from None
        return 0, f"set {key} in {path}"

    @staticmethod
    def _value(key, text):
        head, _, tail = key.partition(".")
        wrong = HarnessError(2, f'{key}: invalid value "{text}"')
        if key in STRING_KEYS or head == "env" and tail:
            value = text
        else:
            try:
                value = loads(text)
            except ValueError:
                raise wrong from None
        whole = {head: {tail: value}} if tail else {key: value}
        for fault, name, _ in faults_of(whole):
            if fault:
                raise wrong
        if key == "hooks" and any(fault for fault, _ in check_hooks(value)):
            raise wrong
        return value

    def config_path(self):
        return 0, "\n".join(f"{n}: {p}" for n, p in places(self.workspace, self.home).items())

    # Memory

    def memory_show(self):
        scopes = [s for s in ("user", "project") if self.flags.get(s)] or ["user", "project"]
        args = (self.workspace, self.home, self.roots, self.console)
        if self.json:
            out = {}
            for scope in scopes:
                data = memory.content(scope, *args)
                out[scope] = None if data is None else {
                    "path": memory.path_of(scope, self.workspace, self.home),
                    "content": data.decode("utf-8", "replace").rstrip()}
            return 0, dumps(out)
        return 0, memory.show(*args, scopes)

    @property
    def scope(self):
        return "user" if self.flags.get("user") else "project"

    def memory_add(self, text):
        if not text.strip():
            raise HarnessError(2, "empty text")
        if "\0" in text:
            raise HarnessError(2, "the text holds a NUL character")
        result = memory.add(text, self.scope, self.workspace, self.home, self.roots)
        if result.startswith("error: "):
            raise HarnessError(1, "internal: " + result[7:])
        return 0, result

    def memory_clear(self):
        path = memory.path_of(self.scope, self.workspace, self.home)
        try:
            os.unlink(path)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as e:
            raise HarnessError(1, f"internal: cannot remove {path}: {reason_of(e)}") from None
        return 0, f"cleared {self.scope}"

    # Listings

    def _lines_or_json(self, items, none=""):
        items = list(items)
        if self.json:
            return 0, dumps(listings.named_objects(items))
        return 0, listings.named(items, none)

    def tools(self):
        names = Core(self._config(), self.console).offered_now()
        if self.json:
            return 0, dumps([arguments.function_of(n) for n in names])
        return 0, listings.tools(names)

    def agents(self):
        config = self._config()
        return self._lines_or_json(config.library.roles().values())

    def _library(self):
        from .library import Library
        return Library(self.workspace, self.home, self.console)

    def skills(self):
        return self._lines_or_json(self._library().skills().values(), "no skills")

    def commands(self):
        from .library import OwnCommand
        items = [OwnCommand(n, "built-in", about, "", "") for n, (_, about) in BUILTIN.items()]
        items += self._library().commands(BUILTIN, warn_builtin=True).values()
        return self._lines_or_json(sorted(items, key=lambda i: i.name))

    # Permissions

    def permissions_check(self, tool, arg=None):
        if tool not in TOOL_NAMES:
            raise HarnessError(2, f'unknown tool "{tool}"; known tools: {", ".join(TOOL_NAMES)}')
        usage = "usage: harness permissions"
        if arg is not None and tool in ("todo", "ask", "remember"):
            raise HarnessError(2, f'permissions: surplus argument "{arg}"', usage)
        if tool == "job" and arg not in (None, "output", "kill"):
            raise HarnessError(2, f'permissions: invalid value "{arg}"', usage)
        config = self._config()
        core = Core(config, self.console)
        role = config.role()
        args, judge = {}, core.judge
        if tool == "patch":
            args = {"text": f"*** Update File: {arg or '.'}"}
        elif tool in FILE_TOOLS:
            args = {"path": arg or "."}
        elif tool == "job":
            args = {"action": arg or "output"}
        elif tool == "task":
            args = {"agent": arg or "build"}
        elif arg is None:
            judge = Judge(judge.workspace, *([r for r in rules if r.bare or r.tool != tool]
                                             for rules in (judge.deny, judge.ask, judge.allow)))
        else:
            args = {"bash": {"command": arg}, "skill": {"name": arg}}[tool]
        verdict = judge.judge(tool, args, [role], core.mode(role))
        if self.json:
            return 0, dumps({"tool": tool, "arg": arg, "decision": verdict.decision, "reason": verdict.reason})
        return 0, f"{verdict.decision} ({verdict.reason})"

    # Preparing and checking

    def init(self):
        try:
            return 0, listings.init(self.workspace)
        except OSError as e:
            raise HarnessError(1, f"internal: cannot write {e.filename}: {reason_of(e)}") from None

    def doctor(self):
        checks = [("base-url", self._base()), ("model", self._model()), ("state-directory", self._state())]
        for name, path in places(self.workspace, self.home).items():
            reason = None
            try:
                level = read_level(name, path)
                for key in dict.fromkeys(level.unknown):
                    self.console.warning_once(f"unknown key {key} in {path}")
            except HarnessError as e:
                reason = e.message
            checks.append((f"settings-{name}", reason))
        bad = sum(reason is not None for _, reason in checks)
        if bad:
            self.console.error(f"{bad} problems")
        if self.json:
            text = dumps([{"check": c, "ok": r is None, "reason": r} for c, r in checks])
        else:
            text = "\n".join(f"ok: {c}" if r is None else f"problem: {c}: {r}" for c, r in checks)
        return 3 if bad else 0, text

    @staticmethod
    def _base():
        url = os.environ.get("HARNESS_BASE_URL", "")
        return None if re.match(r"https?://", url) else "HARNESS_BASE_URL is not set to an http:// or https:// address"

    def _model(self):
        if os.environ.get("HARNESS_MODEL"):
            return None
        paths = list(places(self.workspace, self.home).values())
        if self.flags.get("settings"):
            paths.append(os.path.join(self.workspace, self.flags["settings"]))
        for path in paths:
            try:
                values = read_object(path)
            except HarnessError:
                continue
            if values and CHECKS["model"](values.get("model")):
                return None
        return "no model is named by HARNESS_MODEL or a settings file"

    def _state(self):
        folder = self.home
        if os.path.lexists(folder) and not os.path.isdir(folder):
            return f"{folder} is not a directory"
        while not os.path.lexists(folder):
            folder = os.path.dirname(folder)
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
            return f"{self.home} cannot be written"
        return None


