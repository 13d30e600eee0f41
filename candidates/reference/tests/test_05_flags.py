"""Chapter 5: flags, output formats and settings. Each test names its clause in its docstring."""

import json
import os
import subprocess
import time

from support import HARNESS, OVERFLOW, Case, Fault, Screen, alive, call, calls, delta, eventually, message, say, status, stream

RESULT_KEYS = ["type", "ok", "text", "exit_code", "session_id", "turns", "tool_calls", "denials", "usage", "error"]
NO_USAGE = {"requests": 0, "input_tokens": 0, "output_tokens": 0}


class Print(Case):
    def test_run(self):
        """flags.print.run"""
        prompt = "  two\nlines "
        for args in (("-p", prompt), ("--print", prompt), (f"--print={prompt}",)):
            ran = self.run_harness(*args, script=[call("list"), say("x")])
            self.assertEqual((ran.code, ran.out, len(ran.requests)), (0, "x\n", 2))
            self.assertEqual(ran.messages(0), [{"role": "user", "content": prompt}])

    def test_dash(self):
        """flags.print.dash"""
        ran = self.headless("-", stdin=b" a\nb\xff \r\n\n")
        self.assertEqual(ran.contents(0), [" a\nb\ufffd "])
        screen = Screen(self, "-p", "-")
        time.sleep(0.1)
        screen.type("typed\n\x04")
        self.assertEqual(screen.code(), 0)
        self.assertEqual(screen.requests[0]["messages"][-1]["content"], "typed")

    def test_piped(self):
        """flags.print.piped"""
        self.assertEqual(self.headless("ask", stdin="data\n more\n\n").contents(0), ["ask\n\ndata\n more"])
        self.assertEqual(self.headless("ask", stdin=" \n").contents(0), ["ask"])
        self.lay_session("s", "one", message("assistant", "two"))
        ran = self.headless("/compact", "-r", "s", stdin="keep this")
        self.assertIn("keep this", ran.contents(0)[-1])

    def test_empty(self):
        """flags.print.empty"""
        for prompt, stdin in (("", None), (" \n", None), ("-", ""), ("-", "\n\n"), ("", " ")):
            ran = self.headless(prompt, stdin=stdin)
            self.assert_error(ran, 2, "empty prompt")
            self.assertEqual((ran.out, ran.requests, self.session_ids()), ("", [], []))

    def test_session_saved(self):
        """flags.print.session-saved"""
        self.headless("one")
        self.assertRegex(self.session_ids()[0], "^[0-9a-f]{12}$")
        self.assertEqual(self.stored(), [("user", "one"), ("assistant", "DONE")])
        ran = self.interactive("two", args=("--continue",))
        self.assertEqual(ran.contents(0), ["one", "DONE", "two"])


class Formats(Case):
    def test_text(self):
        """flags.format.text"""
        script = [calls(("list", {}), text="not the answer"), say("answer\n")]
        ran = self.headless("go", script=script)
        self.assertEqual((ran.out, ran.err), ("answer\n\n", ""))
        self.assertEqual(self.headless("/mode").out, "mode: ask\n")
        ran = self.headless("go", script=[status(400)])
        self.assertEqual(ran.out, "")
        self.assert_error(ran, 4)
        ran = self.headless("go", script=[Fault(body=rb'{"choices": [{"message": {"content": "a\ud83d"}}]}')])
        self.assertEqual((ran.code, ran.out), (0, "a?\n"))

    def test_json(self):
        """flags.format.json"""
        ran = self.headless("go", "--output-format", "json", script=[say("a\n")])
        self.assertEqual(ran.out.count("\n"), 1)
        self.assertEqual(list(ran.json), RESULT_KEYS)
        self.assertEqual([ran.json[key] for key in RESULT_KEYS[:4]], ["result", True, "a\n", 0])
        ran = self.headless("go", "--output-format", "json", "--max-turns", "1", script=[call("list")])
        self.assertEqual((ran.json["ok"], ran.json["text"], ran.json["exit_code"], ran.code), (False, "", 5, 5))

    def test_counts(self):
        """flags.format.counts"""
        self.settings(retry_base_s=0)
        tokens = {"prompt_tokens": 100, "completion_tokens": 7}
        script = [
            {**calls(("task", {"prompt": "p"}), ("write", {"path": "a", "content": ""})), "usage": tokens},
            status(500), say("sub", **tokens), say("x", **tokens),
        ]  # fmt: skip
        args = ("--output-format", "json", "--allow", "task")
        ran = self.headless("go", *args, script=script)
        self.assertEqual((ran.json["turns"], ran.json["denials"]), (2, 1))
        self.assertEqual(ran.json["usage"], {"requests": 4, "input_tokens": 300, "output_tokens": 21})
        ran = self.headless("go", "-c", *args, script=[say("x")])
        self.assertEqual((ran.json["turns"], ran.json["usage"]), (1, {**NO_USAGE, "requests": 1}))

    def test_calls(self):
        """flags.format.calls"""
        script = [calls(("list", {}), ("nope", {"a": 1}), ("read", "{broken"), ("bash", {"command": "ls"}))]
        ran = self.headless("go", "--output-format", "json", script=script)
        got = ran.json["tool_calls"]
        self.assertTrue(all(list(one) == ["name", "arguments", "result", "denied"] for one in got))
        self.assertEqual([one["name"] for one in got], ["list", "nope", "read", "bash"])
        self.assertEqual([one["arguments"] for one in got], [{}, {"a": 1}, "{broken", {"command": "ls"}])
        self.assertEqual([one["result"] for one in got], ran.results())
        self.assertEqual([one["denied"] for one in got], [False, False, False, True])

    def test_error(self):
        """flags.format.error"""
        def error(*args, prompt="go", **more):
            ran = self.headless(prompt, "--output-format", "json", *args, **more)
            self.assertIn("error: " + ran.json["error"]["message"], ran.err.split("\n"))
            return ran.json["exit_code"], ran.json["error"]["code"]

        self.assertIsNone(self.headless("go", "--output-format", "json").json["error"])
        self.assertEqual(error(prompt="/nope"), (2, "usage"))
        self.assertEqual(error(env={"HARNESS_BASE_URL": None}), (3, "settings"))
        self.assertEqual(error(script=[status(403)]), (4, "model"))
        self.assertEqual(error("--max-turns", "1", script=[call("list")]), (5, "turn_limit"))
        self.assertEqual(error("-r", "none"), (6, "session_not_found"))
        self.assertEqual(error("--timeout-s", "0.3", script=[Fault(wait_s=2)]), (124, "time_limit"))
        self.assertEqual(error(env={"HARNESS_HOME": self.put("file")}), (1, "internal"))
        self.settings(hooks={"user_prompt": [{"command": "exit 2"}]})
        self.assertEqual(error(), (7, "hook_blocked"))
        self.settings(hooks={"user_prompt": [{"command": r"printf 'one\ntwo' >&2; exit 2"}]})
        ran = self.headless("go", "--output-format", "json")
        self.assertEqual((ran.json["error"]["code"], "error: " + ran.json["error"]["message"] + "\n"), ("hook_blocked", ran.err))

    def test_early(self):
        """flags.format.early"""
        for form in ("json", "stream-json"):
            for args in (("--nope",), ("--max-turns", "x"), ("-c", "-r", "s"), ("--agent", "none"), ("--cwd", "none"), ("--add-dir", "none")):
                ran = self.headless("go", "--output-format", form, *args)
                self.assertEqual((ran.code, ran.out), (2, ""))
            self.assertEqual(self.headless(" ", "--output-format", form).out, "")
        ran = self.headless("go", "--output-format", "json", "-c")
        self.assertEqual((ran.json["exit_code"], ran.json["session_id"]), (6, None))
        ran = self.headless("/resume none", "--output-format", "json")
        self.assertEqual((ran.json["exit_code"], len(ran.json["session_id"])), (6, 12))
        ran = self.headless("go", "--output-format", "json", script=[call("list"), status(400)])
        self.assertEqual((ran.json["session_id"], ran.json["turns"]), (self.session_ids()[0], 1))
        self.assertEqual((len(ran.json["tool_calls"]), ran.json["usage"]["requests"]), (1, 2))
        self.assertEqual(self.headless("/nope", "--output-format", "json").json["error"]["code"], "usage")
        self.put(".harness/settings.json", "{")
        ran = self.headless("go", "--output-format", "json")
        self.assertEqual((ran.json["exit_code"], ran.json["session_id"], ran.json["usage"]), (3, None, NO_USAGE))

    def test_session_id(self):
        """flags.format.session-id"""
        def ids(*args, prompt="go"):
            events = self.headless(prompt, "--output-format", "stream-json", *args).events
            return events[0]["session_id"], events[-1]["session_id"]

        first = ids()
        self.assertEqual(first, (self.session_ids()[0],) * 2)
        self.assertEqual(ids("-c"), first)
        forked = ids("-c", "--fork")
        self.assertTrue(forked[0] == forked[1] != first[0])
        before, after = ids("-r", first[0], prompt="/clear")
        self.assertEqual(before, first[0])
        self.assertIn(after, set(self.session_ids()) - {first[0], forked[0]})
        unsaved = ids("--no-save")
        self.assertTrue(unsaved[0] and unsaved[0] not in self.session_ids())

    def test_stream_order(self):
        """flags.format.stream-order"""
        ran = self.headless("go @x", "--output-format", "stream-json", "--deny", "bash")
        init = ran.events[0]
        self.assertEqual(list(init), ["type", "session_id", "cwd", "model", "permission_mode", "tools"])
        self.assertEqual((init["type"], init["cwd"], init["model"], init["permission_mode"]), ("init", self.ws, "m-test", "ask"))
        self.assertEqual(init["tools"], ran.tools())
        self.assertEqual(ran.events[1], {"type": "user", "text": "go @x"})
        self.put(".harness/commands/own.md", "text")
        ran2 = self.headless("/own", "--output-format", "stream-json", stdin="more\n", env={"HARNESS_MODEL": None})
        self.assertEqual((ran2.events[0]["model"], ran2.events[1]["text"]), (None, "/own\n\nmore"))
        self.assertEqual(list(ran.events[-1]), RESULT_KEYS)
        seen = []

        def look(scenario):
            seen.append(os.read(output, 65536).decode())
            return say("x")

        scenario = self.scenario([look, look])
        scenario.script[0] = lambda s: (look(s), call("list"))[1]
        output, write_end = os.pipe()
        subprocess.run([HARNESS, "-p", "go", "--output-format", "stream-json"], cwd=self.ws, env=self.env(scenario),
                       stdin=subprocess.DEVNULL, stdout=write_end, check=True)  # fmt: skip
        os.close(write_end)
        os.close(output)
        self.assertIn('"init"', seen[0])
        self.assertIn('"tool_result"', seen[1])
        ran = self.headless("go", "--output-format", "stream-json", "-c", cwd=self.top)
        self.assertEqual([event["type"] for event in ran.events], ["result"])

    def test_stream_rounds(self):
        """flags.format.stream-rounds"""
        script = [calls(("list", {}), ("read", "{x"), text="look"), say("end")]
        ran = self.headless("go", "--output-format", "stream-json", script=script)
        rounds = ran.events[2:-1]
        self.assertEqual(
            rounds[:3],
            [
                {"type": "assistant", "text": "look", "tool_calls": [
                    {"id": "c1", "name": "list", "arguments": {}}, {"id": "c2", "name": "read", "arguments": "{x"}]},
                {"type": "tool_call", "id": "c1", "name": "list", "arguments": {}},
                {"type": "tool_result", "id": "c1", "name": "list", "result": "[empty directory]", "denied": False},
            ],
        )  # fmt: skip
        self.assertEqual([event["type"] for event in rounds[3:]], ["tool_call", "tool_result", "assistant"])
        self.assertEqual(rounds[-1], {"type": "assistant", "text": "end", "tool_calls": []})
        ran = self.headless("/mode", "--output-format", "stream-json")
        self.assertEqual([event["type"] for event in ran.events], ["init", "user", "result"])

    def test_stream_notices(self):
        """flags.format.stream-notices"""
        self.settings(retry_base_s=0.01)
        ran = self.headless("go", "--output-format", "stream-json", script=[status(503, "busy"), Fault(body=b"x")])
        retries = [event for event in ran.events if event["type"] == "retry"]
        self.assertEqual([list(one) for one in retries], [["type", "attempt", "wait_s", "reason"]] * 2)
        self.assertEqual([(one["attempt"], one["wait_s"]) for one in retries], [(1, 0.01), (2, 0.02)])
        self.assertIn("503", retries[0]["reason"])
        ran = self.headless("/compact", "-c", "--output-format", "stream-json", script=[say("SUM")])
        self.assertIn({"type": "compact", "trigger": "manual", "summary": "SUM"}, ran.events)
        ran = self.headless("more", "-c", "--output-format", "stream-json", script=[OVERFLOW, say("SUM2"), say("x")])
        self.assertIn({"type": "compact", "trigger": "auto", "summary": "SUM2"}, ran.events)

    def test_clean(self):
        """flags.format.clean"""
        self.settings(colour=1, hooks={"session_start": [{"command": "echo hook"}], "stop": [{"command": "echo hook; exit 1"}]})
        ran = self.headless("go", "--output-format", "stream-json", "--permission-mode", "auto", "-v",
                            script=[call("bash", command="echo noise; echo more >&2"), say("a\nb\x1b")])  # fmt: skip
        self.assertTrue(all(isinstance(event, dict) for event in ran.events))
        self.assertNotIn("\x1b", ran.out)
        scenario = self.scenario([call("list"), say("x")])
        process = subprocess.Popen([HARNESS, "-p", "go", "--session-id", "s", "--output-format", "stream-json"], cwd=self.ws,
                                   env=self.env(scenario), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)  # fmt: skip
        process.stdout.close()
        process.wait()
        self.assertEqual(self.stored("s")[-1], ("assistant", "x"))

    def test_choice(self):
        """flags.format.choice"""
        ran = self.headless("go", "--output-format", "xml")
        self.assert_error(ran, 2, "--output-format", "text", "json", "stream-json")
        self.settings(output_format="json")
        self.assertEqual(self.headless("go").json["text"], "DONE")
        self.assertEqual(self.headless("go", "--output-format", "text").out, "DONE\n")
        self.assertEqual(self.interactive("go").out, "DONE\n")


class Parsing(Case):
    def test_forms(self):
        """flags.parse.forms"""
        ran = self.run_harness("--model=a=b", "-p", "go", "--permission-mode", "plan")
        self.assertEqual((ran.requests[0]["model"], "bash" in ran.tools()), ("a=b", False))
        ran = self.run_harness("--deny", "bash", "tools", "--agent=build")
        self.assertNotIn("bash\t", ran.out)
        self.assert_error(self.run_harness("-pgo"), 2, "unknown flag: -pgo")

    def test_unknown(self):
        """flags.parse.unknown"""
        for typed, named in (("--no-such-flag", "--no-such-flag"), ("--json", "--json"), ("--user", "--user"), ("-xyz", "-xyz"), ("--mod=x", "--mod"), ("-qv", "-qv"),
                             ("--Model", "--Model"), ("-x", "-x")):  # fmt: skip
            ran = self.headless("go", typed)
            self.assert_error(ran, 2, f"unknown flag: {named}")
            self.assertNotIn("=x", ran.err)
            self.assertEqual((ran.requests, self.tree(), self.exists("home", self.top)), ([], {}, False))
        for args in (("--model", "--json"), ("--json=x",), ("--help", "--local"), ("-p", "go", "--user")):
            ran = self.run_harness(*args)
            self.assert_error(ran, 2, "unknown flag: " + next(one for one in args if one[:3] in ("--j", "--l", "--u")).split("=")[0])
            self.assertEqual((ran.requests, ran.out), ([], ""))

    def test_values(self):
        """flags.parse.values"""
        cases = [
            (("--model",), "--model", "missing value"), (("--model=",), "--model", "missing value"),
            (("--model", "-x1"), "--model", "missing value"), (("--model", ""), "--model", "missing value"),
            (("--max-turns", "x"), "--max-turns", 'invalid value "x"'), (("--stream=yes",), "--stream", "takes no value"),
            (("-r",), "--resume", "missing value"), (("--agent", "--stream"), "--agent", "missing value"),
        ]  # fmt: skip
        for args, *words in cases:
            ran = self.headless("go", *args)
            if args == ("--model", "-x1"):
                words = ["unknown flag: -x1"]
            self.assert_error(ran, 2, *words)
            self.assertEqual(ran.requests, [])
        self.assert_error(self.run_harness("-p"), 2, "--print", "missing value")
        self.assertEqual(self.headless("go", "--model=-x").requests[0]["model"], "-x")

    def test_repeated(self):
        """flags.parse.repeated"""
        ran = self.headless("go", "--model", "a", "--deny", "bash", "--stream", "--model", "b", "--deny", "read", "--stream")
        self.assertEqual((ran.requests[0]["model"], ran.requests[0]["stream"]), ("b", True))
        self.assertFalse({"bash", "read"} & set(ran.tools()))
        self.assert_error(self.headless("go", "--max-turns", "x", "--max-turns", "1"), 2, "--max-turns")

    def test_conflicts(self):
        """flags.parse.conflicts"""
        self.lay_session("s", "x")
        for args in (("--continue", "--resume", "s"), ("--session-id", "n", "--continue"), ("--session-id", "n", "-r", "s"),
                     ("--quiet", "--verbose"), ("--fork",)):  # fmt: skip
            ran = self.headless("go", *args)
            named = [one for one in args if one.startswith("--")]
            self.assert_error(ran, 2, *named)
            self.assertEqual(ran.requests, [])
        self.assert_error(self.run_harness("--output-format", "json"), 2, "--output-format", "--print")
        self.assert_error(self.run_harness("--timeout-s", "1"), 2, "--timeout-s", "--print")
        self.assert_error(self.run_harness("tools", "-p", "x"), 2, "--print", "tools")
        self.assertEqual(self.headless("go", "--session-id", "n", "-r", "s", "--fork").code, 0)
        self.assertIn("n", self.session_ids())

    def test_first_check(self):
        """flags.parse.first-check"""
        self.put(".harness/settings.json", "{")
        self.assert_error(self.headless("go", "--max-turns", "x", "-r", "none"), 2)
        self.assert_error(self.headless("go", "-r", "none"), 3)
        self.settings(hooks={"user_prompt": [{"command": "touch ran; exit 2"}]})
        self.assert_error(self.headless("go", "-r", "none"), 6)
        self.assertFalse(self.exists("ran"))
        ran = self.headless("go", script=[status(400)])
        self.assert_error(ran, 7)
        self.assertEqual(ran.requests, [])
        self.assert_error(self.headless("go", "--agent", "none", "-r", "none"), 2)
        self.assert_error(self.headless("go", "-r", "none", env={"HARNESS_BASE_URL": None}), 6)
        self.assert_error(self.headless("go", env={"HARNESS_MODEL": None}), 3, "model")
        self.lay_session("s", "x")
        self.assert_error(self.headless("go", "--session-id", "s", env={"HARNESS_BASE_URL": None}), 2, "session exists: s")

    def test_first_mistake(self):
        """flags.parse.first-mistake"""
        ran = self.run_harness("--model", "--max-turns", "x", "-xyz")
        self.assert_error(ran, 2, "unknown flag: -xyz")
        self.assert_error(self.run_harness("-c", "-r", "s", "--max-turns", "x", "--model"), 2, "--max-turns", "invalid value")
        self.assertNotIn("--model", self.run_harness("--max-turns", "x", "--model").err)
        for args in (("-p", "--help"), ("--help", "--max-turns", "x"), ("-c", "-r", "s", "-h")):
            ran = self.run_harness(*args)
            self.assertEqual((ran.code, ran.out, ran.requests), (0, self.run_harness("help").out, []))
        self.assertEqual(self.run_harness("--max-turns", "x", "--version").out, self.run_harness("version").out)
        self.assert_error(self.run_harness("--help", "--nope"), 2, "unknown flag: --nope")

    def test_help(self):
        """flags.help.text"""
        self.put(".harness/settings.json", "{")
        none = {name: None for name in ("HARNESS_BASE_URL", "HARNESS_API_KEY", "HARNESS_MODEL", "HARNESS_HOME")}
        overview = self.run_harness("help", env=none)
        for args in (("-h",), ("--help",), ("--version", "--help"), ("-p", "go", "-h")):
            ran = self.run_harness(*args, env=none)
            self.assertEqual((ran.code, ran.out, ran.requests), (0, overview.out, []))
        self.assertEqual(self.run_harness("sessions", "--help").out, self.run_harness("help", "sessions").out)
        self.assertEqual(self.run_harness("--version", env=none).out, self.run_harness("version").out)


class ModelAndLimits(Case):
    def model(self, *args, **more):
        return self.headless("go", *args, **more).requests[0]["model"]

    def test_choice(self):
        """flags.model.choice"""
        none = {"HARNESS_MODEL": None}
        ran = self.headless("go", env=none)
        self.assert_error(ran, 3, "model")
        self.assertEqual(ran.requests, [])
        self.settings(model="m-file")
        self.put("extra.json", '{"model": "m-extra"}')
        self.put(".harness/agents/own.md", "---\nmodel: m-role\n---\n")
        self.assertEqual(self.model(env={"HARNESS_MODEL": ""}), "m-file")
        self.assertEqual(self.model(), "m-test")
        args = ("--settings", "extra.json")
        self.assertEqual(self.model(*args), "m-extra")
        args += ("--agent", "own")
        self.assertEqual(self.model(*args), "m-role")
        self.headless("/model m-chosen", "-c")
        self.assertEqual(self.model("-c", *args), "m-chosen")
        self.assertEqual(self.model("-c", *args, "--model", "m-flag"), "m-flag")
        self.assertEqual(self.headless("/compact", "-c").requests[0]["model"], "m-chosen")
        self.assertEqual(self.interactive("/model m-typed", "go", args=("--model", "m-flag")).requests[0]["model"], "m-typed")

    def test_stream(self):
        """flags.stream.switch"""
        self.assertIs(self.headless("go").requests[0]["stream"], False)
        script = [stream(delta(content="a"), delta("stop", content="b"))]
        for args in (("--stream",), ()):
            ran = self.headless("go", *args, script=list(script))
            self.assertEqual((ran.out, ran.requests[0]["stream"]), ("ab\n", bool(args)))
        self.settings(stream=True)
        ran = self.headless("go", "--permission-mode", "auto", script=[call("task", prompt="p"), say("sub")])
        self.assertEqual([one["stream"] for one in ran.requests], [True] * 3)
        self.assertIs(self.headless("/compact", "-c").requests[0]["stream"], True)

    def test_max_turns(self):
        """flags.limits.max-turns"""
        self.settings(max_turns=2)
        script = [call("list"), call("todo", items=[{"text": "a", "status": "done"}])]
        ran = self.headless("go", script=list(script))
        self.assert_error(ran, 5, "turn limit", "2")
        self.assertEqual(len(ran.requests), 2)
        self.assertEqual(self.stored()[-1], ("tool", "[x] a"))
        self.assertEqual(self.headless("go", script=[call("list"), say(""), say("x")]).code, 0)
        self.assertEqual(self.headless("go", "--max-turns", "1", script=[say("x")]).code, 0)
        ran = self.interactive("one", "two", script=[call("list"), say("1"), call("list"), say("2")])
        self.assertEqual(ran.out, "1\n2\n")
        self.settings()
        self.assert_error(self.headless("go", script=[call("list")] * 60), 5, "50")

    def test_timeout(self):
        """flags.limits.timeout"""
        command = "echo $$ > pid; sleep 60 & sleep 60"
        cases = {
            "model": [Fault(wait_s=5)],
            "retry": [status(500, retry_after="20")],
            "tool": [call("bash", command=command)],
        }
        for name, script in cases.items():
            started = time.monotonic()
            ran = self.headless("go", "--timeout-s", "0.6", "--permission-mode", "auto", script=script)
            self.assert_error(ran, 124, "time limit", "0.6")
            self.assertLess(time.monotonic() - started, 3, name)
            self.assertEqual(ran.out, "")
        self.assertTrue(eventually(lambda: not alive(int(self.text("pid")))))
        self.assertEqual(self.headless("more", "-c").contents(0, "tool"), ["error: interrupted"])
        self.settings(hooks={"user_prompt": [{"command": "sleep 60"}]})
        self.assert_error(self.headless("go", "--timeout-s", "0.5"), 124)

    def test_numbers(self):
        """flags.limits.numbers"""
        for value in ("0", "2.5", "1e3", "+5", "0x10", "-1", "١"):
            ran = self.run_harness("-p", "go", f"--max-turns={value}")
            self.assert_error(ran, 2, "--max-turns", "invalid value", value)
        for value in ("0", "-1", "inf", "nan", "1s", "1.", ".5"):
            ran = self.run_harness("-p", "go", f"--timeout-s={value}")
            self.assert_error(ran, 2, "--timeout-s", "invalid value", value)
        self.assertEqual(self.headless("go", "--max-turns", "07", "--timeout-s", "20.5").code, 0)
        self.assertEqual(self.headless("go", "--timeout-s", "9" * 30).code, 0)


class ModeAndWorkspace(Case):
    def test_mode_flag(self):
        """flags.mode.flag"""
        def mode(*args):
            return self.headless("go", "--output-format", "stream-json", *args).events[0]["permission_mode"]

        self.assertEqual(mode(), "ask")
        self.settings(permission_mode="auto")
        self.assertEqual((mode(), mode("--permission-mode", "plan")), ("auto", "plan"))
        ran = self.headless("go", "--permission-mode", "yes")
        self.assert_error(ran, 2, "--permission-mode", "ask", "accept-edits", "plan", "auto", "dont-ask")

    def test_mode_rules(self):
        """flags.mode.rules"""
        self.settings(permissions={"allow": ["bash(echo 1)"], "deny": ["list"]})
        before = self.tree()
        got = self.do(("bash", {"command": "echo 1"}), ("bash", {"command": "echo 2"}), ("list", {}), ("read", {"path": "x"}),
                      mode="ask", args=("--allow", "bash(echo 2)", "--deny", "read"))  # fmt: skip
        self.assertEqual(got, ["1\n[exit 0]", "2\n[exit 0]", "error: denied: rule list", "error: denied: rule read"])
        self.assertEqual(self.tree(), before)
        self.assert_error(self.headless("go", "--allow", "Bash"), 2, "--allow", "Bash")

    def test_agent(self):
        """flags.agent.choice"""
        self.put(".harness/agents/own.md", "x")
        ran = self.headless("go", "--agent", "none")
        self.assert_error(ran, 2, "none", "architect", "build", "explore", "own")
        self.assertEqual(ran.requests, [])
        self.assertEqual(len(self.headless("go", "--agent", "explore").tools()), 4)
        self.assertEqual(len(self.headless("go", "-c").tools()), 14)

    def test_cwd(self):
        """flags.workspace.cwd"""
        self.put("d/f", "inner")
        self.settings(model="outer")
        self.put("d/.harness/settings.json", '{"max_turns": 1}')
        os.symlink("ws/d", os.path.join(self.top, "alias"))
        self.put("d/extra/x")
        for cwd in ("d", "../alias"):
            ran = self.headless("go", "--cwd", cwd, "--add-dir", "extra", "--output-format", "stream-json", script=[call("read", path="f")])
            self.assertEqual((ran.code, ran.events[0]["cwd"]), (5, os.path.join(self.ws, "d")))
            self.assertEqual(ran.events[-1]["tool_calls"][0]["result"], "1\tinner")
        for wrong in ("none", "d/f"):
            self.assert_error(self.headless("go", "--cwd", wrong), 2, "--cwd", wrong)
        self.assertFalse(self.exists("none"))

    def test_add_dir(self):
        """flags.workspace.add-dir"""
        self.put("extra/f", "x", self.top)
        self.put("extra/.harness/memory.md", "- foreign\n", self.top)
        self.put("extra/AGENTS.md", "foreign", self.top)
        path = os.path.join(self.top, "extra/f")
        ran = self.headless("go", "--add-dir", "../extra", script=[call("read", path=path)])
        self.assertEqual(ran.results(), ["1\tx"])
        self.assertNotIn("foreign", ran.system())
        self.assert_error(self.headless("go", "--add-dir", "../none"), 2, "--add-dir", "../none")
        self.settings(add_dirs=["../extra", "../gone"])
        ran = self.headless("go", script=[call("read", path=path)])
        self.assertEqual((ran.results(), ran.code), (["1\tx"], 0))
        self.assertRegex(ran.err, "(?m)^warning: .*../gone")


class Sessions(Case):
    def test_continue(self):
        """flags.session.continue"""
        for session_id, seconds in (("old", 10), ("new", 20), ("tie", 20), ("foreign", 30)):
            cwd = self.top if session_id == "foreign" else None
            created = "2026-01-01T00:00:01Z" if session_id == "tie" else "2026-01-01T00:00:00Z"
            path = self.lay_session(session_id, session_id, cwd=cwd, created=created)
            os.utime(path, (seconds, seconds))
        self.assertEqual(self.headless("go", "-c").contents(0), ["tie", "go"])
        os.utime(self.session_path("old"))
        future = time.time() + 100
        os.utime(self.session_path("old"), (future, future))
        self.assertEqual(self.headless("go", "--continue").contents(0), ["old", "go"])
        other = os.path.join(self.top, "other")
        os.mkdir(other)
        ran = self.headless("go", "-c", cwd=other)
        self.assert_error(ran, 6, f"no session in {other}")
        self.assertEqual((ran.requests, len(self.session_ids())), ([], 4))

    def test_resume(self):
        """flags.session.resume"""
        self.lay_session("abc", "one", message("assistant", "two"))
        before = self.get("abc.jsonl", os.path.join(self.home, "sessions"))
        self.assertEqual(self.headless("go", "-r", "abc").contents(0), ["one", "two", "go"])
        self.assertTrue(self.get("abc.jsonl", os.path.join(self.home, "sessions")).startswith(before))
        self.assertEqual(self.session_ids(), ["abc"])
        self.assert_error(self.headless("go", "-r", "../x"), 2, "--resume", "invalid value")
        ran = self.headless("go", "-r", "ab")
        self.assert_error(ran, 6, "session not found: ab")
        self.assertEqual((ran.requests, self.session_ids()), ([], ["abc"]))

    def test_fork(self):
        """flags.session.fork"""
        path = self.lay_session("abc", "one")
        before = self.get(path)
        for args in (("-c",), ("-r", "abc", "--session-id", "copy")):
            ran = self.headless("go", "--fork", *args, script=[lambda s: say(",".join(self.session_ids()))])
            self.assertEqual(ran.contents(0), ["one", "go"])
        self.assertIn("copy", ran.out)
        self.assertEqual((self.get(path), len(self.session_ids())), (before, 3))

    def test_chosen_id(self):
        """flags.session.chosen-id"""
        self.headless("go", "--session-id", "My_Session-1")
        self.assertEqual(self.session_ids(), ["My_Session-1"])
        before = self.tree(self.home)
        self.assert_error(self.headless("go", "--session-id", "My_Session-1"), 2, "session exists: My_Session-1")
        for wrong in ("a b", "x" * 65, "a/b"):
            self.assert_error(self.headless("go", "--session-id", wrong), 2, "--session-id", "invalid value")
        self.assertEqual(self.tree(self.home), before)

    def test_no_save(self):
        """flags.session.no-save"""
        script = [call("write", path="a", content="x"), say("1"), call("remember", text="m")]
        ran = self.interactive("one", "/undo", "two", args=("--no-save", "--permission-mode", "auto"), script=script)
        self.assertIn("undone 1 files\nremoved a", ran.out)
        self.assertFalse(self.exists("sessions", self.home) or self.exists("checkpoints", self.home))
        self.assertEqual(self.text(".harness/memory.md"), "- m\n")
        path = self.lay_session("s", "one")
        before = self.get(path)
        self.assertEqual(self.headless("go", "-c", "--no-save").contents(0), ["one", "go"])
        self.assertEqual((self.get(path), self.session_ids()), (before, ["s"]))


class SystemMessage(Case):
    def test_system(self):
        """flags.prompt.system"""
        self.put("AGENTS.md", "house rules")
        script = [call("task", prompt="p"), say("sub")]
        ran = self.headless("go", "--system-prompt", "Be brief.", "--permission-mode", "auto", script=script)
        self.assertTrue(ran.system(0).startswith("Be brief.\n\n<conventions"))
        self.assertNotIn("Workspace:", ran.system(0))
        self.assertIn("Workspace:", ran.system(1))
        self.assertTrue(self.headless("/compact", "-c", "--system-prompt", "Be brief.").system().startswith("Be brief."))
        self.put(".harness/agents/own.md", "own text")
        system = self.headless("go", "--system-prompt", "Be brief.", "--agent", "own").system()
        self.assertTrue(system.startswith("Be brief.\n\nown text\n\n<conventions"))
        ran = self.headless("go", "--system-prompt", "Be brief.", "--agent", "architect")
        self.assertNotIn("Propose changes", ran.system())
        self.assert_error(self.headless("go", "--system-prompt", ""), 2, "--system-prompt", "missing value")
        self.assertNotIn("Be brief.", self.headless("go", "-c").system())

    def test_append(self):
        """flags.prompt.append"""
        self.put(".harness/memory.md", "- m\n")
        script = [call("task", prompt="p"), say("sub")]
        args = ("--append-system-prompt", "The end.", "--permission-mode", "auto")
        ran = self.headless("go", *args, script=script)
        self.assertTrue(ran.system(0).endswith("</memory>\n\nThe end."))
        self.assertNotIn("The end.", ran.system(1))
        self.assertTrue(self.headless("go", "--system-prompt", "S", *args).system().startswith("S\n\n<memory"))
        self.assertTrue(self.headless("/compact", "-c", "--append-system-prompt", "The end.").system().endswith("\n\nThe end."))
        self.assertNotIn("The end.", self.headless("go", "-c").system())

    def test_switch_off(self):
        """flags.prompt.switch-off"""
        self.put("AGENTS.md", "rules")
        self.put("AGENTS.md", "mine", self.home)
        self.put(".harness/memory.md", "- m\n")
        for args, here, gone in ((("--no-memory",), "<conventions", "<memory"), (("--no-conventions",), "<memory", "<conventions")):
            system = self.headless("go", *args).system()
            self.assertIn(here, system)
            self.assertNotIn(gone, system)


class Verbosity(Case):
    def test_levels(self):
        """flags.verbosity.levels"""
        self.settings(colour=1)
        script = [call("list"), status(400)]
        lines = {}
        for flag in (None, "-q", "--verbose"):
            ran = self.headless("go", *([flag] if flag else []), script=list(script))
            lines[flag] = ran.err.rstrip("\n").split("\n")
            self.assertEqual(ran.out, "")
        self.assertEqual([line.split(":")[0] for line in lines[None]], ["warning", "error"])
        self.assertEqual([line.split(":")[0] for line in lines["-q"]], ["error"])
        self.assertEqual([line.split(":")[0] for line in lines["--verbose"]],
                         ["warning", "request 1", "tool list", "request 2", "error"])  # fmt: skip


class SettingsFiles(Case):
    def config(self):
        return json.loads(self.run_harness("config", "list", "--json").out)

    def broken(self, *words, name=".harness/settings.json"):
        ran = self.headless("go")
        self.assert_error(ran, 3, name, *words)
        self.assertEqual((ran.requests, self.session_ids()), ([], []))

    def test_places(self):
        """flags.settings.places"""
        self.put(".harness/settings.json", '{"max_turns": 1}', self.top)
        self.assertEqual(self.headless("go", script=[call("list"), say("x")]).code, 0)
        self.assertEqual(self.tree(), {})
        for level in ("user", "project", "local"):
            self.settings(level, model=level)
            self.assertEqual(self.headless("go", env={"HARNESS_MODEL": None}).requests[0]["model"], level)
        requests = [{"op": "run", "prompt": "a", "approvals": "allow"}, {"op": "run", "prompt": "b"}]
        script = [call("bash", command="echo '{\"model\": \"later\"}' > .harness/settings.local.json"), say("x")]
        ran, _ = self.api(*requests, script=script, env={"HARNESS_MODEL": None})
        self.assertEqual([one["model"] for one in ran.requests], ["local", "local", "later"])

    def test_keys(self):
        """flags.settings.keys"""
        wanted = {
            "model": "m-test", "stream": False, "memory": True, "permission_mode": "ask", "output_format": "text",
            "permissions.deny": [], "permissions.ask": [], "permissions.allow": [], "max_turns": 50, "max_retries": 3,
            "retry_base_s": 0.5, "context_window": 128000, "compact_threshold": 0.8, "bash_timeout_s": 120, "hooks": {},
            "add_dirs": [], "env": {},
        }  # fmt: skip
        self.assertEqual({key: one["value"] for key, one in self.config().items()}, wanted)
        good = {"max_turns": 1, "max_retries": 0, "retry_base_s": 0, "context_window": 100, "compact_threshold": 1,
                "bash_timeout_s": 600}  # fmt: skip
        self.settings(**good)
        self.assertEqual(self.headless("go").code, 0)
        bad = {"max_turns": 0, "max_retries": -1, "retry_base_s": -0.1, "context_window": 99, "compact_threshold": 0,
               "bash_timeout_s": 601, "add_dirs": "x", "env": {"A": 1}, "hooks": [], "permissions": [], "memory": 1}  # fmt: skip
        for key, value in bad.items():
            self.settings(**{key: value})
            self.assert_error(self.headless("go"), 3, key)

    def test_precedence(self):
        """flags.settings.precedence"""
        self.put("extra.json", '{"max_turns": 50, "model": "extra"}')
        self.settings("user", max_turns=1, model="user", stream=True)
        self.settings("project", max_turns=2, model="project")
        self.settings("local", max_turns=3)
        config = self.config()
        self.assertEqual([config[key]["source"] for key in ("max_turns", "model", "stream")], ["local", "environment", "user"])
        ran = self.headless("go", "--settings", "extra.json", script=[call("list")] * 4)
        self.assertEqual((ran.code, ran.requests[0]["model"], ran.requests[0]["stream"]), (0, "extra", True))
        self.assertEqual(self.headless("go", "--max-turns", "2", script=[call("list")] * 4).code, 5)

    def test_merge(self):
        """flags.settings.merge"""
        for number, level in enumerate(("user", "project", "local")):
            os.mkdir(os.path.join(self.top, level))
            self.settings(level, permissions={"deny": [f"bash(echo {number})", "list"]}, add_dirs=[f"../{level}"],
                          env={"A": level, level: "x"})  # fmt: skip
            self.put(f"{level}/f", level, self.top)
        pairs = [("bash", {"command": f"echo {number}"}) for number in range(4)]
        pairs += [("read", {"path": f"../{level}/f"}) for level in ("user", "project", "local")]
        pairs += [("bash", {"command": "echo $A $user$project$local"})]
        got = self.do(*pairs, args=("--deny", "bash(echo 3)"))
        self.assertEqual(got[:4], [f"error: denied: rule bash(echo {number})" for number in range(4)])
        self.assertEqual(got[4:], ["1\tuser", "1\tproject", "1\tlocal", "local xxx\n[exit 0]"])
        self.assertEqual(self.answer("/permissions").split("\n").count("deny list (user)"), 1)
        self.assertEqual(self.config()["permissions.deny"]["value"].count("list"), 1)
        self.settings("user", add_dirs=["../user", "../user"])
        self.assertEqual(self.config()["add_dirs"], {"value": ["../user", "../project", "../local"], "source": "local"})

    def test_unknown_key(self):
        """flags.settings.unknown-key"""
        self.put(".harness/settings.json", '{"Model": "x", "permissions": {"never": [], "deny": ["bash"]}}')
        before = self.tree()
        ran = self.headless("go")
        self.assertEqual((ran.code, "bash" in ran.tools()), (0, False))
        lines = [line for line in ran.err.split("\n") if line]
        self.assertEqual(len(lines), 2)
        for line, key in zip(lines, ("Model", "permissions.never")):
            self.assertRegex(line, f"^warning: .*settings.json.*{key}")
        self.assertEqual(self.tree(), before)

    def test_wrong_type(self):
        """flags.settings.wrong-type"""
        for key, value in (("max_turns", "20"), ("max_turns", True), ("max_turns", 5.0), ("stream", None), ("model", ""),
                           ("permission_mode", "fast"), ("output_format", "xml"), ("retry_base_s", True)):  # fmt: skip
            self.settings(**{key: value})
            self.broken(key)
        self.settings(permissions={"deny": "bash"})
        self.broken("permissions.deny")
        self.settings(max_turns="1")
        self.assert_error(self.headless("go", "--max-turns", "5"), 3, "max_turns")
        self.settings(retry_base_s=1)
        self.assertEqual(self.headless("go").code, 0)

    def test_broken(self):
        """flags.settings.broken"""
        self.put(".harness/settings.json", '{\n"model": "x",\n}')
        self.broken("line 3")
        self.put(".harness/settings.json", '{ // c\n}')
        self.broken("line 1")
        for content in ("", "[]", b"\xff{}"):
            self.put(".harness/settings.json", content)
            self.broken()
        os.unlink(os.path.join(self.ws, ".harness/settings.json"))
        os.mkdir(os.path.join(self.ws, ".harness/settings.json"))
        self.broken()

    def test_file_flag(self):
        """flags.settings.file-flag"""
        self.put("d/extra.json", '{"permissions": {"deny": ["bash"]}, "odd": 1}')
        self.settings(permissions={"deny": ["read"]})
        ran = self.headless("go", "--cwd", self.ws, "--settings", "d/extra.json", cwd=self.top)
        self.assertFalse({"bash", "read"} & set(ran.tools()))
        self.assertIn("odd", ran.err)
        self.assert_error(self.headless("go", "--settings", "none.json"), 3, "none.json")
        self.put("bad.json", "{")
        self.assert_error(self.headless("go", "--settings", "bad.json"), 3, "bad.json", "line 1")

    def test_env(self):
        """flags.settings.env"""
        self.settings(env={"NAME": "value", "HARNESS_MODEL": "other"}, hooks={"stop": [{"command": "echo $NAME > hook"}]})
        ran = self.headless("go", "--permission-mode", "auto", script=[call("bash", command="echo $NAME $HARNESS_MODEL")])
        self.assertEqual((ran.results(), ran.requests[0]["model"]), (["value other\n[exit 0]"], "m-test"))
        self.assertEqual(self.text("hook"), "value\n")
        self.assertEqual(self.answer("!echo $NAME"), "value\n[exit 0]")
        for env in ({"": "x"}, {"A=B": "x"}, {"A": "x\0y"}):
            self.settings(env=env)
            self.assert_error(self.headless("go"), 3, "settings.json", "env")
