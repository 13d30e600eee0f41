"""In-session commands: what a prompt that begins with `/` or `!` does."""

import os
import re

from . import compaction, listings, store
from .changes import Refused
from .errors import PromptBlocked, SessionNotFound, UsageError
from .flags import SESSION_ID
from .hooks import Blocked
from .near import near_names
from .permissions import LISTS, MODES
from .types import Message

LONGEST_TITLE = 200
RULE_SOURCES = ("user", "project", "local", "settings", "flag")


class Command:
    """A built-in command; `arguments` is how the help writes them, empty when it takes none."""

    def __init__(self, name, arguments, description, action):
        self.name = name
        self.arguments = arguments
        self.description = description
        self.action = action


def mistake(name, text) -> UsageError:
    return UsageError(f"/{name}: {text}")


def run(conversation, line: str) -> str:
    """Carry out a line that begins with `/` and return its output."""
    name, arguments = split_line(line)
    if name in COMMANDS:
        command = COMMANDS[name]
        if arguments and not command.arguments:
            raise mistake(name, f"takes no argument: {arguments}")
        if not arguments and command.arguments and not command.arguments.startswith("["):
            raise mistake(name, f"missing {command.arguments}")
        if command.arguments:
            return command.action(conversation, arguments)
        return command.action(conversation)
    own = conversation.find_commands(conversation.front.warn_once)
    if name in own:
        text = fill_in(own[name].body, arguments)
        if not text:
            raise mistake(name, "the text of the command is empty")
        return conversation.run_turn(text)
    near = near_names(name, [*COMMANDS, *own])
    hint = f"; did you mean {', '.join('/' + one for one in near)}?" if near else ""
    raise UsageError(f"unknown command: /{name}{hint}")


def split_line(line: str):
    """Name and arguments of a command line."""
    parts = line[1:].split(None, 1)
    if not parts or line[1:2].isspace():
        return "", line[1:].strip()
    return parts[0], parts[1].strip() if len(parts) > 1 else ""


def shell_line(conversation, command: str) -> str:
    """Run the command of a `!` line for the user and put it into the conversation."""
    if not command.strip():
        raise UsageError("empty command")
    from . import processes

    limit_s = conversation.settings["bash_timeout_s"]
    try:
        output = processes.run_command(command, conversation.workspace, conversation.shell_env(), limit_s)
    except processes.CannotRun as error:
        output = f"error: {error}"
    conversation.session.append(Message("user", f"<shell>\n$ {command}\n{output}\n</shell>"))
    return output


# Own commands.


def fill_in(body: str, arguments: str) -> str:
    """The text of an own command with its places filled."""
    text = body.strip()
    parts = [quoted or bare for quoted, bare in re.findall(r'"([^"]*)"|(\S+)', arguments)]
    has_place = False

    def value(match):
        nonlocal has_place
        has_place = True
        if match[0] == "$ARGUMENTS":
            return arguments
        index = int(match[1]) - 1
        return parts[index] if index < len(parts) else ""

    filled = re.sub(r"\$(?:ARGUMENTS|([1-9]))", value, text)
    if arguments and not has_place:
        filled = f"{filled}\n\n{arguments}" if filled else arguments
    return filled.strip() and filled


# Starting over and moving between sessions.


def clear(conversation):
    conversation.start_new()
    return f"new session {conversation.session.id}"


def fork(conversation):
    if not conversation.session.messages:
        return "nothing to fork"
    old = conversation.session.id
    conversation.fork()
    return f"forked {old} to {conversation.session.id}"


def resume(conversation, session_id):
    if not session_id:
        try:
            session_id = store.newest(conversation.workspace, conversation.session.id)
        except SessionNotFound:
            return "no other session"
    elif not SESSION_ID.fullmatch(session_id):
        raise mistake("resume", f"not an id: {session_id}")
    if session_id != conversation.session.id:
        conversation.resume(session_id)
    return f"resumed {session_id}"


def sessions(conversation):
    return listings.session_lines(conversation.workspace)


def rename(conversation, title):
    title = " ".join(title.split())[:LONGEST_TITLE]
    conversation.session.set_title(title)
    return f"renamed to {title}"


def export(conversation, name):
    if not conversation.session.messages:
        return "nothing to export"
    text = listings.markdown(conversation.session)
    if not name:
        return text.removesuffix("\n")
    path = os.path.join(conversation.workspace, name)
    if os.path.lexists(path):
        return f"export refused: {name} exists"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "x", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text.rstrip("\n") + "\n")
    except OSError as error:
        raise mistake("export", f"cannot write {name}: {error.strerror}") from None
    return f"exported to {name}"


def leave(conversation):
    conversation.is_leaving = True
    return ""


# Model, mode and roots.


def model(conversation, name):
    if name:
        if len(name.split()) > 1:
            raise mistake("model", f"a name has no white space: {name}")
        conversation.set_model(name)
    return f"model: {conversation.model_name()}"


def mode(conversation, name):
    if not name:
        return f"mode: {conversation.effective_mode()}"
    if name not in MODES:
        raise mistake("mode", f"unknown mode {name}; modes: {', '.join(MODES)}")
    conversation.set_mode(name)
    return f"mode: {name}"


def permissions(conversation):
    lines = [f"mode: {conversation.effective_mode()}"]
    for kind in LISTS:
        rules = conversation.policy.rules[kind]
        for source in RULE_SOURCES:
            lines += [f"{kind} {rule.text} ({source})" for rule in rules if rule.source == source]
    return "\n".join(lines)


def add_dir(conversation, path):
    if not os.path.isdir(conversation.roots.real(path)):
        raise mistake("add-dir", f"no such directory: {path}")
    return f"added {conversation.add_directory(path)}"


# Looking at the session.


def usage(conversation):
    counts = conversation.usage
    return (
        f"requests: {counts['requests']}\ninput tokens: {counts['input_tokens']}\n"
        f"output tokens: {counts['output_tokens']}"
    )


def context(conversation):
    system = Message("system", conversation.system_text(conversation.begin_turn()))
    messages = conversation.session.messages
    window = conversation.settings["context_window"]
    return "\n".join(
        (
            f"messages: {len(messages)}",
            f"estimate: {compaction.estimate_tokens([system, *messages])} tokens",
            f"window: {window} tokens",
            f"compact at: {int(conversation.settings['compact_threshold'] * window)} tokens",
        )
    )


def tools(conversation):
    return listings.tool_lines(conversation.offered_tools())


def agents(conversation):
    return listings.extension_lines(conversation.find_roles().values())


def skills(conversation):
    return listings.extension_lines(conversation.find_skills(conversation.front.warn_once).values(), "no skills")


def todos(conversation):
    from .tools.notes import todo_lines

    return todo_lines(conversation.session.todos) or "[no todos]"


def diff(conversation):
    from .diff import unified

    changed = []
    for path, before in conversation.changes.first_contents().items():
        changed.append((conversation.roots.relative(path), before, read_file(path)))
    texts = [unified(*change) for change in sorted(changed, key=lambda change: change[0])]
    return "".join(texts).removesuffix("\n") or "no changes"


def read_file(path):
    """The bytes of a file, or None when there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def memory(conversation):
    return listings.memory_text(conversation.roots, conversation.home, conversation.front.warn)


def init(conversation):
    from .commands import init_files

    return init_files(conversation.workspace)


def help_text(conversation):
    lines = [f"/{one.name} {one.arguments}".rstrip() + f"  {one.description}" for one in COMMANDS.values()]
    own = conversation.find_commands(conversation.front.warn_once)
    lines += [f"/{one.name}  {one.description}".rstrip() for one in own.values()]
    return "\n".join(lines)


def compact(conversation, instructions):
    if len(conversation.session.messages) < 2:
        return "nothing to compact"
    conversation.require_model()
    system = Message("system", conversation.system_text(conversation.begin_turn()))
    try:
        n_messages = conversation.compact("manual", instructions, system, conversation.model_name())
    except Blocked as blocked:
        raise PromptBlocked(f"blocked by a hook: {blocked}") from None
    return f"compacted {n_messages} messages"


# Taking back.


def undo(conversation):
    turn = conversation.changes.last_changing_turn()
    if turn is None:
        return "nothing to undo"
    try:
        done = conversation.changes.take_back([turn])
    except Refused as refused:
        return refusal(conversation, "undo", refused)
    return "\n".join([f"undone {len(done)} files", *taken_back(conversation, done)])


def rewind(conversation, number):
    if not re.fullmatch("[0-9]*", number) or number and int(number) == 0:
        raise mistake("rewind", f"not a number of turns: {number}")
    n_turns = int(number or 1)
    available = conversation.session.turns
    if n_turns > len(available):
        return f"cannot rewind {n_turns} turns: {len(available)} available"
    try:
        done = conversation.changes.take_back([turn.key for turn in available[-n_turns:]])
    except Refused as refused:
        return refusal(conversation, "rewind", refused)
    conversation.session.rewind(n_turns)
    return "\n".join([f"rewound {n_turns} turns", *taken_back(conversation, done)])


def refusal(conversation, name, refused):
    paths = sorted(conversation.roots.relative(path) for path in refused.paths)
    return f"{name} refused: {', '.join(paths)} changed since"


def taken_back(conversation, done):
    pairs = sorted((conversation.roots.relative(path), verb) for verb, path in done)
    return [f"{verb} {path}" for path, verb in pairs]


COMMANDS = {
    command.name: command
    for command in (
        Command("add-dir", "DIR", "add a root for the file tools", add_dir),
        Command("agents", "", "list the roles", agents),
        Command("clear", "", "start a new session", clear),
        Command("compact", "[INSTRUCTIONS]", "replace the conversation by a summary", compact),
        Command("context", "", "show how full the context window is", context),
        Command("diff", "", "show what the file tools changed in this session", diff),
        Command("exit", "", "leave", leave),
        Command("export", "[FILE]", "show or write the conversation as Markdown", export),
        Command("fork", "", "copy the session and go on in the copy", fork),
        Command("help", "", "list what can be typed", help_text),
        Command("init", "", "prepare the workspace", init),
        Command("memory", "", "show the memory files", memory),
        Command("mode", "[MODE]", "show or change the permission mode", mode),
        Command("model", "[NAME]", "show or change the model", model),
        Command("permissions", "", "show mode and rules", permissions),
        Command("rename", "TITLE", "give the session a title", rename),
        Command("resume", "[ID]", "move to another session", resume),
        Command("rewind", "[N]", "go back by N turns, files included", rewind),
        Command("sessions", "", "list the sessions of this workspace", sessions),
        Command("skills", "", "list the skills", skills),
        Command("todos", "", "show the list of things to do", todos),
        Command("tools", "", "list the tools that are offered", tools),
        Command("undo", "", "take back the file changes of the last turn that made any", undo),
        Command("usage", "", "show requests and tokens", usage),
    )
}
