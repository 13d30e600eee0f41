"""What the listing commands and their in-session counterparts print."""

from . import extensions, store
from .memory import SCOPES, memory_path, read_memory
from .tools import TOOLS


def tool_lines(names) -> str:
    return "\n".join(f"{name}\t{TOOLS[name].description}" for name in names)


def extension_lines(found, none="") -> str:
    lines = [f"{one.name}\t{one.source}\t{one.description}" for one in found]
    return "\n".join(lines) or none


def extension_objects(found) -> list:
    return [
        {"name": one.name, "source": one.source, "description": one.description, "path": one.path} for one in found
    ]


def commands(own: dict) -> list:
    """Built-in and own in-session commands, sorted by name."""
    from .slash import COMMANDS

    built_in = [extensions.Extension(one.name, "built-in", None, one.description) for one in COMMANDS.values()]
    return sorted([*built_in, *own.values()], key=lambda one: one.name)


def session_objects(workspace: str) -> list:
    return [session_object(store.load(one.id), one.updated) for one in store.listed(workspace)]


def session_object(session, updated) -> dict:
    return {
        "id": session.id,
        "cwd": session.cwd,
        "created": session.created,
        "updated": updated,
        "title": session.title,
        "messages": len(session.messages),
        "parent": session.parent,
    }


def session_lines(workspace: str) -> str:
    lines = [
        f"{one['id']}\t{one['updated']}\t{one['messages']}\t{one['title'] or ''}" for one in session_objects(workspace)
    ]
    return "\n".join(lines) or "no sessions"


def markdown(session) -> str:
    """The conversation as Markdown, without a line feed at its end."""
    parts = [f"# {session.title or session.id}"]
    names = {}  # id of a call -> the names of the calls with this id that wait for a result, the last one kept
    for message in session.messages:
        for call in message.tool_calls:
            names.setdefault(call.id, []).append(call.name)
        heading = f"## {message.role}"
        if message.role == "tool":
            waiting = names.get(message.tool_call_id, [""])
            heading += f" {waiting.pop(0) if len(waiting) > 1 else waiting[0]}".rstrip()
        calls = [f"call `{call.name}` {call.arguments}" for call in message.tool_calls]
        content = "\n".join(([message.content] if message.content else []) + calls)
        parts += [heading, content]
    return "\n\n".join(parts)


def memory_objects(roots, home, scopes, warn) -> dict:
    found = {}
    for scope in scopes:
        data = read_memory(scope, roots, home, warn)
        content = data.decode("utf-8", "replace").rstrip()
        path = memory_path(scope, roots.workspace, home)
        found[scope] = {"path": path, "content": content} if data else None
    return found


def memory_text(roots, home, warn, scopes=SCOPES) -> str:
    found = memory_objects(roots, home, scopes, warn)
    blocks = [f"{scope}: {memory['path']}\n{memory['content']}" for scope, memory in found.items() if memory]
    return "\n\n".join(blocks) or "no memory"
