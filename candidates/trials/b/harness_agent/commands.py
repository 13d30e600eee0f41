"""The commands that look at or change what the harness keeps, without a model."""

import os
import shutil

from . import content, session as sessions, settings as config
from .agent import Harness
from .arguments import function_of
from .base import VERSION, Console, HarnessError, atomic_write, home, js, near_names, reason
from .client import base_url
from .flags import COMMAND_ONLY, COMMON, NAMES, SWITCHES, TAKES, VALUES, check_places, workspace
from .insession import agents_list, commands_list, init_files, rows, skills_list, tools_text
from .judge import Subject, judge
from .rules import FILE_TOOLS, TOOLS

ABOUT = {
    "sessions": "Lists, shows, exports and deletes stored sessions.",
    "config": "Shows and changes settings.",
    "memory": "Shows and changes memory files.",
    "tools": "Lists the tools that a run would offer.",
    "agents": "Lists the roles.",
    "skills": "Lists the skills.",
    "commands": "Lists the in-session commands.",
    "permissions": "Tells how a call would be judged.",
    "init": "Makes the usual files of a workspace.",
    "doctor": "Checks what a run needs.",
    "api": "Drives the harness by JSON lines.",
    "version": "Prints the version.",
    "help": "Prints what the program can do.",
}
USAGE = {
    "sessions": ["list [--json]", "show ID [--json]", "export ID", "delete ID"],
    "config": ["list [--json]", "get KEY", "set KEY VALUE [--user|--project|--local]", "path"],
    "memory": ["show [--user|--project] [--json]", "add TEXT [--user|--project]", "clear [--user|--project]"],
    "permissions": ["check TOOL [ARG] [--json]"],
    "help": ["[COMMAND]"],
}
# part -> (least, most) number of arguments after it
COUNTS = {
    "sessions list": (0, 0), "sessions show": (1, 1), "sessions export": (1, 1), "sessions delete": (1, 1),
    "config list": (0, 0), "config get": (1, 1), "config set": (2, 2), "config path": (0, 0),
    "memory show": (0, 0), "memory add": (1, 1), "memory clear": (0, 0), "permissions check": (1, 2),
    "help": (0, 1),
}


def usage_error(name, text):
    error = HarnessError(2, text)
    error.usage = f"usage: harness {name}"
    return error


def unknown_command(name):
    near = near_names(name, NAMES)
    hint = "; did you mean " + ", ".join(near) + "?" if near else ""
    return HarnessError(2, f"unknown command: {name}{hint}")


def overview():
    lines = ["usage: harness [FLAGS]              an interactive session",
             "       harness -p PROMPT [FLAGS]    one headless run",
             "       harness COMMAND [ARGUMENTS]", "", "Commands:"]
    lines += [f"  {name}  {ABOUT[name]}" for name in NAMES]
    lines += ["", "Flags:"]
    short = {"print": "-p", "continue": "-c", "resume": "-r", "quiet": "-q", "verbose": "-v", "help": "-h"}
    for name in sorted(SWITCHES | VALUES):
        lines.append("  " + (short[name] + ", " if name in short else "") + f"--{name}" +
                     (" VALUE" if name in VALUES else "") + (" (of commands)" if name in COMMAND_ONLY else ""))
    return "\n".join(lines)


def topic(name):
    if name not in NAMES:
        raise unknown_command(name)
    parts = USAGE.get(name, [""])
    lines = [f"usage: harness {name}" + (" …" if len(parts) > 1 else f" {parts[0]}" if parts[0] else ""),
             ABOUT[name]]
    lines += [f"  harness {name} {part}".rstrip() for part in parts]
    own = set()
    for key, flags in TAKES.items():
        if key.split()[0] == name:
            own |= flags
    lines.append("flags: " + ", ".join("--" + f for f in sorted(own | (COMMON - {"version"}))))
    return "\n".join(lines)


def run(words, flags):
    """One command; returns the exit code."""
    name, rest = words[0], words[1:]
    if name not in NAMES:
        raise unknown_command(name)
    if "print" in flags:
        raise HarnessError(2, f"--print cannot be combined with the command {name}")
    part = name
    takes = TAKES.get(name)
    if takes is None:
        part = f"{name} {rest[0]}" if rest else ""
        takes = TAKES.get(part)
        if takes is None:
            takes = set().union(*(f for k, f in TAKES.items() if k.split()[0] == name))
            part = None
        else:
            rest = rest[1:]
    for flag in flags:
        if flag not in takes and flag not in COMMON:
            raise HarnessError(2, f"--{flag} is not for {part or name}")
    if part is None:
        if rest:
            raise usage_error(name, f'unknown argument "{rest[0]}"')
        raise usage_error(name, "missing argument")
    low, high = COUNTS.get(part, (0, 0))
    if "quiet" in flags and "verbose" in flags:
        raise HarnessError(2, "--quiet cannot be combined with --verbose")
    if len(rest) < low:
        raise usage_error(name, "missing argument")
    if len(rest) > high:
        raise usage_error(name, f'surplus argument "{rest[high]}"')
    if "" in rest and part != "memory add":
        raise usage_error(name, 'empty argument ""')
    if part == "help":
        Console.out((topic(rest[0]) if rest else overview()) + "\n")
        return 0
    if part == "version":
        Console.out(f"harness {VERSION}\n")
        return 0
    cwd = workspace(flags)
    if name == "api":
        from . import api
        return api.main(flags, cwd)
    check_places(flags, cwd)
    result = globals()["_" + part.replace(" ", "_")](rest, flags, cwd)
    if result is not None:
        Console.out(result + "\n")
    return 0


def _harness(flags, cwd):
    harness = Harness(flags, cwd)
    harness.load_settings()
    return harness


# ---- sessions

def _sessions_list(rest, flags, cwd):
    if not flags.get("json"):
        return sessions.list_text(cwd)
    found = [sessions.facts(i)[0] for _, _, i in sessions.stored(cwd)]
    return js([f for f in found if f])


def _id(text):
    if not sessions.ID.fullmatch(text):
        raise HarnessError(2, f'invalid value "{text}"')
    return text


def _sessions_show(rest, flags, cwd):
    fact, found = sessions.facts(_id(rest[0]), True)
    if fact is None:
        raise HarnessError(6, f"session not found: {rest[0]}")
    if flags.get("json"):
        return js({**fact, "messages": found.messages(), "todos": found.todos})
    keys = ["id", "title", "cwd", "created", "updated", "parent", "messages"]
    return "\n".join(f"{k}: {'' if fact[k] is None else fact[k]}" for k in keys)


def _sessions_export(rest, flags, cwd):
    found = sessions.load(_id(rest[0]))
    if found is None:
        raise HarnessError(6, f"session not found: {rest[0]}")
    return sessions.export_text(found)


def _sessions_delete(rest, flags, cwd):
    path = sessions.path_of(_id(rest[0]))
    if not os.path.isfile(path) and not os.path.islink(path):
        raise HarnessError(6, f"session not found: {rest[0]}")
    try:
        os.unlink(path)
        folder = sessions.checkpoints_of(rest[0])
        if os.path.isdir(folder):
            shutil.rmtree(folder)
    except OSError as error:
        raise HarnessError(1, f"internal: cannot remove {path}: {reason(error)}") from None
    return f"deleted {rest[0]}"


# ---- settings

def _config_list(rest, flags, cwd):
    settings = config.Settings(cwd, flags.get("settings"))
    found = {key: settings.lookup(key) for key in config.flat_keys()}
    if flags.get("json"):
        return js({k: {"value": v, "source": s} for k, (v, s) in found.items()})
    return "\n".join(f"{k} = {js(v)} ({s})" for k, (v, s) in found.items())


def _config_get(rest, flags, cwd):
    key = rest[0]
    settings = config.Settings(cwd, flags.get("settings"))
    if key in config.flat_keys():
        value = settings.get(key)
    elif key == "permissions":
        value = {name: settings.get("permissions." + name) for name in ("deny", "ask", "allow")}
    elif key.startswith("env.") and len(key) > 4:
        value = settings.get("env").get(key[4:])
    else:
        raise HarnessError(2, f"unknown key: {key}")
    return value if type(value) is str else js(value)


def _config_set(rest, flags, cwd):
    key, text = rest
    levels = [f for f in ("user", "project", "local") if f in flags]
    if len(levels) > 1:
        raise HarnessError(2, "only one of " + ", ".join("--" + f for f in levels) + " can be given")
    path = config.places(cwd)[levels[0] if levels else "project"]
    outer, inner = key, None
    if key.startswith("permissions.") and key[12:] in config.LISTS:
        outer, inner = "permissions", key[12:]
    elif key.startswith("env.") and len(key) > 4:
        outer, inner = "env", key[4:]
    elif key not in config.KEYS:
        raise HarnessError(2, f"unknown key: {key}")
    bad = HarnessError(2, f"{key}: invalid value {text}")
    value = text
    if key not in config.STRING_KEYS and outer != "env" or key == "env":
        try:
            value = config.parse_json(text)
        except ValueError:
            raise bad from None
    try:
        config.check_value(outer, {inner: value} if inner else value, path)
    except HarnessError:
        raise bad from None
    target = os.path.realpath(path)
    old = config.read_object(target) or {}
    if inner:
        holder = old.setdefault(outer, {})
        if type(holder) is not dict:
            raise HarnessError(3, f"{path}: {outer} is not an object")
        holder[inner] = value
    else:
        old[outer] = value
    import json
    data = (json.dumps(old, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        mode = os.stat(target).st_mode & 0o7777 if os.path.exists(target) else None
        atomic_write(target, data, mode)
    except OSError as error:
        raise HarnessError(1, f"internal: cannot write {path}: {reason(error)}") from None
    return f"set {key} in {path}"


def _config_path(rest, flags, cwd):
    return "\n".join(f"{name}: {path}" for name, path in config.places(cwd).items())


# ---- memory

def _scopes(flags):
    chosen = [s for s in ("user", "project") if s in flags]
    if len(chosen) > 1:
        raise HarnessError(2, "--user cannot be combined with --project")
    return chosen


def _memory_show(rest, flags, cwd):
    text, found = content.memory_show(cwd, _scopes(flags) or ("user", "project"))
    return js(found) if flags.get("json") else text


def _memory_add(rest, flags, cwd):
    scope = (_scopes(flags) or ["project"])[0]
    if not rest[0].strip():
        raise HarnessError(2, "empty text")
    path = content.memory_path(cwd, scope)
    try:
        content.append_memory(cwd, scope, rest[0], [cwd])
    except content.MemoryOutside:
        raise HarnessError(2, f"outside the workspace: {path}") from None
    except OSError as error:
        raise HarnessError(1, f"internal: cannot write {path}: {reason(error)}") from None
    return f"remembered ({scope})"


def _memory_clear(rest, flags, cwd):
    scope = (_scopes(flags) or ["project"])[0]
    path = content.memory_path(cwd, scope)
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise HarnessError(1, f"internal: cannot remove {path}: {reason(error)}") from None
    return f"cleared {scope}"


# ---- listings

def _tools(rest, flags, cwd):
    names = _harness(flags, cwd).offered()
    return js([function_of(n) for n in names]) if flags.get("json") else tools_text(names) or None


def _listed(items, flags, empty=""):
    return js(items) if flags.get("json") else rows(items, empty)


def _agents(rest, flags, cwd):
    config.Settings(cwd, flags.get("settings"))
    return _listed(agents_list(cwd), flags)


def _skills(rest, flags, cwd):
    return _listed(skills_list(cwd), flags, "no skills")


def _commands(rest, flags, cwd):
    return _listed(commands_list(cwd), flags)


# ---- permissions

def _permissions_check(rest, flags, cwd):
    tool = rest[0]
    arg = rest[1] if len(rest) > 1 else None
    if tool not in TOOLS:
        raise HarnessError(2, f"unknown tool {tool}; tools: " + ", ".join(TOOLS))
    if arg is not None and tool in ("todo", "ask", "remember"):
        raise usage_error("permissions", f'surplus argument "{arg}"')
    if tool == "job" and arg not in (None, "output", "kill"):
        raise HarnessError(2, f'invalid value "{arg}"')
    harness = _harness(flags, cwd)
    role = harness.role()
    subject = _subject(tool, arg, role)
    arguments = {"action": arg or "output"} if tool == "job" else {}
    decision, why = judge(tool, arguments, subject, [role], harness.mode(role), harness.rules, cwd)
    if flags.get("json"):
        return js({"tool": tool, "arg": arg, "decision": decision, "reason": why})
    return f"{decision} ({why})"


def _subject(tool, arg, role):
    if tool in FILE_TOOLS:
        subject = Subject("read", {"path": arg or "."}, role.name)
        subject.tool = tool
        return subject
    if tool == "bash" and arg is not None:
        return Subject(tool, {"command": arg}, role.name)
    if tool == "bash":
        return Subject(tool, {"command": ";"}, role.name)
    if tool == "task":
        return Subject(tool, {"agent": arg or "build"}, role.name)
    if tool == "skill" and arg is not None:
        return Subject(tool, {"name": arg}, role.name)
    subject = Subject("todo", {}, role.name)
    subject.tool = tool
    return subject


# ---- preparing and checking

def _init(rest, flags, cwd):
    return init_files(cwd)


def _doctor(rest, flags, cwd):
    checks = []

    def check(name, work):
        try:
            checks.append({"check": name, "ok": True, "reason": work() or None})
            if checks[-1]["reason"]:
                checks[-1]["ok"] = False
        except HarnessError as error:
            checks.append({"check": name, "ok": False, "reason": error.message})

    levels = {}
    check("base-url", lambda: base_url() and None)
    places = dict(config.places(cwd))
    files = dict(places)
    if "settings" in flags:
        files["settings"] = os.path.join(cwd, flags["settings"])

    def model():
        if os.environ.get("HARNESS_MODEL"):
            return None
        for path in files.values():
            try:
                value = config.read_object(path) or {}
            except HarnessError:
                continue
            if config.KEYS["model"][0](value.get("model")):
                return None
        return "no model is named: use --model, HARNESS_MODEL or the setting model"

    check("model", model)
    check("state-directory", _state_directory)
    for name, path in places.items():
        def valid(path=path):
            value = config.read_object(path)
            if value is not None:
                for warning in config.check_object(value, path):
                    Console.warn(warning)
        check(f"settings-{name}", valid)
    if flags.get("json"):
        Console.out(js(checks) + "\n")
    else:
        for one in checks:
            Console.out((f"ok: {one['check']}" if one["ok"] else f"problem: {one['check']}: {one['reason']}") + "\n")
    bad = sum(not one["ok"] for one in checks)
    if bad:
        raise HarnessError(3, f"{bad} problems")
    return None


def _state_directory():
    path = home()
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    if not os.path.isdir(path):
        return f"{path} is not a directory"
    if not os.access(path, os.W_OK | os.X_OK):
        return f"{path} cannot be written"
    return None
