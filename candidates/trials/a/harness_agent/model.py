"""The model: one request with its retries, whole or streamed."""

import http.client
import os
import re
import ssl
import time
from urllib.parse import urlsplit

from .types import Message, ToolCall
from .util import HarnessError, dumps, loads

RETRIED = {408, 429, 500, 502, 503, 504, 529}
SILENCE = 300


class ModelError(Exception):
    """A request that failed for good; `overflow` marks a conversation that is too long."""

    def __init__(self, reason: str, overflow=False):
        super().__init__(reason)
        self.reason = reason
        self.overflow = overflow


class _Fault(Exception):
    def __init__(self, reason, wait=None):
        super().__init__(reason)
        self.reason = reason
        self.wait = wait


def base_url() -> str:
    url = os.environ.get("HARNESS_BASE_URL", "")
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 \
                and not re.search(r"[\s\x00-\x1f]", url):
            return url.rstrip("/")
    except ValueError:
        pass
    raise HarnessError(3, "HARNESS_BASE_URL is not set to an http:// or https:// address")


def _text_arguments(value) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value)


def _calls(items) -> list[ToolCall]:
    if items is None:
        return []
    if not isinstance(items, list):
        raise _Fault("invalid reply")
    out = []
    for item in items:
        function = item.get("function") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(function, (dict, type(None))):
            raise _Fault("invalid reply")
        function = function or {}
        id, name = item.get("id"), function.get("name")
        out.append(ToolCall(id if isinstance(id, str) else "", name if isinstance(name, str) else "",
                            _text_arguments(function.get("arguments"))))
    return out


def _usage(body) -> tuple[int, int]:
    usage = body.get("usage") if isinstance(body, dict) else None

    def number(key):
        v = usage.get(key) if isinstance(usage, dict) else None
        return v if isinstance(v, int) and not isinstance(v, bool) else 0

    return number("prompt_tokens"), number("completion_tokens")


def _whole(data: bytes) -> tuple[Message, tuple]:
    try:
        body = loads(data.decode("utf-8"))
    except ValueError:
        raise _Fault("invalid reply") from None
    choices = body.get("choices") if isinstance(body, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(message, dict):
        raise _Fault("invalid reply")
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        raise _Fault("invalid reply")
    return Message("assistant", content or "", _calls(message.get("tool_calls"))), _usage(body)


class _Stream:
    """Joins the pieces of a streamed reply."""

    def __init__(self):
        self.text = []
        self.calls = {}
        self.finished = False
        self.usage = (0, 0)

    def line(self, line: bytes) -> bool:
        """Takes one line; true at `[DONE]`."""
        if not line.startswith(b"data:"):
            return False
        data = line[5:].strip()
        if data == b"[DONE]":
            return True
        try:
            chunk = loads(data.decode("utf-8"))
        except ValueError:
            raise _Fault("invalid reply") from None
        if not isinstance(chunk, dict) or chunk.get("error") is not None:
            raise _Fault("invalid reply")
        if isinstance(chunk.get("usage"), dict):
            self.usage = _usage(chunk)
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return False
        if choices[0].get("finish_reason"):
            self.finished = True
        delta = choices[0].get("delta")
        if isinstance(delta, dict):
            self._delta(delta)
        return False

    def _delta(self, delta):
        content = delta.get("content")
        if content is not None:
            if not isinstance(content, str):
                raise _Fault("invalid reply")
            self.text.append(content)
        for piece in delta.get("tool_calls") or []:
            if not isinstance(piece, dict):
                raise _Fault("invalid reply")
            index = piece.get("index")
            if not isinstance(index, int):
                index = 0
            call = self.calls.setdefault(index, ["", "", []])
            function = piece.get("function") if isinstance(piece.get("function"), dict) else {}
            if isinstance(piece.get("id"), str) and piece["id"] and not call[0]:
                call[0] = piece["id"]
            if isinstance(function.get("name"), str) and function["name"] and not call[1]:
                call[1] = function["name"]
            call[2].append(_text_arguments(function.get("arguments")))

    def message(self) -> Message:
        calls = [ToolCall(id, name, "".join(parts)) for _, (id, name, parts) in sorted(self.calls.items())]
        return Message("assistant", "".join(self.text), calls)


class ChatModel:
    """Sends one request, retries included, and returns the reply."""

    def __init__(self, name: str, stream: bool, retries: int, base_s: float, on_request, on_retry):
        self.name = name
        self.stream = stream
        self.retries = retries
        self.base_s = base_s
        self.on_request = on_request  # called before each request
        self.on_retry = on_retry  # called with (attempt, wait, reason)
        self.last_usage = (0, 0)

    def body(self, messages: list[Message], tools) -> bytes:
        body = {"model": self.name, "messages": [m.wire() for m in messages]}
        if tools is not None:
            body["tools"] = tools
        body["stream"] = self.stream
        if self.stream:
            body["stream_options"] = {"include_usage": True}
        return dumps(body).encode("utf-8")

    def complete(self, messages: list[Message], tools: list[dict]) -> Message:
        data = self.body(messages, tools)
        wait = self.base_s
        sent = 0
        while True:
            sent += 1
            self.on_request()
            try:
                message, self.last_usage = self._send(data)
                return message
            except ModelError as e:
                raise ModelError(e.reason + (f" after {sent} tries" if sent > 1 else ""), e.overflow) from None
            except _Fault as e:
                if sent > self.retries:
                    raise ModelError(e.reason + (f" after {sent} tries" if sent > 1 else "")) from None
                pause = min(30.0, wait if e.wait is None else e.wait)
                wait *= 2
                self.on_retry(sent, pause, e.reason)
                if pause > 0:
                    time.sleep(pause)

    def _send(self, data: bytes) -> tuple[Message, tuple]:
        url = urlsplit(base_url())
        path = url.path.rstrip("/") + "/chat/completions" + (f"?{url.query}" if url.query else "")
        if url.scheme == "https":
            connection = http.client.HTTPSConnection(url.hostname, url.port, timeout=SILENCE,
                                                     context=ssl.create_default_context())
        else:
            connection = http.client.HTTPConnection(url.hostname, url.port, timeout=SILENCE)
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                   "Accept-Encoding": "identity", "Connection": "close"}
        key = os.environ.get("HARNESS_API_KEY", "")
        if key:
            headers["Authorization"] = f"Bearer {key}".encode("utf-8", "surrogateescape")
        try:
            try:
                connection.request("POST", path, data, headers)
                connection.sock and connection.sock.settimeout(SILENCE)
                response = connection.getresponse()
            except (OSError, http.client.HTTPException, UnicodeError, ValueError):
                raise _Fault("cannot connect") from None
            if response.status != 200:
                self._refused(response)
            return self._read(response)
        finally:
            connection.close()

    def _read(self, response):
        try:
            if "text/event-stream" not in (response.getheader("content-type") or "").lower():
                return _whole(response.read())
            stream = _Stream()
            try:
                while line := response.readline():
                    if stream.line(line.rstrip(b"\r\n")):
                        stream.finished = True
                        break
            except (OSError, http.client.HTTPException):
                if not stream.finished:
                    raise
            if not stream.finished:
                raise _Fault("invalid reply")
            return stream.message(), stream.usage
        except (OSError, http.client.HTTPException, ValueError):
            raise _Fault("invalid reply") from None

    def _refused(self, response):
        try:
            data = response.read()
        except http.client.IncompleteRead as e:
            data = e.partial
        except (OSError, http.client.HTTPException):
            data = b""
        reason, code = f"HTTP {response.status}", None
        try:
            error = loads(data.decode("utf-8"))["error"]
            code = error.get("code")
            if isinstance(error.get("message"), str) and error["message"]:
                reason += f": {error['message']}"
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
        key = os.environ.get("HARNESS_API_KEY", "")
        if key:
            reason = reason.replace(key, "***")
        if response.status == 400 and code == "context_length_exceeded":
            raise ModelError(reason + " (context length exceeded)", True)
        if response.status not in RETRIED:
            raise ModelError(reason)
        wait = None
        value = (response.getheader("retry-after") or "").strip()
        if re.fullmatch(r"[0-9]+(\.[0-9]*)?|\.[0-9]+", value):
            wait = float(value)
        raise _Fault(reason, wait)
