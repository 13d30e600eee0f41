"""Chapter 8: convention files, ignore file, skills, roles and hooks. Each test names its clause in its docstring."""

import json
import os
import re

from support import OVERFLOW, Case, alive, call, calls, message, say


class ConventionCase(Case):
    def system(self, *args, **more):
        ran = self.headless("go", *args, **more)
        self.assertEqual(ran.code, 0, ran.err)
        self.err = ran.err
        return ran.system()

    def blocks(self, *args, **more):
        return re.findall(r'<conventions path="(.*?)">\n(.*?)\n</conventions>', self.system(*args, **more), re.DOTALL)

    def conventions(self, text, **files):
        """The text of AGENTS.md as the model sees it."""
        self.put("AGENTS.md", text)
        for name, content in files.items():
            self.put(name.replace("_", "."), content)
        return self.blocks()[-1][1]

    def warned(self, *words):
        self.assertTrue(any(line.startswith("warning: ") and all(word in line for word in words) for line in self.err.split("\n")), self.err)


class Agents(ConventionCase):
    def test_files(self):
        """conventions.agents.files"""
        deep = os.path.join(self.top, "repo/mid/ws")
        for folder in ("home", ".", "repo", "repo/mid", "repo/mid/ws", "repo/mid/ws/below", "extra"):
            self.put(f"{folder}/AGENTS.md", folder, self.top)
        self.put("repo/mid/ws/agents.md", "wrong", self.top)
        extra = ("--add-dir", os.path.join(self.top, "extra"))
        self.assertEqual([text for _, text in self.blocks(*extra, cwd=deep)], ["home", "repo/mid/ws"])
        self.put("repo/.git", "gitdir: x", self.top)
        self.assertEqual([text for _, text in self.blocks(*extra, cwd=deep)], ["home", "repo", "repo/mid", "repo/mid/ws"])

    def test_block(self):
        """conventions.agents.block"""
        deep = os.path.join(self.ws, "a/b")
        self.put(".git/HEAD")
        self.put("AGENTS.md", "\n top \n\n")
        self.put("a/AGENTS.md", " \n")
        self.put("a/b/AGENTS.md", "low")
        self.put("AGENTS.md", "user", self.home)
        wanted = [("$HARNESS_HOME/AGENTS.md", "user"), ("../../AGENTS.md", "top"), ("AGENTS.md", "low")]
        self.assertEqual(self.blocks(cwd=deep), wanted)

    def test_cap(self):
        """conventions.agents.cap"""
        text = self.conventions("x" * 65_535 + "é" + "tail")
        self.assertEqual(text, "x" * 65_535 + "\n[6 bytes left out]")
        self.assertEqual(self.conventions("y" * 65_536), "y" * 65_536)
        self.put("big.md", "z" * 65_537)
        self.assertEqual(self.conventions("@big.md\n@big.md"), "\n".join(["z" * 65_536 + "\n[1 bytes left out]"] * 2))
        self.put("AGENTS.md", b"a\xff")
        self.assertEqual(self.blocks()[0][1], "a\ufffd")

    def test_link(self):
        """conventions.agents.link"""
        self.put("outside.md", "secret", self.top)
        self.put("docs/real.md", "inside")
        path = os.path.join(self.ws, "AGENTS.md")
        os.symlink("docs/real.md", path)
        self.assertEqual(self.blocks(), [("AGENTS.md", "inside")])
        for make in (lambda: os.symlink("../outside.md", path), lambda: os.mkdir(path), lambda: self.put("AGENTS.md", b"x\0"),
                     lambda: os.symlink("none", path)):  # fmt: skip
            os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
            make()
            self.assertEqual(self.blocks(), [])
            self.warned("AGENTS.md")
        os.makedirs(self.home, exist_ok=True)
        os.symlink("../outside.md", os.path.join(self.home, "AGENTS.md"))
        self.assertEqual(self.blocks()[0][1], "secret")


class Imports(ConventionCase):
    def test_line(self):
        """conventions.import.line"""
        self.put("docs/ab.md", "\nA B\n@sub.md\n")
        self.put("docs/a b.md", "spaces")
        self.put("docs/sub.md", "sub")
        self.put("c.py", "code()")
        absolute = os.path.join(self.ws, "c.py")
        self.assertEqual(self.conventions("```\n@c.py\n```\n```\n@c.py"), "```\n@c.py\n```\n```\ncode()")
        text = self.conventions(f"x\n  @docs/ab.md \nsee @c.py\n```\n@c.py\n```\n@{absolute}\nuser@c.py\n@docs/a b.md\n@c.py")
        self.assertEqual(text, "x\nA B\nsub\nsee @c.py\n```\n@c.py\n```\ncode()\nuser@c.py\n@docs/a b.md\ncode()")
        self.assertEqual(self.err, "")

    def test_depth(self):
        """conventions.import.depth"""
        for number in range(1, 7):
            self.put(f"{number}.md", f"level {number}\n@{number + 1}.md")
        text = self.conventions("@1.md")
        self.assertEqual(text, "\n".join(f"level {n}" for n in range(1, 6)) + "\n@6.md")
        self.warned("not imported", "6.md")
        self.put("b.md", "b\n@AGENTS.md\n@b.md")
        self.put("t.md", "twice")
        self.assertEqual(self.conventions("a\n@b.md\n@t.md\n@t.md"), "a\nb\n@AGENTS.md\n@b.md\ntwice\ntwice")
        self.warned("not imported", "AGENTS.md")

    def test_refused(self):
        """conventions.import.refused"""
        self.put("secret", "hidden", self.top)
        self.put("extra/e.md", "extra", self.top)
        self.put("ign.md", "hidden")
        self.put("bin", b"hidden\0")
        self.put(".harnessignore", "ign.md")
        os.symlink("../secret", os.path.join(self.ws, "link"))
        lines = ["@../secret", "@link", "@missing.md", "@ign.md", "@bin", "@.harness", "@/etc/hostname"]
        os.mkdir(os.path.join(self.ws, ".harness"))
        self.assertEqual(self.conventions("\n".join(lines)), "\n".join(lines))
        for line in lines:
            self.warned("not imported", line[1:])
        self.put("AGENTS.md", "@../extra/e.md")
        self.assertEqual(self.blocks("--add-dir", "../extra")[0][1], "extra")
        self.put("AGENTS.md", "@own.md\n@../ws/bin", self.home)
        self.put("own.md", "own", self.home)
        self.assertEqual(self.blocks()[0][1], "own\n@../ws/bin")
        self.put(".git", "x", self.top)
        self.put("AGENTS.md", "@../secret")
        self.assertEqual(self.blocks()[-1][1], "hidden")


class Ignore(ConventionCase):
    def visible(self, rules, *names):
        for name in names:
            self.put(name, "x")
        self.put(".harnessignore", rules)
        return [one for one in self.do_one("glob", pattern="**").split("\n") if one != ".harnessignore"]

    def test_syntax(self):
        """conventions.ignore.syntax"""
        names = ["a.log", "d/a.log", "top", "d/top", "build/x", "d/build/y", "f/build", "keep.log", "#h", "!b", "s ", "q1", "A.LOG",
                 "m/n/o/p", "g/h", "w1", "w/1"]  # fmt: skip
        rules = "# comment\n\n*.log\n!keep.log\n/top\nbuild/\n\\#h\n\\!b\ns\\ \nq[0-9]\nm/**/p\ng/h\nw?\n"
        self.assertEqual(self.visible(rules, *names), ["A.LOG", "d/top", "f/build", "keep.log", "w/1"])

    def test_parent(self):
        """conventions.ignore.parent"""
        names = ("secret/open.txt", "secret/x", "other")
        self.assertEqual(self.visible("secret/\n!secret/open.txt\n", *names), ["other"])
        self.assertEqual(self.visible("secret/*\n!secret/open.txt\n", *names), ["other", "secret/open.txt"])

    def test_place(self):
        """conventions.ignore.place"""
        self.put("d/.harnessignore", "x")
        self.put("d/x", "x")
        self.put("extra/.harnessignore", "y", self.top)
        self.put("extra/y", "y", self.top)
        got = self.do(("read", {"path": "d/x"}), ("read", {"path": "../extra/y"}), args=("--add-dir", "../extra"))
        self.assertEqual(got, ["1\tx", "1\ty"])
        self.put("f", "x")
        script = [calls(("write", {"path": ".harnessignore", "content": "f\n"}), ("read", {"path": "f"})), say("x"),
                  calls(("read", {"path": "f"}), ("read", {"path": ".harnessignore"}))]  # fmt: skip
        ran = self.interactive("one", "two", args=("--permission-mode", "auto"), script=script)
        self.assertEqual((ran.results(1)[1], ran.results(3)[2:]), ("1\tx", ["error: ignored: f", "1\tf"]))

    def test_hidden(self):
        """conventions.ignore.hidden"""
        for number in range(501):
            self.put(f"many/{number:03}", "x\n")
        self.put("only/ign", "x\n")
        os.symlink("ign", os.path.join(self.ws, "only/link"))
        self.put(".harnessignore", "ign\n500\n")
        got = self.do(("list", {}), ("list", {"path": "many"}), ("list", {"path": "only"}), ("glob", {"pattern": "only/*"}),
                      ("grep", {"pattern": "x", "path": "only"}))  # fmt: skip
        self.assertEqual(got[0], ".harnessignore\nmany/\nonly/")
        self.assertNotIn("more]", got[1])
        self.assertEqual(got[2:], ["[empty directory]", "[no files]", "[no matches]"])

    def test_refused(self):
        """conventions.ignore.refused"""
        self.put("secret/f", "x")
        self.put("real", "x")
        self.put(".harnessignore", "secret/\n*.ign\nreal\nalias\n")
        os.symlink("real", os.path.join(self.ws, "link"))
        self.put("open", "x")
        os.symlink("open", os.path.join(self.ws, "alias"))
        before = self.tree()
        patch = "*** Begin Patch\n*** Add File: new.ign\n*** End Patch"
        got = self.do(
            ("read", {"path": "secret/f"}), ("read", {"path": "link"}), ("read", {"path": "alias"}),
            ("write", {"path": "secret/new", "content": ""}), ("write", {"path": "no.ign", "content": ""}),
            ("edit", {"path": "real", "old": "x", "new": "y"}), ("patch", {"text": patch}), ("list", {"path": "secret"}),
            ("glob", {"pattern": "*", "path": "secret"}), ("grep", {"pattern": "x", "path": "secret/f"}),
            ("bash", {"command": "cat secret/f"}),
        )  # fmt: skip
        paths = ["secret/f", "link", "alias", "secret/new", "no.ign", "real", "new.ign", "secret", "secret", "secret/f"]
        self.assertEqual(got[:10], [f"error: ignored: {path}" for path in paths])
        self.assertEqual((got[10], self.tree()), ("x\n[exit 0]", before))


class FrontMatter(ConventionCase):
    def test_form(self):
        """conventions.front-matter.form"""
        head = "---\n# note\n\ndescription:  'a: \"b\"'  \nodd: 1\ntools: [read, \"grep\"]\ntools: list, glob\n---\n"
        self.put(".harness/agents/own.md", head + "Body\n---\nmore")
        self.put(".harness/commands/plain.md", " ---\nall body")
        self.put(".harness/skills/s/SKILL.md", '---\nname: "s"\ndescription: "quoted"\n---\nx')
        ran = self.headless("go", "--agent", "own")
        self.assertEqual(ran.tools(), ["list", "glob"])
        self.assertIn("Role: own\n\nBody\n---\nmore", ran.system())
        self.assertIn("own\tproject\ta: \"b\"\n", self.run_harness("agents").out)
        self.assertEqual(self.headless("/plain").contents(0), ["---\nall body"])
        self.assertIn("- s: quoted", self.system())

    def test_broken(self):
        """conventions.front-matter.broken"""
        bad = {".harness/agents/bad.md": "---\ndescription: d\n", ".harness/commands/bad.md": "---\nno colon\n---\nx",
               ".harness/skills/bad/SKILL.md": "---\nname: bad\n"}  # fmt: skip
        for name, content in bad.items():
            self.put(name, content)
        self.put("commands/bad.md", "good one", self.home)
        self.put(".harness/agents/good.md", "x")
        for command, name in (("agents", ".harness/agents/bad.md"), ("commands", ".harness/commands/bad.md"),
                              ("skills", ".harness/skills/bad/SKILL.md")):  # fmt: skip
            ran = self.run_harness(command)
            self.assertEqual((ran.code, "bad\tproject" in ran.out), (0, False))
            self.assertRegex(ran.err, f"(?m)^warning: .*{name}")
        ran = self.headless("go", "--agent", "good")
        self.assertEqual(ran.code, 0)
        self.assertIn("agents/bad.md", ran.err)
        self.assertIn("skills/bad/SKILL.md", ran.err)
        self.assertEqual(self.headless("go", "--agent", "bad").code, 2)
        self.assertEqual(self.headless("/bad").contents(0), ["good one"])
        self.assertEqual(self.interactive("one", "two").err.count("agents/bad.md"), 1)


class Skills(ConventionCase):
    def skill(self, name, head, base=None, body="BODY"):
        prefix = ".harness/skills" if base is None else "skills"
        return self.put(f"{prefix}/{name}/SKILL.md", f"---\n{head}\n---\n{body}", base)

    def test_file(self):
        """conventions.skills.file"""
        self.skill("both", "name: both\ndescription: project")
        self.skill("both", "name: both\ndescription: user", self.home)
        self.skill("fallback", "name: other\ndescription: bad")
        self.skill("fallback", "name: fallback\ndescription: good", self.home)
        for name, head in (("Upper", "name: Upper\ndescription: d"), ("empty", "name: empty\ndescription:"), ("a/deep", "name: deep\ndescription: d")):
            self.skill(name, head)
        ran = self.run_harness("skills")
        self.assertEqual(ran.out, "both\tproject\tproject\nfallback\tuser\tgood\n")
        for name in ("fallback", "Upper", "empty"):
            self.assertRegex(ran.err, f"(?m)^warning: .*skills/{name}/SKILL.md")

    def test_listed(self):
        """conventions.skills.listed"""
        self.assertNotIn("<skills>", self.system())
        for name, description in (("b", "second"), ("a", "x" * 1025), ("c", "y" * 1024)):
            self.skill(name, f"name: {name}\ndescription: {description}")
        system = self.system()
        self.assertIn("<skills>\n- a: " + "x" * 1024 + "…\n- b: second\n- c: " + "y" * 1024 + "\n</skills>", system)
        self.assertNotIn("BODY", system)
        self.assertNotIn("<skills>", self.system("--deny", "skill"))
        self.assertNotIn("<skills>", self.system("--agent", "explore"))


class OwnRoles(ConventionCase):
    def test_file(self):
        """conventions.role.file"""
        self.put("agents/own.md", "of user", self.home)
        self.put("agents/mine.md", "my text", self.home)
        self.put(".harness/agents/own.md", "of project")
        path = self.put(".harness/agents/build.md", "replaced")
        faulty = self.put(".harness/agents/explore.md", "---\ntools: reed\n---\n")
        self.put(".harness/agents/Bad_Name.md", "x")
        self.put("AGENTS.md", "CONV")
        system = self.system("--agent", "own")
        self.assertIn("Role: own\n\nof project\n\n<conventions", system)
        self.warned(path)
        self.warned(faulty)
        self.assertEqual(len(self.headless("go", "--agent", "explore").tools()), 4)
        self.assertIn("my text", self.system("--agent", "mine"))
        self.assertNotIn("replaced", self.system())
        self.assertEqual(self.headless("go", "--agent", "Bad_Name").code, 2)

    def test_tools(self):
        """conventions.role.tools"""
        self.put(".harness/agents/own.md", "---\ntools: grep, read, bash, read\n---\n")
        self.put(".harness/agents/none.md", "---\ntools:\n---\n")
        self.put(".harness/agents/all.md", "x")
        script = [calls(("write", {"path": "a", "content": ""}), ("bash", {"command": "true"}))]
        ran = self.headless("go", "--agent", "own", "--allow", "write", "--permission-mode", "auto", script=script)
        self.assertEqual(ran.tools(), ["read", "grep", "bash"])
        self.assertEqual(ran.results(), ["error: denied: role own", "[exit 0]"])
        self.assertEqual(self.headless("go", "--agent", "own", "--permission-mode", "plan", "--deny", "grep").tools(), ["read"])
        self.assertEqual(self.headless("go", "--agent", "none").tools(), [])
        self.assertEqual(len(self.headless("go", "--agent", "all").tools()), 14)

    def test_model(self):
        """conventions.role.model"""
        self.put(".harness/agents/own.md", "---\nmodel: m-role\npermission_mode: plan\n---\n")
        self.put(".harness/agents/plain.md", "x")
        self.assertEqual(self.headless("go", "--agent", "own").requests[0]["model"], "m-role")
        self.assertEqual(self.headless("go", "--agent", "own", "--model", "m-flag").requests[0]["model"], "m-flag")
        for agent, model in (("own", "m-role"), ("plain", "m-flag")):
            script = [call("task", prompt="p", agent=agent), say("sub")]
            ran = self.headless("go", "--model", "m-flag", "--permission-mode", "auto", script=script)
            self.assertEqual(ran.requests[1]["model"], model)
        got = self.do_one("write", path="a", content="", args=("--agent", "own"))
        self.assertEqual(got, "error: denied: mode plan")

    def test_invalid(self):
        """conventions.role.invalid"""
        for name, head in (("tool", "tools: reed"), ("mode", "permission_mode: fast"), ("model", "model:")):
            path = self.put(f".harness/agents/{name}.md", f"---\n{head}\n---\n")
            ran = self.headless("go", "--agent", name)
            self.assert_error(ran, 2, name)
            self.assertIn(path, ran.err)
            self.assertEqual(ran.requests, [])
        self.put("agents/tool.md", "of user", self.home)
        self.assertEqual(self.headless("go", "--agent", "tool").code, 2)
        self.assertIn('error: unknown agent "tool"; known agents: ', self.do_one("task", prompt="p", agent="tool"))


class Hooks(ConventionCase):
    def hooks(self, **events):
        """Set hooks; a command stands for a list with one hook."""
        self.settings(hooks={event: [{"command": one}] if isinstance(one, str) else one for event, one in events.items()})

    def log(self):
        return self.text("log").split() if self.exists("log") else []

    def test_setting(self):
        """conventions.hooks.setting"""
        self.hooks(user_prompt=[{"command": "echo 1 >> log"}, {"command": "echo 2 >> log", "match": "x", "timeout_s": 600}])
        self.settings("user", hooks={"stop": [{"command": "echo never >> log"}]})
        self.headless("go")
        self.assertEqual(self.log(), ["1", "2"])

    def test_invalid(self):
        """conventions.hooks.invalid"""
        good = {"command": "touch ran"}
        for hooks in ({"stop": good}, {"stop": ["x"]}, {"stop": [{}]}, {"stop": [{"command": ""}]}, {"stop": [{**good, "match": 1}]},
                      {"stop": [{**good, "timeout_s": 0}]}, {"stop": [{**good, "timeout_s": 5.0}]}):  # fmt: skip
            self.settings(hooks=hooks)
            ran = self.headless("go")
            self.assert_error(ran, 3, ".harness/settings.json", "hooks.stop")
            self.assertEqual(ran.requests, [])
        self.settings(hooks={"before_tools": 5, "stop": [{**good, "when": 1}]})
        ran = self.headless("go")
        self.assertEqual((ran.code, self.exists("ran")), (0, True))
        for key in ("hooks.before_tools", "hooks.stop.when"):
            self.assertRegex(ran.err, f"(?m)^warning: .*settings.json.*{key}$")

    def test_match(self):
        """conventions.hooks.match"""
        names = (" read | list ", "", "*", "write", "l*", "nothing", None)
        self.hooks(before_tool=[{"command": f"echo {n} >> log", **({} if name is None else {"match": name})} for n, name in enumerate(names)],
                   stop=[{"match": "nothing", "command": "echo stop >> log"}])  # fmt: skip
        self.put("f")
        self.do(("list", {}), ("patch", {"text": "*** Begin Patch\n*** Delete File: f\n*** End Patch"}))
        self.assertEqual(self.log(), ["0", "1", "2", "6", "1", "2", "6", "stop"])

    def test_input(self):
        """conventions.hooks.input"""
        events = ("session_start", "user_prompt", "before_tool", "after_tool", "before_compact", "stop")
        self.hooks(**{event: f"cat > {event}.json" for event in events})
        self.headless("go", "--session-id", "s", script=[call("list"), say("fine")])
        self.headless("/compact", "-c", script=[say("SUM")])
        base = {"session_id": "s", "cwd": self.ws}
        listed = self.do_one("list", args=("--no-save",))
        wanted = {
            "user_prompt": {"prompt": "go"}, "before_tool": {"tool": "list", "arguments": {}},
            "before_compact": {"trigger": "manual"}, "stop": {"text": "DONE"},
        }  # fmt: skip
        got = {event: json.loads(self.text(f"{event}.json")) for event in events}
        for event, more in wanted.items():
            session = got[event]["session_id"]
            self.assertEqual(got[event], {"event": event, **base, "session_id": session, **more})
        self.assertEqual(set(got["after_tool"]), {"event", "session_id", "cwd", "tool", "arguments", "result"})
        self.assertEqual((got["after_tool"]["result"], got["session_start"]["source"]), (listed, "new"))
        self.assertTrue(self.text("stop.json").endswith("}\n"))
        self.put("a", "A\n")
        self.headless("see @a", "-r", "s")
        self.assertEqual(json.loads(self.text("user_prompt.json"))["prompt"], 'see @a\n\n<file path="a">\nA\n</file>')
        self.assertEqual(json.loads(self.text("session_start.json"))["source"], "resumed")
        self.hooks(user_prompt="exec <&-; true")
        self.assertEqual(self.headless("x" * 100_000).err, "")

    def test_process(self):
        """conventions.hooks.process"""
        self.settings(env={"A": "set"}, hooks={
            "session_start": [{"command": "echo $A [$HARNESS_API_KEY] $PWD $0 > env; echo out"}],
            "user_prompt": [{"command": "exit 3"}, {"command": "kill -9 $$"}, {"command": "echo $$ > pid; sleep 60", "timeout_s": 1}],
        })  # fmt: skip
        ran = self.headless("go")
        self.assertEqual((ran.code, ran.out), (0, "DONE\n"))
        self.assertEqual(self.text("env"), f"set [] {self.ws} /bin/sh\n")
        self.assertEqual(ran.err.rstrip().split("\n"), ["warning: hook user_prompt: exit 3", "warning: hook user_prompt: exit 137",
                                                        "warning: hook user_prompt: timed out after 1 s"])  # fmt: skip
        self.assertFalse(alive(int(self.text("pid"))))

    def test_moments(self):
        """conventions.hooks.moments"""
        self.hooks(**{event: f"echo {event} >> log" for event in
                      ("session_start", "user_prompt", "before_tool", "after_tool", "before_compact", "stop")})  # fmt: skip
        self.put(".harness/commands/own.md", "own text")
        script = [calls(("read", {"path": "none"}), ("bash", {"command": "x"}), ("read", {}), ("nope", {})), say("a"), say("b"), say("SUM"),
                  say("c"), say("d")]  # fmt: skip
        args = ("--permission-mode", "dont-ask")
        self.interactive("/mode", "!true", "one", "/own", "/compact", "/clear", "two", args=args, script=script)
        self.assertEqual(self.log(), ["session_start", "user_prompt", "before_tool", "after_tool", "before_tool", "stop", "user_prompt", "stop",
                                      "before_compact", "session_start", "user_prompt", "stop"])  # fmt: skip
        os.unlink(os.path.join(self.ws, "log"))
        self.lay_session("c", "a", message("assistant", "b"))
        ran = self.interactive("/compact", "go", args=("-r", "c"), script=[say("SUM")])
        self.assertEqual(self.log()[:2], ["before_compact", "session_start"])
        os.unlink(os.path.join(self.ws, "log"))
        script = [call("task", prompt="p"), call("list"), say("sub"), say("x")]
        self.headless("go", "--permission-mode", "auto", script=script)
        self.assertEqual(self.log(), ["session_start", "user_prompt", "before_tool", "before_tool", "after_tool", "after_tool", "stop"])
        os.unlink(os.path.join(self.ws, "log"))
        self.lay_session("r", "old")
        resumed = {"op": "run", "prompt": "go", "options": {"resume": "r"}}
        self.api(resumed, {"op": "reset"}, {"op": "run", "prompt": "go"}, resumed)
        self.assertEqual(self.log().count("session_start"), 2)

    def test_context(self):
        """conventions.hooks.context"""
        self.hooks(session_start=[{"command": "echo ' ONE '"}, {"command": "true"}, {"command": "echo TWO"}],
                   user_prompt="head -c 10001 /dev/zero | tr '\\0' x", stop="echo never")  # fmt: skip
        ran = self.interactive("a", "b")
        start = '<hook event="session_start">\nONE\n</hook>\n\n<hook event="session_start">\nTWO\n</hook>'
        for index in (0, 1):
            self.assertTrue(ran.system(index).endswith(start))
        wanted = 'a\n\n<hook event="user_prompt">\n' + "x" * 10_000 + "…\n</hook>"
        self.assertEqual(ran.contents(1, "user")[0], wanted)
        self.assertEqual(self.stored()[0], ("user", wanted))
        self.assertNotIn("never", json.dumps(ran.requests))
        self.hooks(user_prompt="true")
        self.assertEqual(self.headless("plain").contents(0), ["plain"])

    def test_block(self):
        """conventions.hooks.block"""
        self.hooks(before_tool=[{"match": "bash", "command": "echo ' not now ' >&2; exit 2"}, {"match": "bash", "command": "touch later"},
                                {"match": "glob", "command": "exit 2"}],
                   after_tool=[{"match": "list", "command": "echo seen >&2; echo it >&2; exit 2"}])  # fmt: skip
        got = self.do(("bash", {"command": "touch x"}), ("glob", {"pattern": "*"}), ("list", {}))
        self.assertEqual(got, ["error: denied: hook: not now", "error: denied: hook: blocked", ".harness/\n[hook: seen\nit]"])
        self.assertFalse(self.exists("x") or self.exists("later"))

    def test_block_prompt(self):
        """conventions.hooks.block-prompt"""
        self.hooks(user_prompt="grep -q bad && { echo why >&2; exit 2; }; true")
        ran = self.headless("bad")
        self.assert_error(ran, 7, "blocked by a hook", "why")
        self.assertEqual((ran.requests, self.session_ids()), ([], []))
        ran = self.interactive("bad", "good")
        self.assertEqual((ran.out, ran.contents(0)), ("DONE\n", ["good"]))
        self.hooks(session_start="echo x >> log; [ $(wc -l < log) -gt 1 ] || { echo first >&2; exit 2; }")
        ran = self.interactive("one", "two", "three")
        self.assertEqual((ran.out, self.log(), ran.contents(0)), ("DONE\nDONE\n", ["x", "x"], ["two"]))
        self.assertIn("first", ran.err)

    def test_block_compact(self):
        """conventions.hooks.block-compact"""
        self.settings(context_window=500, hooks={"before_compact": [{"command": "echo busy >&2; exit 2"}]})
        path = self.lay_session("s", "one", message("assistant", "t" * 3000))
        before = self.get(path)
        ran = self.headless("/compact", "-c")
        self.assert_error(ran, 7, "busy")
        self.assertEqual((ran.requests, self.get(path)), ([], before))
        ran = self.headless("go", "-c", script=[call("list"), say("x")])
        self.assertEqual((ran.code, len(ran.requests), ran.err.count("busy")), (0, 2, 1))
        self.assertRegex(ran.err, "(?m)^warning: .*busy")
        self.assertEqual(ran.contents(0)[0], "one")
        self.assertEqual(self.headless("go", "-c", script=[OVERFLOW]).code, 4)

    def test_block_stop(self):
        """conventions.hooks.block-stop"""
        self.hooks(stop="echo x >> log; echo ' more ' >&2; exit 2")
        ran = self.headless("go", "--output-format", "json", script=[say(f"a{n}") for n in range(1, 5)])
        again = '<hook event="stop">\nmore\n</hook>'
        self.assertEqual((ran.json["text"], ran.json["turns"], self.log()), ("a4", 4, ["x"] * 3))
        self.assertEqual(ran.contents(-1), ["go", "a1", again, "a2", again, "a3", again])
        self.assertEqual(self.stored()[-1], ("assistant", "a4"))
        self.assertEqual([record.get("origin") for record in self.records(kind="message")], [None, None, "hook", None, "hook", None, "hook", None])
        ran = self.headless("go", "--max-turns", "2", "--session-id", "s")
        self.assertEqual((ran.code, len(ran.requests), self.stored("s")[-1]), (5, 2, ("user", again)))

    def test_permission(self):
        """conventions.hooks.permission"""
        self.hooks(before_tool="cat > /dev/null; echo allow; echo x >> log")
        self.assertEqual(self.do_one("bash", command="true", mode="ask"), "error: denied: needs approval (mode ask)")
        self.assertEqual(self.do_one("bash", command="true", args=("--deny", "bash")), "error: denied: rule bash")
        self.assertEqual(self.log(), ["x", "x"])
        self.hooks(before_tool="exit 2")
        ran = self.interactive("go", "y", script=[call("bash", command="true")])
        self.assertEqual((ran.results(1), ran.contents(-1, "user")), (["error: denied: hook: blocked"], ["go", "y"]))
        self.assertNotIn("allow", ran.out)
