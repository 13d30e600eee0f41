"""The seams inside a harness: what a model, a tool and a session do."""

from typing import Protocol

from .types import Message, ToolResult


class Model(Protocol):
    def complete(self, messages: list[Message], tools: list[dict]) -> Message: ...


class Tool(Protocol):
    name: str
    schema: dict  # JSON schema of the parameters

    def run(self, arguments: dict) -> ToolResult: ...


class Session(Protocol):
    id: str
    messages: list[Message]

    def append(self, message: Message) -> None: ...
