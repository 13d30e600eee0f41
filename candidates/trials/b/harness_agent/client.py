"""The model: one request with its retries, whole or streamed."""

import http.client
import os
import socket
import ssl
import time
from urllib.parse import urlsplit

from .base import Console, HarnessError, json_bytes, parse_json, js

RETRIED = {408, 429, 500, 502, 503, 504, 529}
SILENCE = 300


class ModelError(HarnessError):
    def __init__(self, reason):
        super().__init__(4, "model: " + reason)
        self.reason = reason


class Overflow(Exception):
    """The model says that the conversation is too long."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


class _Fault(Exception):
    """A fault that may pass."""

    def __init__(self, reason, after=None):
        super().__init__(reason)
        self.reason = reason
        self.after = after


class _Refused(Exception):
    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


def base_url():
    """The parts of the address; code 3 when it cannot be used."""
    value = os.environ.get("HARNESS_BASE_URL") or ""
    try:
        parts = urlsplit(value)
        port = parts.port
        good = parts.scheme in ("http", "https") and parts.hostname
    except ValueError:
        good = False
    if not good or any(ord(c) <= 32 for c in value):
        raise HarnessError(3, "HARNESS_BASE_URL is " + ("not usable: " + value if value else "not set"))
    path = parts.path.rstrip("/") + "/chat/completions"
    if parts.query:
        path += "?" + parts.query
    return parts.scheme, parts.hostname, port, path


def _clean(text):
    key = os.environ.get("HARNESS_API_KEY") or ""
    return text.replace(key, "[key]") if key else text


def _message_of(body):
    try:
        error = parse_json(body.decode("utf-8", "replace")).get("error")
        return error if type(error) is dict else {}
    except (ValueError, AttributeError):
        return {}


class Reply:
    def __init__(self, content, calls, usage):
        self.content = content
        self.calls = calls
        self.usage = usage

    def tokens(self):
        usage = self.usage if type(self.usage) is dict else {}
        return [usage.get(k) if type(usage.get(k)) is int else 0 for k in ("prompt_tokens", "completion_tokens")]


def _call(raw):
    """A call in the form in which it counts."""
    function = raw.get("function")
    name = function.get("name")
    arguments = function.get("arguments")
    if arguments is None:
        arguments = ""
    elif type(arguments) is not str:
        arguments = js(arguments)
    call_id = raw.get("id")
    return {"id": call_id if type(call_id) is str else "", "type": "function",
            "function": {"name": name if type(name) is str else "", "arguments": arguments}}


def _whole(body):
    try:
        value = parse_json(body.decode("utf-8"))
        message = value["choices"][0]["message"]
        if type(message) is not dict:
            raise ValueError
        content = message.get("content")
        if content is not None and type(content) is not str:
            raise ValueError
        calls = message.get("tool_calls")
        if calls is None:
            calls = []
        if type(calls) is not list or any(
                type(c) is not dict or type(c.get("function")) is not dict for c in calls):
            raise ValueError
    except (ValueError, KeyError, IndexError, TypeError):
        raise _Fault("invalid reply") from None
    return Reply(content or "", [_call(c) for c in calls], value.get("usage"))


class _Stream:
    def __init__(self):
        self.text = []
        self.calls = {}  # index -> {id, name, arguments}
        self.order = []
        self.last = None
        self.usage = None
        self.finished = False
        self.done = False

    def line(self, line):
        if not line.startswith(b"data:"):
            return
        data = line[5:].strip()
        if data == b"[DONE]":
            self.done = True
            return
        try:
            chunk = parse_json(data.decode("utf-8"))
            if type(chunk) is not dict or chunk.get("error") is not None:
                raise ValueError
            self._chunk(chunk)
        except (ValueError, TypeError, AttributeError):
            if self.finished:
                self.done = True
                return
            raise _Fault("invalid reply") from None

    def _chunk(self, chunk):
        if type(chunk.get("usage")) is dict:
            self.usage = chunk["usage"]
        choices = chunk.get("choices")
        if not choices:
            return
        choice = choices[0]
        delta = choice.get("delta") or {}
        content = delta.get("content")
        if content is not None and type(content) is not str:
            raise ValueError
        pieces = delta.get("tool_calls") or []
        for piece in pieces:
            if type(piece) is not dict or type(piece.get("function", {}) or {}) is not dict:
                raise ValueError
        if content:
            self.text.append(content)
        for piece in pieces:
            self._piece(piece)
        if choice.get("finish_reason"):
            self.finished = True

    def _piece(self, piece):
        index = piece.get("index")
        call_id = piece.get("id")
        call_id = call_id if type(call_id) is str else ""
        if type(index) is not int:
            if call_id or not self.calls:
                index = max(self.calls, default=-1) + 1
            else:
                index = self.last
        self.last = index
        call = self.calls.setdefault(index, {"id": "", "name": "", "arguments": [], "any": False})
        function = piece.get("function") or {}
        if not call["id"]:
            call["id"] = call_id
        if not call["name"] and type(function.get("name")) is str:
            call["name"] = function["name"]
        arguments = function.get("arguments")
        if arguments is not None:
            call["arguments"].append(arguments if type(arguments) is str else js(arguments))

    def reply(self):
        calls = [self.calls[i] for i in sorted(self.calls)]
        return Reply("".join(self.text), [
            {"id": c["id"], "type": "function",
             "function": {"name": c["name"], "arguments": "".join(c["arguments"])}} for c in calls], self.usage)


def _streamed(response):
    stream = _Stream()
    rest = b""
    try:
        while not stream.done:
            data = response.read1(65536)
            if not data:
                if rest:
                    stream.line(rest.rstrip(b"\r"))
                break
            rest += data
            *lines, rest = rest.split(b"\n")
            for line in lines:
                stream.line(line.rstrip(b"\r"))
                if stream.done:
                    break
    except (OSError, http.client.HTTPException):
        pass
    if not stream.finished and not stream.done:
        raise _Fault("invalid reply")
    return stream.reply()


class Client:
    """Sends requests for one process; `usage` is counted by whoever listens."""

    def __init__(self):
        self.listeners = []  # objects with requests, input_tokens, output_tokens
        self.on_retry = None

    def _send(self, body):
        scheme, host, port, path = base_url()
        for counter in self.listeners:
            counter["requests"] += 1
        Console.requests += 1
        Console.verbose(f"request {Console.requests}")
        if scheme == "https":
            connection = http.client.HTTPSConnection(host, port, timeout=SILENCE,
                                                     context=ssl.create_default_context())
        else:
            connection = http.client.HTTPConnection(host, port, timeout=SILENCE)
        headers = {"Content-Type": "application/json"}
        key = os.environ.get("HARNESS_API_KEY") or ""
        if key:
            headers["Authorization"] = ("Bearer " + key).encode("utf-8", "surrogateescape")
        try:
            try:
                connection.request("POST", path.encode("utf-8").decode("latin-1") if path.isascii() else
                                   __import__("urllib.parse").parse.quote(path, safe="/?&=%:"), body, headers)
                response = connection.getresponse()
            except (OSError, http.client.HTTPException, ValueError, UnicodeError):
                raise _Fault("cannot connect") from None
            return self._read(response)
        finally:
            connection.close()

    def _read(self, response):
        status = response.status
        if status == 200:
            if "text/event-stream" in (response.getheader("Content-Type") or "").lower():
                return _streamed(response)
            try:
                body = response.read()
            except (OSError, http.client.HTTPException):
                raise _Fault("invalid reply") from None
            return _whole(body)
        try:
            body = response.read(1 << 20)
        except http.client.IncompleteRead as error:
            body = error.partial
        except (OSError, http.client.HTTPException):
            body = b""
        error = _message_of(body)
        text = f"HTTP {status}"
        if type(error.get("message")) is str and error["message"]:
            text += ": " + error["message"]
        text = _clean(text)
        if status == 400 and error.get("code") == "context_length_exceeded":
            raise Overflow(text)
        if status in RETRIED:
            raise _Fault(text, response.getheader("retry-after"))
        raise _Refused(text)

    def complete(self, body, settings):
        """The reply to one request; an empty reply is asked for once more."""
        data = json_bytes(body)
        for again in (False, True):
            reply = self._retried(data, settings)
            if "tools" not in body:
                reply.calls = []
            if reply.calls or reply.content.strip():
                tokens = reply.tokens()
                for counter in self.listeners:
                    counter["input_tokens"] += tokens[0]
                    counter["output_tokens"] += tokens[1]
                return reply
        raise ModelError("empty reply")

    def _retried(self, data, settings):
        retries = settings.get("max_retries")
        base = settings.get("retry_base_s")
        attempt = 0
        while True:
            try:
                return self._send(data)
            except _Refused as error:
                raise ModelError(error.reason) from None
            except _Fault as error:
                if attempt >= retries:
                    raise ModelError(f"{error.reason} after {retries + 1} tries") from None
                wait = min(30, base * 2 ** min(attempt, 60))
                try:
                    after = float((error.after or "").strip())
                    if 0 <= after < float("inf") and "_" not in error.after:
                        wait = min(30, after)
                except ValueError:
                    pass
                attempt += 1
                if self.on_retry:
                    self.on_retry(attempt, wait, error.reason)
                if wait:
                    time.sleep(wait)


def socket_default():
    socket.setdefaulttimeout(None)
