"""Compaction: the conversation gives way to a summary that the model writes in a side call."""

from .errors import ModelError
from .types import Message

REQUEST = (
    "Summarize the conversation so far for somebody who has to go on with the work and knows nothing of it: "
    "the task, what was done and found, the files concerned, and what is left to do. Answer with the summary only."
)


def estimate_tokens(messages) -> int:
    """Tokens of a request, four characters each, rounded up."""
    n_chars = 0
    for message in messages:
        n_chars += len(message.content)
        n_chars += sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    return -(-n_chars // 4)


def summarize(model, name, system: Message, messages, instructions) -> str:
    """Return the model's summary of the conversation; raise ModelError when there is none."""
    request = REQUEST + (f"\n\n{instructions}" if instructions else "")
    asked = [system, *messages, Message("user", request)]
    for _ in range(2):
        reply = model.complete(name, asked, None)
        if reply.content.strip() and not reply.tool_calls:
            model.accept(reply)
            return reply.content
    raise ModelError("model: empty reply")
