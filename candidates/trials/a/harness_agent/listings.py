"""Outputs that the command line and in-session commands share."""

import os

from . import arguments, store
from .store import Session
from .util import dumps, utc


def sessions(home, workspace) -> str:
    lines = []
    for s in store.stored(home, workspace):
        s.missing_results()
        title = (s.title or "").replace("\t", " ")
        lines.append(f"{s.id}\t{utc(s.updated)}\t{len(s.messages)}\t{title}")
    return "\n".join(lines) or "no sessions"


def session_object(s: Session) -> dict:
    s.missing_results()
    return {"id": s.id, "cwd": s.cwd, "created": s.created, "updated": utc(s.updated), "title": s.title,
            "messages": len(s.messages), "parent": s.parent}


def export(s: Session) -> str:
    parts = [f"# {s.title or s.id}"]
    names = {}
    for m in s.messages:
        head = m.role
        if m.role == "tool":
            head = f"tool {names.get(m.tool_call_id, '')}"
        body = m.content
        for call in m.tool_calls:
            names[call.id] = call.name
            body += ("\n" if body else "") + f"call `{call.name}` {call.arguments}"
        parts.append(f"## {head}")
        parts.append(body)
    return "\n\n".join(parts)


def tools(names) -> str:
    return "\n".join(f"{n}\t{arguments.SIGNATURES[n][0].splitlines()[0]}" for n in names)


def named(items, none="") -> str:
    return "\n".join(f"{i.name}\t{i.source}\t{i.description}" for i in items) or none


def named_objects(items) -> list[dict]:
    return [{"name": i.name, "source": i.source, "description": i.description, "path": i.path or None} for i in items]


def init(workspace: str) -> str:
    """Makes the usual files of a workspace."""
    name = os.path.basename(workspace) or "/"
    out = []
    for path, text in (("AGENTS.md", f"# {name}\n"), (".harness/settings.json", "{}\n")):
        full = os.path.join(workspace, path)
        if os.path.lexists(full):
            out.append(f"exists {path}")
            continue
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "xb") as f:
            f.write(text.encode("utf-8", "replace"))
        out.append(f"created {path}")
    return "\n".join(out)


def config_value(value, plain: bool) -> str:
    return value if plain and isinstance(value, str) else dumps(value)


def distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def near(name: str, known) -> list[str]:
    found = []
    for other in known:
        d = distance(name, other) if abs(len(name) - len(other)) < 70 else 99
        if d <= 2 or (name and other.startswith(name)):
            found.append((d, other.encode("utf-8"), other))
    return [o for _, _, o in sorted(found)[:3]]


def did_you_mean(name: str, known, sign="") -> str:
    names = near(name, known)
    return f"; did you mean {', '.join(sign + n for n in names)}?" if names else ""
