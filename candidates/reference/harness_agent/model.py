"""The model client: one request in, one reply out, retries in between."""

import json
import time

from . import sse, transport
from .errors import ContextOverflow, ModelError
from .texts import arguments_text
from .types import Message, ToolCall

RETRIED_STATUS = {408, 429, 500, 502, 503, 504, 529}
LONGEST_WAIT_S = 30.0
MOST_DOUBLINGS = 1000  # what a float can take


class Retry(Exception):
    """This attempt failed in a way that another one may not."""

    def __init__(self, reason, after_s=None):
        super().__init__(reason)
        self.after_s = after_s


class Reply(Message):
    """A message of the model with the tokens that it cost."""

    tokens = (0, 0)


class ChatModel:
    """Talks to one OpenAI-compatible endpoint; counts requests and tokens in `usage`."""

    def __init__(self, base_url, api_key, settings, watcher):
        self.url = base_url.rstrip("/") + "/chat/completions"
        self.api_key = api_key
        self.stream = settings["stream"]
        self.max_retries = settings["max_retries"]
        self.retry_base_s = settings["retry_base_s"]
        self.watcher = watcher  # is told of requests and retries
        self.usage = {"requests": 0, "input_tokens": 0, "output_tokens": 0}

    def complete(self, name, messages, tools) -> Reply:
        """Return the reply to `messages`; raise ModelError when there is none to be had.

        `tools` is None for a side call, whose request has no such key. The tokens of the reply
        count only when it is accepted.
        """
        body = self._body(name, messages, tools)
        tries = 0
        while True:
            tries += 1
            try:
                return self._message(self._attempt(body))
            except Retry as failure:
                reason = self._without_key(str(failure))
                if tries > self.max_retries:
                    raise ModelError(f"model: {reason} after {tries} tries") from None
                wait_s = min(self.retry_base_s * 2 ** min(tries - 1, MOST_DOUBLINGS), LONGEST_WAIT_S)
                if failure.after_s is not None:
                    wait_s = min(failure.after_s, LONGEST_WAIT_S)
                self.watcher.retrying(tries, wait_s, reason)
                time.sleep(wait_s)

    def accept(self, reply: Reply):
        self.usage["input_tokens"] += reply.tokens[0]
        self.usage["output_tokens"] += reply.tokens[1]

    def _body(self, name, messages, tools) -> bytes:
        payload = {"model": name, "messages": [message.wire() for message in messages]}
        if tools is not None:
            payload["tools"] = tools
        payload["stream"] = self.stream
        if self.stream:
            payload["stream_options"] = {"include_usage": True}
        return json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")

    def _attempt(self, body) -> dict:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        self.usage["requests"] += 1
        self.watcher.requesting(self.usage["requests"])
        try:
            response = transport.post(self.url, headers, body)
        except transport.TransportError as error:
            raise Retry(f"cannot connect: {error}") from None
        try:
            if response.status == 200:
                if "text/event-stream" in response.headers.get("content-type", "").lower():
                    return sse.assemble(response.chunks())
                return parse_object(response.body())
        except transport.TransportError as error:
            raise Retry(f"HTTP 200: invalid reply: {error}") from None
        self._refused(response)

    def _refused(self, response):
        """Raise what a status other than 200 means."""
        try:
            code, detail = error_parts(response.body())
        except transport.TransportError:
            code, detail = "", ""
        reason = f"HTTP {response.status}" + (f": {detail}" if detail else "")
        if response.status == 400 and code == "context_length_exceeded":
            raise ContextOverflow(self._without_key(f"model: context length exceeded: {reason}"))
        if response.status in RETRIED_STATUS:
            raise Retry(reason, retry_after(response.headers.get("retry-after")))
        raise ModelError(self._without_key(f"model: {reason}"))

    def _without_key(self, text):
        return text.replace(self.api_key, "…") if self.api_key else text

    def _message(self, reply) -> Reply:
        try:
            raw = reply["choices"][0]["message"]
            calls = read_calls(raw.get("tool_calls"))
            content = raw.get("content")
            usage = reply.get("usage") or {}
            tokens = [usage.get(key) for key in ("prompt_tokens", "completion_tokens")]
        except (KeyError, IndexError, TypeError, AttributeError):
            raise Retry("HTTP 200: invalid reply: it has no message") from None
        if not isinstance(content, (str, type(None))):
            raise Retry("HTTP 200: invalid reply: its content is no text")
        message = Reply("assistant", content or "", calls)
        message.tokens = tuple(count if isinstance(count, int) else 0 for count in tokens)
        return message


def read_calls(listed) -> list[ToolCall]:
    """The calls of a reply; raise TypeError when it is no list of calls."""
    if not isinstance(listed, (list, type(None))):
        raise TypeError
    return [read_call(call) for call in listed or []]


def read_call(call) -> ToolCall:
    function = call["function"]
    arguments = arguments_text(function.get("arguments"))
    return ToolCall(str(call.get("id") or ""), str(function.get("name") or ""), arguments)


def parse_object(body: bytes) -> dict:
    try:
        reply = json.loads(body.decode("utf-8", "replace"))
    except ValueError:
        raise Retry("HTTP 200: invalid reply: it is not JSON") from None
    if not isinstance(reply, dict):
        raise Retry("HTTP 200: invalid reply: it is no JSON object")
    return reply


def error_parts(body: bytes):
    """Return code and message of an error body, each empty when absent."""
    try:
        error = json.loads(body.decode("utf-8", "replace")).get("error")
    except (ValueError, AttributeError):
        return "", ""
    if isinstance(error, dict):
        return str(error.get("code") or ""), str(error.get("message") or "")
    return "", str(error or "")


def retry_after(text):
    """Return the seconds that a `retry-after` header asks for; what is no number counts as absent."""
    text = (text or "").strip()
    return float(text) if text.replace(".", "", 1).isdecimal() else None
