"""Chapter 7: memory. Each test names its clause in its docstring."""

import json
import os
import re
import subprocess

from support import HARNESS, Case, call, calls, say


class MemoryCase(Case):
    def block(self, scope="project", **more):
        """The content of a memory block of the first request, None without one."""
        ran = self.headless("go", **more)
        self.assertEqual(ran.code, 0)
        self.err = ran.err
        found = re.search(rf'<memory scope="{scope}">\n(.*?)\n</memory>', ran.system(), re.DOTALL)
        return found and found[1]


class Files(MemoryCase):
    def test_places(self):
        """memory.files.places"""
        self.put(".harness/memory.md", "- above\n", self.top)
        self.put("extra/.harness/memory.md", "- extra\n", self.top)
        self.assertNotIn("<memory", self.headless("go", "--add-dir", "../extra").system())
        self.assertEqual(self.tree(), {})
        self.put(".harness/memory.md", " \n")
        self.put("memory.md", "", self.home)
        self.assertNotIn("<memory", self.headless("go").system())
        self.put(".harness/memory.md", "- mine\n")
        self.assertEqual(self.block(), "- mine")

    def test_unreadable(self):
        """memory.files.unreadable"""
        path = os.path.join(self.ws, ".harness/memory.md")
        os.makedirs(path)
        self.assertIsNone(self.block())
        self.assertRegex(self.err, f"(?m)^warning: .*{path}")
        os.rmdir(path)
        self.put(".harness/memory.md", b"a\xffb\n")
        self.assertEqual(self.block(), "a\ufffdb")
        self.put("outside.md", "- secret\n", self.top)
        os.unlink(path)
        os.symlink("../../outside.md", path)
        self.assertIsNone(self.block())
        self.assertRegex(self.err, "(?m)^warning: .*outside the workspace")
        self.put("inside.md", "- inside\n")
        os.unlink(path)
        os.symlink("../inside.md", path)
        self.assertEqual(self.block(), "- inside")


class Block(MemoryCase):
    def test_form(self):
        """memory.block.form"""
        self.put(".harness/memory.md", "\n- p\n@AGENTS.md\n \n")
        self.put("memory.md", "- u\n", self.home)
        wanted = '<memory scope="user">\n- u\n</memory>\n\n<memory scope="project">\n\n- p\n@AGENTS.md\n</memory>'
        self.assertIn(wanted, self.headless("go").system())
        os.unlink(os.path.join(self.home, "memory.md"))
        self.assertNotIn('scope="user"', self.headless("go").system())

    def test_next_turn(self):
        """memory.block.next-turn"""
        ran = self.interactive("one", "two", args=("--permission-mode", "auto"), script=[call("remember", text="new"), say("x")])
        self.assertNotIn("<memory", ran.system(1))
        self.assertIn("- new", ran.system(2))

    def test_limits(self):
        """memory.block.limits"""
        lines = [f"- {n}" for n in range(1, 204)]
        self.put(".harness/memory.md", "\n".join(lines[:200]) + "\n")
        self.assertEqual(self.block().split("\n"), lines[:200])
        self.put(".harness/memory.md", "\n".join(lines))
        self.assertEqual(self.block().split("\n"), [*lines[:200], "[memory cut: 3 lines left out]"])
        line = "x" * 99 + "\n"
        self.put(".harness/memory.md", line * 250)
        self.assertEqual(self.block(), line * 200 + "[memory cut: 50 lines left out]")
        line = "x" * 249 + "\n"
        self.put(".harness/memory.md", line * 100 + "y\n")
        self.assertEqual(self.block(), line * 100 + "[memory cut: 1 lines left out]")
        self.put(".harness/memory.md", "a\n" + "\n" * 200)
        self.assertEqual(self.block(), "a\n" + "\n" * 199 + "[memory cut: 1 lines left out]")
        self.put(".harness/memory.md", "x" + "é" * 13_000)
        self.assertEqual(self.block(), "x" + "é" * 12_499 + "\n[memory cut: 1 lines left out]")
        self.put("memory.md", "- small\n", self.home)
        self.assertEqual(self.block("user"), "- small")

    def test_sub_agents(self):
        """memory.block.sub-agents"""
        self.put(".harness/memory.md", "- before\n")
        script = [calls(("remember", {"text": "later"}), ("task", {"prompt": "p"})), say("sub"), say("x")]
        ran = self.headless("go", "--permission-mode", "auto", script=script)
        for index in (0, 1):
            self.assertIn("- before", ran.system(index))
        self.assertNotIn("- later", ran.system(1))


class Switch(MemoryCase):
    def test_off(self):
        """memory.switch.off"""
        self.put(".harness/memory.md", "- known\n")
        self.put("memory.md", "- user\n", self.home)
        script = [call("task", prompt="p"), say("sub"), say("x")]
        for args, setting in ((("--no-memory",), True), ((), False)):
            self.settings(memory=setting)
            ran = self.interactive("go", "/compact", args=(*args, "--permission-mode", "auto"), script=list(script))
            self.assertEqual(len(ran.requests), 4)
            self.assertNotIn("<memory", json.dumps(ran.requests))
            self.assertNotIn("remember", ran.tools(0))
        self.assertIn("- known", self.answer("/memory"))
        self.assertEqual(self.run_harness("memory", "add", "more").code, 0)
        self.assertEqual(self.text(".harness/memory.md"), "- known\n- more\n")


class Growing(MemoryCase):
    def test_beyond_limit(self):
        """memory.growth.beyond-limit"""
        lines = [f"- {n}" for n in range(1, 201)]
        self.put(".harness/memory.md", "\n".join(lines) + "\n")
        self.assertEqual(self.do_one("remember", text="last"), "remembered (project)")
        self.assertEqual(self.text(".harness/memory.md").split("\n"), [*lines, "- last", ""])
        self.assertNotIn("- last", self.block())

    def test_parallel(self):
        """memory.growth.parallel"""
        env = self.env(self.scenario([]))
        running = [subprocess.Popen([HARNESS, "memory", "add", f"line {n}"], cwd=self.ws, env=env, stdout=subprocess.DEVNULL) for n in range(12)]
        self.assertEqual([process.wait() for process in running], [0] * 12)
        self.assertEqual(sorted(self.text(".harness/memory.md").split("\n")), sorted(["", *(f"- line {n}" for n in range(12))]))


class CommandLine(MemoryCase):
    def out(self, *args):
        ran = self.run_harness("memory", *args)
        self.assertEqual((ran.code, ran.requests), (0, []))
        return ran.out

    def test_show(self):
        """memory.command.show"""
        self.assertEqual(self.out("show"), "no memory\n")
        project = self.put(".harness/memory.md", "- p\n" * 300 + "\n\n")
        user = self.put("memory.md", "- u\n", self.home)
        shown = {"user": f"user: {user}\n- u\n", "project": f"project: {project}\n" + "- p\n" * 300}
        self.assertEqual(self.out("show"), f"{shown['user']}\n{shown['project']}")
        for scope, text in shown.items():
            self.assertEqual(self.out("show", f"--{scope}"), text)
        got = json.loads(self.out("show", "--json"))
        self.assertEqual(got["user"], {"path": user, "content": "- u"})
        os.unlink(user)
        self.assertEqual(json.loads(self.out("show", "--json", "--user")), {"user": None})
        self.assertEqual(self.out("show", "--user"), "no memory\n")

    def test_add(self):
        """memory.command.add"""
        self.assertEqual(self.out("add", " a\nb "), "remembered (project)\n")
        self.assertEqual(self.out("add", "c", "--user"), "remembered (user)\n")
        self.assertEqual((self.text(".harness/memory.md"), self.text("memory.md", self.home)), ("- a b\n", "- c\n"))
        os.unlink(os.path.join(self.ws, ".harness/memory.md"))
        for text in ("", " \n"):
            self.assert_error(self.run_harness("memory", "add", text), 2, "empty text")
        self.assert_error(self.run_harness("memory", "add", "a", "b"), 2, '"b"')
        self.assertFalse(self.exists(".harness/memory.md"))
        path = os.path.join(self.ws, ".harness/memory.md")
        os.symlink("../../out.md", path)
        self.assert_error(self.run_harness("memory", "add", "x"), 2, "outside the workspace", ".harness/memory.md")
        os.unlink(path)
        os.mkdir(path)
        self.assert_error(self.run_harness("memory", "add", "x"), 1, path)
        self.assertFalse(self.exists("out.md", self.top))

    def test_clear(self):
        """memory.command.clear"""
        self.put(".harness/memory.md", "- p\n")
        self.put("memory.md", "- u\n", self.home)
        self.assertEqual(self.out("clear"), "cleared project\n")
        self.assertEqual((os.listdir(os.path.join(self.ws, ".harness")), self.exists("memory.md", self.home)), ([], True))
        self.assertEqual(self.out("clear"), "cleared project\n")
        for args in (("clear",), ("show",), ("add", "x")):
            self.assert_error(self.run_harness("memory", *args, "--user", "--project"), 2, "--user", "--project")
        path = os.path.join(self.ws, ".harness/memory.md")
        os.mkdir(path)
        self.assertEqual(self.run_harness("memory", "clear").code, 1)
        os.rmdir(path)
        self.put("real.md", "x")
        os.symlink("../real.md", path)
        self.assertEqual(self.out("clear"), "cleared project\n")
        self.assertEqual((self.exists(".harness/memory.md"), self.text("real.md")), (False, "x"))
        self.assertEqual(self.out("clear", "--user"), "cleared user\n")
        self.assertFalse(self.exists("memory.md", self.home))
