"""Data that crosses the three contracts; fields may be added, none renamed."""

from dataclasses import dataclass, field
from typing import Callable, Optional


@dataclass
class ToolCall:
    id: str
    name: str
    arguments: str  # JSON text, as the model sent it


@dataclass
class Message:
    role: str  # system, user, assistant or tool
    content: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    tool_call_id: str = ""
    kind: str = ""  # of a user message: "" (a prompt), shell, hook or summary
    turn: str = ""  # key of the turn's file changes, on the message that begins it

    def begins_turn(self) -> bool:
        return self.role == "user" and self.kind in ("", "shell")

    def wire(self) -> dict:
        """The form that a message has in requests and in session files."""
        if self.role == "tool":
            return {"role": "tool", "tool_call_id": self.tool_call_id, "content": self.content}
        out = {"role": self.role, "content": self.content}
        if self.tool_calls:
            out["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in self.tool_calls
            ]
        return out


@dataclass
class ToolResult:
    """What one call answers: one `tool` message."""

    text: str
    denied: bool = False


@dataclass
class Options:
    """What the command line or the evaluation API asks for."""

    cwd: str = ""  # empty: the current directory
    flags: dict = field(default_factory=dict)  # flag name without dashes -> value
    emit: Optional[Callable[[dict], None]] = None  # receives the events of stream-json


@dataclass
class Result:
    """How a run ended; `exit_code` is from the closed table of the document."""

    text: str = ""
    exit_code: int = 0
    session_id: str = ""
    turns: int = 0
    tool_calls: list[dict] = field(default_factory=list)
    denials: int = 0
    usage: dict = field(default_factory=dict)
    error: str = ""
