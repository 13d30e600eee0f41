"""Server-sent events of a streamed reply, put together into one whole reply."""

import json

from .texts import arguments_text
from .transport import TransportError


def events(chunks):
    """Yield the data of each event; `chunks` are pieces of bytes cut anywhere."""
    buffer, data = b"", []
    for chunk in chunks:
        buffer += chunk
        *lines, buffer = buffer.split(b"\n")
        for line in lines:
            line = line.rstrip(b"\r")
            if not line:
                if data:
                    yield "\n".join(data)
                data = []
            elif line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" ").decode("utf-8", "replace"))
    if buffer.startswith(b"data:"):
        data.append(buffer[5:].strip().decode("utf-8", "replace"))
    if data:
        yield "\n".join(data)


def assemble(chunks) -> dict:
    """Return the reply in the shape of a whole one; raise when the stream is cut or broken."""
    reply = Reply()
    try:
        for data in events(chunks):
            if data.strip() == "[DONE]":
                reply.finished = True
                break
            try:
                reply.add(data)
            except TransportError:
                if not reply.finished:
                    raise
                break
    except TransportError:
        if not reply.finished:
            raise
    if not reply.finished:
        raise TransportError("the stream was cut")
    return reply.whole()


class Reply:
    """A reply that grows with each event."""

    def __init__(self):
        self.text = []
        self.calls = {}  # by their index
        self.last_index = 0
        self.usage = None
        self.finished = False

    def add(self, data):
        try:
            event = json.loads(data)
            if event.get("error"):
                raise TransportError("the stream holds an error")
            self.usage = event.get("usage") or self.usage
            for choice in (event.get("choices") or [])[:1]:
                delta = choice.get("delta") or {}
                self.text.append(of_type(str, delta.get("content"), ""))
                for part in of_type(list, delta.get("tool_calls"), []):
                    self._add_call_part(part)
                self.finished = self.finished or bool(choice.get("finish_reason"))
        except (ValueError, AttributeError, TypeError):
            raise TransportError("an event of the stream cannot be understood") from None

    def whole(self) -> dict:
        message = {"role": "assistant", "content": "".join(self.text)}
        if self.calls:
            message["tool_calls"] = [self.calls[index] for index in sorted(self.calls)]
        return {"choices": [{"message": message}], "usage": self.usage}

    def _add_call_part(self, part):
        """Add one piece of a call; pieces of the same call share their index."""
        index = part.get("index")
        if not isinstance(index, int):
            index = max(self.calls, default=-1) + 1 if part.get("id") or not self.calls else self.last_index
        self.last_index = index
        call = self.calls.setdefault(index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        function = of_type(dict, part.get("function"), {})
        call["id"] = call["id"] or part.get("id") or ""
        call["function"]["name"] = call["function"]["name"] or function.get("name") or ""
        call["function"]["arguments"] += arguments_text(function.get("arguments"))


def of_type(kind, value, absent):
    """The value, `absent` for None; raise TypeError when it is of another type."""
    if value is None:
        return absent
    if not isinstance(value, kind):
        raise TypeError
    return value
