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
