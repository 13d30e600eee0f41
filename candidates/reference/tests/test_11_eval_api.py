"""Chapter 11: the evaluation API. Each test names its clause in its docstring."""

import json
import os
import subprocess
import sys

from support import HARNESS, ROOT, Case, call, calls, eventually, message, say, status

RESULT_KEYS = ["text", "exit_code", "session_id", "turns", "tool_calls", "denials", "usage", "error"]
WRITE = ("write", {"path": "a", "content": "x"})


def run(prompt, **more):
    return {"op": "run", "prompt": prompt, **more}


class ApiCase(Case):
    def results(self, *requests, script=(), args=(), **more):
        """The results of requests that all have to be understood."""
        self.ran, responses = self.api(*requests, script=script, args=args, **more)
        self.assertTrue(all(one["ok"] for one in responses), responses)
        return [one["result"] for one in responses]

    def invalid(self, request, *words):
        ran, responses = self.api(request, {"op": "state"})
        self.assertEqual(responses[0]["error"]["code"], "invalid_request", request)
        for word in words:
            self.assertIn(word, responses[0]["error"]["message"])
        self.assertEqual((ran.requests, self.session_ids()), ([], []))
        self.assertIsNone(responses[1]["result"]["session_id"])


class Lines(ApiCase):
    def test_form(self):
        """eval-api.lines.form"""
        ran, responses = self.api("", json.dumps({"id": 1, "op": "state"}), "  ", {"id": 2, "op": "reset"})
        self.assertEqual([one["id"] for one in responses], [1, 2])
        ran = self.run_harness("api", stdin='{"id": "ä", "op": "reset"}')
        self.assertEqual(ran.json["id"], "ä")
        process = subprocess.Popen([HARNESS, "api"], cwd=self.ws, env=self.env(self.scenario([])), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for number in range(2):
            process.stdin.write(json.dumps({"id": number, **run("go")}).encode() + b"\n")
            process.stdin.flush()
            self.assertEqual(json.loads(process.stdout.readline())["id"], number)
        process.communicate()

    def test_clean(self):
        """eval-api.lines.clean"""
        self.settings(odd=1, hooks={"user_prompt": [{"command": "echo hook; echo err >&2"}], "stop": [{"command": "exit 1"}]})
        script = [call("bash", command="echo noise; echo noise >&2"), say("a\nb")]
        ran, responses = self.api(run("go"), run("!echo shell"), script=script, args=("--verbose", "--permission-mode", "auto"))
        self.assertEqual([one["result"]["text"] for one in responses], ["a\nb", "shell\n[exit 0]"])
        ran2, _ = self.api({"op": "walk"}, run("/nope"))
        self.assertEqual(ran2.err.count("error: "), 1)
        for line in ("request 1", "tool bash", "warning: hook stop: exit 1"):
            self.assertIn(line, ran.err.split("\n"))

    def test_end(self):
        """eval-api.lines.end"""
        ran, responses = self.api(run("go"), "{", script=[call("bash", command="echo $$ > pid; exec sleep 60", background=True)],
                                  args=("--permission-mode", "auto"))  # fmt: skip
        self.assertEqual((ran.code, len(responses)), (0, 2))
        self.assertTrue(eventually(lambda: not os.path.exists(f"/proc/{self.text('pid').strip()}")))
        ran, responses = self.api()
        self.assertEqual((ran.code, ran.out, ran.requests), (0, "", []))


class Responses(ApiCase):
    def test_ok(self):
        """eval-api.response.ok"""
        ids = ["x", 5, 1.5, None, "x"]
        _, responses = self.api(*({"id": one, "op": "reset"} for one in ids), {"op": "reset"}, {"id": 7, **run("go")}, script=[status(400)])
        self.assertEqual([one["id"] for one in responses], [*ids, None, 7])
        for response in responses:
            self.assertEqual((list(response), response["ok"]), (["id", "ok", "result"], True))
        self.assertEqual(responses[-1]["result"]["exit_code"], 4)

    def test_error(self):
        """eval-api.response.error"""
        ran, responses = self.api("{bad", '{"id": 1, "op": "run"} x', {"id": 3, "op": "walk"}, {"id": [], "op": "state"}, {"id": 4, "op": "state"})
        self.assertEqual([one["id"] for one in responses], [None, None, 3, None, 4])
        self.assertEqual([one.get("error", {}).get("code") for one in responses], ["invalid_json"] * 2 + ["invalid_request"] * 2 + [None])
        for response in responses[:4]:
            self.assertEqual((list(response), list(response["error"])), (["id", "ok", "error"], ["code", "message"]))
            self.assertTrue(response["error"]["message"] and "\n" not in response["error"]["message"])
        self.assertEqual((ran.requests, self.session_ids()), ([], []))
        ran, responses = self.api(b'{"id": "\xff", "op": "state"}', '{"id": "\\ud800", "op": "state"}', {"id": 1, "op": "state"})
        self.assertEqual([one.get("error", {}).get("code") for one in responses], ["invalid_json", None, None])


class Checks(ApiCase):
    def test_invalid(self):
        """eval-api.request.invalid"""
        for request, *words in (
            ([1], "object"), ("5", "object"), ({"id": {}, "op": "run", "prompt": "x"}, "id"), ({"id": True, "op": "state"}, "id"), ({"prompt": "x"}, "op"),
            ({"op": "walk"}, "op", "walk"), ({"op": "run"}, "prompt"), (run(" \n"), "prompt"), (run(5), "prompt"), (run("x", colour=1), "colour"),
            (run("x", cwd=5), "cwd"), (run("x", options=[]), "options"), (run("x", approvals=5), "approvals"), ({"op": "state", "prompt": 5}, "prompt"),
            ({"op": "reset", "options": {"x": 1}}, "options.x"), ({"op": "state", "cwd": "none"}, "cwd"),
        ):  # fmt: skip
            self.invalid(request, *words)
        self.assertEqual(self.results({"op": "state", "prompt": "x", "approvals": "allow"})[0]["session_id"], None)
        nulls = {"id": None, "cwd": None, "options": None, "approvals": None}
        self.assertEqual(self.results(run("x", **nulls))[0]["text"], "DONE")
        self.assertEqual(self.results(run("x", colour=None))[0]["text"], "DONE")

    def test_options(self):
        """eval-api.request.options"""
        for key, values in {"max_turns": ("5", 0, True, 1.5), "colour": (1,), "permission_mode": ("fast", 1), "agent": ("none",), "model": (5, ""),
                            "allow": ("read", [1], ["Bash"]), "deny": (["bash("],), "add_dirs": (["none"],), "resume": ("a b",), "fork": ("yes",),
                            "no_save": (1,)}.items():  # fmt: skip
            for value in values:
                self.invalid(run("x", options={key: value}), f"options.{key}")
        self.invalid(run("x", options={"fork": True}), "options.fork")
        self.assertEqual(self.results(run("x", options={"fork": False}))[0]["exit_code"], 0)
        nothing = {key: None for key in ("permission_mode", "max_turns", "model", "agent", "allow", "deny", "add_dirs", "resume", "fork", "no_save")}
        self.assertEqual(self.results(run("x", options=nothing))[0]["text"], "DONE")

    def test_function(self):
        """eval-api.request.function"""
        code = (
            "import json\nfrom harness_agent.api import evaluate\n"
            "got = [evaluate(r) for r in ({'op': 'run', 'prompt': 'a'}, {'id': object(), 'op': 'x'}, {}, {'op': 'run', 'prompt': 'b'},"
            " {'op': 'close'}, {'op': 'state'})]\nprint(json.dumps(got))\n"
        )
        scenario = self.scenario([])
        env = {**self.env(scenario), "PYTHONPATH": ROOT, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([sys.executable, "-c", code], cwd=self.ws, env=env, capture_output=True, check=True)
        got = json.loads(done.stdout)
        self.assertEqual([one["ok"] for one in got], [True, False, False, True, True, True])
        self.assertEqual(got[0]["result"]["session_id"], got[3]["result"]["session_id"])
        self.assertEqual([m["content"] for m in scenario.requests[1]["messages"][1:]], ["a", "DONE", "b"])
        self.assertEqual((got[5]["result"]["session_id"], got[5]["result"]["cwd"]), (None, self.ws))


class Runs(ApiCase):
    def test_result(self):
        """eval-api.run.result"""
        tokens = {"prompt_tokens": 3, "completion_tokens": 2}
        script = [calls(("list", {}), WRITE), say("one", **tokens)]
        first, second = self.results(run("go"), run("more"), script=[*script, say("two")])
        self.assertEqual(list(first), RESULT_KEYS)
        other = self.headless("go", "--output-format", "json", script=script).json
        for key in RESULT_KEYS:
            if key != "session_id":
                self.assertEqual(first[key], other[key], key)
        self.assertEqual((second["turns"], second["tool_calls"], second["denials"]), (1, [], 0))
        self.assertEqual(second["usage"], {"requests": 1, "input_tokens": 0, "output_tokens": 0})

    def test_failed(self):
        """eval-api.run.failed"""
        got = self.results(run("a", options={"max_turns": 1}), run("b"), run("/nope"), run("c", options={"resume": "none"}), run("d"),
                           script=[call("list"), status(400), say("x")])  # fmt: skip
        self.assertEqual([one["exit_code"] for one in got], [5, 4, 2, 6, 0])
        self.assertEqual([one["error"]["code"] for one in got[:4]], ["turn_limit", "model", "usage", "session_not_found"])
        self.assertTrue(all(one["text"] == "" for one in got[:4]))
        self.assertEqual(self.ran.contents(-1), ["a", "", "[empty directory]", "b", "d"])
        self.settings(hooks={"user_prompt": [{"command": "exit 2"}]})
        self.assertEqual(self.results(run("a"))[0]["error"]["code"], "hook_blocked")
        self.put(".harness/settings.json", "{")
        result = self.results(run("a"))[0]
        self.assertEqual((result["exit_code"], result["session_id"], result["error"]["code"]), (3, None, "settings"))

    def test_successive(self):
        """eval-api.run.successive"""
        self.put("f", "x")
        todo = call("todo", items=[{"text": "t", "status": "done"}])
        script = [call("read", path="f"), say("1"), todo, say("2"), call("write", path="f", content="y"), say("3")]
        requests = [run("a"), run("/mode accept-edits"), run("/model m2"), run("b"), run("c"), run("/todos")]
        got = self.results(*requests, script=list(script))
        self.assertEqual(len({one["session_id"] for one in got}), 1)
        self.assertEqual(self.ran.contents(2), ["a", "", "1\tx", "1", "b"])
        self.assertEqual((got[4]["tool_calls"][0]["result"], got[5]["text"]), ("wrote f (1 bytes)", "[x] t"))
        self.assertEqual(self.ran.requests[-1]["model"], "m2")
        self.put("f", "x")
        self.interactive(*(one["prompt"] for one in requests), args=("--session-id", "i"), script=list(script))
        self.assertEqual(self.records(got[0]["session_id"])[1:], self.records("i")[1:])

    def test_commands(self):
        """eval-api.run.commands"""
        self.put("f", "x\n")
        self.put(".harness/commands/own.md", "own $1")
        got = self.results(run("@f"), run("/own 5"), run("!echo hi"), run("/compact"), run("/fork"), run("after"), run("/clear"), run("fresh"),
                           script=[say("1"), say("2"), say("SUM")])  # fmt: skip
        self.assertIn('<file path="f">', self.ran.contents(0)[0])
        self.assertEqual(self.ran.contents(1)[-1], "own 5")
        self.assertEqual((got[2]["text"], got[3]["text"]), ("hi\n[exit 0]", "compacted 5 messages"))
        self.assertEqual(got[4]["text"], f"forked {got[0]['session_id']} to {got[5]['session_id']}")
        self.assertEqual(self.ran.contents(3), ["<summary>SUM</summary>", "after"])
        self.assertEqual((self.ran.contents(4), got[7]["session_id"]), (["fresh"], got[6]["session_id"]))

    def test_options(self):
        """eval-api.run.options"""
        extra = os.path.join(self.top, "extra")
        self.put("f", "x", extra)
        options = {"permission_mode": "auto", "max_turns": 2, "model": "m2", "agent": "build", "deny": ["bash"], "add_dirs": ["../extra"]}
        script = [calls(WRITE, ("read", {"path": "../extra/f"})), say("1"), calls(WRITE, ("read", {"path": "../extra/f"})), say("2")]
        got = self.results(run("/mode plan"), run("/model m1"), run("a", options=options), run("b"), script=script, args=("--deny", "grep", "--model", "m0"))
        self.assertEqual([one["result"] for one in got[2]["tool_calls"]], ["wrote a (1 bytes)", "1\tx"])
        self.assertEqual([one["result"] for one in got[3]["tool_calls"]], ["error: denied: mode plan", "error: outside the workspace: ../extra/f"])
        self.assertEqual([request["model"] for request in self.ran.requests], ["m2", "m2", "m1", "m1"])
        self.assertFalse({"bash", "grep"} & set(self.ran.tools(0)))
        got = self.results(run("a", options={"allow": ["write(a)"], "agent": "explore"}), run("b", options={"allow": ["write(a)"]}),
                           script=[calls(WRITE), say("1"), calls(WRITE)])  # fmt: skip
        self.assertEqual([one["tool_calls"][0]["result"] for one in got], ["error: denied: role explore", "error: read it first: a"])
        self.assertEqual(self.results(run("a", options={"max_turns": 1}), script=[call("list")])[0]["exit_code"], 5)

    def test_flags(self):
        """eval-api.run.flags"""
        self.put("d/AGENTS.md", "CONV")
        self.put("d/.harness/memory.md", "- m\n")
        self.put("d/extra.json", '{"odd": 1}')
        args = ("--cwd", "d", "--settings", "extra.json", "--model", "m1", "--permission-mode", "auto", "--allow", "list", "--deny", "grep", "--agent",
                "build", "--add-dir", "..", "--max-turns", "5", "--stream", "--system-prompt", "S", "--append-system-prompt", "A", "--no-save",
                "--no-memory", "--no-conventions", "--quiet")  # fmt: skip
        result = self.results(run("go"), script=[calls(WRITE)], args=args)[0]
        self.assertEqual((result["tool_calls"][0]["result"], self.ran.system(), self.ran.err), ("wrote a (1 bytes)", "S\n\nA", ""))
        self.assertEqual((self.ran.requests[0]["model"], self.ran.requests[0]["stream"], self.session_ids()), ("m1", True, []))
        for flag in (("--json",), ("--print", "x"), ("--output-format", "json"), ("--continue",), ("--timeout-s", "5"), ("--nope",), ("--fork",),
                     ("--session-id", "x")):  # fmt: skip
            ran = self.run_harness("api", *flag, stdin=json.dumps(run("go")) + "\n")
            self.assert_error(ran, 2, flag[0])
            self.assertEqual((ran.out, ran.requests), ("", []))
        for flag in (("--agent", "none"), ("--add-dir", "none"), ("--cwd", "none")):
            ran = self.run_harness("api", *flag, stdin=json.dumps(run("go")) + "\n")
            self.assert_error(ran, 2, flag[0], "none")
            self.assertEqual(ran.out, "")
        self.put("gone/x")
        got = self.results(run("!rm -r gone"), run("go"), args=("--add-dir", "gone"))
        self.assertEqual(got[1]["exit_code"], 2)
        self.assertEqual(self.run_harness("api", "--help").out, self.run_harness("help", "api").out)
        got = self.results(run("!rm -r ../gone"), run("go"), args=("--cwd", os.path.dirname(self.put("gone/x", base=self.top))))
        self.assertEqual((got[1]["exit_code"], self.ran.requests), (2, []))

    def test_cwd(self):
        """eval-api.run.cwd"""
        self.put("d/x")
        self.put("e/x")
        os.symlink("d", os.path.join(self.ws, "alias"))
        requests = [run("a", cwd="d"), run("b"), run("c", cwd="alias"), run("d", cwd="e"), run("e", cwd="none"), {"op": "state"}, {"op": "reset"},
                    run("f", cwd="e")]  # fmt: skip
        ran, responses = self.api(*requests)
        self.assertEqual([one["ok"] for one in responses], [True, True, True, False, False, True, True, True])
        self.assertTrue(all("cwd" in one["error"]["message"] for one in responses[3:5]))
        self.assertEqual([ran.system(index).count(f"Workspace: {self.ws}/{name}\n") for index, name in enumerate("ddde")], [1] * 4)
        self.assertEqual(responses[5]["result"]["cwd"], f"{self.ws}/d")
        self.lay_session("s", "old", cwd=f"{self.ws}/e")
        got = self.results(run("a", cwd="d"), run("b", cwd="e", options={"resume": "s"}))
        self.assertEqual((got[1]["session_id"], self.ran.contents(1)), ("s", ["old", "b"]))
        self.assertIn(f"Workspace: {self.ws}/e\n", self.ran.system(1))
        error = self.api(run("go", cwd="a\0b"))[1][0]["error"]
        self.assertTrue(error["code"] == "invalid_request" and "cwd" in error["message"])

    def test_resume(self):
        """eval-api.run.resume"""
        self.lay_session("s", "old", message("assistant", "text"))
        got = self.results(run("a"), run("b", options={"resume": "s"}), run("c"), run("d", options={"resume": "s"}), run("e", options={"resume": "none"}),
                           run("f", options={"resume": "s", "fork": True}), run("g"))  # fmt: skip
        self.assertEqual([one["session_id"] for one in got[1:4]], ["s"] * 3)
        self.assertEqual(self.ran.contents(3), ["old", "text", "b", "DONE", "c", "DONE", "d"])
        self.assertEqual((got[4]["exit_code"], got[4]["session_id"]), (6, "s"))
        self.assertIsNone(self.results(run("x", options={"resume": "none"}))[0]["session_id"])
        copy = got[5]["session_id"]
        self.assertTrue(copy not in (got[0]["session_id"], "s") and got[6]["session_id"] == copy)
        self.assertEqual((len(self.stored("s")), len(self.stored(copy))), (8, 12))
        self.assertEqual(self.records(copy)[0]["parent"], "s")

    def test_no_save(self):
        """eval-api.run.no-save"""
        got = self.results(run("a", options={"no_save": True}), run("b"), run("c", options={"no_save": True}))
        self.assertEqual(self.ran.contents(2), ["a", "DONE", "b", "DONE", "c"])
        self.assertEqual(self.stored(got[0]["session_id"]), [("user", "b"), ("assistant", "DONE")])
        before = self.session_ids()
        self.results(run("a", options={"no_save": True}), run("b", options={"no_save": True}))
        self.assertEqual(self.session_ids(), before)
        got = self.results(run("/rename hidden", options={"no_save": True}), run("b"))
        self.assertEqual(self.records(got[0]["session_id"], "title"), [])


class Approvals(ApiCase):
    ASKED = "error: denied: needs approval (mode ask)"

    def outcome(self, *pairs, sub=(), **more):
        result = self.results(run("go", **more), script=[calls(*pairs), *sub])[0]
        return [one["result"] for one in result["tool_calls"]]

    def test_values(self):
        """eval-api.approvals.values"""
        pairs = [WRITE, ("list", {}), ("bash", {"command": "true"}), ("bash", {"command": "echo"})]
        self.assertEqual(self.outcome(*pairs)[0], self.ASKED)
        self.assertEqual(self.outcome(*pairs, approvals="deny")[2], self.ASKED)
        self.assertEqual(self.outcome(*pairs, approvals=["allow", "deny", "allow"]),
                         ["wrote a (1 bytes)", "a", "error: denied: by the user", "\n[exit 0]"])  # fmt: skip
        self.assertEqual(self.outcome(("bash", {"command": "echo 1"}), ("bash", {"command": "echo 2"}), approvals="allow"), ["1\n[exit 0]", "2\n[exit 0]"])
        before = self.session_ids()
        for wrong in ("yes", 5, ["allow", "x"], {}):
            _, responses = self.api(run("go", approvals=wrong))
            self.assertEqual((responses[0]["error"]["code"], "approvals" in responses[0]["error"]["message"]), ("invalid_request", True))
        self.assertEqual(self.session_ids(), before)

    def test_limits(self):
        """eval-api.approvals.limits"""
        bash = [("bash", {"command": f"echo {n}"}) for n in range(3)]
        self.assertEqual(self.outcome(*bash, approvals=["allow"]), ["0\n[exit 0]", self.ASKED, self.ASKED])
        script = [calls(bash[0]), say("x"), calls(bash[0])]
        got = self.results(run("a", approvals=["allow", "allow"]), run("b"), script=script)
        self.assertEqual([one["tool_calls"][0]["denied"] for one in got], [False, True])
        for options, wanted in (({"deny": ["bash(echo *)"]}, "rule bash(echo *)"), ({"permission_mode": "plan"}, "mode plan"),
                                ({"permission_mode": "dont-ask"}, "mode dont-ask"), ({"agent": "explore"}, "role explore")):  # fmt: skip
            self.assertEqual(self.outcome(bash[0], approvals="allow", options=options), [f"error: denied: {wanted}"])
        self.assertEqual(self.outcome(("write", {"path": "../x", "content": ""}), approvals="allow"), ["error: outside the workspace: ../x"])
        sub = [calls(bash[1], bash[2]), say("sub")]
        self.results(run("go", approvals=["allow", "allow", "deny"]), script=[call("task", prompt="p"), *sub])
        self.assertEqual(self.ran.results(2), ["1\n[exit 0]", "error: denied: by the user"])


class OtherOperations(ApiCase):
    def test_state(self):
        """eval-api.state.result"""
        keys = ["session_id", "cwd", "model", "permission_mode", "title", "messages", "todos"]
        items = [{"text": "t", "status": "pending"}]
        before, _, after, again = self.results({"op": "state"}, run("go", options={"permission_mode": "auto"}), {"op": "state"}, {"op": "state"},
                                               script=[call("todo", items=items), say("x")])  # fmt: skip
        self.assertEqual(before, {"session_id": None, "cwd": self.ws, "model": "m-test", "permission_mode": "ask", "title": None, "messages": [], "todos": []})
        self.assertEqual((list(after), after["title"], after["todos"], after["permission_mode"]), (keys, "go", items, "ask"))
        self.assertEqual(after["messages"], [*self.ran.messages(-1), {"role": "assistant", "content": "x"}])
        self.assertEqual((after, len(self.ran.requests)), (again, 2))

    def test_state_settings(self):
        """eval-api.state.settings"""
        self.assertIsNone(self.results({"op": "state"}, env={"HARNESS_MODEL": None})[0]["model"])
        self.put(".harness/agents/own.md", "---\nmodel: m-role\npermission_mode: plan\n---\n")
        state = self.results({"op": "state"}, args=("--agent", "own"))[0]
        self.assertEqual((state["model"], state["permission_mode"]), ("m-role", "plan"))
        breaking = run("!echo { > .harness/settings.json")
        for args, wanted in (((), (None, "ask")), (("--model", "m0", "--permission-mode", "auto"), ("m0", "auto"))):
            self.put(".harness/settings.json", "{}")
            got = self.results({"op": "state"}, run("go"), breaking, {"op": "state"}, args=args)
            self.assertEqual((got[3]["model"], got[3]["permission_mode"]), wanted)
            self.assertEqual((got[3]["session_id"], len(got[3]["messages"])), (got[1]["session_id"], 3))
            self.assertRegex(self.ran.err, "(?m)^warning: .*settings.json")

    def test_reset(self):
        """eval-api.reset.new"""
        extra = os.path.join(self.top, "extra")
        self.put("f", "x")
        self.put("g", "x", extra)
        script = [calls(("read", {"path": "f"}), ("todo", {"items": [{"text": "t", "status": "done"}]})), say("1"),
                  calls(("write", {"path": "f", "content": "y"}), ("read", {"path": f"{extra}/g"}))]  # fmt: skip
        got = self.results({"op": "reset"}, run("/model m2"), run("/mode plan"), run("/add-dir ../extra"), run("a"), {"op": "reset"}, {"op": "state"},
                           run("b"), run("/todos"), script=script, args=("--permission-mode", "auto"))  # fmt: skip
        self.assertEqual((got[0], got[5], got[6]["session_id"], got[6]["todos"], got[6]["permission_mode"]), ({}, {}, None, [], "auto"))
        self.assertEqual([one["result"] for one in got[7]["tool_calls"]], ["error: read it first: f", f"error: outside the workspace: {extra}/g"])
        self.assertEqual((self.ran.requests[2]["model"], self.ran.contents(2), got[8]["text"]), ("m-test", ["b"], "[no todos]"))
        self.assertNotEqual(got[4]["session_id"], got[7]["session_id"])
        self.assertEqual(self.headless("x", "-r", got[4]["session_id"]).contents(0)[0], "a")

    def test_close(self):
        """eval-api.close.end"""
        ran, responses = self.api({"op": "close"}, {"op": "state"})
        self.assertEqual((ran.code, responses), (0, [{"id": None, "ok": True, "result": {}}]))


class Equality(ApiCase):
    def test_requests(self):
        """eval-api.equality.requests"""
        self.put("AGENTS.md", "CONV")
        self.settings(retry_base_s=0)
        before = self.tree()
        script = [calls(WRITE, ("read", {"path": "AGENTS.md"}), ("nope", {}), ("bash", {"command": "x"})), status(500), say("end")]
        headless = self.headless("go @AGENTS.md", "--permission-mode", "accept-edits", "--output-format", "json", "--session-id", "h", script=list(script))
        after = self.tree()
        os.unlink(os.path.join(self.ws, "a"))
        self.assertEqual(self.tree(), before)
        result = self.results(run("go @AGENTS.md", options={"permission_mode": "accept-edits"}), script=list(script))[0]
        self.assertEqual((self.ran.requests, self.tree()), (headless.requests, after))
        for key in RESULT_KEYS:
            if key != "session_id":
                self.assertEqual(result[key], headless.json[key])
        self.assertEqual(self.records(result["session_id"])[1:], self.records("h")[1:])

    def test_resumed(self):
        """eval-api.equality.resumed"""
        script = [call("list"), say("1"), call("todo", items=[]), say("2")]
        got = self.results(run("a"), run("b"), script=list(script))
        self.headless("a", "--session-id", "h", script=script[:2])
        ran = self.headless("b", "--resume", "h", script=script[2:])
        self.assertEqual(self.ran.requests[2:], ran.requests)
        self.assertEqual(self.records(got[0]["session_id"])[1:], self.records("h")[1:])
