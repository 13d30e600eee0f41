"""`@PATH` in a prompt: the content of files after the prompt."""

import os
import re

from .tools.files import digest, is_binary

MENTION = re.compile(r'(?:(?<=\s)|\A)@(?:"([^"]+)"|(\S+))')
TRAILING = ".,;:!?)"
MOST_BYTES = 100_000


def attach(conversation, prompt: str):
    """Return the prompt followed by a block for each file that it mentions, and what was read.

    The second value maps real paths to digests.
    """
    if "@" not in prompt:
        return prompt, {}
    from .context import ToolContext

    context = ToolContext(conversation, conversation.session)
    blocks, done, seen = [], set(), {}
    for quoted, bare in MENTION.findall(prompt):
        if bare.startswith('"'):
            continue  # without a closing quote it is plain text
        path = quoted or existing(context, bare)
        if reason := refusal(context, path):
            conversation.front.warn(f"not attached: {path or bare} ({reason})")
            continue
        real = context.roots.real(path)
        if real not in done:
            done.add(real)
            blocks.append(block(context, path, real, seen))
    return "\n\n".join([prompt, *blocks]), seen


def existing(context, path: str) -> str:
    """The path without the signs at its end that belong to the sentence."""
    shorter = path
    while shorter:
        if os.path.lexists(context.roots.given(shorter)):
            return shorter
        if shorter[-1] not in TRAILING:
            break
        shorter = shorter[:-1]
    return path


def refusal(context, path: str) -> str:
    """Why a path is not attached, or nothing."""
    real = context.roots.real(path)
    if not context.roots.holds(real):
        return "outside the workspace"
    if context.ignores(path):
        return "ignored"
    if context.denies_reading(path):
        return "denied"
    if os.path.isdir(real):
        return ""
    if not os.path.isfile(real):
        return "no such file"
    try:
        with open(real, "rb") as file:
            return "binary" if is_binary(file.read(8192)) else ""
    except OSError as error:
        return str(error.strerror)


def block(context, path, real, seen) -> str:
    shown = context.roots.relative(real)
    if os.path.isdir(real):
        from .tools.search import list_directory

        return f'<directory path="{shown}">\n{list_directory(context, path)}\n</directory>'
    with open(real, "rb") as file:
        data = file.read()
    seen[real] = digest(data)
    if len(data) <= MOST_BYTES:
        text = data.decode("utf-8", "replace")
    else:
        part = data[: data.rfind(b"\n", 0, MOST_BYTES) + 1] or data[:MOST_BYTES]
        text = part.decode("utf-8", "replace")
        text += ("" if text.endswith("\n") else "\n") + f"[{len(data) - len(part)} bytes left out]"
    if text and not text.endswith("\n"):
        text += "\n"
    return f'<file path="{shown}">\n{text}</file>'
