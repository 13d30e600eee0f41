"""Chapter 9: consistency. Each test names its clause in its docstring."""

import json
import os
import re
import subprocess
import time

from support import HARNESS, OVERFLOW, Case, Fault, call, calls, eventually, message, say, status, wire_call

AUTO = ("--permission-mode", "auto")


class SessionFile(Case):
    def test_place(self):
        """consistency.session.place"""
        self.headless("a")
        self.headless("b", "--session-id", "Mine")
        ids = self.session_ids()
        self.assertEqual((len(ids), len(set(ids)), "Mine" in ids), (2, 2, True))
        self.assertTrue(any(re.fullmatch("[0-9a-f]{12}", one) for one in ids))
        self.settings(hooks={"user_prompt": [{"command": "exit 2"}]})
        self.headless("blocked")
        self.assertEqual(len(self.session_ids()), 2)
        self.put("sessions/odd name.jsonl", json.dumps({"type": "session", "id": "odd name", "cwd": self.ws}) + "\n", self.home)
        self.put("sessions/x.json", "{}", self.home)
        self.assertEqual(self.run_harness("sessions", "list").out.count("\n"), 2)

    def test_header(self):
        """consistency.session.header"""
        os.symlink("ws", os.path.join(self.top, "alias"))
        before = time.time()
        self.headless("a", "--cwd", "../alias", "--model", "m1", "--session-id", "s", "--stream")
        header = self.records("s")[0]
        created = header.pop("created")
        self.assertRegex(created, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        stamp = subprocess.run(["date", "-d", created, "+%s"], capture_output=True, check=True).stdout
        self.assertTrue(before - 2 <= float(stamp) <= time.time() + 1)
        self.assertEqual(header, {"type": "session", "id": "s", "cwd": self.ws, "title": None, "model": "m1", "parent": None})
        line = self.text(self.session_path("s")).split("\n")[0]
        self.headless("/rename x", "-c")
        self.headless("/model m2", "-c")
        self.assertEqual(self.text(self.session_path("s")).split("\n")[0], line)
        ran = self.interactive("/model typed", "go", args=("--session-id", "late", "--model", "early"))
        self.assertEqual((self.records("late")[0]["model"], ran.requests[0]["model"]), ("typed", "typed"))
        self.api({"op": "run", "prompt": "/mode"}, {"op": "run", "prompt": "go", "options": {"model": "option"}}, args=("--model", "flag"))
        self.assertEqual([self.records(one)[0]["model"] for one in self.session_ids() if one not in ("s", "late")], ["option"])

    def test_title(self):
        """consistency.session.title"""
        def titles(session_id):
            listed = json.loads(self.run_harness("sessions", "list", "--json").out)
            shown = json.loads(self.run_harness("sessions", "show", session_id, "--json").out)["title"]
            export = self.run_harness("sessions", "export", session_id).out.split("\n")[0]
            _, responses = self.api({"op": "run", "prompt": "/mode", "options": {"resume": session_id}}, {"op": "state"})
            state = responses[1]["result"]["title"]
            found = {next(one["title"] for one in listed if one["id"] == session_id), shown, state}
            self.assertEqual(export, f"# {shown or session_id}")
            self.assertEqual(len(found), 1)
            return shown

        compact = {"type": "compact", "trigger": "manual", "summary": "S", "kept": 0}
        cases = {
            "a": ((["\n  \n a  \tb" + "t" * 70 + "\nmore"], {}), "a b" + "t" * 57),
            "b": ((["first", {"type": "rewind", "turns": 1}, "second"], {"title": "header"}), "header"),
            "c": ((["first", {"type": "title", "title": "one"}, {"type": "title", "title": " two  words"}], {"title": "header"}), "two words"),
            "d": ((["first", {"type": "rewind", "turns": 1}, "second"], {}), "first"),
            "e": ((["first", compact, "second"], {}), "first"),
            "f": (([], {}), None),
            "g": ((["<shell>\n$ ls\n[exit 0]\n</shell>", "first"], {}), "first"),
        }
        for name, ((records, header), wanted) in cases.items():
            self.lay_session(name, *records, **header)
            self.assertEqual(titles(name), wanted, name)

    def test_message(self):
        """consistency.record.message"""
        self.put("a", "A\n")
        self.settings(retry_base_s=0)
        script = [calls(("list", {}), ("task", {"prompt": "p"}), text="look"), say("sub"), status(500), say("end")]
        ran = self.headless("see @a", *AUTO, script=script)
        sent = ran.messages() + [{"role": "assistant", "content": "end"}]
        self.assertEqual([record["message"] for record in self.records(kind="message")], sent)
        self.assertTrue(all("origin" not in record for record in self.records(kind="message")))

    def test_compact(self):
        """consistency.record.compact"""
        hook = {**message("user", '<hook event="stop">\nx\n</hook>'), "origin": "hook"}
        old = ["a", message("assistant", "b"), "c", message("assistant", "d"), hook]
        for kept, wanted in ((0, ["<summary>S</summary>"]), (1, ["<summary>S</summary>", "c"])):
            self.lay_session("s", *old, {"type": "compact", "trigger": "x", "summary": "S", "kept": kept}, message("assistant", "e"))
            self.assertEqual(self.headless("go", "-r", "s").contents(0), [*wanted, "e", "go"])
        self.lay_session("t", *old)
        before = self.get(self.session_path("t"))
        ran = self.headless("newest", "-r", "t", script=[OVERFLOW, say("SUM"), say("x")])
        self.assertEqual(self.records("t")[7], {"type": "compact", "trigger": "auto", "summary": "SUM", "kept": 1})
        self.assertTrue(self.get(self.session_path("t")).startswith(before))
        self.assertEqual(self.headless("go", "-r", "t").contents(0), [*ran.contents(2), "x", "go"])

    def test_rewind(self):
        """consistency.record.rewind"""
        todo = {"type": "todo", "items": [{"text": "x", "status": "done"}]}
        turns = [one for n in range(1, 5) for one in (f"u{n}", message("assistant", f"a{n}"))]
        self.lay_session("s", *turns, todo, {"type": "rewind", "turns": 1}, "u5", {"type": "rewind", "turns": 2}, "u6")
        self.assertEqual(self.headless("go", "-r", "s", "--no-save").contents(0), ["u1", "a1", "u2", "a2", "u6", "go"])
        self.assertEqual(self.answer("/todos", "-c"), "[x] x")
        export = self.run_harness("sessions", "export", "s").out
        self.assertEqual(re.findall(r"^[ua]\d$", export, re.M), ["u1", "a1", "u2", "a2", "u6"])

    def test_others(self):
        """consistency.record.others"""
        items = [{"text": "t", "status": "pending"}]
        self.lay_session("s", {"type": "strange", "x": 1}, "a", {"type": "todo", "items": items, "more": 1}, {"type": "model", "model": "m1"},
                         {"type": "message", "message": {"role": "assistant", "content": "b"}, "at": 5}, {"type": "model", "model": "m2"})  # fmt: skip
        ran = self.headless("go", "-r", "s", "--fork")
        self.assertEqual((ran.contents(0), ran.requests[0]["model"], ran.err), (["a", "b", "go"], "m2", ""))
        self.assertEqual(self.answer("/todos", "-r", "s"), "[ ] t")
        self.assertIn("\t2\ta", self.run_harness("sessions", "list").out)
        self.assertIn("## assistant\n\nb", self.run_harness("sessions", "export", "s").out)

    def test_at_once(self):
        """consistency.record.at-once"""
        seen = []

        def look(reply):
            def answer(scenario):
                seen.append(self.get(self.session_path("s")))
                return reply

            return answer

        script = [look(calls(("bash", {"command": "cat $HARNESS_HOME/sessions/s.jsonl"}), ("bash", {"command": "cat $HARNESS_HOME/sessions/s.jsonl"}))),
                  look(say("end"))]  # fmt: skip
        ran = self.headless("hello", "--session-id", "s", *AUTO, script=script)
        final = self.get(self.session_path("s"))
        self.assertIn(b'"hello"', seen[0])
        first, second = ran.results()
        self.assertIn('"assistant"', first)
        self.assertNotIn('"tool"', first)
        self.assertEqual(second.count('"role": "tool"'), 1)
        self.assertEqual(seen[1].count(b'"role": "tool"'), 2)
        self.assertTrue(final.startswith(seen[1]) and seen[1].startswith(seen[0]))
        scenario = self.scenario([call("bash", command="sleep 60")])
        process = subprocess.Popen([HARNESS, "-p", "go", "--session-id", "k", *AUTO], cwd=self.ws, env=self.env(scenario),
                                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        self.assertTrue(eventually(lambda: "k" in self.session_ids() and len(self.records("k")) == 3))
        process.kill()
        process.wait()
        self.assertEqual([role for role, _ in self.stored("k")], ["user", "assistant"])


class Loading(Case):
    def test_torn(self):
        """consistency.load.torn"""
        self.lay_session("s", "a", tail='{"type":"message","mess')
        ran = self.headless("go", "-r", "s")
        self.assertEqual((ran.contents(0), ran.err), (["a", "go"], ""))
        ran = self.headless("more", "-r", "s")
        self.assertEqual(ran.contents(0), ["a", "go", "DONE", "more"])
        self.lay_session("t", tail=json.dumps(message("user", "whole")))
        self.assertEqual(self.headless("go", "-c").contents(0), ["whole", "go"])
        self.assertEqual(self.headless("x", "-c").contents(0), ["whole", "go", "DONE", "x"])

    def test_damaged(self):
        """consistency.load.damaged"""
        path = self.lay_session("s", "a", "b")
        lines = self.text(path).split("\n")
        self.put(path, "\n".join([*lines[:2], "{broken", *lines[2:]]))
        ran = self.headless("go", "-r", "s")
        self.assertEqual(ran.contents(0), ["a", "b", "go"])
        self.assertRegex(ran.err, f"(?m)^warning: .*{path}.*line 3")
        self.assertEqual(ran.code, 0)
        for name, content in (("empty", ""), ("broken", "{x\n"), ("other", '{"type":"message"}\n'), ("text", '"x"\n')):
            self.put(f"sessions/{name}.jsonl", content, self.home)
            self.assertEqual(self.headless("go", "-r", name).code, 6)
        self.assertEqual(self.headless("go", "-c").contents(0)[0], "a")
        self.assertEqual(self.run_harness("sessions", "list").out.count("\n"), 1)

    def test_interrupted(self):
        """consistency.load.interrupted"""
        asked = message("assistant", "", tool_calls=[wire_call(f"c{n}", "bash", {"command": f"touch {n}"}) for n in range(3)])
        done = message("tool", "kept", tool_call_id="c1")
        self.lay_session("s", "a", asked, done)
        ran = self.headless("go", "-r", "s", *AUTO)
        answered = [(m["role"], m["content"], m.get("tool_call_id")) for m in ran.messages(0)[2:]]
        self.assertEqual(answered, [("tool", "kept", "c1"), ("tool", "error: interrupted", "c0"), ("tool", "error: interrupted", "c2"), ("user", "go", None)])
        self.lay_session("u", "a", asked, done)
        self.assertIn("\t3\t", self.run_harness("sessions", "list").out)
        self.answer("/context", "-r", "u")
        self.assertEqual(len(self.stored("u")), 5)
        self.assertEqual(self.stored("s")[2:5], [("tool", "kept"), ("tool", "error: interrupted"), ("tool", "error: interrupted")])
        self.lay_session("t", "a", asked, done, "b", message("assistant", "c"))
        for _ in range(2):
            ran = self.headless("go", "-r", "t", *AUTO)
            self.assertEqual(ran.contents(0)[:7], ["a", "", "kept", "error: interrupted", "error: interrupted", "b", "c"])
        self.assertEqual([content for _, content in self.stored("t")].count("error: interrupted"), 2)
        self.assertEqual(self.tree(), {})

    def test_unanswered(self):
        """consistency.load.unanswered"""
        script = [call("list"), status(400), say("x")]
        ran = self.interactive("one", "two", script=script)
        self.assertEqual(ran.contents(2), ["one", "", "[empty directory]", "two"])
        ran, _ = self.api({"op": "run", "prompt": "one"}, {"op": "run", "prompt": "two"}, script=list(script))
        self.assertEqual(ran.contents(2), ["one", "", "[empty directory]", "two"])
        self.headless("one", "--session-id", "s", "--max-turns", "1", script=[call("list")])
        self.headless("two", "-r", "s", script=[status(400)])
        self.assertEqual(self.headless("three", "-r", "s").contents(0), ["one", "", "[empty directory]", "two", "three"])


class Resuming(Case):
    def test_restored(self):
        """consistency.resume.restored"""
        self.put("f", "x")
        self.put("g", "x", os.path.join(self.top, "extra"))
        items = [{"text": "t", "status": "done"}]
        script = [calls(("todo", {"items": items}), ("read", {"path": "f"}), ("write", {"path": "new", "content": "1"}),
                        ("bash", {"command": "true", "background": True})), say("x")]  # fmt: skip
        args = (*AUTO, "--allow", "list", "--add-dir", "../extra", "--agent", "build", "--system-prompt", "S", "--append-system-prompt", "A",
                "--max-turns", "5", "--session-id", "s")  # fmt: skip
        self.interactive("go", "/rename T", "/model m9", args=args, script=script)
        for resume in (("--continue",), ("-r", "s")):
            ran = self.headless("more", *resume, "--no-save", script=[
                calls(("edit", {"path": "f", "old": "x", "new": "y"}), ("write", {"path": "f", "content": "x"}), ("read", {"path": "../extra/g"}),
                      ("job", {"id": "j1", "action": "output"}))])  # fmt: skip
            self.assertEqual(ran.contents(0)[0], "go")
            self.assertEqual(ran.requests[0]["model"], "m9")
            self.assertTrue(ran.system().startswith("You are"))
            self.assertFalse(ran.system().endswith("A"))
            self.assertEqual(ran.results()[-4:], ["error: denied: needs approval (mode ask)"] * 2 + [
                "error: outside the workspace: ../extra/g", 'error: unknown job "j1"; known jobs: none'])  # fmt: skip
        ran = self.interactive("/resume s", "/todos", "/mode", "/permissions", "/undo", "go", args=(), script=[])
        self.assertEqual(ran.out, "resumed s\n[x] t\nmode: ask\nmode: ask\nundone 1 files\nremoved new\nDONE\n")
        _, responses = self.api({"op": "run", "prompt": "/todos", "options": {"resume": "s"}}, {"op": "state"})
        state = responses[1]["result"]
        self.assertEqual((state["title"], state["model"], state["todos"], state["permission_mode"]), ("T", "m9", items, "ask"))

    def test_elsewhere(self):
        """consistency.resume.elsewhere"""
        other = os.path.join(self.top, "other")
        self.put("AGENTS.md", "other rules", other)
        self.headless("go", "--session-id", "s", *AUTO, script=[call("write", path="a", content="1")])
        header = self.text(self.session_path("s")).split("\n")[0]
        ran = self.headless("more", "-r", "s", cwd=other)
        self.assertEqual((ran.code, ran.contents(0)[0]), (0, "go"))
        self.assertIn(f"Workspace: {other}", ran.system())
        self.assertIn("other rules", ran.system())
        self.assertRegex(ran.err, f"(?m)^warning: .*{self.ws}")
        self.assertEqual(self.text(self.session_path("s")).split("\n")[0], header)
        self.assertEqual(self.run_harness("sessions", "list", cwd=other).out, "no sessions\n")
        self.assertEqual(self.headless("x", "-c", cwd=other).code, 6)
        self.assertEqual(self.headless("/undo", "-r", "s", cwd=other).out.split("\n")[0], "undone 1 files")
        self.assertFalse(self.exists("a"))

    def test_fork(self):
        """consistency.fork.copy"""
        self.put("f", "x")
        self.settings(permissions={"allow": ["read", "write"]})
        script = [calls(("read", {"path": "f"}), ("write", {"path": "new", "content": "1"}), ("todo", {"items": [{"text": "t", "status": "done"}]})), say("x")]
        self.headless("go", "--session-id", "s", script=script)
        self.answer("/rename T", "-c")
        source = self.records("s")
        seen = []

        def look(scenario):
            seen.append(self.records("copy"))
            return call("write", path="f", content="z")

        ran = self.headless("more", "-c", "--fork", "--session-id", "copy", "--model", "m2", script=[look])
        self.assertEqual(ran.results()[-1], "wrote f (1 bytes)")
        header = seen[0][0]
        self.assertEqual({key: header[key] for key in ("id", "cwd", "title", "model", "parent")},
                         {"id": "copy", "cwd": self.ws, "title": "T", "model": "m2", "parent": "s"})  # fmt: skip
        self.assertEqual(seen[0][1 : len(source)], source[1:])
        self.lay_session("raw", tail='{"type":"odd",  "x":1}\n{torn\n{"type":"message","message":{"role":"user","content":"z"}}')
        lines = self.text(self.session_path("raw")).split("\n")
        self.headless("more", "-r", "raw", "--fork", "--session-id", "raw2")
        self.assertEqual(self.text(self.session_path("raw2")).split("\n")[1:3], [lines[1], lines[3]])
        self.assertEqual(self.records("s"), source)
        self.assertEqual(self.answer("/todos", "-r", "copy"), "[x] t")
        self.run_harness("sessions", "delete", "s")
        self.assertEqual(self.answer("/undo", "-r", "copy"), "undone 1 files\nrestored f")
        self.assertEqual(self.answer("/undo", "-r", "copy"), "undone 1 files\nremoved new")

    def test_parallel(self):
        """consistency.sessions.parallel"""
        def start(prompt, *args):
            scenario = self.scenario([Fault(wait_s=0.3, body={"choices": [{"message": {"content": prompt + "!"}}]})])
            return subprocess.Popen([HARNESS, "-p", prompt, *args], cwd=self.ws, env=self.env(scenario), stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL)  # fmt: skip

        running = [start(f"p{n}") for n in range(4)]
        self.assertEqual([one.wait() for one in running], [0] * 4)
        self.assertEqual(sorted(self.stored(one) for one in self.session_ids()),
                         [[("user", f"p{n}"), ("assistant", f"p{n}!")] for n in range(4)])  # fmt: skip
        self.lay_session("s", "a")
        running = [start(f"q{n}", "-r", "s") for n in range(4)]
        other = next(one for one in self.session_ids() if one != "s")
        self.run_harness("sessions", "delete", other)
        self.assertEqual([one.wait() for one in running], [0] * 4)
        self.assertEqual(sorted(content for _, content in self.stored("s")), sorted(["a", *(f"q{n}{end}" for n in range(4) for end in ("", "!"))]))


class Routes(Case):
    def test_rebuilt(self):
        """consistency.system.rebuilt"""
        files = {"AGENTS.md": "conv{0}", ".harness/memory.md": "- mem{0}", ".harness/agents/own.md": "role{0}",
                 ".harness/skills/s/SKILL.md": "---\nname: s\ndescription: skill{0}\n---\n"}  # fmt: skip
        for name, content in files.items():
            self.put(name, content.format(1))
        command = "; ".join(f"sed -i 's/\\(conv\\|mem\\|role\\|skill\\)1/\\12/' {name}" for name in files)
        self.settings(context_window=1200, compact_threshold=0.5)
        script = [call("bash", command=command + "; head -c 4000 /dev/zero | tr '\\0' x"), say("SUM"), say("x")]
        ran = self.interactive("one", "two", args=(*AUTO, "--agent", "own", "--session-id", "s"), script=script)
        self.assertEqual(len({ran.system(index) for index in range(3)}), 1)
        for word in ("conv", "mem", "role", "skill"):
            self.assertIn(word + "1", ran.system(0))
            self.assertIn(word + "2", ran.system(3))
        self.assertEqual(self.headless("x", "-c", "--agent", "own").system(), ran.system(3))
        ran = self.interactive("one", "!rm .harness/agents/own.md", "two", args=("--agent", "own"))
        self.assertEqual((len(ran.requests), ran.code), (1, 0))
        self.assertRegex(ran.err, "(?m)^error: .*own")

    def test_turns(self):
        """consistency.routes.turns"""
        self.put("f", "x\n")
        prompts = ["one", "two @f", "three"]
        script = [call("read", path="f"), say("1"), say("2"), calls(("list", {}), ("nope", {})), say("3")]
        piped = self.interactive(*prompts, args=("--session-id", "a"), script=list(script))
        headless = []
        for number, prompt in enumerate(prompts):
            part = {0: script[:2], 1: script[2:3], 2: script[3:]}[number]
            headless += self.headless(prompt, *(("-c",) if number else ("--session-id", "b")), script=part).requests
        ran, responses = self.api(*({"op": "run", "prompt": prompt} for prompt in prompts), script=list(script))
        self.assertEqual(piped.requests, headless)
        self.assertEqual(piped.requests, ran.requests)
        third = responses[0]["result"]["session_id"]
        self.assertEqual(self.stored("a"), self.stored("b"))
        self.assertEqual(self.stored("a"), self.stored(third))

    def test_offered(self):
        """consistency.tools.offered"""
        self.put(".harness/agents/own.md", "---\ntools: read, bash, remember, write\n---\n")
        for args in ((), ("--permission-mode", "plan"), ("--deny", "bash", "--no-memory"), ("--agent", "own"),
                     ("--agent", "explore", "--deny", "grep")):  # fmt: skip
            ran = self.headless("go", "--output-format", "stream-json", *args, script=[call("bash", command="touch x")])
            offered = ran.tools()
            self.assertEqual(ran.events[0]["tools"], offered)
            self.assertEqual([line.split("\t")[0] for line in self.run_harness("tools", *args).out.split("\n")[:-1]], offered)
            self.assertEqual([line.split("\t")[0] for line in self.answer("/tools", *args).split("\n")], offered)
            self.assertFalse(self.exists("x"))

    def test_foretold(self):
        """consistency.permissions.foretold"""
        self.settings(permissions={"deny": ["write(no)", "bash(rm *)"], "ask": ["read(secret)"], "allow": ["bash(echo *)", "write(yes)"]})
        pairs = [("write", "no"), ("write", "yes"), ("write", "other"), ("read", "secret"), ("read", "f"), ("bash", "echo 1"), ("bash", "echo 1; rm x"),
                 ("bash", "ls"), ("list", "."), ("edit", "yes")]  # fmt: skip
        key = {"bash": "command"}
        more = {"write": {"content": ""}, "edit": {"old": "a", "new": "b"}}
        for args in ((), ("--permission-mode", "accept-edits"), ("--permission-mode", "plan"), ("--permission-mode", "dont-ask"),
                     ("--agent", "explore")):  # fmt: skip
            script = [calls(*((tool, {key.get(tool, "path"): arg, **more.get(tool, {})}) for tool, arg in pairs))]
            results = self.headless("go", *args, script=script).results()
            for (tool, arg), result in zip(pairs, results):
                check = json.loads(self.run_harness("permissions", "check", tool, arg, "--json", *args).out)
                if check["decision"] == "allow":
                    self.assertNotIn("error: denied", result)
                elif check["decision"] == "deny":
                    self.assertEqual(result, f"error: denied: {check['reason']}")
                else:
                    self.assertEqual(result, f"error: denied: needs approval ({check['reason']})")

    def test_effective(self):
        """consistency.config.effective"""
        none = {"HARNESS_MODEL": None}
        self.run_harness("config", "set", "model", "m1", env=none)
        self.run_harness("config", "set", "max_turns", "2", "--user")
        self.assertEqual(self.run_harness("config", "get", "model", env=none).out, "m1\n")
        ran = self.headless("go", env=none, script=[call("list")] * 3)
        self.assertEqual((ran.code, ran.requests[0]["model"], len(ran.requests)), (5, "m1", 2))
        self.run_harness("config", "set", "max_turns", "1", "--local")
        self.run_harness("config", "set", "max_turns", "9")
        self.assertIn("max_turns = 1 (local)", self.run_harness("config", "list").out)
        self.assertEqual(len(self.headless("go", env=none, script=[call("list")] * 3).requests), 1)

    def test_formats(self):
        """consistency.formats.agree"""
        script = [calls(("list", {}), ("bash", {"command": "x"}), ("read", "{")), say("end")]
        runs = {form: self.headless("go", "--output-format", form, script=list(script)) for form in ("text", "json", "stream-json")}
        for ran in runs.values():
            self.assertEqual((ran.requests, ran.code, ran.err), (runs["text"].requests, 0, ""))
        result = runs["stream-json"].events[-1]
        other = runs["json"].json
        result.pop("session_id"), other.pop("session_id")
        self.assertEqual((result, result["text"] + "\n"), (other, runs["text"].out))
        events = runs["stream-json"].events
        called = [event for event in events if event["type"] == "tool_call"]
        answered = [event for event in events if event["type"] == "tool_result"]
        for entry, call_event, answer, content in zip(other["tool_calls"], called, answered, runs["json"].results(), strict=True):
            self.assertEqual((entry["name"], entry["arguments"]), (call_event["name"], call_event["arguments"]))
            self.assertEqual((entry["result"], entry["denied"]), (answer["result"], answer["denied"]))
            self.assertEqual(entry["result"], content)

    def test_compact_keeps(self):
        """consistency.compact.keeps"""
        self.put("f", "x")
        items = [{"text": "t", "status": "done"}]
        script = [calls(("todo", {"items": items}), ("read", {"path": "f"}), ("write", {"path": "new", "content": "1\n"}), ("bash", {"command": "true"})),
                  say("x"), say("SUM"), calls(("write", {"path": "f", "content": "y"}), ("bash", {"command": "true"})), say("z")]  # fmt: skip
        ran = self.interactive("go", "a", "a", "/rename T", "/mode accept-edits", "/model m2", "/compact", "/todos", "/mode", "/rewind", "/diff", "go",
                               "/undo", "/undo", "/sessions", script=script)  # fmt: skip
        self.assertIn("[x] t\nmode: accept-edits\ncannot rewind 1 turns: 0 available\n--- /dev/null\n+++ b/new", ran.out)
        self.assertEqual(ran.results(), ["wrote f (1 bytes)", "[exit 0]"])
        self.assertEqual(ran.requests[-1]["model"], "m2")
        self.assertIn("undone 1 files\nrestored f\nundone 1 files\nremoved new\n", ran.out)
        self.assertTrue(ran.out.rstrip().endswith("\tT"))

    def test_taking_back(self):
        """consistency.taking-back.resumed"""
        self.put("f", "old")
        turn = [calls(("read", {"path": "f"}), ("write", {"path": "f", "content": "new"}), ("write", {"path": "n", "content": "1"}))]
        self.headless("go", "--session-id", "s", *AUTO, script=list(turn))
        self.assertTrue(os.listdir(os.path.join(self.home, "checkpoints/s")))
        self.assertEqual(self.answer("/undo", "-c"), "undone 2 files\nrestored f\nremoved n")
        self.headless("go", "--session-id", "t", *AUTO, script=list(turn))
        self.assertEqual(self.answer("/rewind", "-r", "t"), "rewound 1 turns\nrestored f\nremoved n")
        self.assertEqual(self.tree(), {"f": b"old"})
        script = [turn[0], call("bash", command="sleep 60")]
        process = subprocess.Popen([HARNESS, "-p", "go", "--session-id", "k", *AUTO], cwd=self.ws, env=self.env(self.scenario(script)),
                                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        self.assertTrue(eventually(lambda: self.exists("n") and len(self.stored("k")) == 6))
        process.kill()
        process.wait()
        self.assertEqual(self.answer("/undo", "-r", "k"), "undone 2 files\nrestored f\nremoved n")
        self.assertEqual(self.tree(), {"f": b"old"})
