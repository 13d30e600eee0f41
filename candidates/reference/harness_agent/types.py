"""Data that crosses the three contracts; fields may be added, none renamed.

Plain classes: `dataclasses` would be the slowest import of a start.
"""


class ToolCall:
    def __init__(self, id: str, name: str, arguments: str):
        self.id = id
        self.name = name
        self.arguments = arguments  # JSON text, as the model sent it


class Message:
    def __init__(self, role: str, content="", tool_calls=None, tool_call_id="", origin=""):
        self.role = role  # system, user, assistant or tool
        self.content = content
        self.tool_calls = tool_calls or []
        self.tool_call_id = tool_call_id
        self.origin = origin  # `hook` for what a stop hook said; not sent

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


class ToolResult:
    """What one call answers: one `tool` message."""

    def __init__(self, text: str, denied=False):
        self.text = text
        self.denied = denied


class Options:
    """What the command line or the evaluation API asks for."""

    def __init__(self, cwd="", flags=None, front=None):
        self.cwd = cwd  # empty: the current directory
        self.flags = flags or {}  # flag name without dashes -> value
        self.front = front  # who is told what happens; see front.py


class Result:
    """How a run ended; `exit_code` is from the closed table of the document."""

    def __init__(self, text="", exit_code=0, session_id="", turns=0, tool_calls=None, denials=0, usage=None, error=""):
        self.text = text
        self.exit_code = exit_code
        self.session_id = session_id
        self.turns = turns
        self.tool_calls = tool_calls if tool_calls is not None else []
        self.denials = denials
        self.usage = usage or {}
        self.error = error
