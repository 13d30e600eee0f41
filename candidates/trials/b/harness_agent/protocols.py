"""The seams inside a harness: what a model, a tool and a session do."""

from typing import Protocol

from .types import Message, ToolResult


class Model(Protocol):
    """Sends one request, retries included, and returns the reply."""

    def complete(self, messages: list[Message], tools: list[dict]) -> Message: ...


class Tool(Protocol):
    """One function that the model may call."""

    name: str
    schema: dict  # JSON schema of the parameters

    def run(self, arguments: dict) -> ToolResult: ...


class Session(Protocol):
    """One conversation, kept on disk as it grows."""

    id: str
    messages: list[Message]

    def append(self, message: Message) -> None: ...
