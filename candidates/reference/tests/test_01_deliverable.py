"""Chapter 1: the deliverable and its model. Each test names its clause in its docstring."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading

from support import HARNESS, OVERFLOW, ROOT, Case, Fault, call, calls, delta, message, say, status, stream


class Tree(Case):
    def test_files(self):
        """deliverable.tree.files"""
        for name in ("install.sh", "harness", "pyproject.toml"):
            self.assertTrue(os.path.isfile(os.path.join(ROOT, name)))
        for name in ("types", "protocols", "cli", "headless", "api"):
            self.assertTrue(os.path.isfile(os.path.join(ROOT, "harness_agent", name + ".py")))
        self.assertTrue(os.access(HARNESS, os.X_OK))
        code = (
            "from harness_agent.types import Options, Result\n"
            "from harness_agent import cli, headless, api, protocols\n"
            "result = headless.run_headless('go', Options())\n"
            "assert isinstance(result, Result) and result.text == 'DONE' and result.exit_code == 0, result\n"
            "assert cli.main(['version']) == 0\n"
            "assert api.evaluate({'op': 'reset'}) == {'id': None, 'ok': True, 'result': {}}\n"
        )
        env = {**self.env(self.scenario([])), "PYTHONPATH": ROOT, "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run([sys.executable, "-c", code], cwd=self.ws, env=env, check=True, stdout=subprocess.DEVNULL)

    def test_install(self):
        """deliverable.tree.install"""
        copy = os.path.join(self.top, "copy")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__", "tests"))
        env = {"PATH": os.environ["PATH"]}
        for _ in range(2):
            done = subprocess.run(["./install.sh"], cwd=copy, env=env, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.isdir(os.path.join(copy, "harness_agent/__pycache__")))

    def test_read_only(self):
        """deliverable.tree.read-only"""
        copy = os.path.join(self.top, "copy")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__", "tests"))
        for folder, _, files in os.walk(copy):
            for name in files:
                os.chmod(os.path.join(folder, name), 0o555)
            os.chmod(folder, 0o555)
        before = self.tree(copy)
        env = self.env(self.scenario([call("list"), say("x")]))
        for args in (["-p", "go"], ["tools"], ["api"]):
            done = subprocess.run([os.path.join(copy, "harness"), *args], cwd=self.ws, env=env, stdin=subprocess.DEVNULL, capture_output=True)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(self.tree(copy), before)
        for folder, _, _ in os.walk(copy):
            os.chmod(folder, 0o755)

    def test_workspace(self):
        """deliverable.tree.workspace"""
        os.chmod(self.ws, 0o555)
        ran = self.headless("go", script=[call("list"), call("read", path="x")])
        os.chmod(self.ws, 0o755)
        self.assertEqual((ran.code, self.tree()), (0, {}))
        self.put(".git/HEAD", "ref: refs/heads/main\n")
        self.put(".gitignore", "x\n")
        self.put("a", "x")
        before = self.tree()
        for run in (lambda: self.headless("go", script=[call("read", path="a")]), lambda: self.interactive("go"),
                    lambda: self.api({"op": "run", "prompt": "x"})):  # fmt: skip
            run()
            self.assertEqual(self.tree(), before)


class Entry(Case):
    def test_routes(self):
        """deliverable.entry.routes"""
        link = os.path.join(self.top, "link")
        os.symlink(HARNESS, link)
        for command, cwd in (([HARNESS], self.ws), ([link], self.ws), (["./harness"], ROOT)):
            env = self.env(self.scenario([]))
            done = subprocess.run([*command, "-p", "go"], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True)
            self.assertEqual((done.returncode, done.stdout), (0, b"DONE\n"))
        self.assertEqual(self.interactive("go").out, "DONE\n")
        self.assertEqual(self.api({"op": "run", "prompt": "go"})[1][0]["result"]["text"], "DONE")
        self.assertIn(f"Workspace: {self.ws}", self.headless("go").system())
        self.assertIn(f"Workspace: {self.ws}", self.headless("go", "--cwd", self.ws, cwd=self.top).system())
        self.assertEqual(self.run_harness("nope").code, 2)

    def test_text(self):
        """deliverable.entry.text"""
        self.put("ä.txt", "ü\n")
        script = [call("read", path="ä.txt"), say("ö → 漢")]
        for env in ({"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}, {}):
            ran = self.headless("é", "--system-prompt", "ß", "-v", script=list(script), env=env, stdin="ñ\n")
            self.assertEqual((ran.code, ran.out), (0, "ö → 漢\n"))
            self.assertEqual((ran.system(), ran.contents(0), ran.results()), ("ß", ["é\n\nñ"], ["1\tü"]))
            self.assertEqual(ran.err.split("\n")[0], "request 1")
        self.assertEqual(self.stored()[0], ("user", "é\n\nñ"))
        self.settings(env={"A": "ä"}, add_dirs=["..", self.top])
        lines = self.run_harness("config", "list").out.split("\n")
        self.assertIn('env = {"A":"ä"} (project)', lines)
        self.assertIn(f'add_dirs = ["..","{self.top}"] (project)', lines)


class Environment(Case):
    def test_variables(self):
        """deliverable.env.variables"""
        ran = self.headless("go")
        self.assertEqual(ran.scenario.headers[0]["Authorization"], "Bearer key-4711")
        self.assertEqual((ran.scenario.paths, ran.requests[0]["model"]), (["/v1/chat/completions"], "m-test"))
        for key in ("", None):
            ran = self.headless("go", env={"HARNESS_API_KEY": key})
            self.assertIsNone(ran.scenario.headers[0]["Authorization"])
        scenario = self.scenario([])
        env = self.env(scenario)
        env["HARNESS_BASE_URL"] += "/"
        subprocess.run([HARNESS, "-p", "go"], cwd=self.ws, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        self.assertEqual(scenario.paths, ["/v1/chat/completions"])
        ran = self.headless("go", "-v", "--output-format", "json", script=[status(400, "your key is key-4711")])
        files = "".join(str(content) for content in {**self.tree(), **self.tree(self.home)}.values())
        self.assertNotIn("key-4711", ran.out + ran.err + files)

    def test_home(self):
        """deliverable.env.home"""
        self.run_harness("sessions", "list", env={"HARNESS_HOME": "rel/home"})
        self.assertFalse(self.exists("rel"))
        self.headless("go", env={"HARNESS_HOME": "rel/home"})
        self.assertEqual(os.listdir(os.path.join(self.ws, "rel/home")), ["sessions"])
        for value in ("", None):
            self.headless("go", env={"HARNESS_HOME": value})
        self.assertEqual(len(os.listdir(os.path.join(self.top, ".harness/sessions"))), 2)
        self.assertEqual(self.session_ids(), [])

    def test_no_base(self):
        """deliverable.env.no-base"""
        for value in (None, "", "ftp://x", "127.0.0.1:80", "http://", "http:///v1"):
            ran = self.headless("go", env={"HARNESS_BASE_URL": value})
            self.assert_error(ran, 3, "HARNESS_BASE_URL")
            self.assertEqual(self.session_ids(), [])
        self.assertEqual(self.headless("go", "-r", "none", env={"HARNESS_BASE_URL": None}).code, 6)
        none = {"HARNESS_BASE_URL": None}
        ran = self.interactive("go", "/mode", env=none)
        self.assertEqual((ran.code, ran.out), (0, "mode: ask\n"))
        self.assertIn("HARNESS_BASE_URL", ran.err)
        _, responses = self.api({"op": "run", "prompt": "go"}, {"op": "run", "prompt": "/mode"}, env=none)
        self.assertEqual([one["result"]["exit_code"] for one in responses], [3, 0])
        self.assertIn("HARNESS_BASE_URL", responses[0]["result"]["error"]["message"])
        self.assertEqual(self.headless("/tools", env=none).code, 0)

    def test_network(self):
        """deliverable.env.network"""
        proxies = {name: "http://127.0.0.1:9" for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy")}
        ran = self.headless("go", env=proxies)
        self.assertEqual((ran.code, ran.scenario.paths), (0, ["/v1/chat/completions"]))
        other = self.scenario([])
        url = self.env(other)["HARNESS_BASE_URL"]
        ran = self.headless("go", script=[Fault(302, b"", {"location": url + "/chat/completions"})])
        self.assert_error(ran, 4, "302")
        self.assertEqual((len(ran.requests), other.requests), (1, []))


class Requests(Case):
    def test_form(self):
        """deliverable.request.form"""
        self.lay_session("s", "a", message("assistant", "b"))
        ran = self.headless("ünï", "-c", script=[OVERFLOW, say("S"), say("x")])
        self.assertEqual([set(one) for one in ran.requests],
                         [{"model", "messages", "tools", "stream"}, {"model", "messages", "stream"}, {"model", "messages", "tools", "stream"}])  # fmt: skip
        self.assertTrue(ran.scenario.headers[0]["Content-Type"].startswith("application/json"))
        self.assertIsNone(ran.scenario.headers[0]["Content-Encoding"])
        self.assertEqual(ran.contents(0)[-1], "ünï")
        ran = self.headless("go", "--stream")
        self.assertEqual(ran.requests[0]["stream_options"], {"include_usage": True})
        self.put(".harness/agents/none.md", "---\ntools:\n---\n")
        self.assertEqual(self.headless("go", "--agent", "none").requests[0]["tools"], [])

    def test_messages(self):
        """deliverable.request.messages"""
        ran = self.interactive("one", "two", script=[calls(("list", {}), ("list", {})), say("a"), call("list"), say("b")])
        for earlier, later in zip(ran.requests, ran.requests[1:]):
            self.assertEqual(later["messages"][: len(earlier["messages"])], earlier["messages"])
        for request in ran.requests:
            self.assertEqual([m["role"] for m in request["messages"]].count("system"), 1)
            self.assertEqual(request["messages"][0]["role"], "system")
            self.assertNotEqual(request["messages"][-1]["role"], "assistant")
            self.assertTrue(all(isinstance(m["content"], str) for m in request["messages"]))
        keys = [sorted(m) for m in ran.messages(1)]
        self.assertEqual(keys, [["content", "role"], ["content", "role", "tool_calls"]] + [["content", "role", "tool_call_id"]] * 2)

    def test_system(self):
        """deliverable.request.system"""
        self.put("AGENTS.md", "CONV")
        self.put(".harness/memory.md", "- MEM\n")
        self.put(".harness/skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\nx")
        self.settings(hooks={"session_start": [{"command": "echo HOOK"}]})
        system = self.headless("go", "--append-system-prompt", "APPENDED").system()
        parts = system.split("\n\n")
        self.assertEqual(
            parts[-5:],
            ['<conventions path="AGENTS.md">\nCONV\n</conventions>', '<memory scope="project">\n- MEM\n</memory>',
             "<skills>\n- s: d\n</skills>", '<hook event="session_start">\nHOOK\n</hook>', "APPENDED"],
        )  # fmt: skip
        self.assertIn(f"Workspace: {self.ws}", system.split("\n"))
        self.assertIn("Role: build", system.split("\n"))
        bare = self.headless("go", "--cwd", self.top).system()
        self.assertNotRegex(bare, "\n\n\n|\n$")

    def test_assistant(self):
        """deliverable.request.assistant"""
        raw = '{"path":   "a"'
        reply = {"content": None, "reasoning_content": "hm", "refusal": None,
                 "tool_calls": [{"id": "x-1", "type": "function", "index": 0, "function": {"name": "read", "arguments": raw}}]}  # fmt: skip
        ran = self.interactive("go", "more", script=[reply, {"content": " text ", "tool_calls": [], "reasoning": "hm"}])
        self.assertEqual(
            ran.messages(1)[1],
            {"role": "assistant", "content": "", "tool_calls": [{"id": "x-1", "type": "function", "function": {"name": "read", "arguments": raw}}]},
        )
        self.assertEqual(ran.messages(2)[3], {"role": "assistant", "content": " text "})


class Replies(Case):
    def test_answer(self):
        """deliverable.reply.answer"""
        body = {"choices": [{"message": {"content": "  cut"}, "finish_reason": "length"}, {"message": {"content": "other"}}]}
        ran = self.headless("go", script=[Fault(body=body)])
        self.assertEqual((ran.out, len(ran.requests)), ("  cut\n", 1))
        body = {"choices": [{"message": {"content": None, **call("list")}, "finish_reason": "stop"}]}
        self.assertEqual(len(self.headless("go", script=[Fault(body=body)]).requests), 2)

    def test_calls(self):
        """deliverable.reply.calls"""
        pairs = [("bash", {"command": f"sleep 0.{3 - n}; echo {n} >> log; cat log"}) for n in range(1, 4)]
        ran = self.headless("go", "--permission-mode", "auto", script=[calls(*pairs, text="beside"), {"content": "x", "tool_calls": []}])
        self.assertEqual((ran.out, len(ran.requests)), ("x\n", 2))
        self.assertEqual(ran.results()[2], "1\n2\n3\n[exit 0]")
        self.assertEqual([m.get("tool_call_id") for m in ran.messages()[2:]], ["c1", "c2", "c3"])
        self.assertEqual(ran.messages()[1]["content"], "beside")

    def test_call_id(self):
        """deliverable.reply.call-id"""
        def one(call_id, **more):
            return {"id": call_id, "type": "function", "function": {"name": "list", "arguments": "{}"}, **more}

        without = {"type": "function", "function": {"name": "list", "arguments": "{}"}}
        script = [{"content": "", "tool_calls": [one(""), without, one("same"), one("same")]}, {"content": "", "tool_calls": [one(None)]}]
        ran = self.headless("go", script=script)
        asked = [call["id"] for m in ran.messages() for call in m.get("tool_calls", [])]
        answered = [m["tool_call_id"] for m in ran.messages() if m["role"] == "tool"]
        self.assertEqual(asked, answered)
        self.assertEqual(asked[2:4], ["same", "same"])
        self.assertEqual(len(set(asked)), 4)
        self.assertTrue(all(asked))

    def test_empty(self):
        """deliverable.reply.empty"""
        ran = self.headless("go", "--output-format", "json", script=[say(" \n"), call("list"), say(""), say("x")])
        self.assertEqual((ran.code, ran.json["turns"], len(ran.requests)), (0, 2, 4))
        self.assertEqual(ran.requests[0], ran.requests[1])
        self.settings(retry_base_s=0)
        ran2 = self.headless("go", "--no-save", script=[status(500)] * 3 + [say("")] + [status(500)] * 3 + [say("x")])
        self.assertEqual((ran2.code, len(ran2.requests)), (0, 8))
        self.assertEqual(len(self.stored()), 4)
        ran = self.headless("go", script=[{"content": None}, {}])
        self.assert_error(ran, 4, "empty reply")
        self.assertEqual(len(ran.requests), 2)

    def test_malformed(self):
        """deliverable.reply.malformed"""
        self.settings(retry_base_s=0)
        bodies = [b"<html>", {"choices": [{"text": "x"}]}, {"choices": [{"message": {"content": []}}]}]
        ran = self.headless("go", script=[Fault(body=body) for body in bodies])
        self.assertEqual((ran.code, ran.out, len(ran.requests)), (0, "DONE\n", 4))
        body = {"id": 1, "choices": [{"message": {"content": "ok", "tool_calls": None, "audio": {}}}], "x": []}
        self.assertEqual(self.headless("go", script=[Fault(body=body)]).out, "ok\n")
        odd = [{}, "", 0, [5], [{"id": "c"}], [{"function": "read"}]]
        for half in (odd[:3], odd[3:]):
            ran = self.headless("go", script=[{"content": "x", "tool_calls": value} for value in half])
            self.assertEqual((ran.code, ran.out, len(ran.requests)), (0, "DONE\n", 4))
        for values in ((7, 0), (False, [])):
            ran = self.headless("go", script=[stream(delta("stop", content=value)) for value in values] + [say("x")])
            self.assertEqual((ran.code, ran.out, len(ran.requests)), (0, "x\n", 3))
        ran = self.headless("go", script=[stream(delta(content=7))] * 4)
        self.assert_error(ran, 4, "invalid reply", "after 4 tries")
        ran = self.headless("go", script=[stream(delta("stop", tool_calls=value)) for value in ({}, "", [{"function": []}])])
        self.assertEqual((ran.code, ran.out, len(ran.requests)), (0, "DONE\n", 4))

    def test_call_form(self):
        """deliverable.reply.call-form"""
        functions = [{"name": "todo", "arguments": {"items": []}}, {"name": "list"}, {"name": "list", "arguments": None},
                     {"name": "list", "arguments": [1, "ä"]}, {"name": "list", "arguments": True}, {"arguments": "{}"}]  # fmt: skip
        reply = {"tool_calls": [{"id": f"c{n}", "type": "function", "function": one} for n, one in enumerate(functions)]}
        ran = self.headless("go", script=[reply])
        self.assertEqual(ran.results()[:5], ["[no todos]"] + ["[empty directory]"] * 2 + ["error: arguments are not an object"] * 2)
        self.assertTrue(ran.results()[5].startswith('error: unknown tool ""; known tools: read, '))
        kept = [(one["function"]["name"], one["function"]["arguments"]) for one in ran.messages()[1]["tool_calls"]]
        self.assertEqual(kept, [("todo", '{"items":[]}'), ("list", ""), ("list", ""), ("list", '[1,"ä"]'), ("list", "true"), ("", "{}")])
        self.assertEqual(self.records(kind="message")[1]["message"]["tool_calls"], ran.messages()[1]["tool_calls"])
        pieces = [delta(tool_calls=[{"index": index, "id": f"c{index}", "function": one}]) for index, one in enumerate(functions)]
        ran = self.headless("go", script=[stream(*pieces)])
        self.assertEqual([(one["function"]["name"], one["function"]["arguments"]) for one in ran.messages()[1]["tool_calls"]], kept)


class Streams(Case):
    def part(self, index, **fields):
        function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
        return delta(tool_calls=[{"index": index, "function": function, **fields}])

    def test_form(self):
        """deliverable.stream.form"""
        self.put("é", "x")
        split = 'data: {"choices": [{"delta": {"content": "é"}}]}\r\n\r\n'.encode()
        reply = stream(
            b": comment\n\n", b"event: message\nid: 1\n", split, delta(role="assistant", content=""), delta(content=None),
            self.part(1, id="b", name="list", arguments=""), self.part(0, id="a", name="read", arguments='{"pa'),
            self.part(0, arguments='th": "é"}'), self.part(1, arguments="{}"), delta("tool_calls"),
            {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
        )  # fmt: skip
        ran = self.headless("go", "--output-format", "json", script=[reply, say("x")])
        self.assertEqual(ran.messages()[1]["content"], "é")
        self.assertEqual([c["id"] for c in ran.messages()[1]["tool_calls"]], ["a", "b"])
        self.assertEqual(ran.results(), ["1\tx", "é"])
        self.assertEqual((ran.json["usage"]["input_tokens"], ran.json["usage"]["output_tokens"]), (5, 2))
        with self.slow_server(reply.body) as url:
            env = {**self.env(self.scenario([])), "HARNESS_BASE_URL": url}
            done = subprocess.run([HARNESS, "-p", "go", "--max-turns", "1", "--output-format", "json"], cwd=self.ws, env=env,
                                  stdin=subprocess.DEVNULL, capture_output=True)  # fmt: skip
        self.assertEqual([one["result"] for one in json.loads(done.stdout)["tool_calls"]], ["1\tx", "é"])

    def test_pieces(self):
        """deliverable.stream.pieces"""
        def piece(call_id=None, name=None, arguments="", **more):
            return delta(tool_calls=[{"id": call_id, "function": {"name": name, "arguments": arguments}, **more}])

        reply = stream(piece("a", "list", "{"), piece(None, None, "}"), piece("", "x", ""), piece("b", "list", "{}"), piece(None, "grep", '{"pattern"', index=9),
                       piece("c", "y", ': "x"}', index=9), piece("d", None, "", index=9), piece("e", "list", "{}"))  # fmt: skip
        ran = self.headless("go", script=[reply])
        got = [(one["id"], one["function"]["name"], one["function"]["arguments"]) for one in ran.messages()[1]["tool_calls"]]
        self.assertEqual(got, [("a", "list", "{}"), ("b", "list", "{}"), ("c", "grep", '{"pattern": "x"}'), ("e", "list", "{}")])
        ran = self.headless("go", script=[stream(piece(None, "list", "{}"))])
        self.assertEqual(ran.results(), ["[empty directory]"])
        reply = stream(piece("a", "list", "{}", index="x"), piece("b", "list", "{}", index=3), piece("c", "todo", "{}", index=[]))
        ran = self.headless("go", script=[reply])
        self.assertEqual([one["id"] for one in ran.messages()[1]["tool_calls"]], ["a", "b", "c"])

    def slow_server(self, body):
        """A server that sends a chunked stream byte by byte."""
        listener = socket.create_server(("127.0.0.1", 0))

        def serve():
            connection, _ = listener.accept()
            connection.recv(1_000_000)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            for index in range(len(body)):
                connection.sendall(b"1\r\n" + body[index : index + 1] + b"\r\n")
            connection.sendall(b"0\r\n\r\n")
            connection.close()

        threading.Thread(target=serve, daemon=True).start()

        class Url:
            def __enter__(inner):
                return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

            def __exit__(inner, *error):
                listener.close()

        return Url()

    def test_cut(self):
        """deliverable.stream.cut"""
        self.settings(retry_base_s=0)
        whole_call = delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "bash", "arguments": '{"command": "touch x"}'}}])
        faults = [
            stream(delta(content="PARTIAL"), whole_call, done=False),
            stream(delta(content="PARTIAL"), b"data: {bad\n\n"),
            stream(delta(content="PARTIAL"), {"error": {"message": "boom"}}),
        ]
        ran = self.headless("go", "--permission-mode", "auto", script=[*faults, stream(delta("stop", content="end"), done=False)])
        self.assertEqual((ran.code, ran.out, len(ran.requests)), (0, "end\n", 4))
        self.assertTrue(all(request == ran.requests[0] for request in ran.requests))
        self.assertFalse(self.exists("x"))
        self.assertEqual(self.stored(), [("user", "go"), ("assistant", "end")])
        for tail in (b"data: {bad\n\n", b'data: {"error": {"message": "late"}}\n\n'):
            ran = self.headless("go", script=[stream(delta("stop", content="whole"), tail)])
            self.assertEqual((ran.out, len(ran.requests)), ("whole\n", 1))


class Retries(Case):
    def test_which(self):
        """deliverable.retry.which"""
        self.settings(retry_base_s=0)
        for codes in ((408, 429, 500), (502, 503, 504), (529,)):
            ran = self.headless("go", script=[status(code) for code in codes])
            self.assertEqual((ran.code, len(ran.requests)), (0, len(codes) + 1))
        ran = self.headless("go", script=[Fault(cut=True, body=b"x" * 100), Fault(status=500, cut=True, body=b"x" * 99)])
        self.assertEqual((ran.code, len(ran.requests)), (0, 3))
        ran = self.headless("go", script=[status(500)] * 9)
        self.assert_error(ran, 4)
        self.assertEqual(len(ran.requests), 4)
        ran = self.headless("go", script=[status(500)] * 3 + [call("list")] + [status(500)] * 3 + [say("x")])
        self.assertEqual((ran.code, len(ran.requests)), (0, 8))
        self.settings(max_retries=0)
        self.assertEqual(len(self.headless("go", script=[status(500)] * 9).requests), 1)
        ran = self.headless("go", env={"HARNESS_BASE_URL": "http://127.0.0.1:1/v1"})
        self.assert_error(ran, 4, "cannot connect")

    def test_waits(self):
        """deliverable.retry.waits"""
        ran = self.headless("go", script=[status(500)] * 3)
        waits = [later - earlier for earlier, later in zip(ran.scenario.times, ran.scenario.times[1:])]
        for wait, least in zip(waits, (0.5, 1, 2)):
            self.assertTrue(least <= wait < least + 0.5, waits)
        self.settings(retry_base_s=0.0, max_retries=1030)
        self.assert_error(self.headless("go", script=[status(500)] * 1031), 4, "after 1031 tries")

    def test_after(self):
        """deliverable.retry.after"""
        self.settings(retry_base_s=1)
        script = [status(429, retry_after="0.1"), status(503, retry_after="0"), status(500, retry_after="-5")]
        ran = self.headless("go", "--output-format", "stream-json", script=script)
        waits = [event["wait_s"] for event in ran.events if event["type"] == "retry"]
        self.assertEqual(waits, [0.1, 0, 4])  # the third wait is what it is without a header
        ran = self.headless("go", "--output-format", "stream-json", "--timeout-s", "0.5", script=[status(429, retry_after="99")])
        self.assertEqual([event["wait_s"] for event in ran.events if event["type"] == "retry"], [30])
        ran = self.headless("go", script=[status(400, retry_after="0")])
        self.assertEqual((ran.code, len(ran.requests)), (4, 1))

    def test_never(self):
        """deliverable.retry.never"""
        for code in (400, 401, 403, 404, 422, 302, 501, 201):
            ran = self.headless("go", script=[status(code)])
            self.assert_error(ran, 4, str(code))
            self.assertEqual(len(ran.requests), 1)

    def test_overflow(self):
        """deliverable.retry.overflow"""
        self.lay_session("s", "a", message("assistant", "b"))
        ran = self.headless("go", "-c", script=[OVERFLOW, say("SUM"), say("end")])
        self.assertEqual((ran.out, ran.contents(2)), ("end\n", ["<summary>SUM</summary>", "go"]))
        self.assertNotIn("tools", ran.requests[1])
        ran = self.headless("go", "-c", script=[OVERFLOW, say("SUM"), OVERFLOW])
        self.assertEqual((ran.code, len(ran.requests)), (4, 3))
        ran = self.headless("alone", script=[OVERFLOW])
        self.assertEqual((ran.code, len(ran.requests)), (4, 1))
        for fault in (status(400, "x", "other"), Fault(400, b"context_length_exceeded"), status(413, "x", "context_length_exceeded")):
            ran = self.headless("go", "-c", script=[fault])
            self.assertEqual((ran.code, len(ran.requests)), (4, 1))
        ran = self.headless("go", "--permission-mode", "auto", script=[call("task", prompt="p"), OVERFLOW])
        self.assertEqual((ran.code, len(ran.requests)), (0, 3))
