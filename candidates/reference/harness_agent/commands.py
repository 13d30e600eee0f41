"""The commands of the command line: they look at or change what the harness keeps, without a model."""

import os

from . import VERSION, listings, store
from .errors import HarnessError, SettingsError, UsageError
from .flags import COMMAND_FLAGS, FLAGS, RUN_FLAGS, SESSION_ID
from .front import Front
from .output import write_line
from .paths import find_workspace
from .texts import as_json
from .tools import NAMES as TOOL_NAMES
from .tools import TOOLS

EVERYWHERE = ("cwd", "settings", "quiet", "verbose", "help", "version")
OF_PERMISSIONS = ("permission-mode", "allow", "deny", "agent", "add-dir")
OF_API = (
    "model", *OF_PERMISSIONS, "max-turns", "stream", "system-prompt", "append-system-prompt",
    "no-save", "no-memory", "no-conventions",
)  # fmt: skip
SCOPE_FLAGS = ("user", "project")


class Part:
    """One form of a command: the words that name it, its arguments, its flags, and what it does."""

    def __init__(self, words, arguments, flags, action, optional=0):
        self.words = words
        self.arguments = arguments
        self.flags = flags
        self.action = action
        self.optional = optional  # arguments that may be missing

    def usage(self) -> str:
        names = [f"[{name}]" if index >= len(self.arguments) - self.optional else name
                 for index, name in enumerate(self.arguments)]  # fmt: skip
        flags = [f"[--{name} {FLAGS[name].metavar}".rstrip() + "]" for name in self.flags]
        return " ".join(["harness", *self.words, *names, *flags])


class Setting:
    """What a command works on: its arguments, flags and the front for warnings."""

    def __init__(self, values):
        from .types import Options

        self.values = values
        self.options = Options(flags=values)
        self.front = Front("quiet" in values, "verbose" in values)
        self.home = store.home_directory()

    @property
    def workspace(self) -> str:
        return find_workspace(self.options)

    @property
    def wants_json(self) -> bool:
        return "json" in self.values

    def conversation(self):
        """A conversation that is set up as for a run and never used for one."""
        from .conversation import Conversation

        conversation = Conversation(self.options, self.front)
        conversation.prepare()
        conversation.session = store.new_session(conversation.workspace, conversation.model_name, saving=False)
        conversation.changes = None
        return conversation

    def print(self, text, value=None):
        write_line(as_json(value) if self.wants_json else text)


def run(line) -> int:
    """Find the part of a command that was typed and carry it out."""
    name, *rest = line.arguments
    if name not in COMMANDS:
        raise unknown_command(name)
    if "print" in line.values:
        raise UsageError(f"--print cannot be combined with the command {name}")
    parts = COMMANDS[name]
    part = next((part for part in parts if tuple(rest[: len(part.words) - 1]) == part.words[1:]), None)
    if part is None:
        problem = f'unknown part "{rest[0]}" of {name}' if rest else f"{name} needs one of: {parts_of(name)}"
        raise wrong_usage(problem, f"harness {name} {parts_of(name)}")
    allowed = (*EVERYWHERE, *part.flags)
    for flag in line.values:
        if flag not in allowed:
            raise UsageError(f"--{flag} is not for {' '.join(part.words)}")
    if "quiet" in line.values and "verbose" in line.values:
        raise UsageError("--quiet and --verbose exclude each other")
    arguments = rest[len(part.words) - 1 :]
    check_arguments(part, arguments)
    setting = Setting(line.values)
    if "cwd" in line.values:
        find_workspace(setting.options)
    return part.action(setting, *arguments) or 0


def check_arguments(part, arguments):
    if len(arguments) < len(part.arguments) - part.optional:
        raise wrong_usage(f"missing argument {part.arguments[len(arguments)]}", part.usage())
    if len(arguments) > len(part.arguments):
        raise wrong_usage(f'surplus argument "{arguments[len(part.arguments)]}"', part.usage())
    if "" in arguments and part.words[:2] != ("memory", "add"):
        raise wrong_usage('empty argument ""', part.usage())


def wrong_usage(problem, usage) -> UsageError:
    error = UsageError(problem)
    error.usage = f"usage: {usage}"
    return error


def parts_of(name) -> str:
    return "|".join(part.words[1] for part in COMMANDS[name] if len(part.words) > 1)


def unknown_command(name) -> UsageError:
    from .near import near_names

    near = near_names(name, COMMANDS)
    return UsageError(f"unknown command: {name}" + (f"; did you mean {', '.join(near)}?" if near else ""))


# Help and version.


def print_version(setting=None):
    write_line(f"harness {VERSION}")
    return 0


def print_help(topic) -> int:
    """Print the overview, or how one command is called; `--help` with an unknown command is an overview."""
    write_line(topic_text(topic[0]) if topic and topic[0] in COMMANDS else overview())
    return 0


def help_command(setting, topic=None):
    if topic is not None and topic not in COMMANDS:
        raise unknown_command(topic)
    return print_help([topic] if topic else [])


def overview() -> str:
    lines = ["usage: harness [FLAGS]            start an interactive session"]
    lines += ["       harness -p PROMPT [FLAGS]  answer one prompt", "       harness COMMAND [FLAGS]", "", "commands:"]
    lines += [f"  {name:<12} {SUMMARIES[name]}" for name in COMMANDS]
    lines += ["", "flags:", *(flag_line(flag) for flag in RUN_FLAGS)]
    lines += ["", "flags of some commands:", *(flag_line(flag) for flag in COMMAND_FLAGS)]
    return "\n".join(lines)


def flag_line(flag) -> str:
    short = f"-{flag.short}, " if flag.short else "    "
    form = f"{short}--{flag.name} {flag.metavar}".rstrip()
    return f"  {form:<34} {flag.help}"


def topic_text(name) -> str:
    parts = COMMANDS[name]
    if len(parts) == 1:
        lines = [f"usage: {parts[0].usage()}"]
    else:
        lines = [f"usage: harness {name} {parts_of(name)}", *(f"  {part.usage()}" for part in parts)]
    flags = dict.fromkeys(flag for part in parts for flag in (*part.flags, *EVERYWHERE))
    return "\n".join([*lines, "", SUMMARIES[name], "", "flags:", *(flag_line(FLAGS[flag]) for flag in flags)])


# Sessions.


def sessions_list(setting):
    workspace = setting.workspace
    if setting.wants_json:
        setting.print("", listings.session_objects(workspace))
    else:
        setting.print(listings.session_lines(workspace))


def load_session(setting, session_id):
    check_id(session_id)
    session = store.load(session_id)
    for warning in session.warnings:
        setting.front.warn(warning)
    return session


def check_id(session_id):
    if not SESSION_ID.fullmatch(session_id):
        raise UsageError(f'invalid value "{session_id}" for ID')


def sessions_show(setting, session_id):
    session = load_session(setting, session_id)
    facts = listings.session_object(session, store.updated(session.path))
    keys = ("id", "title", "cwd", "created", "updated", "parent", "messages")
    text = "\n".join(f"{key}: {'' if facts[key] is None else facts[key]}" for key in keys)
    facts["messages"] = [message.wire() for message in session.messages]
    setting.print(text, {**facts, "todos": session.todos})


def sessions_export(setting, session_id):
    setting.print(listings.markdown(load_session(setting, session_id)))


def sessions_delete(setting, session_id):
    check_id(session_id)
    store.delete(session_id)
    setting.print(f"deleted {session_id}")


# Configuration: see config.py.


def config_list(setting):
    from . import config

    settings = config.load(setting)
    rows = config.rows(settings)
    lines = [f"{key} = {as_json(value)} ({source})" for key, value, source in rows]
    setting.print("\n".join(lines), {key: {"value": value, "source": source} for key, value, source in rows})


def config_get(setting, key):
    from . import config

    value = config.get(config.load(setting), key)
    setting.print(value if isinstance(value, str) else as_json(value))


def config_set(setting, key, text):
    from . import config

    levels = [level for level in ("user", "project", "local") if level in setting.values]
    if len(levels) > 1:
        raise UsageError(f"--{levels[0]} and --{levels[1]} exclude each other")
    path = config.set_value(setting.workspace, levels[0] if levels else "project", key, text)
    setting.print(f"set {key} in {path}")


def config_path(setting):
    from .settings import places

    setting.print("\n".join(f"{level}: {path}" for level, path in places(setting.workspace).items()))


# Memory.


def scope_of(setting, default):
    scopes = [scope for scope in SCOPE_FLAGS if scope in setting.values]
    if len(scopes) > 1:
        raise UsageError("--user and --project exclude each other")
    return scopes[0] if scopes else default


def memory_show(setting):
    from .memory import SCOPES
    from .paths import Roots

    scope = scope_of(setting, None)
    scopes = (scope,) if scope else SCOPES
    roots = Roots(setting.workspace)
    if setting.wants_json:
        setting.print("", listings.memory_objects(roots, setting.home, scopes, setting.front.warn))
    else:
        setting.print(listings.memory_text(roots, setting.home, setting.front.warn, scopes))


def memory_add(setting, text):
    from .memory import is_inside, memory_path, remember
    from .paths import Roots

    scope = scope_of(setting, "project")
    if not text.strip():
        raise UsageError("empty text")
    workspace = setting.workspace
    if scope == "project" and not is_inside(Roots(workspace)):
        raise UsageError("outside the workspace: .harness/memory.md")
    try:
        remember(scope, text, workspace, setting.home)
    except OSError as error:
        path = memory_path(scope, workspace, setting.home)
        raise HarnessError(f"internal: cannot write {path}: {error.strerror}") from None
    setting.print(f"remembered ({scope})")


def memory_clear(setting):
    from .memory import memory_path

    scope = scope_of(setting, "project")
    path = memory_path(scope, setting.workspace, setting.home)
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise HarnessError(f"internal: cannot remove {path}: {error.strerror}") from None
    setting.print(f"cleared {scope}")


# Listings.


def tools(setting):
    names = setting.conversation().offered_tools()
    setting.print(listings.tool_lines(names), [TOOLS[name].schema()["function"] for name in names])


def agents(setting):
    found = list(setting.conversation().roles.values())
    setting.print(listings.extension_lines(found), listings.extension_objects(found))


def skills(setting):
    from .extensions import find_skills

    found = list(find_skills(setting.workspace, setting.home, setting.front.warn).values())
    setting.print(listings.extension_lines(found, "no skills"), listings.extension_objects(found))


def own_commands(setting):
    from .extensions import find_commands
    from .slash import COMMANDS as BUILT_IN

    own = find_commands(setting.workspace, setting.home, BUILT_IN, setting.front.warn)
    found = listings.commands(own)
    setting.print(listings.extension_lines(found), listings.extension_objects(found))


# Permissions.


def permissions_check(setting, tool, argument=None):
    from .permissions import PATH_TOOLS, judge_check

    if tool not in TOOL_NAMES:
        raise UsageError(f"unknown tool {tool}; tools: {', '.join(TOOL_NAMES)}")
    if argument is not None and tool in ("todo", "ask", "remember"):
        raise wrong_usage(f'surplus argument "{argument}"', "harness permissions check TOOL [ARG]")
    if tool == "job" and argument not in (None, "output", "kill"):
        raise UsageError(f'invalid value "{argument}" for ARG: an action is output or kill')
    subject = "." if argument is None and tool in PATH_TOOLS else argument
    decision = judge_check(setting.conversation().policy, tool, subject)
    facts = {"tool": tool, "arg": argument, "decision": decision.verdict, "reason": decision.ground}
    setting.print(f"{decision.verdict} ({decision.ground})", facts)


# Preparing and checking.


def init_files(workspace) -> str:
    """Make the usual files of a workspace; say what became of each."""
    files = {
        "AGENTS.md": f"# {os.path.basename(workspace) or workspace}\n",
        ".harness/settings.json": "{}\n",
    }
    lines = []
    for name, content in files.items():
        path = os.path.join(workspace, name)
        if os.path.lexists(path):
            lines.append(f"exists {name}")
            continue
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "x", encoding="utf-8", errors="surrogateescape") as file:
                file.write(content)
        except OSError as error:
            raise HarnessError(f"internal: cannot write {path}: {error.strerror}") from None
        lines.append(f"created {name}")
    return "\n".join(lines)


def init(setting):
    setting.print(init_files(setting.workspace))


def doctor(setting):
    from .doctor import checks

    found = checks(setting.workspace, setting.values.get("settings", ""), setting.front.warn)
    lines = [f"problem: {name}: {reason}" if reason else f"ok: {name}" for name, reason in found]
    objects = [{"check": name, "ok": not reason, "reason": reason or None} for name, reason in found]
    setting.print("\n".join(lines), objects)
    problems = [name for name, reason in found if reason]
    if problems:
        raise SettingsError(f"{len(problems)} problems")


def api(setting):
    from .api import serve_with

    import sys

    return serve_with(setting.options, sys.stdin, sys.stdout)


COMMANDS = {
    "sessions": (
        Part(("sessions", "list"), (), ("json",), sessions_list),
        Part(("sessions", "show"), ("ID",), ("json",), sessions_show),
        Part(("sessions", "delete"), ("ID",), (), sessions_delete),
        Part(("sessions", "export"), ("ID",), (), sessions_export),
    ),
    "config": (
        Part(("config", "list"), (), ("json",), config_list),
        Part(("config", "get"), ("KEY",), (), config_get),
        Part(("config", "set"), ("KEY", "VALUE"), ("user", "project", "local"), config_set),
        Part(("config", "path"), (), (), config_path),
    ),
    "memory": (
        Part(("memory", "show"), (), ("json", *SCOPE_FLAGS), memory_show),
        Part(("memory", "add"), ("TEXT",), SCOPE_FLAGS, memory_add),
        Part(("memory", "clear"), (), SCOPE_FLAGS, memory_clear),
    ),
    "tools": (Part(("tools",), (), ("json", *OF_PERMISSIONS, "no-memory"), tools),),
    "agents": (Part(("agents",), (), ("json",), agents),),
    "skills": (Part(("skills",), (), ("json",), skills),),
    "commands": (Part(("commands",), (), ("json",), own_commands),),
    "permissions": (
        Part(("permissions", "check"), ("TOOL", "ARG"), ("json", *OF_PERMISSIONS), permissions_check, optional=1),
    ),
    "init": (Part(("init",), (), (), init),),
    "doctor": (Part(("doctor",), (), ("json",), doctor),),
    "api": (Part(("api",), (), OF_API, api),),
    "version": (Part(("version",), (), (), print_version),),
    "help": (Part(("help",), ("COMMAND",), (), help_command, optional=1),),
}
SUMMARIES = {
    "sessions": "list, show, delete and export stored sessions",
    "config": "list, get and set settings, and show where they are",
    "memory": "show, add to and clear the memory files",
    "tools": "list the tools that a run would offer",
    "agents": "list the roles",
    "skills": "list the skills",
    "commands": "list the in-session commands",
    "permissions": "check how a call would be judged",
    "init": "make AGENTS.md and .harness/settings.json",
    "doctor": "check what a run needs",
    "api": "answer JSON requests, one a line",
    "version": "print the version",
    "help": "print help",
}
