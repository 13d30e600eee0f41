"""Chapter 3: commands. Each test names its clause in its docstring."""

import json
import os
import re

from support import Case, message

NAMES = "sessions config memory tools agents skills commands permissions init doctor api version help".split()
NO_MODEL = {"HARNESS_BASE_URL": None, "HARNESS_API_KEY": None, "HARNESS_MODEL": None}


class CommandCase(Case):
    def output(self, *args, **more):
        ran = self.run_harness(*args, **more)
        self.assertEqual((ran.code, ran.err, ran.requests), (0, "", []))
        self.assertTrue(ran.out.endswith("\n"))
        return ran.out[:-1]

    def value(self, *args, **more):
        output = self.output(*args, "--json", **more)
        self.assertNotIn("\n", output)
        return json.loads(output)

    def usage(self, args, *words):
        ran = self.run_harness(*args)
        self.assert_error(ran, 2, *words)
        self.assertEqual((ran.out, ran.requests), ("", []))
        return ran


class Dispatch(CommandCase):
    def test_unknown(self):
        """commands.dispatch.unknown"""
        ran = self.usage(("sesions", "list"), "unknown command: sesions; did you mean sessions?")
        self.usage(("fix the bug",), "unknown command: fix the bug")
        self.usage(("--model", "x", "tool"), "unknown command: tool; did you mean tools?")
        self.assertNotIn("> ", ran.out)

    def test_arguments(self):
        """commands.dispatch.arguments"""
        ran = self.usage(("tools", "extra"), 'error: surplus argument "extra"\nusage: harness tools')
        self.assertEqual(ran.err.count("\n"), 2)
        self.usage(("sessions",), "usage: harness sessions")
        self.usage(("sessions", "show"), "usage: harness sessions")
        self.usage(("sessions", "shw", "x"), "usage: harness sessions", '"shw"')
        self.usage(("tools", "extra"), "usage: harness tools", '"extra"')
        self.usage(("config", "get", ""), "usage: harness config", '""')
        self.usage(("memory", "add", "-x"), "unknown flag: -x")
        self.assertEqual(self.output("memory", "add", "--", "-x"), "remembered (project)")
        self.assertEqual(self.text(".harness/memory.md"), "- -x\n")

    def test_flags(self):
        """commands.dispatch.flags"""
        for command in ("skills", "init", "version"):
            self.usage((command, "--model", "x"), "--model", f"not for {command}")
        self.usage(("agents", "--no-memory"), "--no-memory", "not for agents")
        self.usage(("sessions", "export", "x", "--json"), "--json", "not for sessions export")
        self.put("d/.harness/memory.md", "- d\n")
        self.assertIn("- d", self.output("memory", "show", "--cwd", "d"))
        self.assertNotIn("remember\t", self.output("tools", "--no-memory", "--quiet"))
        self.put("extra.json", '{"max_turns": 7}')
        self.assertEqual(self.output("config", "get", "max_turns", "--settings", "extra.json"), "7")
        self.lay_session("kept", "go")
        for command in (("sessions", "delete", "kept"), ("version",), ("skills",)):
            self.usage((*command, "--cwd", "none"), "--cwd", "none")
        self.assertEqual(self.session_ids(), ["kept"])

    def test_offline(self):
        """commands.dispatch.offline"""
        self.settings(hooks={"session_start": [{"command": "touch ran"}]})
        before = self.tree()
        for args in (("sessions", "list"), ("config", "list"), ("config", "path"), ("memory", "show"), ("tools",), ("agents",),
                     ("skills",), ("commands",), ("permissions", "check", "bash", "ls"), ("version",), ("help",)):  # fmt: skip
            ran = self.run_harness(*args, env=NO_MODEL)
            self.assertEqual((ran.code, ran.requests), (0, []), args)
        self.assertEqual((self.tree(), os.path.exists(self.home)), (before, False))

    def test_json(self):
        """commands.dispatch.json"""
        self.lay_session("s", "x")
        for args in (("sessions", "list"), ("sessions", "show", "s"), ("config", "list"), ("tools",), ("agents",), ("skills",),
                     ("commands",), ("permissions", "check", "read"), ("doctor",), ("memory", "show")):  # fmt: skip
            self.value(*args)
        self.assertEqual(self.value("skills"), [])
        self.usage(("version", "--json"), "--json", "not for version")
        self.usage(("config", "get", "model", "--json"), "--json", "not for config get")

    def test_settings(self):
        """commands.dispatch.settings"""
        path = self.put(".harness/settings.json", "{")
        for args in (("config", "list"), ("config", "get", "model"), ("tools",), ("agents",), ("permissions", "check", "read"),
                     ("config", "set", "model", "x")):  # fmt: skip
            self.assert_error(self.run_harness(*args), 3, path, "line 1")
        for args in (("sessions", "list"), ("skills",), ("commands",), ("memory", "show"), ("version",), ("help",), ("config", "path"),
                     ("config", "set", "model", "x", "--local"), ("init",)):  # fmt: skip
            self.assertEqual(self.run_harness(*args).code, 0, args)
        self.assertIn("problem: settings-project: ", self.run_harness("doctor").out)
        self.put(".harness/settings.json", '{"env": 5, "max_turns": "x"}')
        self.assert_error(self.run_harness("config", "set", "env.A", "x"), 3, path, "env")
        self.assertEqual(self.run_harness("config", "set", "max_turns", "7").code, 0)
        self.assertEqual(json.loads(self.text(path)), {"env": 5, "max_turns": 7})


class HelpAndVersion(CommandCase):
    def test_overview(self):
        """commands.help.overview"""
        text = self.output("help")
        first_words = [line.split()[0] for line in text.split("\n") if line.strip()]
        for name in NAMES:
            self.assertIn(name, first_words)
        document = os.path.join(os.path.dirname(__file__), "../../../data/document/05-flags.md")
        flags = {"--print", "--output-format", "--model", "--add-dir", "--timeout-s", "--no-conventions"}
        if os.path.exists(document):
            with open(document, encoding="utf-8") as file:
                flags = set(re.findall(r"`(--[a-z-]+)", file.read())) - {"--no-such-flag", "--mod", "--flag"}
        for flag in flags:
            self.assertIn(flag, text)

    def test_topic(self):
        """commands.help.topic"""
        for name in NAMES:
            self.assertTrue(self.output("help", name).startswith(f"usage: harness {name}"))
        text = self.output("help", "sessions")
        for word in ("list", "show", "delete", "export", "--json", "--cwd"):
            self.assertIn(word, text)
        self.usage(("help", "sesions"), "unknown command: sesions; did you mean sessions?")

    def test_version(self):
        """commands.version.text"""
        self.put(".harness/settings.json", "{")
        self.assertRegex(self.output("version"), r"^harness \d+\.\d+\.\d+$")


class Sessions(CommandCase):
    def lay(self):
        for name, seconds, records in (("a1", 10, ["first one\nmore", message("assistant", "x")]), ("b2", 20, ["  x  ", {"type": "title", "title": "T"}]),
                                       ("c3", 15, []), ("far", 30, ["x"])):  # fmt: skip
            cwd = self.top if name == "far" else None
            parent = "a1" if name == "b2" else None
            os.utime(self.lay_session(name, *records, cwd=cwd, parent=parent), (seconds, seconds))
        self.put("sessions/note.txt", "x", self.home)
        self.put("sessions/bad.jsonl", "x", self.home)

    def test_list(self):
        """commands.sessions.list"""
        self.assertEqual(self.output("sessions", "list"), "no sessions")
        self.lay()
        wanted = ["b2\t1970-01-01T00:00:20Z\t1\tT", "c3\t1970-01-01T00:00:15Z\t0\t", "a1\t1970-01-01T00:00:10Z\t2\tfirst one"]
        self.assertEqual(self.output("sessions", "list").split("\n"), wanted)

    def test_list_json(self):
        """commands.sessions.list-json"""
        self.lay()
        got = self.value("sessions", "list")
        self.assertEqual(
            got[0],
            {"id": "b2", "cwd": self.ws, "created": "2026-01-01T00:00:00Z", "updated": "1970-01-01T00:00:20Z", "title": "T",
             "messages": 1, "parent": "a1"},
        )  # fmt: skip
        self.assertEqual([(one["id"], one["title"], one["parent"]) for one in got[1:]], [("c3", None, None), ("a1", "first one", None)])

    def test_show(self):
        """commands.sessions.show"""
        self.lay()
        wanted = ["id: a1", "title: first one", f"cwd: {self.ws}", "created: 2026-01-01T00:00:00Z", "updated: 1970-01-01T00:00:10Z",
                  "parent: ", "messages: 2"]  # fmt: skip
        self.assertEqual(self.output("sessions", "show", "a1").split("\n"), wanted)
        got = self.value("sessions", "show", "far", cwd=self.ws)
        self.assertEqual(set(got), {"id", "cwd", "created", "updated", "title", "messages", "parent", "todos"})
        self.assertEqual((got["messages"], got["todos"]), ([{"role": "user", "content": "x"}], []))

    def test_export(self):
        """commands.sessions.export"""
        call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"path":  "a"}'}}
        self.lay_session("s", "hello\n", message("assistant", "look", tool_calls=[call, call]), message("tool", "1\tx", tool_call_id="c"),
                         message("assistant", "", tool_calls=[call]), {"type": "title", "title": "Mine"})  # fmt: skip
        before = self.tree()
        line = 'call `read` {"path":  "a"}'
        wanted = f"# Mine\n\n## user\n\nhello\n\n\n## assistant\n\nlook\n{line}\n{line}\n\n## tool read\n\n1\tx\n\n## assistant\n\n{line}"
        self.assertEqual(self.output("sessions", "export", "s"), wanted)
        self.lay_session("n", message("tool", "stray", tool_call_id="z"))
        self.assertEqual(self.output("sessions", "export", "n"), "# n\n\n## tool\n\nstray")
        self.assertEqual(self.tree(), before)
        other = {"id": "c", "type": "function", "function": {"name": "list", "arguments": "{}"}}
        self.lay_session("e", "go", message("assistant", "", tool_calls=[call, other]), *(message("tool", text, tool_call_id="c") for text in "12"))
        self.assertIn("## tool read\n\n1\n\n## tool list\n\n2", self.output("sessions", "export", "e"))

    def test_delete(self):
        """commands.sessions.delete"""
        self.lay()
        self.put("checkpoints/a1/x", "x", self.home)
        self.assertEqual(self.output("sessions", "delete", "a1"), "deleted a1")
        self.assertEqual(self.session_ids(), ["b2", "bad", "c3", "far"])
        self.assertFalse(self.exists("checkpoints/a1", self.home))

    def test_missing(self):
        """commands.sessions.missing"""
        self.lay()
        before = self.tree(self.home)
        for part in ("show", "export", "delete"):
            ran = self.run_harness("sessions", part, "none")
            self.assert_error(ran, 6, "session not found: none")
            self.assertEqual(ran.out, "")
            self.usage(("sessions", part, "../x"), "invalid value")
        for part in ("show", "export"):
            self.assertEqual(self.run_harness("sessions", part, "bad").code, 6)
        self.assertEqual(self.tree(self.home), before)
        self.assertEqual(self.output("sessions", "delete", "bad"), "deleted bad")
        self.assertFalse(self.exists("sessions/bad.jsonl", self.home))


class Config(CommandCase):
    def test_list(self):
        """commands.config.list"""
        self.settings("user", max_turns=1, permissions={"deny": ["bash"]}, stream=True)
        self.settings("project", max_turns=2)
        self.settings("local", env={"A": "ä"})
        lines = self.output("config", "list").split("\n")
        self.assertEqual(lines, sorted(lines))
        for line in ("max_turns = 2 (project)", 'permissions.deny = ["bash"] (user)', "permissions.ask = [] (default)",
                     'model = "m-test" (environment)', "stream = true (user)", 'env = {"A":"ä"} (local)'):  # fmt: skip
            self.assertIn(line, lines)
        self.assertIn("model = null (default)", self.output("config", "list", env=NO_MODEL).split("\n"))
        self.put("extra.json", '{"max_turns": 3}')
        self.assertEqual(self.value("config", "list", "--settings", "extra.json")["max_turns"], {"value": 3, "source": "settings"})

    def test_get(self):
        """commands.config.get"""
        self.settings(env={"A": "x y"}, permissions={"deny": ["bash"]})
        wanted = {"model": "m-test", "max_turns": "50", "env.A": "x y", "env.B": "null", "permissions.deny": '["bash"]',
                  "permission_mode": "ask", "stream": "false"}  # fmt: skip
        self.assertEqual({key: self.output("config", "get", key) for key in wanted}, wanted)
        self.assertEqual(json.loads(self.output("config", "get", "permissions")), {"deny": ["bash"], "ask": [], "allow": []})
        self.assertEqual(self.output("config", "get", "model", env=NO_MODEL), "null")
        self.usage(("config", "get", "colour"), "unknown key: colour")

    def test_set(self):
        """commands.config.set"""
        path = os.path.join(self.ws, ".harness/settings.json")
        self.assertEqual(self.output("config", "set", "model", "m1"), f"set model in {path}")
        self.assertEqual(self.text(path), '{\n  "model": "m1"\n}\n')
        self.put(".harness/settings.json", '{"odd": 1, "permissions": {"deny": ["read"], "allow": ["list"]}}')
        self.run_harness("config", "set", "permissions.deny", '["bash"]')
        self.assertEqual(json.loads(self.text(path)), {"odd": 1, "permissions": {"deny": ["bash"], "allow": ["list"]}})
        for level, target in (("--user", os.path.join(self.home, "settings.json")), ("--local", path.replace("settings", "settings.local"))):
            self.assertEqual(self.output("config", "set", "env.A", "x", level), f"set env.A in {target}")
            self.assertEqual(json.loads(self.text(target)), {"env": {"A": "x"}})
        self.put("real.json", "{}")
        os.unlink(path)
        os.symlink("../real.json", path)
        self.run_harness("config", "set", "model", "linked")
        self.assertTrue(os.path.islink(path) and "linked" in self.text("real.json"))
        before = self.tree()
        self.usage(("config", "set", "model", "m2", "--user", "--local"), "--user", "--local")
        self.assertEqual(self.tree(), before)

    def test_set_value(self):
        """commands.config.set-value"""
        for key, text, value in (("max_turns", "5", 5), ("stream", "true", True), ("model", "5", "5"), ("env.A", "[1]", "[1]"),
                                 ("permissions.deny", '["bash"]', ["bash"]), ("add_dirs", '["../x"]', ["../x"])):  # fmt: skip
            self.output("config", "set", key, text)
            stored = json.loads(self.text(".harness/settings.json"))
            for part in key.split("."):
                stored = stored[part]
            self.assertEqual(stored, value)
        before = self.tree()
        for key, text in (("max_turns", "five"), ("max_turns", "0"), ("stream", "yes"), ("permission_mode", "fast"),
                          ("permissions.deny", '["Bash"]'), ("permissions.deny", "bash"), ("hooks", '{"stop": {}}'), ("model", "")):  # fmt: skip
            self.assertEqual(self.run_harness("config", "set", key, text).code, 2)
            if text:
                self.usage(("config", "set", key, text), "invalid value")
        for key in ("colour", "permissions.never", "env.", "max_turns.x"):
            self.usage(("config", "set", key, "1"), f"unknown key: {key}")
        self.assertEqual(self.tree(), before)
        self.usage(("config", "set", "model", ""), 'error: empty argument ""', "usage: harness config")
        self.usage(("config", "set", "max_turns", "x", "--local"), "invalid value")
        self.assertFalse(self.exists(".harness/settings.local.json"))
        self.usage(("config", "set", "env.A=B", "x"), "invalid value")
        hooks = {"never": 1, "stop": [{"command": "true", "odd": 1}]}
        self.output("config", "set", "hooks", json.dumps(hooks))
        self.assertEqual(json.loads(self.text(".harness/settings.json"))["hooks"], hooks)

    def test_path(self):
        """commands.config.path"""
        wanted = [f"user: {self.home}/settings.json", f"project: {self.ws}/.harness/settings.json",
                  f"local: {self.ws}/.harness/settings.local.json"]  # fmt: skip
        self.assertEqual(self.output("config", "path").split("\n"), wanted)


class Listings(CommandCase):
    def test_tools(self):
        """commands.tools.list"""
        args = ("--permission-mode", "plan", "--deny", "grep", "--no-memory")
        schemas = [tool["function"] for tool in self.headless("go", *args).requests[0]["tools"]]
        self.assertEqual(self.value("tools", *args), schemas)
        lines = [f"{one['name']}\t{one['description'].split(chr(10))[0]}" for one in schemas]
        self.assertEqual(self.output("tools", *args).split("\n"), lines)
        self.assertEqual(len(self.value("tools", "--agent", "explore")), 4)

    def test_agents(self):
        """commands.agents.list"""
        self.put("agents/own.md", "---\ndescription: of user\n---\n", self.home)
        path = self.put(".harness/agents/own.md", "---\ndescription: of project\n---\n")
        self.put("agents/mine.md", "x", self.home)
        lines = [line.split("\t") for line in self.output("agents").split("\n")]
        self.assertEqual([line[:2] for line in lines], [["architect", "built-in"], ["build", "built-in"], ["explore", "built-in"],
                                                        ["mine", "user"], ["own", "project"]])  # fmt: skip
        self.assertEqual(lines[4][2], "of project")
        got = self.value("agents")
        self.assertEqual(got[4], {"name": "own", "source": "project", "description": "of project", "path": path})
        self.assertEqual((got[3]["description"], got[0]["path"]), ("", None))

    def test_skills(self):
        """commands.skills.list"""
        self.assertEqual(self.output("skills"), "no skills")
        path = self.put("skills/s/SKILL.md", "---\nname: s\ndescription: does s\n---\n", self.home)
        self.put(".harness/skills/p/SKILL.md", "---\nname: p\ndescription: does p\n---\n")
        self.assertEqual(self.output("skills"), "p\tproject\tdoes p\ns\tuser\tdoes s")
        self.assertEqual(self.value("skills")[1], {"name": "s", "source": "user", "description": "does s", "path": path})

    def test_commands(self):
        """commands.own.list"""
        path = self.put(".harness/commands/fix.md", "---\ndescription: fixes\n---\nx")
        names = [line.split("\t")[0] for line in self.output("commands").split("\n")]
        self.assertEqual(names, sorted(names))
        self.assertEqual(len(names), 25)
        self.assertIn("fix\tproject\tfixes", self.output("commands").split("\n"))
        self.assertIn({"name": "fix", "source": "project", "description": "fixes", "path": path}, self.value("commands"))
        self.assertIn("compact\tbuilt-in\t", self.output("commands"))


class Permissions(CommandCase):
    def check(self, *args):
        return self.output("permissions", "check", *args)

    def test_check(self):
        """commands.permissions.check"""
        self.settings(permissions={"deny": ["read(secret)"], "ask": ["list(src)"], "allow": ["bash(git *)", "task(explore)"]})
        self.assertEqual(self.check("read", "secret"), "deny (rule read(secret))")
        self.assertEqual(self.check("list", "src"), "ask (rule list(src))")
        self.assertEqual(self.check("bash", "git log && git show"), "allow (rule bash(git *))")
        self.assertEqual(self.check("bash", "ls"), "ask (mode ask)")
        self.assertEqual(self.check("task", "explore"), "allow (rule task(explore))")
        self.assertEqual(self.check("job"), "allow (mode ask)")
        self.assertEqual(self.check("job", "kill"), "ask (mode ask)")
        self.assertEqual(self.check("skill", "x", "--deny", "skill(x)"), "deny (rule skill(x))")
        self.assertEqual(self.check("write", "a", "--permission-mode", "plan"), "deny (mode plan)")
        self.assertEqual(self.check("write", "a", "--agent", "explore"), "deny (role explore)")
        self.assertEqual(self.value("permissions", "check", "patch", "a", "--permission-mode", "auto"),
                         {"tool": "patch", "arg": "a", "decision": "allow", "reason": "mode auto"})  # fmt: skip
        self.assertIsNone(self.value("permissions", "check", "todo")["arg"])

    def test_check_limits(self):
        """commands.permissions.check-limits"""
        self.settings(permissions={"deny": ["bash(*)", "list(.)", "task(build)", "skill(*)"], "allow": ["write"]})
        self.assertEqual(self.check("bash"), "ask (mode ask)")
        self.assertEqual(self.check("skill"), "allow (mode ask)")
        self.assertEqual(self.check("list"), "deny (rule list(.))")
        self.assertEqual(self.check("task"), "deny (rule task(build))")
        self.assertEqual(self.check("write", "/etc/none"), "allow (rule write)")
        self.assertEqual(self.check("edit", "a", "--permission-mode", "dont-ask"), "deny (mode dont-ask)")
        self.usage(("permissions", "check", "Bash", "ls"), "unknown tool", "bash", "skill")
        self.usage(("permissions", "check", "todo", "x"), "usage: harness permissions", '"x"')
        self.usage(("permissions", "check", "job", "stop"), "invalid value", "stop")
        self.put("d/f")
        self.assertEqual(self.check("grep", "none", "--deny", "read"), "deny (rule read)")
        self.assertEqual(self.check("grep", "d", "--deny", "read(**)"), "allow (mode ask)")


class InitAndDoctor(CommandCase):
    def test_init(self):
        """commands.init.files"""
        self.assertEqual(self.output("init"), "created AGENTS.md\ncreated .harness/settings.json")
        self.assertIn("# ws", self.text("AGENTS.md").split("\n"))
        self.assertEqual(self.text(".harness/settings.json"), "{}\n")
        self.put("AGENTS.md", "mine")
        os.unlink(os.path.join(self.ws, ".harness/settings.json"))
        self.assertEqual(self.output("init"), "exists AGENTS.md\ncreated .harness/settings.json")
        self.assertEqual(self.output("init"), "exists AGENTS.md\nexists .harness/settings.json")
        self.assertEqual(self.text("AGENTS.md"), "mine")

    def test_doctor(self):
        """commands.doctor.checks"""
        names = ["base-url", "model", "state-directory", "settings-user", "settings-project", "settings-local"]
        self.assertEqual(self.output("doctor").split("\n"), [f"ok: {name}" for name in names])
        self.assertFalse(os.path.exists(self.home))
        self.assertEqual(self.value("doctor"), [{"check": name, "ok": True, "reason": None} for name in names])
        self.put(".harness/settings.json", '{"max_turns": "x"}')
        self.put(".harness/settings.local.json", "{\n")
        self.put("extra.json", '{"model": "m"}')
        self.assertEqual(self.run_harness("doctor", "--settings", "extra.json", env=NO_MODEL).out.split("\n")[1], "ok: model")
        env = {**NO_MODEL, "HARNESS_BASE_URL": "http://", "HARNESS_HOME": self.put("file"), "HARNESS_API_KEY": "key-4711"}
        ran = self.run_harness("doctor", env=env)
        lines = dict(zip(names, ran.out.split("\n")))
        for name in ("base-url", "model", "state-directory", "settings-project", "settings-local"):
            self.assertTrue(lines[name].startswith(f"problem: {name}: "), lines)
        self.assertRegex(lines["settings-project"], "settings.json.*max_turns")
        self.assertRegex(lines["settings-local"], "settings.local.json.*line 2")
        self.assertNotIn("key-4711", ran.out + ran.err)

    def test_exit(self):
        """commands.doctor.exit"""
        ran = self.run_harness("doctor", env=NO_MODEL)
        self.assert_error(ran, 3, "error: 2 problems\n")
        self.assertEqual(len(ran.out.split("\n")), 7)
        self.settings(odd=1)
        ran = self.run_harness("doctor")
        self.assertEqual(ran.code, 0)
        self.assertRegex(ran.err, "^warning: .*odd")
