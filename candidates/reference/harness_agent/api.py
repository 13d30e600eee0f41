"""Contract 3, the evaluation API: `./harness api` calls `serve`."""

import json
import os

from .conversation import Conversation, ProcessState
from .errors import HarnessError
from .flags import SESSION_ID
from .front import NO, NOBODY, ONCE, Front
from .output import result_fields
from .permissions import MODES, Rule
from .texts import from_json, utf8
from .tools import NAMES as TOOL_NAMES
from .types import Options, Result

KEYS = ("id", "op", "prompt", "cwd", "options", "approvals")
OPERATIONS = ("run", "state", "reset", "close")
LISTS = ("allow", "deny", "add_dirs")
SWITCHES = ("fork", "no_save")
TEXTS = ("permission_mode", "model", "agent", "resume")
OPTION_KEYS = (*LISTS, *SWITCHES, *TEXTS, "max_turns")
FLAG_OF = {"permission_mode": "permission-mode", "max_turns": "max-turns", "add_dirs": "add-dir", "no_save": "no-save"}


class Invalid(Exception):
    """The request cannot be carried out; the text names the key at fault."""


class ApiFront(Front):
    """Answers approvals from the list of the request."""

    answers = "deny"

    def approve(self, tool, subject):
        if isinstance(self.answers, list):
            if not self.answers:
                return NOBODY
            return ONCE if self.answers.pop(0) == "allow" else NO
        return ONCE if self.answers == "allow" else NOBODY


class Api:
    """The conversation of one process and the operations on it."""

    def __init__(self, options: Options):
        self.options = options
        self.front = ApiFront("quiet" in options.flags, "verbose" in options.flags)
        self.process = ProcessState()
        self.conversation = None
        self.is_closed = False

    def answer(self, request) -> dict:
        """Answer one decoded request; never raise."""
        request_id = None
        try:
            request_id = self._check(request)
            return {"id": request_id, "ok": True, "result": self._carry_out(request)}
        except Invalid as error:
            return failure(request_id_of(request), "invalid_request", str(error))
        except Exception as error:
            return failure(request_id, "internal", str(error) or type(error).__name__)

    def _check(self, request):
        if not isinstance(request, dict):
            raise Invalid("the request is not an object")
        if not is_id(request.get("id")):
            raise Invalid("id is not a string, a number or null")
        for key, value in request.items():
            if key not in KEYS and value is not None:
                raise Invalid(f"unknown key {key}")
        operation = request.get("op")
        if operation not in OPERATIONS:
            raise Invalid(f"op is missing or unknown: {json.dumps(operation, ensure_ascii=False)}")
        self._check_prompt(request, operation)
        if not isinstance(request.get("cwd"), (str, type(None))):
            raise Invalid("cwd is not a string")
        check_approvals(request.get("approvals"))
        self._check_options(request)
        return request.get("id")

    def _check_prompt(self, request, operation):
        prompt = request.get("prompt")
        if prompt is None and operation != "run":
            return
        if not isinstance(prompt, str) or not prompt.strip():
            raise Invalid("prompt is missing, not a string, or empty")

    def _check_options(self, request):
        options = request.get("options")
        if not isinstance(options, (dict, type(None))):
            raise Invalid("options is not an object")
        given = {key: value for key, value in (options or {}).items() if value is not None}
        for key, value in given.items():
            if key not in OPTION_KEYS:
                raise Invalid(f"options.{key}: unknown key")
            check_option(key, value)
        if given.get("fork") and "resume" not in given:
            raise Invalid("options.fork needs resume")
        workspace = self._workspace(request, given)
        for name in given.get("add_dirs", []):
            if not os.path.isdir(os.path.join(workspace, name)):
                raise Invalid(f"options.add_dirs: no such directory: {name}")
        if "agent" in given:
            from .extensions import find_roles
            from .settings import home_directory

            if given["agent"] not in find_roles(workspace, home_directory(), lambda text: None):
                raise Invalid(f"options.agent: unknown role {given['agent']}")

    def _workspace(self, request, options) -> str:
        """The workspace of a request; refuse one that is none or differs from that of the conversation."""
        given = request.get("cwd")
        present = self.conversation.workspace if self.conversation else None
        if given is None:
            return present or os.path.realpath(self.options.flags.get("cwd") or ".")
        if not given or not os.path.isdir(given):
            raise Invalid(f"cwd: no such directory: {given}")
        real = os.path.realpath(given)
        if present and real != present and "resume" not in options:
            raise Invalid(f"cwd differs from that of the conversation: {given}")
        return real

    def _carry_out(self, request):
        operation = request["op"]
        if operation == "run":
            return self._run(request)
        if operation == "state":
            return self._state()
        self.conversation = None
        self.is_closed = operation == "close"
        return {}

    # Runs.

    def _run(self, request) -> dict:
        options = {key: value for key, value in (request.get("options") or {}).items() if value is not None}
        flags = {
            FLAG_OF.get(key, key): value
            for key, value in options.items()
            if key not in ("resume", "fork") and value is not False
        }
        approvals = request.get("approvals") or "deny"
        self.front.answers = list(approvals) if isinstance(approvals, list) else approvals
        workspace = self._workspace(request, options)
        result = Result()
        try:
            conversation = self._conversation_for(workspace)
            conversation.prepare(flags)
            self._choose_session(conversation, options)
            self.conversation = conversation
            result = conversation.run(request["prompt"])
        except HarnessError as error:
            self.front.warned.clear()
            result.exit_code, result.error = error.exit_code, str(error)
            if self.conversation:
                result.session_id = self.conversation.session.id
        if result.exit_code:
            self.front.error(result.error)
        return result_fields(result)

    def _conversation_for(self, workspace) -> Conversation:
        if self.conversation and self.conversation.workspace == workspace:
            return self.conversation
        options = Options(cwd=workspace, flags={key: value for key, value in self.options.flags.items() if key != "cwd"})
        conversation = Conversation(options, self.front, self.process)
        if self.conversation:
            conversation.follow(self.conversation)
        return conversation

    def _choose_session(self, conversation, options):
        resumed = options.get("resume")
        fork = bool(options.get("fork"))
        if conversation.session is None:
            if not resumed:
                conversation.choose_session()
            else:
                conversation.resume(resumed, fork)
        else:
            conversation.session.saving = conversation.is_saving()
            if resumed and (fork or resumed != conversation.session.id):
                conversation.resume(resumed, fork)

    def _state(self) -> dict:
        """What the conversation is; nothing is changed by asking."""
        conversation = self.conversation or Conversation(self.options, self.front)
        session = conversation.session
        model, mode = self._model_and_mode(conversation)
        return {
            "session_id": session.id if session else None,
            "cwd": conversation.workspace,
            "model": model,
            "permission_mode": mode,
            "title": session.title if session else None,
            "messages": [message.wire() for message in session.messages] if session else [],
            "todos": session.todos if session else [],
        }

    def _model_and_mode(self, conversation):
        """Those of the next run; when settings cannot be used, those of the flags."""
        try:
            conversation.prepare()
            return conversation.model_name() or None, conversation.effective_mode()
        except HarnessError as error:
            self.front.warn(str(error))
            return self.options.flags.get("model"), self.options.flags.get("permission-mode", "ask")
        finally:
            self.front.warned.clear()


def is_id(value) -> bool:
    return value is None or isinstance(value, (str, int, float)) and not isinstance(value, bool)


def request_id_of(request):
    """The id of a faulty request as far as there is one."""
    value = request.get("id") if isinstance(request, dict) else None
    return value if is_id(value) else None


def check_approvals(approvals):
    items = approvals if isinstance(approvals, list) else [approvals]
    if approvals is not None and any(item not in ("allow", "deny") for item in items):
        raise Invalid("approvals is not allow, deny or a list of these")


def check_option(key, value):
    if key in LISTS:
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
        wanted = "a list of strings"
    elif key in SWITCHES:
        fits, wanted = isinstance(value, bool), "a boolean"
    elif key == "max_turns":
        fits = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        wanted = "an integer from 1"
    else:
        fits, wanted = isinstance(value, str) and bool(value), "a non-empty string"
    if not fits:
        raise Invalid(f"options.{key} is not {wanted}")
    if key == "permission_mode" and value not in MODES:
        raise Invalid(f"options.permission_mode: unknown mode {value}")
    if key == "resume" and not SESSION_ID.fullmatch(value):
        raise Invalid(f"options.resume: not an id: {value}")
    if key in ("allow", "deny"):
        for rule in value:
            try:
                Rule(rule, "flag", TOOL_NAMES)
            except ValueError as error:
                raise Invalid(f"options.{key}: {error}") from None


def failure(request_id, code, message) -> dict:
    return {"id": request_id, "ok": False, "error": {"code": code, "message": " ".join(message.split()) or code}}


_api = None


def evaluate(request: dict) -> dict:
    """Answer one request; an error is a response with `ok: false`, not an exception."""
    global _api
    if _api is None:
        _api = Api(Options())
    return _api.answer(request)


def serve(stdin, stdout) -> int:
    """Read one JSON request a line, write one JSON response a line, until end of input."""
    return serve_with(Options(), stdin, stdout)


def serve_with(options: Options, stdin, stdout) -> int:
    """As `serve`, with the flags of `harness api` as defaults."""
    api = Api(options)
    Conversation(options, api.front).check_flags()
    source = getattr(stdin, "buffer", stdin)
    while line := source.readline():
        if not line.strip():
            continue
        try:
            request = from_json(line if isinstance(line, str) else line.decode("utf-8"))
        except ValueError as error:
            response = failure(None, "invalid_json", f"not valid JSON: {error}")
        else:
            response = api.answer(request)
        stdout.write(utf8(json.dumps(response, ensure_ascii=False)) + "\n")
        stdout.flush()
        if api.is_closed:
            break
    return 0
