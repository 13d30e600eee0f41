"""Chapter 10: exit codes. Each test names its clause in its docstring."""

import os
import signal
import subprocess
import time

from support import HARNESS, OVERFLOW, Case, Fault, Screen, alive, call, calls, delta, eventually, message, say, status, stream

AUTO = ("--permission-mode", "auto")


class Codes(Case):
    def test_closed(self):
        """exit-codes.table.closed"""
        cases = [
            self.headless("go", *AUTO, script=[call("bash", command="exit 77")]),
            self.headless("go", "--nope"),
            self.headless("go", "-q", script=[status(400)]),
            self.headless("go", "-q", "-r", "none"),
            self.run_harness("nope"),
            self.run_harness("sessions", "show", "none", "-q"),
            self.headless("go", env={"HARNESS_HOME": self.put("file")}),
        ]
        self.assertEqual([ran.code for ran in cases], [0, 2, 4, 6, 2, 6, 1])
        for ran in cases:
            self.assertEqual("error: " in ran.err, ran.code != 0)
            self.assertNotIn("Traceback", ran.err)

    def test_first(self):
        """exit-codes.table.first"""
        ran = self.headless("go", "--max-turns", "1", "--timeout-s", "0.7", *AUTO, script=[call("bash", command="sleep 30")])
        self.assertEqual(ran.code, 124)
        scenario = self.scenario([status(500, retry_after="20")])
        process = subprocess.Popen([HARNESS, "-p", "go"], cwd=self.ws, env=self.env(scenario), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.assertTrue(eventually(lambda: scenario.requests))
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), 130)
        process.stderr.close()
        self.settings(odd=1)
        self.assertEqual(self.headless("go").code, 0)

    def test_answer(self):
        """exit-codes.success.answer"""
        self.settings(retry_base_s=0)
        self.lay_session("s", "a", message("assistant", "b"))
        self.assertEqual(self.headless("go", "-c", script=[status(500), OVERFLOW, say("SUM"), say("x")]).code, 0)
        self.assertEqual(self.headless("/undo").code, 0)
        self.assertEqual(self.headless("/mode").code, 0)

    def test_tools(self):
        """exit-codes.success.tools"""
        self.settings(bash_timeout_s=1)
        script = [calls(("write", {"path": "../x", "content": ""}), ("nope", {}), ("read", "{"), ("bash", {"command": "sleep 9"}),
                        ("bash", {"command": "exit 9"}), ("task", {"prompt": "p"}), ("list", {})), status(400)]  # fmt: skip
        self.assertEqual(self.headless("go", *AUTO, "--deny", "list", script=script).code, 0)

    def test_internal(self):
        """exit-codes.internal.error"""
        home = self.put("file")
        ran = self.headless("go", env={"HARNESS_HOME": home})
        self.assertEqual(ran.code, 1)
        self.assertRegex(ran.err, f"(?m)^error: internal: .*{home}")
        os.makedirs(os.path.join(self.home, "sessions/s.jsonl"))
        ran = self.headless("go", "-r", "s")
        self.assertEqual(ran.code, 1)
        self.assertIn(self.session_path("s"), ran.err)
        sessions = self.put("state/sessions", "no directory", self.top)
        for args in (("-p", "go", "-c"), ("-p", "go", "-r", "s"), ("sessions", "list")):
            ran = self.run_harness(*args, env={"HARNESS_HOME": os.path.dirname(sessions)})
            self.assertEqual((ran.code, ran.out, ran.requests), (1, "", []))
            self.assertRegex(ran.err, f"(?m)^error: internal: .*{sessions}")

    def test_usage(self):
        """exit-codes.usage.error"""
        for args, word in ((("-p", "go", "--nope"), "--nope"), (("-p", "go", "--max-turns", "x"), "x"), (("tools", "odd"), "odd"), (("-p", "/mode fast"), "fast"),
                           (("-p", "go", "--agent", "none"), "none")):  # fmt: skip
            ran = self.run_harness(*args)
            self.assert_error(ran, 2, word)
            self.assertEqual((ran.requests, self.session_ids(), self.tree()), ([], [], {}))

    def test_settings(self):
        """exit-codes.settings.error"""
        ran = self.headless("go", env={"HARNESS_BASE_URL": None})
        self.assert_error(ran, 3, "HARNESS_BASE_URL")
        self.assert_error(self.headless("go", env={"HARNESS_MODEL": None}), 3, "model")
        self.settings(permissions={"deny": ["Bash"]})
        ran = self.headless("go")
        self.assert_error(ran, 3, "settings.json", "Bash")
        self.assertEqual(ran.requests, [])
        self.assertEqual(self.run_harness("help").code, 0)

    def test_model(self):
        """exit-codes.model.error"""
        ran = self.headless("go", "--session-id", "s", *AUTO, script=[call("write", path="a", content="x"), status(401)])
        self.assertEqual((ran.code, self.text("a")), (4, "x"))
        self.assertEqual(len(self.stored("s")), 3)
        self.assertEqual(self.headless("more", "-c").code, 0)
        for script in ([say(""), say("")], [OVERFLOW]):
            self.assertEqual(self.headless("go", script=script).code, 4)

    def test_model_message(self):
        """exit-codes.model.message"""
        self.settings(retry_base_s=0, max_retries=1)
        self.lay_session("s", "a", message("assistant", "b"))
        cases = [
            ([status(401, "bad key-4711")], ["HTTP 401", "bad "]),
            ([status(500), status(503, "busy")], ["HTTP 503", "busy", "after 2 tries"]),
            ([status(500), Fault(503, b"x" * 100, cut=True)], ["HTTP 503", "after 2 tries"]),
            ([status(500), status(400)], ["HTTP 400"]),
            ([say(""), say("")], ["empty reply"]),
            ([OVERFLOW, say("S"), OVERFLOW], ["context length exceeded"]),
            ([Fault(body=b"x"), Fault(body=b"y")], ["invalid reply", "after 2 tries"]),
            ([stream(delta(content="x"), done=False)] * 2, ["invalid reply", "after 2 tries"]),
        ]
        for script, words in cases:
            ran = self.headless("go", "-r", "s", script=script)
            self.assertRegex(ran.err, "(?m)^error: model: ")
            self.assert_error(ran, 4, *words)
            self.assertNotIn("key-4711", ran.err)
            self.assertEqual("tries" in ran.err, any("tries" in word for word in words))
        ran = self.headless("go", env={"HARNESS_BASE_URL": "http://127.0.0.1:1/v1"})
        self.assert_error(ran, 4, "error: model: ", "cannot connect", "after 2 tries")
        self.settings(retry_base_s=0, hooks={"before_compact": [{"command": "echo NO >&2; exit 2"}]})
        ran = self.headless("go", "-r", "s", script=[status(400, "far too long", "context_length_exceeded")])
        self.assert_error(ran, 4, "error: model: ", "context length exceeded", "HTTP 400", "far too long", "NO")

    def test_turns(self):
        """exit-codes.turns.limit"""
        ran = self.headless("go", "--session-id", "s", "--max-turns", "2", script=[call("list")] * 2)
        self.assertEqual((ran.code, self.stored("s")[-1][0]), (5, "tool"))
        ran = self.headless("more", "-c", "--max-turns", "2", script=[call("list"), say("x")])
        self.assertEqual((ran.code, len(ran.requests)), (0, 2))

    def test_session(self):
        """exit-codes.session.missing"""
        for ran in (self.headless("go", "-r", "none"), self.headless("go", "-c"), self.headless("/resume none"),
                    self.run_harness("sessions", "show", "none"), self.run_harness("sessions", "export", "none"),
                    self.run_harness("sessions", "delete", "none")):  # fmt: skip
            self.assert_error(ran, 6)
            self.assertEqual((ran.requests, self.session_ids()), ([], []))

    def test_hook(self):
        """exit-codes.hook.blocked"""
        self.lay_session("s", "a", message("assistant", "b"))
        for event, prompt in (("session_start", "go"), ("user_prompt", "go"), ("before_compact", "/compact")):
            self.settings(hooks={event: [{"command": "exit 2"}]})
            self.assertEqual(self.headless(prompt, "-c").code, 7)
            self.settings(hooks={event: [{"command": "exit 1"}]})
            self.assertEqual(self.headless(prompt, "-c").code, 0)
        self.settings(hooks={"before_tool": [{"command": "exit 2"}]})
        self.assertEqual(self.headless("go", script=[call("list")]).code, 0)

    def test_time(self):
        """exit-codes.time.limit"""
        early = stream(delta(content="early"), done=False)
        early.wait_s = 3
        ran = self.headless("go", "--timeout-s", "0.6", "--stream", script=[early])
        self.assertEqual((ran.code, ran.out), (124, ""))
        self.settings(bash_timeout_s=1, hooks={"stop": [{"command": "sleep 30", "timeout_s": 1}]})
        self.assertEqual(self.headless("go", *AUTO, script=[call("bash", command="sleep 30")]).code, 0)

    def test_interrupt(self):
        """exit-codes.interrupt.signal"""
        def ends(number, *args, stdin=subprocess.DEVNULL, script=()):
            if self.exists("pid"):
                os.unlink(os.path.join(self.ws, "pid"))
            process = subprocess.Popen([HARNESS, *args], cwd=self.ws, env=self.env(self.scenario(script)), stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
            if stdin != subprocess.DEVNULL:
                process.stdin.write(stdin)
                process.stdin.flush()
            else:
                process.stdin.close()
            self.assertTrue(eventually(lambda: self.exists("pid") and self.text("pid").strip()))
            started = time.monotonic()
            process.send_signal(number)
            code = process.wait()
            self.assertLess(time.monotonic() - started, 2)
            self.assertTrue(eventually(lambda: not alive(int(self.text("pid")))))
            err = process.stderr.read()
            for one in (process.stdin, process.stdout, process.stderr):
                one.close()
            return code, "error: " in err and "interrupted" in err

        busy = call("bash", command="echo $$ > pid; exec sleep 60")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.assertEqual(ends(number, "-p", "go", "--session-id", f"s{number}", *AUTO, script=[busy]), (130, True))
            self.assertEqual([role for role, _ in self.stored(f"s{number}")], ["user", "assistant"])
        self.assertEqual(ends(signal.SIGTERM, "api", *AUTO, stdin='{"op": "run", "prompt": "go"}\n', script=[busy]), (130, True))
        for number in (signal.SIGTERM, signal.SIGINT):
            self.assertEqual(ends(number, *AUTO, stdin="go\n", script=[busy]), (130, True))
        job = call("bash", command="echo $$ > pid; exec sleep 60", background=True)
        self.assertEqual(ends(signal.SIGTERM, *AUTO, stdin="go\n", script=[job, say("x")]), (130, True))
        screen = Screen(self)
        screen.wait("> ")
        os.kill(screen.pid, signal.SIGHUP)
        self.assertEqual(screen.code(), 130)
