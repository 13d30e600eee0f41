"""Chapter 6: inside a session. Each test names its clause in its docstring."""

import json
import os
import stat
import time

from support import OVERFLOW, Case, Fault, Screen, alive, call, calls, eventually, message, say, status

COMMANDS = ("add-dir agents clear compact context diff exit export fork help init memory mode model permissions rename "
            "resume rewind sessions skills todos tools undo usage").split()  # fmt: skip


def write(path, content):
    return call("write", path=path, content=content)


class SessionCase(Case):
    AUTO = ("--permission-mode", "auto")

    def talk(self, *lines, script=(), args=AUTO, **more):
        """An interactive run whose output is cut into one piece per line only where the test does so."""
        ran = self.interactive(*lines, script=script, args=args, **more)
        self.assertEqual(ran.code, 0, ran.err)
        return ran

    def mistake(self, prompt, *words, args=()):
        ran = self.headless(prompt, *args)
        self.assert_error(ran, 2, *words)
        self.assertEqual((ran.out, ran.requests), ("", []))
        return ran


class Dispatch(SessionCase):
    def test_recognition(self):
        """in-session.dispatch.recognition"""
        self.assertEqual(self.answer("/rename  a\nb "), "renamed to a b")
        self.assertEqual(self.answer("!echo hi"), "hi\n[exit 0]")
        for prompt in (" /mode", " !ls", "see /mode"):
            self.assertEqual(self.headless(prompt).contents(0), [prompt])
        self.mistake("/Mode", "unknown command: /Mode")
        self.assertEqual(self.answer("/mode\n"), "mode: ask")

    def test_routes(self):
        """in-session.dispatch.routes"""
        self.lay_session("s", "x", {"type": "todo", "items": [{"text": "a", "status": "done"}]})
        self.assertEqual(self.answer("/todos", "-c"), "[x] a")
        self.assertEqual(self.interactive("/todos", args=("-c",)).out, "[x] a\n")
        self.assertEqual(self.api_run("/todos", options={"resume": "s"})["text"], "[x] a")
        self.assertEqual(self.answer("/todos"), "[no todos]")

    def test_silent(self):
        """in-session.dispatch.silent"""
        quiet = ["/help", "/model", "/model x", "/mode plan", "/permissions", "/memory", "/usage", "/context", "/tools", "/agents",
                 "/skills", "/todos", "/diff", "/add-dir .", "/sessions", "/undo", "/compact", "/export", "/resume", "/rewind", "/exit"]  # fmt: skip
        ran, responses = self.api(*({"op": "run", "prompt": line} for line in quiet), {"op": "state"})
        self.assertEqual((ran.requests, self.session_ids(), responses[-1]["result"]["messages"]), ([], [], []))
        for response in responses[:-1]:
            self.assertEqual((response["result"]["turns"], response["result"]["tool_calls"]), (0, []))
        for line, count in (("/clear", 1), ("/rename t", 2), ("!true", 3)):
            self.headless(line)
            self.assertEqual(len(self.session_ids()), count, line)

    def test_unknown(self):
        """in-session.dispatch.unknown"""
        self.put(".harness/commands/contest.md", "x")
        self.assertEqual(self.mistake("/contex").err, "error: unknown command: /contex; did you mean /context, /contest?\n")
        self.assertEqual(self.mistake("/mo x").err, "error: unknown command: /mo; did you mean /mode, /model?\n")
        self.assertEqual(self.mistake("/s").err, "error: unknown command: /s; did you mean /skills, /sessions?\n")
        self.assertEqual(self.mistake("/usr/bin").err, "error: unknown command: /usr/bin\n")
        self.assertEqual(self.mistake("/").err, "error: unknown command: /\n")
        self.assertEqual(self.session_ids(), [])

    def test_escape(self):
        """in-session.dispatch.escape"""
        self.assertEqual(self.headless("//help me").contents(0), ["/help me"])
        self.assertEqual(self.headless("///x").contents(0), ["//x"])

    def test_mistakes(self):
        """in-session.dispatch.mistakes"""
        for prompt in ("/rename", "/mode fast", "/help x", "/rewind x", "/add-dir none", "/model a b", "/todos 1"):
            self.mistake(prompt, f"error: {prompt.split()[0]}: ")
        result = self.api_run("/mode fast")
        self.assertEqual((result["exit_code"], result["error"]["message"][:7]), (2, "/mode: "))
        ran = self.interactive("/mode fast", "/mode")
        self.assertEqual((ran.code, ran.out), (0, "mode: ask\n"))
        self.assertIn("error: /mode: ", ran.err)

    def test_refusals(self):
        """in-session.dispatch.refusals"""
        for prompt in ("/undo", "/fork", "/compact", "/todos", "/diff", "/export", "/resume", "/rewind"):
            ran = self.headless(prompt, "--output-format", "json")
            self.assertEqual((ran.code, ran.json["error"], ran.json["text"] != ""), (0, None, True))
        self.assert_error(self.headless("/resume none"), 6, "session not found: none")
        self.lay_session("s", "a", message("assistant", "b"))
        self.assert_error(self.headless("/compact", "-c", script=[status(400)]), 4)

    def test_help(self):
        """in-session.help.list"""
        self.put(".harness/commands/zap.md", "---\ndescription: zaps it\n---\nx")
        self.put(".harness/commands/abc.md", "x")
        lines = self.answer("/help").split("\n")
        self.assertEqual([line.split()[0] for line in lines], ["/" + name for name in [*COMMANDS, "abc", "zap"]])
        self.assertTrue(any(line.startswith("/compact [INSTRUCTIONS] ") for line in lines))
        self.assertIn("zaps it", lines[-1])


class Moving(SessionCase):
    def test_clear(self):
        """in-session.clear.new"""
        script = [call("todo", items=[{"text": "a", "status": "done"}]), say("1")]
        ran = self.talk("one", "/clear", "/todos", "two", script=script, args=("--session-id", "old"))
        new = next(one for one in self.session_ids() if one != "old")
        self.assertEqual(ran.out, f"1\nnew session {new}\n[no todos]\nDONE\n")
        self.assertEqual(ran.contents(), ["two"])
        self.assertEqual(self.headless("x", "-r", "old").contents(0)[0], "one")
        output = self.answer("/clear", "-r", "old")
        self.assertEqual(self.headless("go", "-c").contents(0), ["go"])
        self.assertIn(output.removeprefix("new session "), self.session_ids())
        ran = self.talk("/mode plan", "/model m2", "/clear", "/mode", "x")
        self.assertIn("mode: plan\nDONE", ran.out)
        self.assertEqual(ran.requests[0]["model"], "m2")
        self.assertEqual(self.headless("later", "-c").requests[0]["model"], "m-test")

    def test_fork(self):
        """in-session.fork.move"""
        ran = self.talk("/fork", "one", "/fork", "two", args=("--session-id", "old"))
        new = next(one for one in self.session_ids() if one != "old")
        self.assertEqual(ran.out, f"nothing to fork\nDONE\nforked old to {new}\nDONE\n")
        self.assertEqual([len(self.stored(one)) for one in ("old", new)], [2, 4])

    def test_resume_by_id(self):
        """in-session.resume.by-id"""
        self.lay_session("other", "x", message("assistant", "y"))
        ran = self.talk("one", "/resume other", "two", "/resume none", "/resume other", "three")
        self.assertEqual(ran.contents(1), ["x", "y", "two"])
        self.assertEqual(ran.contents(2), ["x", "y", "two", "DONE", "three"])
        self.assertEqual(ran.out, "DONE\nresumed other\nDONE\nresumed other\nDONE\n")
        self.assertIn("error: session not found: none", ran.err)
        self.mistake("/resume ../x", "/resume: ", "../x")

    def test_resume_newest(self):
        """in-session.resume.newest"""
        for name, seconds in (("a", 10), ("b", 20)):
            os.utime(self.lay_session(name, name), (seconds, seconds))
        ran = self.talk("/resume", "/resume", args=("-r", "b"))
        self.assertEqual(ran.out, "resumed a\nresumed b\n")
        self.assertEqual(self.answer("/resume", cwd=self.top), "no other session")

    def test_sessions(self):
        """in-session.sessions.list"""
        self.assertEqual(self.answer("/sessions"), "no sessions")
        self.lay_session("a", "hello")
        self.assertEqual(self.answer("/sessions") + "\n", self.run_harness("sessions", "list").out)

    def test_rename(self):
        """in-session.rename.title"""
        self.headless("one", "--session-id", "s")
        self.assertEqual(self.answer("/rename  My \t title ", "-c"), "renamed to My title")
        self.assertEqual(self.records("s")[-1], {"type": "title", "title": "My title"})
        self.assertTrue(self.answer("/sessions").endswith("\tMy title"))
        self.assertEqual(self.answer("/rename " + "x" * 300, "-c"), "renamed to " + "x" * 200)
        self.assert_error(self.headless("go", "-r", "x"), 6)
        self.talk("/model m2", "/rename New", args=("--session-id", "n"))
        self.assertEqual([one["type"] for one in self.records("n")], ["session", "title", "model"])

    def test_export_print(self):
        """in-session.export.print"""
        self.assertEqual(self.answer("/export"), "nothing to export")
        self.headless("one", "--session-id", "s", script=[call("list"), say("x")])
        self.assertEqual(self.answer("/export", "-c") + "\n", self.run_harness("sessions", "export", "s").out)

    def test_export_file(self):
        """in-session.export.file"""
        self.headless("one", "--session-id", "s")
        self.assertEqual(self.answer("/export d/e x.md", "-c"), "exported to d/e x.md")
        self.assertEqual(self.text("d/e x.md"), self.run_harness("sessions", "export", "s").out)
        self.assertEqual(self.answer("/export d/e x.md", "-c"), "export refused: d/e x.md exists")
        self.put("f")
        self.mistake("/export f/x", "/export: ", "f/x", args=("-c",))

    def test_exit(self):
        """in-session.exit.leave"""
        ran = self.talk("/exit", "never")
        self.assertEqual((ran.out, ran.requests), ("", []))
        self.assertEqual(self.answer("/exit"), "")
        _, responses = self.api({"op": "run", "prompt": "/exit"}, {"op": "run", "prompt": "go"})
        self.assertEqual([one["result"]["text"] for one in responses], ["", "DONE"])


class ModelModeRoots(SessionCase):
    def test_model_show(self):
        """in-session.model.show"""
        self.assertEqual(self.answer("/model"), "model: m-test")
        self.assertEqual(self.answer("/model", "--model", "x"), "model: x")
        self.assertEqual(self.answer("/model", env={"HARNESS_MODEL": None}), "model: ")

    def test_model_set(self):
        """in-session.model.set"""
        ran = self.talk("one", "/model m2", "two", args=("--session-id", "s", "--model", "m1"))
        self.assertEqual((ran.out, [one["model"] for one in ran.requests]), ("DONE\nmodel: m2\nDONE\n", ["m1", "m2"]))
        self.assertEqual([one for one in self.records("s") if one["type"] == "model"], [{"type": "model", "model": "m2"}])
        self.talk("/model m3", "one", args=("--session-id", "t"))
        self.assertEqual([one["type"] for one in self.records("t")][:3], ["session", "model", "message"])
        self.mistake("/model a b", "/model: ")

    def test_mode_show(self):
        """in-session.mode.show"""
        self.assertEqual(self.answer("/mode", "--permission-mode", "dont-ask"), "mode: dont-ask")

    def test_mode_set(self):
        """in-session.mode.set"""
        ran = self.talk("/mode plan", "one", "/mode auto", "two", args=("--session-id", "s"),
                        script=[call("list"), say("x"), call("bash", command="echo hi")])  # fmt: skip
        self.assertEqual(["bash" in ran.tools(index) for index in (0, 2)], [False, True])
        self.assertEqual(ran.results()[-1], "hi\n[exit 0]")
        self.mistake("/mode fast", "/mode: ", "ask", "accept-edits", "plan", "auto", "dont-ask")
        self.assertEqual(self.answer("/mode", "-c"), "mode: ask")
        self.put(".harness/agents/strict.md", "---\npermission_mode: plan\n---\n")
        ran = self.talk("/mode auto", "one", args=("--agent", "strict"))
        self.assertNotIn("bash", ran.tools())
        self.lay_session("there", "old", cwd=os.path.dirname(self.put("e/x")))
        requests = ({"op": "run", "prompt": "/mode plan"}, {"op": "run", "prompt": "go", "cwd": "e", "options": {"resume": "there"}})
        self.assertNotIn("bash", self.api(*requests)[0].tools())

    def test_permissions(self):
        """in-session.permissions.show"""
        self.assertEqual(self.answer("/permissions"), "mode: ask")
        self.settings("local", permissions={"deny": ["read(l)"], "allow": ["glob"]})
        self.settings("user", permissions={"deny": ["read(u)", "read(v)"], "ask": ["list"]})
        self.settings("project", permissions={"deny": ["read(p)"]})
        self.put("extra.json", '{"permissions": {"deny": ["read(s)"]}}')
        args = ("--deny", "read(f)", "--allow", "grep", "--settings", "extra.json")
        ran = self.interactive("go", "a", "/permissions", args=args, script=[call("bash", command="echo 1")])
        wanted = ["mode: ask", "deny read(u) (user)", "deny read(v) (user)", "deny read(p) (project)", "deny read(l) (local)",
                  "deny read(s) (settings)", "deny read(f) (flag)", "ask list (user)", "allow glob (local)",
                  "allow grep (flag)"]  # fmt: skip
        self.assertTrue(ran.out.endswith("DONE\n" + "\n".join(wanted) + "\n"), ran.out)

    def test_add_dir(self):
        """in-session.add-dir.root"""
        path = os.path.join(self.top, "my extra")
        self.put("f", "x", path)
        ran = self.talk("/add-dir ../my extra", "/add-dir .", "go", script=[call("read", path=f"{path}/f")])
        self.assertEqual((ran.out, ran.results()), (f"added {path}\nadded {self.ws}\nDONE\n", ["1\tx"]))
        self.mistake("/add-dir ../none", "/add-dir: ", "../none")
        ran = self.headless("go", "-c", script=[call("read", path=f"{path}/f")])
        self.assertEqual(ran.results()[-1], f"error: outside the workspace: {path}/f")


class Looking(SessionCase):
    def test_usage(self):
        """in-session.usage.show"""
        self.assertEqual(self.answer("/usage"), "requests: 0\ninput tokens: 0\noutput tokens: 0")
        tokens = {"prompt_tokens": 10, "completion_tokens": 3}
        ran = self.talk("one", "/clear", "two", "/usage", script=[say("1", **tokens), say("2", **tokens)])
        self.assertTrue(ran.out.endswith("2\nrequests: 2\ninput tokens: 20\noutput tokens: 6\n"))

    def test_context(self):
        """in-session.context.show"""
        self.settings(context_window=1001, compact_threshold=0.5)
        ran = self.talk("x" * 41, "/context", script=[call("list"), say("yy")])
        system = ran.system(1)
        chars = len(system) + 41 + len("list") + len("{}") + len(".harness/") + 2
        wanted = f"messages: 4\nestimate: {-(-chars // 4)} tokens\nwindow: 1001 tokens\ncompact at: 500 tokens\n"
        self.assertTrue(ran.out.endswith(wanted), (ran.out, wanted))

    def test_tools(self):
        """in-session.tools.show"""
        for name, command in (("/tools", "tools"), ("/agents", "agents"), ("/skills", "skills")):
            self.assertEqual(self.answer(name) + "\n", self.run_harness(command).out)
        ran = self.talk("/mode plan", "/tools", "go", args=("--deny", "grep"))
        shown = [line.split("\t")[0] for line in ran.out.split("\n")[1:-2]]
        self.assertEqual(shown, ran.tools())

    def test_todos(self):
        """in-session.todos.show"""
        items = [{"text": t, "status": s} for t, s in (("a", "pending"), ("b", "in_progress"), ("c", "done"))]
        self.assertEqual(self.answer("/todos"), "[no todos]")
        self.headless("go", script=[call("todo", items=items)])
        self.assertEqual(self.answer("/todos", "-c"), "[ ] a\n[>] b\n[x] c")

    def test_diff(self):
        """in-session.diff.show"""
        self.assertEqual(self.answer("/diff"), "no changes")
        self.put("b", "".join(f"{n}\n" for n in range(1, 11)))
        self.put("back", "x")
        self.put("gone", "old\n")
        script = [calls(
            ("write", {"path": "a", "content": "new\n"}), ("read", {"path": "b"}), ("edit", {"path": "b", "old": "5", "new": "five"}),
            ("read", {"path": "back"}), ("write", {"path": "back", "content": "y"}), ("write", {"path": "back", "content": "x"}),
            ("patch", {"text": "*** Begin Patch\n*** Delete File: gone\n*** End Patch"}), ("bash", {"command": "echo x > shell"}),
        )]  # fmt: skip
        self.headless("go", *self.AUTO, script=script)
        wanted = ["--- /dev/null", "+++ b/a", "@@ -0,0 +1 @@", "+new", "--- a/b", "+++ b/b", "@@ -2,7 +2,7 @@", " 2", " 3", " 4",
                  "-5", "+five", " 6", " 7", " 8", "--- a/gone", "+++ /dev/null", "@@ -1 +0,0 @@", "-old"]  # fmt: skip
        self.assertEqual(self.answer("/diff", "-c").split("\n"), wanted)

    def test_diff_form(self):
        """in-session.diff.form"""
        self.put("e", "")
        self.put("n", "a\nold")
        self.put("m", "x\n")
        self.put("odd", b"\xff\n")
        os.symlink("e", os.path.join(self.ws, "link"))
        patch = "*** Begin Patch\n*** Delete File: e\n*** Add File: new\n*** Delete File: odd\n*** Delete File: link\n*** End Patch"
        patch = patch.replace("*** Delete File: link\n", "")
        script = [calls(("patch", {"text": "*** Begin Patch\n*** Delete File: link\n*** End Patch"}), ("patch", {"text": patch}),
                        ("read", {"path": "n"}), ("edit", {"path": "n", "old": "old", "new": "new"}),
                        ("read", {"path": "m"}), ("write", {"path": "m", "content": "x\n"}), ("bash", {"command": "chmod 600 m"}))]  # fmt: skip
        self.headless("go", *self.AUTO, script=script)
        mark = "\\ No newline at end of file"
        wanted = ["--- a/e", "+++ /dev/null", "--- a/n", "+++ b/n", "@@ -1,2 +1,2 @@", " a", "-old", mark, "+new", mark, "--- /dev/null", "+++ b/new",
                  "--- a/odd", "+++ /dev/null", "@@ -1 +0,0 @@", "-\ufffd"]  # fmt: skip
        self.assertEqual(self.answer("/diff", "-c").split("\n"), wanted)

    def test_memory(self):
        """in-session.memory.show"""
        self.put(".harness/memory.md", "- x\n")
        self.assertEqual(self.answer("/memory") + "\n", self.run_harness("memory", "show").out)

    def test_init(self):
        """in-session.init.files"""
        self.put("b", "x")
        script = [calls(("read", {"path": "b"}), ("write", {"path": "b", "content": "y"})), say("1")]
        ran = self.talk("go", "/init", "/undo", script=script)
        self.assertIn("created AGENTS.md\ncreated .harness/settings.json\nundone 1 files", ran.out)
        self.assertEqual(self.text("AGENTS.md"), "# ws\n")


class Compaction(SessionCase):
    def lay(self, *more):
        return self.lay_session("s", "one", message("assistant", "two"), *more)

    def test_manual(self):
        """in-session.compact.manual"""
        self.lay()
        ran = self.headless("/compact", "-c", "--output-format", "json", script=[say("SUM")])
        self.assertEqual((ran.json["text"], ran.json["turns"], ran.json["usage"]["requests"]), ("compacted 2 messages", 0, 1))
        self.assertEqual(self.records("s")[-1], {"type": "compact", "trigger": "manual", "summary": "SUM", "kept": 0})
        self.assertEqual(self.headless("go", "-c").contents(0), ["<summary>SUM</summary>", "go"])

    def test_side_call(self):
        """in-session.compact.side-call"""
        self.lay()
        self.settings(retry_base_s=0, stream=True)
        script = [status(500), call("bash", command="touch x"), say("SUM")]
        ran = self.headless("/compact", "-c", *self.AUTO, "--model", "m9", script=script)
        self.assertEqual((ran.code, len(ran.requests)), (0, 3))
        for request in ran.requests:
            self.assertNotIn("tools", request)
            self.assertEqual((request["model"], request["stream"]), ("m9", True))
        self.assertEqual([m["role"] for m in ran.messages(0)], ["user", "assistant", "user"])
        self.assertTrue(ran.contents(0)[-1].startswith("Summarize the conversation so far"))
        self.assertEqual(ran.system(0), self.headless("go", "-c").system())
        self.assertFalse(self.exists("x"))

    def test_instructions(self):
        """in-session.compact.instructions"""
        self.lay()
        ran = self.talk("/compact keep  the\\", "names", "go", args=("-c",), script=[say("SUM")])
        self.assertIn("keep  the\nnames", ran.contents(0)[-1])
        self.assertNotIn("keep  the", json.dumps(ran.requests[1]))

    def test_next_request(self):
        """in-session.compact.next-request"""
        self.lay()
        ran = self.talk("/compact", "go", "more", args=("-c",), script=[say("SUM"), say("a"), say("b")])
        summary = "<summary>SUM</summary>"
        self.assertEqual(ran.contents(1), [summary, "go"])
        self.assertEqual(ran.contents(2), [summary, "go", "a", "more"])
        self.settings(context_window=2000)
        ran = self.headless("y" * 7000, "-c", script=[say("SUM2"), say("x")])
        self.assertEqual(ran.contents(1), ["<summary>SUM2</summary>", "y" * 7000])
        self.settings(hooks={"stop": [{"command": "[ -e again ] || { touch again; exit 2; }"}]})
        ran = self.headless("prompt", script=[say("a"), OVERFLOW, say("SUM3"), say("b")])
        self.assertEqual(ran.contents(3), ["<summary>SUM3</summary>", "prompt"])

    def test_too_short(self):
        """in-session.compact.too-short"""
        self.assertEqual(self.answer("/compact"), "nothing to compact")
        self.lay()
        ran = self.talk("/compact", "/compact", args=("-c",), script=[say("SUM")])
        self.assertEqual((ran.out, len(ran.requests)), ("compacted 2 messages\nnothing to compact\n", 1))
        self.settings(context_window=100)
        ran = self.headless("z" * 500)
        self.assertEqual((ran.code, ran.err, len(ran.requests)), (0, "", 1))

    def test_automatic(self):
        """in-session.compact.automatic"""
        self.put("big", "b" * 1500 + "\n")
        self.settings(context_window=1000, compact_threshold=0.4)
        script = [call("read", path="big"), say("SUM"), call("list"), say("end")]
        ran = self.headless("go", "--output-format", "json", script=script)
        self.assertEqual((ran.json["text"], ran.json["turns"], len(ran.requests)), ("end", 3, 4))
        self.assertEqual(["tools" in request for request in ran.requests], [True, False, True, True])
        self.assertEqual(ran.contents(2), ["<summary>SUM</summary>", "go"])
        ran = self.headless("w" * 8000, "-c", script=[say("SUM2"), say("end")])
        self.assertEqual((ran.code, len(ran.requests)), (0, 2))

    def test_estimate(self):
        """in-session.compact.estimate"""
        bare = self.headless("x")
        self.assertLessEqual(len(bare.system()), 8000)
        for length, n_requests in ((400, 1), (401, 2)):
            chars = len(bare.system()) + 3 + 1 + 4
            self.lay_session("s", "abc", message("assistant", "d", tool_calls=[
                {"id": "c", "type": "function", "function": {"name": "zz", "arguments": "{}"}}]),
                message("tool", "r" * length, tool_call_id="c"))  # fmt: skip
            window = -(-(chars + 400 + 2) // 4)
            self.settings(context_window=window, compact_threshold=1)
            filler = "é" * ((4 - (chars + 400 + 2) % 4) % 4 + 2)
            ran = self.headless(filler, "-r", "s", script=[say("S"), say("x")])
            self.assertEqual(len(ran.requests), n_requests, (length, window))

    def test_overflow(self):
        """in-session.compact.overflow"""
        self.lay()
        ran = self.headless("go", "-c", script=[OVERFLOW, say("SUM"), say("end")])
        self.assertEqual((ran.code, ran.contents(2)), (0, ["<summary>SUM</summary>", "go"]))
        ran = self.headless("go", "-c", script=[OVERFLOW, say("SUM"), OVERFLOW])
        self.assert_error(ran, 4, "context length exceeded")
        before = self.get(self.session_path("s"))
        self.assert_error(self.headless("alone", script=[OVERFLOW]), 4)
        ran = self.headless("again", "-r", "s", script=[OVERFLOW, OVERFLOW])
        self.assert_error(ran, 4)
        self.assertTrue(self.get(self.session_path("s")).startswith(before))
        self.assertEqual(len(ran.requests), 2)

    def test_failure(self):
        """in-session.compact.failure"""
        self.settings(max_retries=0, context_window=400)
        path = self.lay_session("s", "one", message("assistant", "t" * 2000))
        before = self.get(path)
        for script in ([status(500)], [say(""), say(" ")]):
            self.assert_error(self.headless("/compact", "-c", script=script), 4)
            self.assertEqual(self.get(path), before)
        ran = self.headless("go", "-c", script=[status(500), call("list"), say("end")])
        self.assertEqual((ran.code, ran.out, len(ran.requests)), (0, "end\n", 3))
        self.assertRegex(ran.err, "(?m)^warning: .*compaction failed")
        self.assertEqual(ran.contents(1), ["one", "t" * 2000, "go"])
        self.lay_session("o", "one", message("assistant", "t" * 2000))
        ran = self.headless("go", "-r", "o", script=[status(500), OVERFLOW])
        self.assertEqual((ran.code, len(ran.requests)), (4, 2))


class TakingBack(SessionCase):
    def test_undo_last(self):
        """in-session.undo.last"""
        self.put("e", "old\n", mode=0o755)
        self.put("d", "del\n")
        script = [
            calls(("read", {"path": "e"}), ("edit", {"path": "e", "old": "old", "new": "new"}), ("write", {"path": "n/x", "content": "1"}),
                  ("patch", {"text": "*** Begin Patch\n*** Delete File: d\n*** End Patch"}), ("task", {"prompt": "p"})),
            write("sub", "x"), say("sub"), say("end"), say("two"),
        ]  # fmt: skip
        ran = self.talk("go", "no changes here", "/undo", "after", script=script)
        self.assertIn("undone 4 files\nrestored d\nrestored e\nremoved n/x\nremoved sub\n", ran.out)
        self.assertEqual(self.tree(), {"e": b"old\n", "d": b"del\n", "n": None})
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.ws, "e")).st_mode), 0o755)
        self.assertEqual(ran.contents(-1, "user"), ["go", "no changes here", "after"])

    def test_undo_repeat(self):
        """in-session.undo.repeat"""
        script = [write("a", "1"), say("x"), say("y"), write("a", "2"), say("z")]
        self.talk("one", "two", "three", script=script)
        outputs = [self.answer("/undo", "-c"), self.text("a"), self.answer("/undo", "-c"), self.answer("/undo", "-c")]
        self.assertEqual(outputs, ["undone 1 files\nrestored a", "1", "undone 1 files\nremoved a", "nothing to undo"])

    def test_undo_conflict(self):
        """in-session.undo.conflict"""
        script = [calls(*(("write", {"path": name, "content": name}) for name in "abc"), ("bash", {"command": "echo x >> b"}))]
        self.headless("go", *self.AUTO, script=script)
        os.unlink(os.path.join(self.ws, "c"))
        self.assertEqual(self.answer("/undo", "-c"), "undo refused: b, c changed since")
        self.assertEqual(self.text("a"), "a")
        self.put("b", "b")
        self.put("c", "c")
        os.utime(os.path.join(self.ws, "a"), (1, 1))
        self.assertEqual(self.answer("/undo", "-c").split("\n")[0], "undone 3 files")
        between = calls(("write", {"path": "x", "content": "1"}), ("bash", {"command": "echo 2 > x"}), ("read", {"path": "x"}),
                        ("write", {"path": "x", "content": "3"}))  # fmt: skip
        self.headless("go", *self.AUTO, script=[between])
        self.assertEqual(self.answer("/undo", "-c"), "undo refused: x changed since")
        self.assertEqual(self.text("x"), "3")

    def test_undo_changed(self):
        """in-session.undo.changed"""
        self.put("same", "s")
        self.put("back", "x")
        pairs = (("read", {"path": "same"}), ("write", {"path": "same", "content": "s"}), ("read", {"path": "back"}),
                 ("write", {"path": "back", "content": "y"}), ("write", {"path": "back", "content": "x"}), ("write", {"path": "gone", "content": "1"}),
                 ("patch", {"text": "*** Begin Patch\n*** Delete File: gone\n*** End Patch"}))  # fmt: skip
        script = [write("real", "1"), say("a"), calls(*pairs), say("b"), calls(*pairs, ("write", {"path": "more", "content": "1"})), say("c")]
        self.talk("one", "two", "three", script=script)
        self.put("back", "somebody else")
        self.assertEqual(self.answer("/undo", "-c"), "undone 1 files\nremoved more")
        self.assertEqual(self.answer("/undo", "-c"), "undone 1 files\nremoved real")
        script = [write("r", "1"), say("a"), calls(("write", {"path": "r", "content": "2"})), say("b"),
                  calls(("write", {"path": "r", "content": "1"}), ("write", {"path": "s", "content": "1"})), say("c")]  # fmt: skip
        self.talk("one", "two", "three", script=script)
        self.assertEqual(self.answer("/rewind 2", "-c"), "rewound 2 turns\nremoved s")

    def test_undo_scope(self):
        """in-session.undo.scope"""
        script = [
            calls(("write", {"path": "a", "content": "1"}), ("bash", {"command": "echo s > shell"}), ("remember", {"text": "m"})), say("x"),
            write("a", "2"), say("y"), write("a", "3"),
        ]  # fmt: skip
        ran = self.talk("one", "two", "!echo u > user", "/undo", "three", script=script)
        self.assertEqual(ran.results()[-1], "error: changed since it was read: a")
        self.answer("/undo", "-c")
        self.assertEqual(sorted(self.tree()), [".harness", ".harness/memory.md", "shell", "user"])

    def test_rewind_turns(self):
        """in-session.rewind.turns"""
        todo = calls(("todo", {"items": [{"text": "t1", "status": "done"}]}), ("write", {"path": "a", "content": "1"}))
        later = calls(("todo", {"items": []}), ("write", {"path": "a", "content": "2"}), ("write", {"path": "b", "content": "2"}))
        script = [todo, say("x"), later, say("y"), say("z")]
        ran = self.talk("one", "two", "!true", "/rewind 2", "/todos", "three", script=script, args=(*self.AUTO, "--session-id", "s"))
        self.assertIn("rewound 2 turns\nrestored a\nremoved b\n[no todos]\n", ran.out)
        self.assertEqual(ran.contents(-1, "user"), ["one", "three"])
        self.assertEqual((self.text("a"), self.exists("b")), ("1", False))
        self.assertEqual([one for one in self.records("s") if one["type"] == "rewind"], [{"type": "rewind", "turns": 2}])
        self.assertEqual(self.answer("/undo", "-c"), "undone 1 files\nremoved a")
        self.assertEqual(self.answer("/rewind 2", "-c"), "rewound 2 turns")
        self.assertEqual(self.headless("new", "-c").contents(0), ["new"])
        self.settings(hooks={"stop": [{"command": "[ -e again ] || { touch again; exit 2; }"}]})
        ran = self.talk("x", "/rewind", "y", args=("--session-id", "t"))
        self.assertEqual(ran.contents(), ["y"])

    def test_rewind_limits(self):
        """in-session.rewind.limits"""
        self.lay_session("s", "a", message("assistant", "b"), "c", {"type": "compact", "trigger": "auto", "summary": "S", "kept": 1},
                         message("assistant", "d"), "e")  # fmt: skip
        self.assertEqual(self.answer("/rewind 3", "-c"), "cannot rewind 3 turns: 2 available")
        for wrong in ("0", "-1", "x", "1.0"):
            self.mistake(f"/rewind {wrong}", "/rewind: ", args=("-c",))
        self.assertEqual(self.headless("go", "-c", "--fork").contents(0), ["<summary>S</summary>", "c", "d", "e", "go"])
        self.assertEqual(self.answer("/rewind 2", "-r", "s"), "rewound 2 turns")
        self.assertEqual(self.headless("go", "-r", "s").contents(0), ["<summary>S</summary>", "go"])

    def test_rewind_conflict(self):
        """in-session.rewind.conflict"""
        self.headless("go", *self.AUTO, script=[calls(("write", {"path": "a", "content": "1"}), ("write", {"path": "b", "content": "1"}))])
        self.put("b", "mine")
        before = self.get(self.session_path())
        self.assertEqual(self.answer("/rewind", "-c"), "rewind refused: b changed since")
        self.assertEqual((self.text("a"), self.get(self.session_path())), ("1", before))
        first = calls(("write", {"path": "c", "content": "1"}))
        second = calls(("read", {"path": "c"}), ("write", {"path": "c", "content": "3"}))
        self.talk("one", "!echo 2 > c", "two", script=[first, say("x"), second, say("y")], args=(*self.AUTO, "--session-id", "s"))
        self.assertEqual(self.answer("/rewind 3", "-r", "s"), "rewind refused: c changed since")
        self.assertEqual(self.answer("/rewind", "-r", "s"), "rewound 1 turns\nrestored c")


class ShellLines(SessionCase):
    def test_run(self):
        """in-session.shell.run"""
        self.settings(bash_timeout_s=1)
        self.assertEqual(self.answer("!pwd; exit 3"), f"{self.ws}\n[exit 3]")
        self.assertEqual(self.answer("!sleep 30"), "[timed out after 1 s]")
        self.mistake("! ", "empty command")

    def test_unchecked(self):
        """in-session.shell.unchecked"""
        self.settings(hooks={event: [{"command": f"touch {event}"}] for event in ("before_tool", "after_tool")},
                      permissions={"deny": ["bash"]})  # fmt: skip
        ran = self.headless("!touch done", "--permission-mode", "plan", "--agent", "explore", "--output-format", "json")
        self.assertEqual((ran.code, ran.json["tool_calls"]), (0, []))
        self.assertEqual(sorted(self.tree()), [".harness", ".harness/settings.json", "done"])

    def test_conversation(self):
        """in-session.shell.conversation"""
        ran = self.talk("!echo hi", "go", args=("--session-id", "s"))
        shell = "<shell>\n$ echo hi\nhi\n[exit 0]\n</shell>"
        self.assertEqual(ran.messages(0), [{"role": "user", "content": shell}, {"role": "user", "content": "go"}])
        self.assertEqual(self.stored("s")[0], ("user", shell))


class Mentions(SessionCase):
    def sent(self, prompt, *args):
        ran = self.headless(prompt, *args)
        self.assertEqual(ran.code, 0)
        self.err = ran.err
        return ran.contents(0)[-1]

    def test_form(self):
        """in-session.attach.form"""
        self.put("a.txt", "A\n")
        self.put("b c.txt", "B\n")
        block = '\n\n<file path="a.txt">\nA\n</file>'
        for prompt in ("@a.txt", "see @a.txt, please", "(x)\n@a.txt?!", f"@{self.ws}/a.txt"):
            self.assertEqual(self.sent(prompt), prompt + block)
        self.assertEqual(self.sent('@"b c.txt" ok'), '@"b c.txt" ok\n\n<file path="b c.txt">\nB\n</file>')
        for prompt in ("me@a.txt", "a @ b", '@"a.txt'):
            self.assertEqual((self.sent(prompt), self.err), (prompt, ""))
        self.put(".harness/commands/own.md", "look at @a.txt and $1")
        self.assertEqual(self.sent("/own x"), "look at @a.txt and x" + block)
        self.assertEqual(self.answer("!echo @a.txt"), "@a.txt\n[exit 0]")

    def test_content(self):
        """in-session.attach.content"""
        self.put("a", "A\n\n")
        self.put("b", "no end")
        path = self.put("c", "C\n", os.path.join(self.top, "extra"))
        os.symlink("b", os.path.join(self.ws, "l"))
        prompt = f"@l @a @./b {'@' + path}"
        ran = self.headless(prompt, "--add-dir", "../extra", "--output-format", "json")
        blocks = [f'<file path="b">\nno end\n</file>', f'<file path="a">\nA\n\n</file>', f'<file path="{path}">\nC\n</file>']
        self.assertEqual(ran.contents(0), ["\n\n".join([prompt, *blocks])])
        self.assertEqual(ran.json["tool_calls"], [])
        self.assertEqual(self.stored()[0], ("user", ran.contents(0)[0]))

    def test_directory(self):
        """in-session.attach.directory"""
        self.put("d/x", "content")
        self.put("d/e/y")
        for prompt in ("@d", "@d/"):
            self.assertEqual(self.sent(prompt, "--deny", "read(d/**)"), prompt + '\n\n<directory path="d">\ne/\nx\n</directory>')

    def test_missing(self):
        """in-session.attach.missing"""
        self.put("a", "A\n")
        self.assertEqual(self.sent("@none. and @a"), '@none. and @a\n\n<file path="a">\nA\n</file>')
        self.assertRegex(self.err, r"(?m)^warning: .*not attached.*none")
        os.mkfifo(os.path.join(self.ws, "pipe"))
        os.symlink("none", os.path.join(self.ws, "dangling"))
        self.assertEqual(self.sent("@pipe @dangling"), "@pipe @dangling")
        for name in ("pipe", "dangling"):
            self.assertRegex(self.err, f"(?m)^warning: .*not attached.*{name}")

    def test_refused(self):
        """in-session.attach.refused"""
        self.put("secret", "hidden", self.top)
        self.put("ign", "hidden")
        self.put(".harnessignore", "ign")
        self.put("deny", "hidden")
        self.put("bin", b"hidden\0")
        os.symlink("../secret", os.path.join(self.ws, "link"))
        reasons = {"/etc/passwd": "outside the workspace", "link": "outside the workspace", "ign": "ignored", "deny": "denied",
                   "bin": "binary"}  # fmt: skip
        prompt = " ".join(f"@{path}" for path in reasons)
        self.assertEqual(self.sent(prompt, "--deny", "read(deny)"), prompt)
        for path, reason in reasons.items():
            self.assertRegex(self.err, f"(?m)^warning: .*not attached.*{path}.*{reason}")

    def test_limits(self):
        """in-session.attach.limits"""
        line = "x" * 99 + "\n"
        self.put("big", line * 1000 + "more\n")
        self.put("fits", line * 1000)
        self.put("long", "y" * 100_010)
        self.put("odd", b"a\xff\n")
        self.put("empty")
        self.assertEqual(self.sent("@big"), f'@big\n\n<file path="big">\n{line * 1000}[5 bytes left out]\n</file>')
        self.assertEqual(self.sent("@fits"), f'@fits\n\n<file path="fits">\n{line * 1000}</file>')
        self.assertEqual(self.sent("@long"), f'@long\n\n<file path="long">\n{"y" * 100_000}\n[10 bytes left out]\n</file>')
        self.assertEqual(self.sent("@odd @empty"), '@odd @empty\n\n<file path="odd">\na\ufffd\n</file>\n\n<file path="empty">\n</file>')

    def test_unasked(self):
        """in-session.attach.unasked"""
        self.put("a", "x")
        self.put("big", "x\n" * 60_000 + "y")
        self.put("d/f", "x")
        self.settings(permissions={"ask": ["read", "list"]}, hooks={"before_tool": [{"match": "read|list", "command": "exit 2"}]})
        self.put(".harness/agents/own.md", "---\ntools: edit\n---\n")
        pairs = [("edit", {"path": path, "old": old, "new": "z"}) for path, old in (("a", "x"), ("big", "y"), ("d/f", "x"))]
        ran = self.headless("@a @big @d", "--permission-mode", "accept-edits", "--agent", "own", script=[calls(*pairs)])
        self.assertEqual(ran.results(), ["edited a (replacements: 1)", "edited big (replacements: 1)", "error: read it first: d/f"])
        self.assertIn('<directory path="d">\nf\n</directory>', ran.contents(0)[0])


class OwnCommands(SessionCase):
    def own(self, text, line, name="own", **more):
        self.put(f".harness/commands/{name}.md", text)
        ran = self.headless(line, **more)
        return ran.contents(0)[-1] if ran.requests else ran

    def test_files(self):
        """in-session.own.files"""
        self.put("commands/own.md", "from user", self.home)
        self.put("commands/mine.md", "mine", self.home)
        self.assertEqual(self.own("---\ndescription: d\n---\n\n Do /this \n!now\n\n", "/own"), "Do /this \n!now")
        self.assertEqual(self.headless("/mine").contents(0), ["mine"])
        self.assertEqual(self.own("/mode", "/own"), "/mode")
        self.put(f".harness/commands/{'n' * 65}.md", "x")
        self.mistake("/" + "n" * 65, "unknown command")
        self.put(".harness/commands/Bad.md", "x")
        self.put(".harness/commands/sub/x.md", "x")
        for line in ("/Bad", "/sub/x", "/x"):
            self.mistake(line, "unknown command")
        ran = self.talk("/mine", "!echo new > ../home/commands/mine.md", "/mine")
        self.assertEqual(ran.contents(-1, "user")[-1], "new")

    def test_arguments(self):
        """in-session.own.arguments"""
        text = "[$ARGUMENTS] [$1] [$2] [$3] $0 $NAME $ $12 $$1"
        got = self.own(text, '/own  a "b c"  ')
        self.assertEqual(got, '[a "b c"] [a] [b c] [] $0 $NAME $ a2 $a')
        self.assertEqual(self.own("$ARGUMENTS|$1", "/own $1 $2"), "$1 $2|$1")

    def test_no_place(self):
        """in-session.own.no-place"""
        self.assertEqual(self.own("Do it.", "/own now please"), "Do it.\n\nnow please")
        self.assertEqual(self.own("Do $9.", "/own now"), "Do .")
        ran = self.own("$1\n", "/own")
        self.assert_error(ran, 2, "/own: ")

    def test_built_in(self):
        """in-session.own.built-in"""
        path = self.put(".harness/commands/help.md", "mine")
        self.assertNotIn("mine", self.headless("/help").out)
        ran = self.run_harness("commands")
        self.assertEqual(ran.out.count("help\t"), 1)
        self.assertRegex(ran.err, f"(?m)^warning: .*{path}")
        self.assertRegex(self.interactive("/mode").err, f"(?m)^warning: .*{path}")


class Input(SessionCase):
    def test_lines(self):
        """in-session.input.lines"""
        ran = self.talk("one\r", "", "  \r", "two", end="", script=[say("1"), say("2")])
        self.assertEqual((ran.out, ran.contents(1)), ("1\n2\n", ["one", "1", "two"]))
        ran = self.talk(script=[])
        self.assertEqual((ran.out, ran.requests), ("", []))

    def test_sign(self):
        """in-session.input.sign"""
        self.assertNotIn("> ", self.talk("one").out)
        screen = Screen(self)
        screen.wait("> ")
        screen.enter("one\\")
        screen.wait(". ")
        screen.enter("two")
        screen.wait("DONE")
        screen.wait("> ")
        self.assertEqual(screen.requests[0]["messages"][1]["content"], "one\ntwo")

    def test_continuation(self):
        """in-session.input.continuation"""
        ran = self.talk("one\\", "two\\", "three", "four\\\\", "five\\", end="")
        self.assertEqual(ran.contents(-1, "user")[:2], ["one\ntwo\nthree", "four\\"])
        self.assertEqual(ran.contents(-1, "user")[2].strip(), "five")
        self.assertEqual(self.headless("x\\").contents(0), ["x\\"])

    def test_turn_fails(self):
        """in-session.input.turn-fails"""
        self.settings(hooks={"user_prompt": [{"command": "grep -q bad && exit 2 || exit 0"}]})
        script = [status(400), call("list"), say("fine")]
        ran = self.interactive("one", "two", "/nope", "/mode x", "bad", "three", args=("--max-turns", "1"), script=script)
        self.assertEqual((ran.code, ran.out), (0, "fine\n"))
        self.assertEqual(len([line for line in ran.err.split("\n") if line.startswith("error: ")]), 5)
        self.assertEqual(self.interactive("x", args=("-r", "none")).code, 6)
        self.assertEqual(self.interactive("x", args=("--agent", "none")).code, 2)
        self.put(".harness/settings.json", "{")
        self.assertEqual(self.interactive("x").code, 3)

    def test_answers(self):
        """in-session.input.answers"""
        script = [call("bash", command="echo 1"), call("ask", question="q"), say("x")]
        ran = self.interactive("go", "y", "my answer", "next", script=list(script))
        self.assertEqual(ran.contents(-1, "user"), ["go", "next"])
        self.assertEqual(ran.results(), ["1\n[exit 0]", "my answer"])
        ran = self.interactive("go", script=list(script))
        self.assertRegex(ran.results()[0], "^error: denied: ")
        self.assertEqual((ran.results()[1], ran.code, ran.out.split("\n")[-2]), ("error: no one to ask", 0, "x"))

    def test_resumed(self):
        """in-session.input.resumed"""
        self.lay_session("s", "old", message("assistant", "text"))
        for args in (("--continue",), ("--resume", "s"), ("--fork", "--resume", "s")):
            ran = self.interactive("new", args=args, script=[say("x")])
            self.assertEqual((ran.out, ran.contents(0)[:2], ran.contents(0)[-1]), ("x\n", ["old", "text"], "new"))
        self.assertEqual(self.interactive("x", args=("-r", "none")).requests, [])


class Keys(SessionCase):
    def screen(self, *args, script=()):
        screen = Screen(self, *args, script=script)
        screen.wait("> ")
        return screen

    def test_ctrl_c_turn(self):
        """in-session.keys.ctrl-c-turn"""
        two = calls(("bash", {"command": "echo $$ > pid; sleep 60"}), ("bash", {"command": "touch never"}))
        screen = self.screen(*self.AUTO, "--session-id", "s", script=[two, Fault(wait_s=3), say("end")])
        screen.enter("go")
        self.assertTrue(eventually(lambda: self.exists("pid") and self.text("pid")))
        screen.type("\x03")
        screen.wait("interrupted")
        screen.wait("> ")
        self.assertTrue(eventually(lambda: not alive(int(self.text("pid")))))
        screen.enter("wait")
        screen.wait_for_requests(2)
        screen.type("\x03")
        screen.wait("interrupted")
        screen.wait("> ")
        screen.enter("more")
        screen.wait("end")
        sent = [(m["role"], m["content"]) for m in screen.requests[-1]["messages"][1:]]
        wanted = [("user", "go"), ("assistant", "")] + [("tool", "error: interrupted")] * 2 + [("user", "wait"), ("user", "more")]
        self.assertEqual(sent, wanted)
        self.assertEqual(self.stored("s")[:6], wanted)
        self.assertFalse(self.exists("never"))

    def test_ctrl_c_input(self):
        """in-session.keys.ctrl-c-input"""
        screen = self.screen()
        screen.type("typed\\\rmore\x03")
        screen.wait("> ")
        screen.type("\x03")
        screen.wait("> ")
        time.sleep(1.1)
        screen.type("\x03")
        screen.wait("> ")
        screen.type("\x03")
        self.assertEqual(screen.code(), 130)
        self.assertEqual(screen.requests, [])

    def test_at_question(self):
        """in-session.keys.at-question"""
        script = [calls(("bash", {"command": "touch x"}), ("bash", {"command": "touch y"})), say("never"), call("ask", question="why?"), say("fine")]
        screen = self.screen(script=[script[0], calls(("bash", {"command": "touch z"}), ("ask", {"question": "why?"}), ("bash", {"command": "echo 1"})), say("fine")])
        screen.enter("go")
        screen.wait("[y/a/n] ")
        screen.type("\x03")
        screen.wait("interrupted")
        screen.wait("> ")
        screen.enter("more")
        screen.wait("touch z? [y/a/n] ")
        screen.type("\x04")
        screen.wait("why?")
        screen.type("\x04")
        screen.wait("echo 1? [y/a/n] ")
        screen.enter("y")
        screen.wait("fine")
        results = [m["content"] for m in screen.requests[-1]["messages"] if m["role"] == "tool"]
        self.assertEqual(results, ["error: interrupted"] * 2 + ["error: denied: needs approval (mode ask)", "error: no one to ask", "1\n[exit 0]"])
        self.assertEqual(self.tree(), {})

    def test_ctrl_d(self):
        """in-session.keys.ctrl-d"""
        screen = self.screen(script=[say("answer")])
        screen.type("hel\x04lo\r")
        screen.wait("answer")
        screen.wait("> ")
        screen.type("\x04")
        self.assertEqual(screen.code(), 0)
        self.assertEqual(screen.requests[0]["messages"][-1]["content"], "hello")

    def test_history(self):
        """in-session.keys.history"""
        script = [call("bash", command="echo 1"), say("a1"), say("a2"), say("a3")]
        screen = self.screen(script=script)
        screen.enter("first")
        screen.wait("[y/a/n] ")
        screen.enter("n")
        screen.wait("a1")
        screen.wait("> ")
        screen.enter("/mode")
        screen.wait("mode: ask")
        screen.wait("> ")
        screen.type("\x1b[A\x1b[A\r")
        screen.wait("a2")
        screen.wait("> ")
        screen.type("\x1b[A\x1b[A\x1b[A\x1b[B\x1b[B\x1b[Bthird\r")
        screen.wait("a3")
        self.assertEqual([m["content"] for m in screen.requests[-1]["messages"] if m["role"] == "user"], ["first", "first", "third"])

    def test_shift_tab(self):
        """in-session.keys.shift-tab"""
        screen = self.screen()
        screen.type("te")
        for mode in ("accept-edits", "plan", "ask", "accept-edits", "plan"):
            screen.type("\x1b[Z")
            screen.wait(f"mode: {mode}")
        screen.type("xt\r")
        screen.wait("DONE")
        self.assertEqual(screen.requests[0]["messages"][-1]["content"], "text")
        self.assertNotIn("bash", [tool["function"]["name"] for tool in screen.requests[0]["tools"]])
        screen = self.screen("--permission-mode", "auto")
        screen.type("\x1b[Z")
        screen.wait("mode: ask")
