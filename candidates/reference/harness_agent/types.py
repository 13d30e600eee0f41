"""Data that crosses the three contracts; fields may be added, none renamed."""

from dataclasses import dataclass, field


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
    origin: str = ""  # `hook` for what a stop hook said; not sent

    def wire(self) -> dict:
        """The message as it stands in a request and in a session file."""
        wire = {"role": self.role, "content": self.content}
        if self.tool_calls:
            wire["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.tool_calls
            ]
        if self.role == "tool":
            wire["tool_call_id"] = self.tool_call_id
        return wire

    @classmethod
    def from_wire(cls, wire: dict) -> "Message":
        calls = [
            ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in wire.get("tool_calls") or []
        ]
        return cls(wire["role"], wire.get("content") or "", calls, wire.get("tool_call_id", ""))


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
    front: object = None  # who is told what happens; see front.py


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
