"""Runs the harness against a scripted model and gives access to all that can be seen of a run."""

import http.server
import itertools
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
HARNESS = os.path.join(ROOT, "harness")
TIMEOUT_S = 30


# Replies of the model.


def say(text, **usage):
    return {"content": text, **({"usage": usage} if usage else {})}


def call(tool, /, **arguments):
    return calls((tool, arguments))


def calls(*pairs, text=None):
    """A reply with several tool calls; arguments are an object or, when faulty on purpose, a text."""
    listed = []
    for number, (name, arguments) in enumerate(pairs, 1):
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments)
        listed.append({"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}})
    return {"content": text, "tool_calls": listed}


class Fault:
    """An answer that is no reply: a status, a raw body, a cut, a stream, or a wait."""

    def __init__(self, status=200, body=b"", headers=(), cut=False, wait_s=0.0):
        self.status = status
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.headers = dict(headers)
        self.cut = cut
        self.wait_s = wait_s


def status(code, message="", error_code=None, **headers):
    error = {"error": {"message": message, "code": error_code}}
    return Fault(code, error, {name.replace("_", "-"): value for name, value in headers.items()})


def stream(*chunks, done=True):
    """A streamed answer; a chunk is the delta of an event, or bytes to be sent as they are."""
    body = b""
    for chunk in chunks:
        if not isinstance(chunk, bytes):
            chunk = b"data: " + json.dumps(chunk).encode() + b"\n\n"
        body += chunk
    return Fault(body=body + (b"data: [DONE]\n\n" if done else b""), headers={"content-type": "text/event-stream"})


def delta(finish_reason=None, **fields):
    return {"choices": [{"delta": fields, "finish_reason": finish_reason}]}


OVERFLOW = status(400, "too long", "context_length_exceeded")


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_POST(self):
        key = self.path.split("/")[1]
        scenario = self.server.scenarios[key]
        body = self.rfile.read(int(self.headers["content-length"]))
        scenario.record(self, body)
        answer = scenario.next()
        if callable(answer):
            answer = answer(scenario)
        if not isinstance(answer, Fault):
            answer = whole_reply(answer)
        time.sleep(answer.wait_s)
        self.send_response(answer.status)
        headers = {"content-type": "application/json", "content-length": str(len(answer.body)), **answer.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(answer.body[: len(answer.body) // 2] if answer.cut else answer.body)
        except OSError:
            pass
        self.close_connection = True


def whole_reply(message):
    message = dict(message)
    usage = message.pop("usage", None)
    reply = {"choices": [{"message": {"role": "assistant", **message}}]}
    if usage:
        reply["usage"] = usage
    return Fault(body=reply)


class Scenario:
    """What one run of the harness asks and is answered."""

    numbers = itertools.count(1)

    def __init__(self, script):
        self.key = f"s{next(self.numbers)}"
        self.script = list(script)
        self.requests = []
        self.headers = []
        self.bodies = []
        self.times = []
        self.paths = []

    def record(self, handler, body):
        self.times.append(time.monotonic())
        self.paths.append(handler.path[len(self.key) + 1 :])
        self.headers.append(handler.headers)
        self.bodies.append(body)
        self.requests.append(json.loads(body.decode("utf-8")))

    def next(self):
        return self.script.pop(0) if self.script else say("DONE")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


_server = None


def server():
    global _server
    if _server is None:
        subprocess.run([os.path.join(ROOT, "install.sh")], check=True)  # byte code for the Python at hand
        _server = Server(("127.0.0.1", 0), Handler)
        _server.scenarios = {}
        threading.Thread(target=_server.serve_forever, args=(0.02,), daemon=True).start()
    return _server


class Ran:
    """A run that has ended."""

    def __init__(self, code, out, err, scenario):
        self.code = code
        self.out = out
        self.err = err
        self.scenario = scenario
        self.requests = scenario.requests

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def events(self):
        return [json.loads(line) for line in self.out.splitlines()]

    def messages(self, index=-1, role=None):
        """The messages of a request without the system message."""
        return [m for m in self.requests[index]["messages"][1:] if role in (None, m["role"])]

    def system(self, index=0):
        return self.requests[index]["messages"][0]["content"]

    def contents(self, index=-1, role=None):
        return [message["content"] for message in self.messages(index, role)]

    def results(self, index=-1):
        """The results of the tool calls that a request carries."""
        return self.contents(index, "tool")

    def tools(self, index=0):
        return [tool["function"]["name"] for tool in self.requests[index]["tools"]]


class Case(unittest.TestCase):
    """A workspace, a state directory, and ways to run the harness in them."""

    maxDiff = None

    def setUp(self):
        self.top = os.path.realpath(tempfile.mkdtemp(prefix="case-"))
        self.ws = os.path.join(self.top, "ws")
        self.home = os.path.join(self.top, "home")
        os.mkdir(self.ws)

    def tearDown(self):
        shutil.rmtree(self.top, ignore_errors=True)

    # Files.

    def put(self, name, content="", base=None, mode=None):
        path = os.path.join(base or self.ws, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8"))
        if mode is not None:
            os.chmod(path, mode)
        return path

    def get(self, name, base=None):
        with open(os.path.join(base or self.ws, name), "rb") as file:
            return file.read()

    def text(self, name, base=None):
        return self.get(name, base).decode("utf-8")

    def exists(self, name, base=None):
        return os.path.lexists(os.path.join(base or self.ws, name))

    def settings(self, level="project", **values):
        name = {"project": ".harness/settings.json", "local": ".harness/settings.local.json"}.get(level)
        base = self.ws if name else self.home
        self.put(name or "settings.json", json.dumps(values), base)

    def tree(self, base=None):
        """Every file below a directory with its content."""
        base = base or self.ws
        found = {}
        for folder, folders, files in os.walk(base):
            for name in folders:
                found[os.path.relpath(os.path.join(folder, name), base)] = None
            for name in files:
                path = os.path.join(folder, name)
                found[os.path.relpath(path, base)] = None if os.path.islink(path) else self.get(path)
        return found

    # Runs.

    def env(self, scenario, **more):
        env = {
            "PATH": os.environ["PATH"],
            "HOME": self.top,
            "HARNESS_BASE_URL": f"http://127.0.0.1:{server().server_port}/{scenario.key}/v1",
            "HARNESS_API_KEY": "key-4711",
            "HARNESS_MODEL": "m-test",
            "HARNESS_HOME": self.home,
        }
        env.update(more)
        return {name: value for name, value in env.items() if value is not None}

    def scenario(self, script):
        scenario = Scenario(script)
        server().scenarios[scenario.key] = scenario
        return scenario

    def run_harness(self, *arguments, script=(), stdin=None, env=None, cwd=None, timeout_s=TIMEOUT_S):
        scenario = self.scenario(script)
        done = subprocess.run(
            [HARNESS, *arguments],
            cwd=cwd or self.ws,
            env=self.env(scenario, **(env or {})),
            capture_output=True,
            timeout=timeout_s,
            **({"stdin": subprocess.DEVNULL} if stdin is None else {"input": as_bytes(stdin)}),
        )
        out, err = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
        return Ran(done.returncode, out, err, scenario)

    def headless(self, prompt, *arguments, script=(), **more):
        return self.run_harness("-p", prompt, *arguments, script=script, **more)

    def answer(self, prompt, *arguments, **more):
        """The output of a headless run that has to succeed, without its last line feed."""
        ran = self.headless(prompt, *arguments, **more)
        self.assertEqual((ran.code, ran.err), (0, ""))
        self.assertEqual(ran.out[-1], "\n")
        return ran.out[:-1]

    def do(self, *pairs, args=(), mode="auto", **more):
        """Let the model make these calls in one reply; return their results."""
        ran = self.headless("go", "--permission-mode", mode, *args, script=[calls(*pairs)], **more)
        self.assertEqual(ran.code, 0, ran.err)
        return ran.results()

    def do_one(self, tool, /, args=(), mode="auto", **arguments):
        return self.do((tool, arguments), args=args, mode=mode)[0]

    def interactive(self, *lines, script=(), args=(), end="\n", **more):
        return self.run_harness(*args, script=script, stdin="\n".join(lines) + (end if lines else ""), **more)

    def api(self, *requests, script=(), args=(), **more):
        """Send requests to `harness api`; return the run and the responses."""
        lines = [line if isinstance(line, (str, bytes)) else json.dumps(line) for line in requests]
        stdin = b"".join(as_bytes(line) + b"\n" for line in lines)
        ran = self.run_harness("api", *args, script=script, stdin=stdin, **more)
        return ran, [json.loads(line) for line in ran.out.splitlines()]

    def api_run(self, prompt, script=(), **request):
        """One `run` request; return its result."""
        ran, responses = self.api({"op": "run", "prompt": prompt, **request}, script=script)
        self.assertTrue(responses[0]["ok"], responses)
        return responses[0]["result"]

    # Sessions.

    def session_ids(self):
        folder = os.path.join(self.home, "sessions")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return sorted(name[:-6] for name in names if name.endswith(".jsonl"))

    def session_path(self, session_id=None):
        session_id = session_id or self.session_ids()[0]
        return os.path.join(self.home, "sessions", session_id + ".jsonl")

    def records(self, session_id=None, kind=None):
        with open(self.session_path(session_id), encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        return [record for record in records if kind in (None, record["type"])]

    def stored(self, session_id=None):
        """Role and content of the stored messages."""
        return [(r["message"]["role"], r["message"]["content"]) for r in self.records(session_id, "message")]

    def lay_session(self, session_id, *records, cwd=None, created="2026-01-01T00:00:00Z", tail="", **header):
        """Write a session file by hand; a string stands for a user message."""
        first = {"type": "session", "id": session_id, "cwd": cwd or self.ws, "created": created}
        first |= {"title": None, "model": "m-test", "parent": None} | header
        lines = [first, *(message("user", one) if isinstance(one, str) else one for one in records)]
        content = "".join(json.dumps(line) + "\n" for line in lines) + tail
        return self.put(f"sessions/{session_id}.jsonl", content, self.home)

    def assert_error(self, ran, code, *words):
        self.assertEqual(ran.code, code, ran.err)
        self.assertRegex(ran.err, "(?m)^error: ")
        for word in words:
            self.assertIn(word, ran.err)


def message(role, content, **more):
    return {"type": "message", "message": {"role": role, "content": content, **more}}


def wire_call(call_id, name, arguments):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode("utf-8")


class Screen:
    """The harness in a real terminal: keys are typed and the output is read."""

    def __init__(self, case, *arguments, script=(), **env):
        self.scenario = case.scenario(script)
        self.requests = self.scenario.requests
        self.shown = ""
        environment = case.env(self.scenario, TERM="xterm", **env)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(case.ws)
            os.execve(HARNESS, [HARNESS, *arguments], environment)
        case.addCleanup(self.close)

    def wait(self, text):
        """Wait until `text` is printed, and return all up to it."""
        end = time.monotonic() + TIMEOUT_S / 2
        while text not in self.shown:
            if time.monotonic() > end or not self._read():
                raise AssertionError(f"waited for {text!r}, saw {self.shown!r}")
        before, _, self.shown = self.shown.partition(text)
        return before

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def enter(self, line):
        self.type(line + "\r")

    def wait_for_requests(self, n):
        end = time.monotonic() + TIMEOUT_S / 2
        while len(self.requests) < n and time.monotonic() < end:
            time.sleep(0.01)

    def code(self):
        """Wait for the end and return the exit code."""
        while self._read():
            pass
        pid, status = os.waitpid(self.pid, 0)
        self.pid = None
        return os.waitstatus_to_exitcode(status)

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def _read(self):
        if not select.select([self.fd], [], [], TIMEOUT_S / 2)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.shown += data.decode("utf-8", "replace")
        return bool(data)


def eventually(check, seconds=5):
    """Wait until `check` is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if check():
            return True
        time.sleep(0.02)
    return check()


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"
