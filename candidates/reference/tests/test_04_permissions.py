"""Chapter 4: permissions, modes and roles. Each test names its clause in its docstring."""

import os

from support import Case, Screen, call, calls, say

READING = ("read", "list", "glob", "grep", "todo", "skill", "ask")
NAMES = "read write edit patch list glob grep bash job todo task ask remember skill".split()
SAMPLE = {
    "read": {"path": "f"},
    "list": {},
    "glob": {"pattern": "*"},
    "grep": {"pattern": "x"},
    "todo": {"items": []},
    "skill": {"name": "x"},
    "ask": {"question": "q"},
    "write": {"path": "new", "content": ""},
    "edit": {"path": "f", "old": "x", "new": "y"},
    "patch": {"text": "*** Begin Patch\n*** Add File: p\n*** End Patch"},
    "remember": {"text": "t"},
    "bash": {"command": "true"},
    "task": {"prompt": "p"},
}


def denial(ground, approval=False):
    return f"error: denied: needs approval ({ground})" if approval else f"error: denied: {ground}"


class PermissionCase(Case):
    def setUp(self):
        super().setUp()
        self.put("f", "x")

    def denied(self, *pairs, **more):
        """For each call: its denial, or None when it was not denied."""
        return [text if text.startswith("error: denied") else None for text in self.do(*pairs, **more)]

    def judge(self, mode, tools, args=()):
        """The denials of sample calls by tool."""
        pairs = [(tool, SAMPLE[tool]) for tool in tools]
        script = [calls(*pairs)] + [say("sub")] * (1 if "task" in tools else 0)
        ran = self.headless("go", "--permission-mode", mode, *args, script=script)
        results = ran.results() if len(ran.results()) == len(pairs) else ran.results(-1)
        return {tool: text if "denied" in text else None for (tool, _), text in zip(pairs, results)}

    def commands(self, *commands, mode="ask", args=()):
        """For each command: denied by a rule, asked about, or run."""
        results = self.do(*(("bash", {"command": command}) for command in commands), mode=mode, args=args)
        kinds = {"error: denied: rule": "deny", "error: denied: needs approval": "ask"}
        return [next((kinds[start] for start in kinds if text.startswith(start)), "run") for text in results]


class Classes(PermissionCase):
    def test_table(self):
        """permissions.class.table"""
        got = self.judge("accept-edits", list(SAMPLE))
        asked = denial("mode accept-edits", approval=True)
        self.assertEqual({tool for tool, text in got.items() if text}, {"bash", "task"})
        self.assertEqual((got["bash"], got["task"]), (asked, asked))
        got = self.judge("ask", list(SAMPLE))
        self.assertEqual({tool for tool, text in got.items() if not text}, set(READING))
        got = self.do(("job", {"id": "j1", "action": "output"}), ("job", {"id": "j1", "action": "kill"}), mode="accept-edits")
        self.assertEqual(got, ['error: unknown job "j1"; known jobs: none', asked])

    def test_task(self):
        """permissions.class.task"""
        sub = [calls(("read", {"path": "f"}), ("write", {"path": "new", "content": ""})), say("sub")]
        ran = self.headless("go", "--allow", "task", script=[call("task", prompt="p"), *sub])
        self.assertEqual(ran.results(2), ["1\tx", denial("mode ask", approval=True)])
        self.assertEqual(ran.results(3), ["sub"])


class Modes(PermissionCase):
    def test_ask(self):
        """permissions.mode.ask"""
        ran = self.headless("go", script=[calls(("read", {"path": "f"}), ("write", SAMPLE["write"]), ("bash", SAMPLE["bash"]))])
        self.assertEqual(ran.results(), ["1\tx"] + [denial("mode ask", approval=True)] * 2)
        self.assertEqual(list(self.tree()), ["f"])

    def test_accept_edits(self):
        """permissions.mode.accept-edits"""
        got = self.do(
            ("write", SAMPLE["write"]), ("remember", {"text": "t"}), ("bash", {"command": "touch x"}),
            ("write", {"path": ".git/x", "content": ""}), ("write", {"path": "../x", "content": ""}), mode="accept-edits",
        )  # fmt: skip
        self.assertEqual(got[:2], ["wrote new (0 bytes)", "remembered (project)"])
        self.assertEqual(got[2], denial("mode accept-edits", approval=True))
        self.assertEqual(got[3:], ["error: protected: .git/x", "error: outside the workspace: ../x"])
        self.assertFalse(self.exists("x"))

    def test_plan(self):
        """permissions.mode.plan"""
        got = self.judge("plan", list(SAMPLE), args=("--allow", "write", "--allow", "bash"))
        self.assertEqual({tool for tool, text in got.items() if not text}, set(READING))
        self.assertEqual({text for text in got.values() if text}, {denial("mode plan")})
        self.assertEqual(self.do(("job", {"id": "j1", "action": "kill"}), mode="plan"), [denial("mode plan")])
        self.assertEqual(list(self.tree()), ["f"])

    def test_auto(self):
        """permissions.mode.auto"""
        got = self.do(
            ("bash", {"command": "true"}), ("write", {"path": "new", "content": ""}), ("write", {"path": "a", "content": ""}),
            ("write", {"path": "../x", "content": ""}), args=("--deny", "write(a)"),
        )  # fmt: skip
        self.assertEqual(got[:3], ["[exit 0]", "wrote new (0 bytes)", denial("rule write(a)")])
        self.assertEqual(got[3], "error: outside the workspace: ../x")

    def test_dont_ask(self):
        """permissions.mode.dont-ask"""
        self.settings(permissions={"ask": ["read"]})
        args = ("--permission-mode", "dont-ask", "--allow", "bash(echo *)")
        script = [calls(("bash", {"command": "echo x"}), ("bash", {"command": "ls"}), ("read", {"path": "f"}), ("list", {}))]
        ran = self.interactive("go", "y", args=args, script=script)
        self.assertEqual(ran.results(1), ["x\n[exit 0]", denial("mode dont-ask"), denial("mode dont-ask"), ".harness/\nf"])
        self.assertNotIn("allow", ran.out)
        self.assertEqual(ran.contents(-1, "user"), ["go", "y"])


class Rules(PermissionCase):
    def test_form(self):
        """permissions.rules.form"""
        self.put("docs/a", "x")
        self.settings(permissions={"deny": ["write", "read( docs/** )", "bash(echo (x))"]})
        got = self.denied(
            ("write", {"path": "q", "content": ""}), ("read", {"path": "docs/a"}), ("read", {"path": "f"}),
            ("bash", {"command": "echo (x)"}), ("bash", {"command": "echo x"}),
        )  # fmt: skip
        rules = [denial("rule write"), denial("rule read( docs/** )"), None, denial("rule bash(echo (x))"), None]
        self.assertEqual(got, rules)

    def test_names(self):
        """permissions.rules.names"""
        for name in ("good", "bad"):
            self.put(f".harness/skills/{name}/SKILL.md", f"---\nname: {name}\ndescription: d\n---\nbody")
        got = self.denied(
            ("skill", {"name": "good"}), ("skill", {"name": "bad"}), ("task", {"prompt": "p"}),
            ("task", {"prompt": "p", "agent": "explore"}),
            args=("--deny", "skill(b*)", "--deny", "task(bui*)", "--deny", "task(expl)"),
        )  # fmt: skip
        self.assertEqual(got, [None, denial("rule skill(b*)"), denial("rule task(bui*)"), None])

    def test_invalid(self):
        """permissions.rules.invalid"""
        for rule in ("Bash(x)", "bash(", "bash()", "bash( )", "bash(x) y", "*", "todo(x)", "job(x)", ""):
            self.settings(permissions={"allow": [rule]})
            ran = self.headless("go")
            self.assert_error(ran, 3, os.path.join(self.ws, ".harness/settings.json"), rule)
            self.assertEqual((ran.requests, ran.out), ([], ""))
        os.unlink(os.path.join(self.ws, ".harness/settings.json"))
        ran = self.headless("go", "--deny", "bash(x) y")
        self.assert_error(ran, 2, "--deny", "bash(x) y")
        self.assertEqual(ran.requests, [])

    def test_order(self):
        """permissions.rules.order"""
        self.settings(permissions={"deny": ["read(f)"], "ask": ["read", "list"], "allow": ["read", "list", "write"]})
        pairs = (("write", SAMPLE["write"]), ("read", {"path": "f"}), ("list", {}))
        role = [denial("role explore"), denial("rule read(f)"), denial("rule list", approval=True)]
        self.assertEqual(self.do(*pairs, args=("--agent", "explore", "--deny", "write(z)")), role)
        plan = [denial("mode plan"), denial("rule read(f)"), denial("rule list", approval=True)]
        self.assertEqual(self.do(*pairs, mode="plan"), plan)
        self.assertEqual(self.do(*pairs, mode="ask")[0], "wrote new (0 bytes)")

    def test_deny(self):
        """permissions.rules.deny"""
        self.settings(permissions={"deny": ["write(*)"]})
        self.settings("user", permissions={"allow": ["write(*)", "write(a)"]})
        for mode in ("ask", "accept-edits", "auto"):
            got = self.do(("write", {"path": "a", "content": ""}), mode=mode, args=("--allow", "write(a)"))
            self.assertEqual(got, [denial("rule write(*)")])
        self.assertFalse(self.exists("a"))

    def test_ask(self):
        """permissions.rules.ask"""
        self.settings(permissions={"ask": ["bash(rm *)", "read(f)"], "allow": ["read", "bash"]})
        got = self.do(("bash", {"command": "rm f"}), ("read", {"path": "f"}), ("bash", {"command": "echo"}))
        self.assertEqual(got[:2], [denial("rule bash(rm *)", approval=True), denial("rule read(f)", approval=True)])
        self.assertEqual(got[2], "\n[exit 0]")
        self.assertEqual(self.do(("read", {"path": "f"}), mode="dont-ask"), [denial("mode dont-ask")])

    def test_allow(self):
        """permissions.rules.allow"""
        pairs = (("write", {"path": "a", "content": ""}), ("write", {"path": "b", "content": ""}))
        for mode in ("ask", "dont-ask"):
            got = self.do(*pairs, mode=mode, args=("--allow", "write(a)"))
            self.assertFalse(got[0].startswith("error: denied"))
            self.assertTrue(got[1].startswith("error: denied: "))

    def test_tool_only(self):
        """permissions.rules.tool-only"""
        got = self.do(
            ("read", {"path": "f"}), ("bash", {"command": "cat f"}), ("edit", SAMPLE["edit"]), ("patch", SAMPLE["patch"]),
            args=("--deny", "write", "--deny", "read(f)"),
        )  # fmt: skip
        self.assertEqual(got, [denial("rule read(f)"), "x\n[exit 0]", "error: read it first: f", "added p"])


class PathPatterns(PermissionCase):
    def test_pattern(self):
        """permissions.path.pattern"""
        paths = ["a.md", "docs/a.md", "docs/x/a", "./docs//x/../b", "src/a.py", "src/c.py", "A.md", "src", "lib/x"]
        rules = ("write(*.md)", "write(./docs/b)", "write(src/{a,b}.py)", "write(lib/)", "write(docs/x)")
        args = [one for rule in rules for one in ("--deny", rule)]
        got = self.denied(*(("write", {"path": path, "content": ""}) for path in paths), args=args)
        wanted = {"a.md": rules[0], "./docs//x/../b": rules[1], "src/a.py": rules[2], "A.md": rules[0], "lib/x": rules[3]}
        self.assertEqual(got, [denial(f"rule {wanted[path]}") if path in wanted else None for path in paths])
        pairs = (("write", {"path": "B.MD", "content": ""}), ("write", {"path": f"{self.ws}/b.md", "content": ""}))
        self.assertEqual(self.denied(*pairs, args=("--deny", "write(b.md)")), [None, denial("rule write(b.md)")])
        os.symlink("a.md", os.path.join(self.ws, "link.md"))
        got = self.denied(("read", {"path": f"/{self.ws}/link.md"}), args=("--deny", "read(link.md)"))
        self.assertEqual(got, [denial("rule read(link.md)")])

    def test_absolute(self):
        """permissions.path.absolute"""
        extra = os.path.join(self.top, "extra")
        os.mkdir(extra)
        pairs = (("write", {"path": f"{extra}/a", "content": ""}), ("write", {"path": "a", "content": ""}))
        args = ("--add-dir", extra)
        rule = f"write({extra}/**)"
        self.assertEqual(self.denied(*pairs, args=(*args, "--deny", rule)), [denial(f"rule {rule}"), None])
        rule = f"write({self.ws}/a)"
        self.assertEqual(self.denied(*pairs, args=(*args, "--deny", rule)), [None, denial(f"rule {rule}")])
        rules = ("--deny", "write(**)", "--deny", "write(../**)")
        self.assertEqual(self.denied(*pairs, args=(*args, *rules)), [None, denial("rule write(**)")])

    def test_link(self):
        """permissions.path.link"""
        self.put("secret.txt", "x")
        self.put("src/a.py", "x")
        self.put("out/x", "x")
        os.symlink("secret.txt", os.path.join(self.ws, "notes.txt"))
        os.symlink("../src/a.py", os.path.join(self.ws, "out/link"))
        got = self.denied(("read", {"path": "notes.txt"}), args=("--deny", "read(secret.txt)"))
        self.assertEqual(got, [denial("rule read(secret.txt)")])
        got = self.denied(("read", {"path": "notes.txt"}), args=("--deny", "read(notes.txt)"))
        self.assertEqual(got, [denial("rule read(notes.txt)")])
        pairs = [("write", {"path": path, "content": ""}) for path in ("out/link", "out/new")]
        got = self.denied(*pairs, mode="ask", args=("--allow", "write(out/**)"))
        self.assertEqual(got, [denial("mode ask", approval=True), None])

    def test_directory(self):
        """permissions.path.directory"""
        self.put("src/a", "x")
        pairs = (("grep", {"pattern": "x"}), ("grep", {"pattern": "x", "path": "src"}), ("list", {}), ("list", {"path": "src"}))
        args = ("--deny", "grep(.)", "--deny", "list(**)", "--deny", "glob(src/**)")
        got = self.denied(*pairs, ("glob", {"pattern": "src/*"}), ("glob", {"pattern": "*", "path": "./src"}), args=args)
        every = denial("rule list(**)")
        self.assertEqual(got, [denial("rule grep(.)"), None, every, every, None, denial("rule glob(src/**)")])
        got = self.denied(*pairs, ("read", {"path": "src"}), args=("--deny", "list(src/)", "--deny", "grep(src)", "--deny", "read(src/**)"))
        self.assertEqual(got, [None, denial("rule grep(src)"), None, denial("rule list(src/)"), None])
        for rule in ("list(/)", "list(/**)"):
            got = self.denied(("list", {"path": "/"}), ("list", {"path": "src"}), args=("--deny", rule, "--add-dir", "/"))
            self.assertEqual(got, [denial(f"rule {rule}")] * 2)

    def test_grep(self):
        """permissions.path.grep"""
        self.put("secret/a", "x")
        os.symlink("secret/a", os.path.join(self.ws, "link"))
        got = self.do(
            ("grep", {"pattern": "x"}), ("grep", {"pattern": "x", "path": "secret/a"}), ("grep", {"pattern": "x", "path": "link"}),
            ("list", {"depth": 2}), ("glob", {"pattern": "**"}), args=("--deny", "read(secret/**)"),
        )  # fmt: skip
        self.assertEqual(got[:3], ["f:1:x"] + [denial("rule read(secret/**)")] * 2)
        self.assertEqual(got[3:], ["f\nlink\nsecret/\nsecret/a", "f\nlink\nsecret/a"])
        got = self.do(("grep", {"pattern": "x"}), ("grep", {"pattern": "x", "path": "f"}), args=("--deny", "read"))
        self.assertEqual(got, ["[no matches]", denial("rule read")])

    def test_patch(self):
        """permissions.path.patch"""
        def patch(*names):
            sections = "".join(f"*** Add File: {name}\n" for name in names)
            return ("patch", {"text": f"*** Begin Patch\n{sections}*** End Patch"})

        args = ("--deny", "patch(bad)", "--allow", "patch(a)", "--allow", "patch(b)")
        got = self.denied(patch("a", "bad"), patch("a", "b"), patch("a2", "b"), ("patch", {"text": "x"}), mode="ask", args=args)
        asked = denial("mode ask", approval=True)
        self.assertEqual(got, [denial("rule patch(bad)"), None, asked, asked])
        got = self.do(("patch", {"text": "x"}), args=("--deny", "patch(**)"))
        self.assertRegex(got[0], "^error: malformed patch")


class CommandPatterns(PermissionCase):
    def test_pattern(self):
        """permissions.bash.pattern"""
        commands = ["git log", "git", "gitk x", " git  'a/b' ", "Git x", '"git" x']
        self.assertEqual(self.commands(*commands, args=("--deny", "bash(git *)")), ["deny", "ask", "ask", "deny", "ask", "ask"])
        self.assertEqual(self.commands(*commands[:3], args=("--deny", "bash(git*)")), ["deny"] * 3)
        self.assertEqual(self.commands("ls ?", "ls a", "ls [", args=("--deny", "bash(ls ?)", "--deny", "bash(ls [)")),
                         ["deny", "ask", "deny"])  # fmt: skip

    def test_split(self):
        """permissions.bash.split"""
        deny = ("--deny", "bash(rm *)")
        commands = [f"true {sign} rm x" for sign in ("&&", "||", ";", "|", "|&", "&", "\n")] + ["(rm x)", "echo 2>&1; rm x"]
        self.assertEqual(self.commands(*commands, args=deny), ["deny"] * len(commands))
        quoted = ["echo '; rm x'", 'echo "; rm x"', "echo \\; rm x", "echo \\\n rm x", "make 2>&1 rm x", "make &> rm x", "x >& rm x"]
        self.assertEqual(self.commands(*quoted, args=deny), ["ask"] * len(quoted))
        self.assertEqual(self.commands("echo # ; rm x", "cat <<E\nrm x\nE", args=deny), ["deny"] * 2)

    def test_substitution(self):
        """permissions.bash.substitution"""
        commands = ["echo $(rm x)", "echo `rm x`", 'echo "a $(rm x) b"', "cat <(rm x)", "echo $(echo $(rm x))", 'echo "`rm x`"',
                    "tee >(true; rm x)"]  # fmt: skip
        self.assertEqual(self.commands(*commands, args=("--deny", "bash(rm x)")), ["deny"] * len(commands))
        hidden = ["echo '$(rm x)'", "echo '`rm x`'", 'echo "<(rm x)"', 'echo "\\$(rm x)"', "echo \\`rm x\\`"]
        self.assertEqual(self.commands(*hidden, args=("--deny", "bash(rm x)")), ["ask"] * len(hidden))
        self.assertEqual(self.commands("echo $((rm x))", args=("--deny", "bash(rm x)")), ["deny"])
        self.assertEqual(self.commands(commands[0], args=("--deny", "bash(echo $(rm*)")), ["deny"])
        self.assertEqual(self.commands("echo $(ls)", args=("--allow", "bash(echo *)")), ["ask"])
        self.assertEqual(self.commands("echo $(ls)", args=("--allow", "bash(echo *)", "--allow", "bash(ls)")), ["run"])

    def test_deny(self):
        """permissions.bash.deny"""
        self.settings(permissions={"ask": ["bash(touch *)"]})
        got = self.commands("touch a; true", "echo a; rm f", "x=1; y=2", mode="auto",
                            args=("--deny", "bash(rm *)", "--deny", "bash(x=1; y*)"))  # fmt: skip
        self.assertEqual(got, ["ask", "deny", "deny"])
        self.assertEqual(sorted(self.tree()), [".harness", ".harness/settings.json", "f"])

    def test_allow(self):
        """permissions.bash.allow"""
        args = ("--allow", "bash(echo *)", "--allow", "bash(true)")
        self.assertEqual(self.commands("echo a && true", "echo a; ls", "true | true", args=args), ["run", "ask", "run"])
        self.assertEqual(self.commands("echo a; ls", args=("--allow", "bash(echo *; ls)")), ["ask"])
        self.assertEqual(self.commands("echo a; ls", args=("--allow", "bash")), ["run"])
        check = self.run_harness("permissions", "check", "bash", "echo a; true", "--allow", "bash(true)", "--allow", "bash(echo *)", "--allow", "bash")
        self.assertEqual(check.out, "allow (rule bash(true))\n")
        self.assertEqual(self.commands(";", args=("--allow", "bash(*)")), ["ask"])

    def test_prefix(self):
        """permissions.bash.prefix"""
        commands = ["A=1 rm x", 'A="b c" B= rm x', "A=$(echo 1 2) rm x", "A=`echo 1 2` rm x", "if true; then rm x; fi", "{ rm x; }", "! rm x", "while rm x; do true; done",
                    "for i in a; do rm x; done"]  # fmt: skip
        self.assertEqual(self.commands(*commands, args=("--deny", "bash(rm *)")), ["deny"] * len(commands))
        self.assertEqual(self.commands("sudo rm x", "env rm x", args=("--deny", "bash(rm *)")), ["ask"] * 2)
        for rule in ("if A=1 rm x", "A=1 rm x", "rm x"):
            self.assertEqual(self.commands("if A=1 rm x; then true; fi", args=("--deny", f"bash({rule})")), ["deny"])
        self.assertEqual(self.commands("A=1 true", "! true", args=("--allow", "bash(true)")), ["ask"] * 2)

    def test_redirect(self):
        """permissions.bash.redirect"""
        self.assertEqual(self.commands('echo "$(echo x > g)"', args=("--allow", "bash(echo *)")), ["ask"])
        counted = ["echo >| g", "echo >&g", "echo > '/dev/null'", "echo > /dev/nullx", "echo >(cat)", "echo 2>&1x"]
        self.assertEqual(self.commands(*counted, args=("--allow", "bash(echo *)", "--allow", "bash(cat)")), ["ask"] * len(counted))
        harmless = ["echo x 1>&2", "echo x 2> /dev/null", "echo x >>/dev/null", "echo x &>/dev/null", "echo $(echo x >/dev/null;echo y)"]
        self.assertEqual(self.commands(*harmless, args=("--allow", "bash(echo *)")), ["run"] * len(harmless))
        commands = ["echo x > g", "echo x >> g", "echo '>'", "echo x 2>&1", "echo x >&2", "echo x > /dev/null", "echo x < f"]
        got = self.commands(*commands, args=("--allow", "bash(echo *)"))
        self.assertEqual(got, ["ask", "ask", "run", "run", "run", "run", "run"])
        self.assertFalse(self.exists("g"))
        self.assertEqual(self.commands("echo x > g", args=("--allow", "bash(echo * > g)")), ["run"])
        self.assertEqual(self.commands("echo x > g", args=("--deny", "bash(echo *)")), ["deny"])

    def test_unclosed(self):
        """permissions.bash.unclosed"""
        for command in ('echo "abc', "echo $(ls", "echo 'x", "echo `ls"):
            self.assertEqual(self.commands(command, args=("--allow", "bash(*)")), ["ask"], command)
        self.assertEqual(self.commands('echo "abc; rm x', "echo '$(rm x)", args=("--deny", "bash(rm x)")), ["deny"] * 2)
        got = self.do(("bash", {"command": 'echo "abc'}), mode="ask", args=("--allow", "bash"))
        self.assertRegex(got[0], r"\[exit [1-9]\d*\]$")


class Hidden(PermissionCase):
    def test_plan(self):
        """permissions.hidden.plan"""
        gone = {"write", "edit", "patch", "bash", "task", "remember"}
        kept = [name for name in NAMES if name not in gone]
        self.assertEqual(self.headless("go", "--permission-mode", "plan").tools(), kept)
        for mode in ("ask", "accept-edits", "auto", "dont-ask"):
            self.assertEqual(self.headless("go", "--permission-mode", mode).tools(), NAMES)
        ran = self.interactive("a", "/mode plan", "b", "/mode ask", "c")
        self.assertEqual([ran.tools(index) for index in range(3)], [NAMES, kept, NAMES])

    def test_rule(self):
        """permissions.hidden.rule"""
        args = ("--deny", "grep", "--deny", "bash(*)", "--permission-mode", "auto")
        self.settings(permissions={"ask": ["list"]})
        ran = self.headless("go", *args, script=[call("task", prompt="p"), say("sub")])
        self.assertEqual(ran.tools(0), [name for name in NAMES if name != "grep"])
        self.assertEqual(ran.tools(1), [name for name in NAMES if name not in ("grep", "task")])


class Denied(PermissionCase):
    def test_text(self):
        """permissions.denied.text"""
        self.settings(hooks={"before_tool": [{"match": "list", "command": "echo no >&2; exit 2"}]}, permissions={"ask": ["glob"]})
        pairs = (("list", {}), ("grep", {"pattern": "x"}), ("glob", {"pattern": "x"}), ("write", SAMPLE["write"]))
        got = self.do(*pairs, mode="ask", args=("--deny", "grep"))
        self.assertEqual(got, ["error: denied: hook: no", denial("rule grep"), denial("rule glob", approval=True),
                               denial("mode ask", approval=True)])  # fmt: skip
        self.assertEqual(self.do(("todo", {"items": []}), args=("--agent", "explore")), [denial("role explore")])
        ran = self.interactive("go", "n", script=[call("write", path="a", content="")])
        self.assertEqual(ran.results(), ["error: denied: by the user"])
        self.settings("user", permissions={"deny": ["read(f*)"]})
        self.settings("local", permissions={"deny": ["read(f)", "read(*)"]})
        self.assertEqual(self.do(("read", {"path": "f"}), args=("--deny", "read(?)")), [denial("rule read(f*)")])

    def test_effect(self):
        """permissions.denied.effect"""
        script = [calls(("write", {"path": "d/new", "content": ""}), ("read", {"path": "f"}), ("bash", {"command": "touch z"}))]
        ran = self.headless("go", "--output-format", "json", script=script)
        self.assertEqual((ran.code, ran.json["text"], ran.json["denials"]), (0, "DONE", 2))
        self.assertEqual(ran.results()[1], "1\tx")
        self.assertEqual(list(self.tree()), ["f"])


class Approval(PermissionCase):
    def test_headless(self):
        """permissions.approval.headless"""
        self.settings(permissions={"ask": ["list"]})
        script = [calls(("write", SAMPLE["write"]), ("list", {}))]
        ran = self.run_harness("-p", "go", stdin="y\ny\n", script=script)
        self.assertEqual(ran.results(), [denial("mode ask", approval=True), denial("rule list", approval=True)])
        self.assertEqual((ran.out, ran.contents(0)), ("DONE\n", ["go\n\ny\ny"]))

    def test_prompt(self):
        """permissions.approval.prompt"""
        patch = "*** Begin Patch\n*** Add File: p1\n*** Add File: p2\n*** End Patch"
        pairs = (("bash", {"command": "echo a\necho b"}), ("write", {"path": "./w", "content": ""}), ("patch", {"text": patch}),
                 ("remember", {"text": "t"}), ("bash", {"command": "touch no"}))  # fmt: skip
        ran = self.interactive("go", " Y ", "A", "y", "y", "N", script=[calls(*pairs)])
        for question in ("allow bash echo a\\necho b? [y/a/n] ", "allow write ./w? [y/a/n] ", "allow patch p1, p2? [y/a/n] ",
                         'allow remember {"text":"t"}? [y/a/n] \n'):  # fmt: skip
            self.assertIn(question, ran.out)
        self.assertEqual(ran.results()[0], "a\nb\n[exit 0]")
        self.assertEqual(ran.results()[4], "error: denied: by the user")
        self.assertTrue(all(self.exists(name) for name in ("w", "p1", "p2")) and not self.exists("no"))
        screen = Screen(self, script=[call("bash", command="echo hi")])
        screen.wait("> ")
        screen.enter("go")
        screen.wait("allow bash echo hi? [y/a/n] ")
        screen.enter("y")
        screen.wait("DONE")
        screen.wait("> ")
        self.assertEqual([m["content"] for m in screen.requests[-1]["messages"] if m["role"] == "tool"], ["hi\n[exit 0]"])

    def test_session(self):
        """permissions.approval.session"""
        self.settings(permissions={"ask": ["read(f)"]})
        os.symlink("f", os.path.join(self.ws, "link"))
        pairs = (("bash", {"command": "echo 1"}), ("bash", {"command": "echo 1"}), ("bash", {"command": "echo 2"}),
                 ("read", {"path": "f"}), ("read", {"path": "link"}))  # fmt: skip
        again = [call("bash", command="echo 1"), say("x")]
        script = [calls(*pairs), say("x"), *again, *again]
        ran = self.interactive("go", "a", "n", "a", "go", "/clear", "go", "n", script=script)
        self.assertEqual(ran.results(1), ["1\n[exit 0]", "1\n[exit 0]", "error: denied: by the user", "1\tx", "1\tx"])
        self.assertEqual(ran.results(3)[-1], "1\n[exit 0]")
        self.assertEqual(ran.results(5), ["error: denied: by the user"])
        ran = self.interactive("go", "n", args=("-c",), script=list(again))
        self.assertEqual(ran.results()[-1], "error: denied: by the user")
        pairs = (("remember", {"text": "1"}), ("remember", {"text": "2"}), ("task", {"prompt": "1"}), ("task", {"prompt": "2"}))
        ran = self.interactive("go", "a", "a", script=[calls(*pairs), say("s1"), say("s2")])
        self.assertEqual(ran.results(), ["remembered (project)"] * 2 + ["s1", "s2"])
        ran = self.interactive("go", "a", "/mode dont-ask", "go", "/mode plan", "go", script=again * 3)
        self.assertEqual([ran.results(index)[-1] for index in (1, 3, 5)],
                         ["1\n[exit 0]", denial("mode dont-ask"), denial("mode plan")])  # fmt: skip

    def test_other_answer(self):
        """permissions.approval.other-answer"""
        ran = self.interactive("go", "", "yes", "/help", "y", script=[call("bash", command="echo hi")])
        self.assertEqual(ran.out.count("allow bash echo hi? [y/a/n] "), 4)
        self.assertEqual((ran.results(), len(ran.requests)), (["hi\n[exit 0]"], 2))
        script = [calls(("bash", {"command": "echo 1"}), ("bash", {"command": "echo 2"}))]
        ran = self.interactive("go", "what", script=script)
        self.assertEqual((ran.results(), ran.code), ([denial("mode ask", approval=True)] * 2, 0))

    def test_order(self):
        """permissions.approval.order"""
        pairs = (("bash", {"command": "echo 1"}), ("bash", {"command": "echo 2"}), ("bash", {"command": "echo 1"}))
        ran = self.interactive("go", "a", "n", script=[calls(*pairs)])
        self.assertEqual(ran.results(), ["1\n[exit 0]", "error: denied: by the user", "1\n[exit 0]"])


class Roles(PermissionCase):
    def test_names(self):
        """permissions.role.names"""
        ran = self.headless("go")
        self.assertIn("Role: build", ran.system().split("\n"))
        self.assertEqual(ran.tools(), NAMES)
        self.put(".harness/agents/own.md", "text")
        self.assertIn("Role: own", self.headless("go", "--agent", "own").system().split("\n"))
        self.assertNotIn("Role:", self.headless("go", "--system-prompt", "hello").system())

    def test_architect(self):
        """permissions.role.architect"""
        pairs = (("write", SAMPLE["write"]), ("job", {"id": "j", "action": "kill"}), ("job", {"id": "j", "action": "output"}))
        ran = self.headless("go", "--agent", "architect", "--permission-mode", "auto", "--allow", "write", script=[calls(*pairs)])
        self.assertEqual(ran.tools(), "read list glob grep job todo ask skill".split())
        self.assertIn("Propose changes; do not make them.", ran.system().split("\n"))
        self.assertEqual(ran.results(), [denial("role architect")] * 2 + ['error: unknown job "j"; known jobs: none'])

    def test_explore(self):
        """permissions.role.explore"""
        args = ("--agent", "explore", "--permission-mode", "auto", "--allow", "bash")
        ran = self.headless("go", *args, script=[calls(("bash", SAMPLE["bash"]), ("todo", {"items": []}), ("read", {"path": "f"}))])
        self.assertEqual(ran.tools(), "read list glob grep".split())
        self.assertEqual(ran.results(), [denial("role explore")] * 2 + ["1\tx"])

    def test_strict(self):
        """permissions.role.strict"""
        self.put(".harness/agents/lax.md", "---\npermission_mode: auto\n---\n")
        self.put(".harness/agents/strict.md", "---\npermission_mode: dont-ask\n---\n")
        write = ("write", SAMPLE["write"])
        got = self.headless("go", "--agent", "lax", script=[calls(write)]).results()
        self.assertEqual(got, [denial("mode ask", approval=True)])
        self.assertEqual(self.do(write, args=("--agent", "strict")), [denial("mode dont-ask")])
        self.assertEqual(self.do(write, mode="plan", args=("--agent", "strict")), [denial("mode plan")])
        self.assertEqual(self.do(write, args=("--agent", "lax")), ["wrote new (0 bytes)"])
        self.assertEqual(self.answer("/mode", "--agent", "strict", "--permission-mode", "auto"), "mode: dont-ask")
        self.assertEqual(self.answer("/mode auto", "--agent", "strict"), "mode: auto")
        self.assertEqual(self.answer("/permissions", "--agent", "strict"), "mode: dont-ask")
        script = [call("task", prompt="p", agent="lax"), calls(write), say("sub")]
        ran = self.headless("go", "--allow", "task", script=script)
        self.assertEqual(ran.results(2), [denial("mode ask", approval=True)])
