"""Chapter 2: built-in tools. Each test names its clause in its docstring."""

import json
import os
import stat
import time

from support import Case, alive, call, calls, eventually, say

NAMES = "read write edit patch list glob grep bash job todo task ask remember skill".split()
SCHEMAS = {
    "read": ("path:string offset:integer? limit:integer?"),
    "write": ("path:string content:string"),
    "edit": ("path:string old:string new:string all:boolean?"),
    "patch": ("text:string"),
    "list": ("path:string? depth:integer?"),
    "glob": ("pattern:string path:string?"),
    "grep": ("pattern:string path:string? include:string? limit:integer?"),
    "bash": ("command:string timeout_s:integer? background:boolean?"),
    "job": ("id:string action:string"),
    "todo": ("items:array"),
    "task": ("prompt:string agent:string?"),
    "ask": ("question:string options:array?"),
    "remember": ("text:string scope:string?"),
    "skill": ("name:string"),
}
ENUMS = {("job", "action"): ["output", "kill"], ("remember", "scope"): ["project", "user"]}


def patch_text(*lines):
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


class TheSet(Case):
    def test_names(self):
        """tools.set.names"""
        self.assertEqual(self.headless("go").tools(), NAMES)

    def test_schema(self):
        """tools.set.schema"""
        for tool in self.headless("go").requests[0]["tools"]:
            self.assertEqual(tool["type"], "function")
            function = tool["function"]
            self.assertEqual(set(function), {"name", "description", "parameters"})
            self.assertTrue(function["description"])
            parameters = function["parameters"]
            self.assertEqual((parameters["type"], parameters["additionalProperties"]), ("object", False))
            wanted = [entry.rstrip("?").split(":") for entry in SCHEMAS[function["name"]].split()]
            required = [entry.split(":")[0] for entry in SCHEMAS[function["name"]].split() if entry[-1] != "?"]
            self.assertEqual([[name, one["type"]] for name, one in parameters["properties"].items()], wanted)
            self.assertEqual(parameters["required"], required)
            for name, one in parameters["properties"].items():
                self.assertEqual(one.get("enum"), ENUMS.get((function["name"], name)))
                self.assertEqual("items" in one, one["type"] == "array")

    def test_result(self):
        """tools.set.result"""
        self.put("a.txt", "alpha\n")
        ran = self.headless("go", script=[calls(("read", {"path": "a.txt"}), ("read", {"path": "b.txt"}))])
        self.assertEqual(
            ran.messages()[2:],
            [
                {"role": "tool", "content": "1\talpha", "tool_call_id": "c1"},
                {"role": "tool", "content": "error: no such file: b.txt", "tool_call_id": "c2"},
            ],
        )
        self.assertEqual((ran.code, ran.out), (0, "DONE\n"))

    def test_failure(self):
        """tools.set.failure"""
        long_name = "n" * 300
        got = self.do(("write", {"path": long_name, "content": "x"}), ("read", {"path": long_name}))
        self.assertEqual(got[0], f"error: cannot write {long_name}: File name too long")
        self.assertEqual(got[1], f"error: cannot read {long_name}: File name too long")
        self.assertEqual(self.tree(), {})
        self.settings(env={f"V{n}": "x" * 130_000 for n in range(20)})
        self.assertEqual(self.do_one("bash", command="true"), "error: cannot run the command: Argument list too long")
        if os.getuid() != 0:
            self.put("closed.txt", "x", mode=0)
            os.mkdir(os.path.join(self.ws, "d"), 0o555)
            got = self.do(("read", {"path": "closed.txt"}), ("write", {"path": "d/a", "content": ""}))
            self.assertEqual(got[0], "error: cannot read closed.txt: Permission denied")
            self.assertEqual(got[1], "error: cannot write d/a: Permission denied")


class Arguments(Case):
    def test_unknown_tool(self):
        """tools.calls.unknown"""
        got = self.do(("Read", {"path": "a"}), ("read ", {}), ("", {}))
        for name, result in zip(("Read", "read ", ""), got):
            self.assertEqual(result, f'error: unknown tool "{name}"; known tools: {", ".join(NAMES)}')
        got = self.do(("bash", {"command": "x"}), mode="plan")
        self.assertEqual(got, ["error: denied: mode plan"])
        self.put(".harness/agents/none.md", "---\ntools:\n---\n")
        self.assertEqual(self.do_one("nope", args=("--agent", "none")), 'error: unknown tool "nope"; known tools: none')

    def test_checks(self):
        """tools.calls.checks"""
        self.settings(hooks={"before_tool": [{"command": "echo x >> hook.log"}]})
        self.put(".harnessignore", "*.ign\n")
        got = self.do(
            ("read", {}),
            ("read", {"path": "../x"}),
            ("read", {"path": "/etc/a.ign"}),
            ("write", {"path": "a.ign", "content": "x"}),
            ("edit", {"path": ".git/x", "old": "a", "new": "b"}),
            args=("--deny", "read(/etc/**)"),
        )
        self.assertEqual(
            got,
            [
                'error: missing parameter "path"',
                "error: outside the workspace: ../x",
                "error: denied: rule read(/etc/**)",
                "error: ignored: a.ign",
                "error: protected: .git/x",
            ],
        )
        self.assertEqual(self.text("hook.log"), "x\n" * 4)

    def test_json(self):
        """tools.arguments.json"""
        bad = ['{"path": "a.txt", "content": "x"', '{"path": "a"} more', "{'path': 'a'}", '{"path": NaN}']
        ran = self.headless(
            "go", "--permission-mode", "auto",
            script=[calls(*(("write", text) for text in bad), ("write", {"path": "ok", "content": ""}))],
        )  # fmt: skip
        for result in ran.results()[:4]:
            self.assertRegex(result, "^error: arguments are not valid JSON: .")
        sent_back = [one["function"]["arguments"] for one in ran.messages()[1]["tool_calls"]]
        self.assertEqual(sent_back[:4], bad)
        self.assertEqual(self.tree(), {"ok": b""})

    def test_object(self):
        """tools.arguments.object"""
        self.put("a.txt")
        got = self.do(*(("list", text) for text in ("[]", '"x"', "5", "true", "null", "", "  ")), ("read", " "))
        self.assertEqual(got[:5], ["error: arguments are not an object"] * 5)
        self.assertEqual(got[5:], ["a.txt", "a.txt", 'error: missing parameter "path"'])

    def test_order(self):
        """tools.arguments.order"""
        got = self.do(
            ("read", {"x": 1, "offset": "a"}),
            ("read", {"path": 1, "y": 1, "x": 1}),
            ("read", {"path": "", "offset": 0, "limit": "x"}),
            ("read", {"path": "a", "limit": 0, "offset": 0}),
            ("todo", {"items": [{"text": "a", "status": "done"}, 5]}),
            ("todo", {"items": [{"text": "a", "status": "done"}, {"text": "b", "status": "x"}]}),
            ("ask", {"question": "q", "options": ["a", 1]}),
            ("edit", {"path": " ", "old": "a", "new": "a"}),
            ("edit", {"path": ".git/x", "old": "a", "new": "a"}),
        )
        self.assertEqual(
            got,
            [
                'error: missing parameter "path"',
                'error: unknown parameter "y"; known parameters: path, offset, limit',
                'error: parameter "limit" is not an integer: "x"',
                'error: parameter "offset" must be at least 1: 0',
                'error: parameter "items[1]" is not an object: 5',
                'error: parameter "items[1].status" must be one of pending, in_progress, done: "x"',
                'error: parameter "options[1]" is not a string: 1',
                'error: parameter "path" is empty',
                "error: old and new are the same",
            ],
        )

    def test_missing(self):
        """tools.arguments.missing"""
        self.put("a.txt", "x")
        got = self.do(
            ("write", {"path": "b", "content": None}), ("edit", {"path": "b"}), ("read", {"path": "a.txt", "limit": None})
        )
        self.assertEqual(got, ['error: missing parameter "content"', 'error: missing parameter "old"', "1\tx"])
        self.assertFalse(self.exists("b"))

    def test_unknown(self):
        """tools.arguments.unknown"""
        got = self.do(("write", {"path": "a", "content": "x", "mode": 1}), ("read", {"path": "a", "file_path": "a"}))
        self.assertEqual(got[0], 'error: unknown parameter "mode"; known parameters: path, content')
        self.assertEqual(got[1], 'error: unknown parameter "file_path"; known parameters: path, offset, limit')
        self.assertFalse(self.exists("a"))

    def test_integer(self):
        """tools.arguments.integer"""
        self.put("a.txt", "x")
        values = ["true", '"ä"', "5.0", "5e0", "[5, 6]"]
        got = self.do(*(("read", '{"path": "a.txt", "offset": %s}' % value) for value in values))
        shown = ["true", '"ä"', "5.0", "5.0", "[5,6]"]
        self.assertEqual(got, [f'error: parameter "offset" is not an integer: {value}' for value in shown])

    def test_type(self):
        """tools.arguments.type"""
        got = self.do(
            ("read", {"path": 5}),
            ("edit", {"path": "a", "old": "a", "new": "b", "all": "true"}),
            ("edit", {"path": "a", "old": "a", "new": "b", "all": 1}),
            ("todo", {"items": {"a": 1}}),
            ("read", {"path": ["x" * 300]}),
            ("read", '{"path": "a\\ud800"}'),
            ("write", '{"path": "a", "content": "\\u0000"}'),
        )
        self.assertEqual(
            got,
            [
                'error: parameter "path" is not a string: 5',
                'error: parameter "all" is not a boolean: "true"',
                'error: parameter "all" is not a boolean: 1',
                'error: parameter "items" is not an array: {"a":1}',
                'error: parameter "path" is not a string: ["' + "x" * 198 + "…",
                'error: parameter "path" holds a character that cannot be used',
                'error: parameter "content" holds a character that cannot be used',
            ],
        )

    def test_range(self):
        """tools.arguments.range"""
        self.put("a.txt", "x")
        got = self.do(
            ("read", {"path": "a.txt", "offset": -1}),
            ("list", {"depth": 6}),
            ("list", {"depth": 0}),
            ("job", {"id": "j1", "action": "stop"}),
            ("read", {"path": "a.txt", "offset": 1}),
            ("list", {"depth": 5}),
        )
        self.assertEqual(
            got,
            [
                'error: parameter "offset" must be at least 1: -1',
                'error: parameter "depth" must be from 1 to 5: 6',
                'error: parameter "depth" must be from 1 to 5: 0',
                'error: parameter "action" must be one of output, kill: "stop"',
                "1\tx",
                "a.txt",
            ],
        )

    def test_blank(self):
        """tools.arguments.blank"""
        got = self.do(
            ("read", {"path": " "}),
            ("glob", {"pattern": ""}),
            ("grep", {"pattern": "a", "include": ""}),
            ("bash", {"command": "\n"}),
            ("ask", {"question": "q", "options": [""]}),
            ("todo", {"items": [{"text": " ", "status": "done"}]}),
            ("edit", {"path": "a", "old": "", "new": "x"}),
            ("write", {"path": "a", "content": " "}),
        )
        names = ["path", "pattern", "include", "command", "options[0]", "items[0].text", "old"]
        self.assertEqual(got[:7], [f'error: parameter "{name}" is empty' for name in names])
        self.assertEqual(got[7], "wrote a (1 bytes)")


class Paths(Case):
    def test_relative(self):
        """tools.paths.relative"""
        os.mkdir(os.path.join(self.ws, "sub"))
        absolute = os.path.join(self.ws, "a.txt")
        self.put("a.txt", "x")
        got = self.do(
            ("bash", {"command": "cd sub"}),
            ("read", {"path": "./a.txt"}),
            ("edit", {"path": absolute, "old": "x", "new": "y"}),
            ("read", {"path": "sub/../a.txt"}),
            ("write", {"path": "~/b", "content": ""}),
        )
        self.assertEqual(got[1:4], ["1\tx", f"edited {absolute} (replacements: 1)", "1\ty"])
        self.assertTrue(self.exists("~/b"))

    def test_outside(self):
        """tools.paths.outside"""
        self.put("secret", "hidden", self.top)
        os.mkdir(self.ws + "-old")
        got = self.do(
            ("read", {"path": "../secret"}),
            ("read", {"path": "/no/such"}),
            ("write", {"path": "../ws-old/a", "content": "x"}),
            ("write", {"path": "../ws/a", "content": "x"}),
        )
        self.assertEqual(got[0], "error: outside the workspace: ../secret")
        self.assertEqual(got[1], "error: outside the workspace: /no/such")
        self.assertEqual(got[2], "error: outside the workspace: ../ws-old/a")
        self.assertEqual(got[3], "wrote ../ws/a (1 bytes)")
        self.assertEqual(os.listdir(self.ws + "-old"), [])

    def test_link(self):
        """tools.paths.link"""
        self.put("out/secret", "hidden", self.top)
        self.put("real.txt", "inside")
        os.symlink("../out/secret", os.path.join(self.ws, "file"))
        os.symlink("../out", os.path.join(self.ws, "dir"))
        os.symlink("../out/none", os.path.join(self.ws, "dangling"))
        os.symlink("real.txt", os.path.join(self.ws, "good"))
        got = self.do(
            *(("read", {"path": path}) for path in ("file", "dir/secret", "good")),
            ("write", {"path": "dangling", "content": "x"}),
        )
        self.assertEqual(got[:2], ["error: outside the workspace: file", "error: outside the workspace: dir/secret"])
        self.assertEqual(got[2:], ["1\tinside", "error: outside the workspace: dangling"])
        self.assertFalse(self.exists("out/none", self.top))
        os.symlink(self.ws, os.path.join(self.top, "alias"))
        ran = self.headless("go", "--cwd", os.path.join(self.top, "alias"), script=[call("read", path="real.txt")])
        self.assertEqual(ran.results(), ["1\tinside"])

    def test_new_parent(self):
        """tools.paths.new-parent"""
        os.mkdir(os.path.join(self.top, "out"))
        os.symlink("../out", os.path.join(self.ws, "linked"))
        got = self.do(
            ("write", {"path": "linked/new/f", "content": "x"}),
            ("patch", {"text": patch_text("*** Add File: linked/f", "+x")}),
            ("write", {"path": "no/../../out/f", "content": "x"}),
            ("write", {"path": "no/../f", "content": "x"}),
        )
        self.assertEqual(got[0], "error: outside the workspace: linked/new/f")
        self.assertEqual(got[1], "error: outside the workspace: linked/f")
        self.assertEqual(got[2], "error: outside the workspace: no/../../out/f")
        self.assertEqual(got[3], "wrote no/../f (1 bytes)")
        self.assertEqual(os.listdir(os.path.join(self.top, "out")), [])
        self.assertEqual(sorted(os.listdir(self.ws)), ["f", "linked"])

    def test_added(self):
        """tools.paths.added"""
        extra = os.path.join(self.top, "extra")
        self.put("b.txt", "beta", extra)
        self.put("a.txt", "alpha")
        got = self.do(
            ("read", {"path": "../extra/b.txt"}),
            ("edit", {"path": f"{extra}/b.txt", "old": "beta", "new": "gamma"}),
            ("glob", {"pattern": "*"}),
            ("glob", {"pattern": "*", "path": extra}),
            ("grep", {"pattern": "gamma", "path": "../extra"}),
            ("grep", {"pattern": "a"}),
            args=("--add-dir", "../extra"),
        )
        self.assertEqual(got[0], "1\tbeta")
        self.assertEqual(got[2:], ["a.txt", f"{extra}/b.txt", f"{extra}/b.txt:1:gamma", "a.txt:1:alpha"])
        self.assertEqual(self.text("b.txt", extra), "gamma")

    def test_protected(self):
        """tools.paths.protected"""
        self.put(".git/config", "x")
        self.put("sub/.git/config", "x")
        self.settings(model="x")
        os.symlink(".git/config", os.path.join(self.ws, "link"))
        self.put("store/x", "x")
        os.mkdir(os.path.join(self.ws, "repo"))
        os.symlink("../store", os.path.join(self.ws, "repo/.git"))
        paths = [".git/config", ".git/new", ".git", "sub/.git/config", "link", "repo/x/../.git/x",
                 ".harness/settings.json", ".harness/settings.local.json"]  # fmt: skip
        before = self.tree()
        got = self.do(
            *(("write", {"path": path, "content": "y"}) for path in paths),
            ("patch", {"text": patch_text("*** Delete File: .git/config")}),
            ("edit", {"path": ".git/config", "old": "x", "new": "y"}),
            ("read", {"path": ".git/config"}),
            args=("--allow", "write"),
        )
        self.assertEqual(got[:8], [f"error: protected: {path}" for path in paths])
        self.assertEqual(got[8:], ["error: protected: .git/config"] * 2 + ["1\tx"])
        self.assertEqual(self.tree(), before)
        got = self.do(*(("write", {"path": path, "content": ""}) for path in (".gitignore", ".github/a", ".harness/b")))
        self.assertTrue(all(result.startswith("wrote ") for result in got))

    def test_shell(self):
        """tools.paths.shell"""
        secret = self.put("secret", "hidden", self.top)
        self.put(".harnessignore", "ign\n")
        self.put("ign", "ignored")
        got = self.do(("bash", {"command": f"cat {secret} ign; mkdir .git; echo x > .git/c"}))
        self.assertEqual(got, ["hiddenignored\n[exit 0]"])
        self.assertEqual(self.text(".git/c"), "x\n")

    def test_special(self):
        """tools.paths.special"""
        os.mkfifo(os.path.join(self.ws, "pipe"))
        got = self.do(
            ("read", {"path": "pipe"}),
            ("write", {"path": "pipe", "content": "x"}),
            ("edit", {"path": "pipe", "old": "a", "new": "b"}),
            ("patch", {"text": patch_text("*** Update File: pipe", "@@", "-a", "+b")}),
            ("patch", {"text": patch_text("*** Delete File: pipe")}),
            ("list", {}),
            ("glob", {"pattern": "*"}),
            ("grep", {"pattern": "x"}),
        )
        self.assertEqual(got, ["error: not a regular file: pipe"] * 5 + ["pipe", "pipe", "[no matches]"])

    def test_names(self):
        """tools.paths.names"""
        for name in (b"a\nb", b"c\xffd", "ö '\"".encode()):
            with open(os.path.join(self.ws.encode(), name), "w") as file:
                file.write("x\n")
        got = self.do(("list", {}), ("glob", {"pattern": "*"}), ("grep", {"pattern": "x"}))
        names = ["a\\nb", "c\ufffdd", "ö '\""]
        self.assertEqual(got, ["\n".join(names)] * 2 + ["\n".join(f"{name}:1:x" for name in names)])


class ReadFirst(Case):
    def test_required(self):
        """tools.read-first.required"""
        self.put("a.txt", "x\n")
        self.put("b.txt", "x\n")
        os.symlink("a.txt", os.path.join(self.ws, "link"))
        got = self.do(
            ("write", {"path": "a.txt", "content": "y"}),
            ("edit", {"path": "a.txt", "old": "x", "new": "y"}),
            ("write", {"path": "new", "content": "y"}),
            ("patch", {"text": patch_text("*** Update File: b.txt", "@@", "-x", "+y")}),
            ("read", {"path": "link"}),
            ("write", {"path": "./a.txt", "content": "z"}),
        )
        self.assertEqual(got[:2], ["error: read it first: a.txt"] * 2)
        self.assertEqual(got[2:4], ["wrote new (1 bytes)", "updated b.txt"])
        self.assertEqual(got[5], "wrote ./a.txt (1 bytes)")
        self.put("bin", b"\0")
        self.put("odd", b"\xff")
        os.mkdir(os.path.join(self.ws, "d"))
        got = self.do(*(("edit", {"path": path, "old": "x", "new": "y"}) for path in ("bin", "d", "no", "odd")))
        wanted = ["binary file: bin", "is a directory: d", "no such file: no", "read it first: odd"]
        self.assertEqual(got, [f"error: {text}" for text in wanted])

    def test_counts(self):
        """tools.read-first.counts"""
        for name in "abcd":
            self.put(name, "1\n2\n3\n")
        pairs = [("read", {"path": "a", "offset": 2, "limit": 1}), ("write", {"path": "a", "content": "x"}),
                 ("edit", {"path": "a", "old": "x", "new": "y"}),
                 ("patch", {"text": patch_text("*** Update File: b", "@@", "-1", "+0")}),
                 ("write", {"path": "b", "content": ""}), ("grep", {"pattern": "1"}), ("bash", {"command": "cat c"}),
                 ("glob", {"pattern": "*"}), ("read", {"path": "c/"}), ("write", {"path": "c", "content": ""}),
                 ("write", {"path": "d", "content": ""})]  # fmt: skip
        ran = self.headless("see @d", "--permission-mode", "auto", script=[calls(*pairs)])
        got = ran.results()
        self.assertEqual([got[1], got[4], got[10]], ["wrote a (1 bytes)", "wrote b (0 bytes)", "wrote d (0 bytes)"])
        self.assertEqual(got[2], "edited a (replacements: 1)")
        self.assertEqual(got[9], "error: read it first: c")
        ran = self.interactive(
            "one", "/clear", "two", args=("--permission-mode", "auto"),
            script=[call("read", path="c"), say("x"), call("write", path="c", content="")],
        )  # fmt: skip
        self.assertEqual(ran.results(), ["error: read it first: c"])

    def test_changed(self):
        """tools.read-first.changed"""
        self.put("a", "x")
        got = self.do(
            ("read", {"path": "a"}),
            ("bash", {"command": "touch -d 2001-01-01 a; printf x > a"}),
            ("edit", {"path": "a", "old": "x", "new": "y"}),
            ("bash", {"command": "printf z > a"}),
            ("write", {"path": "a", "content": "q"}),
            ("edit", {"path": "a", "old": "z", "new": "y"}),
            ("read", {"path": "a"}),
            ("write", {"path": "a", "content": "q"}),
            ("bash", {"command": "rm a"}),
            ("edit", {"path": "a", "old": "z", "new": "y"}),
            ("write", {"path": "a", "content": "r"}),
        )
        self.assertEqual(got[2], "edited a (replacements: 1)")
        self.assertEqual(got[4:6], ["error: changed since it was read: a"] * 2)
        self.assertEqual([got[7], got[9], got[10]], ["wrote a (1 bytes)", "error: no such file: a", "wrote a (1 bytes)"])

    def test_resumed(self):
        """tools.read-first.resumed"""
        self.put("a", "x")
        self.put("b", "x")
        self.headless("go", "--session-id", "s", script=[calls(("read", {"path": "a"}), ("read", {"path": "b"}))])
        self.put("b", "changed")
        script = [calls(("write", {"path": "a", "content": "x"}), ("write", {"path": "b", "content": "y"}))]
        for args in (("--resume", "s", "--fork"), ("--continue",)):
            got = self.headless("go", "--permission-mode", "auto", *args, script=list(script)).results()[-2:]
            self.assertEqual(got, ["wrote a (1 bytes)", "error: changed since it was read: b"])
        ran = self.headless(
            "go", "--permission-mode", "auto",
            script=[call("task", prompt="p"), call("read", path="a"), say("sub"), call("write", path="a", content="")],
        )  # fmt: skip
        self.assertEqual(ran.results()[-1], "error: read it first: a")


class Read(Case):
    def read(self, content, **arguments):
        self.put("a", content)
        return self.do(("read", {"path": "a", **arguments}))[0]

    def test_format(self):
        """tools.read.format"""
        self.assertEqual(self.read("alpha\nbeta\n"), "1\talpha\n2\tbeta")
        self.assertEqual(self.read("alpha\n\n"), "1\talpha\n2\t")

    def test_range(self):
        """tools.read.range"""
        self.put("a", "".join(f"l{n}\n" for n in range(1, 2103)))
        got = self.do(
            ("read", {"path": "a", "offset": 3, "limit": 2}),
            ("read", {"path": "a", "offset": 0}),
            ("read", {"path": "a", "limit": -1}),
            ("read", {"path": "a", "limit": 2050}),
            ("read", {"path": "a"}),
            ("read", {"path": "a", "offset": 2102, "limit": 9}),
        )
        self.assertEqual(got[0], "3\tl3\n4\tl4\n[lines 3-4 of 2102; 2098 more]")
        self.assertEqual(got[1], 'error: parameter "offset" must be at least 1: 0')
        self.assertEqual(got[2], 'error: parameter "limit" must be at least 1: -1')
        self.assertEqual(len(got[3].split("\n")), 2051)
        self.assertTrue(got[4].endswith("2000\tl2000\n[lines 1-2000 of 2102; 102 more]"))
        self.assertEqual(got[5], "2102\tl2102")

    def test_more(self):
        """tools.read.more"""
        self.put("a", "1\n2\n3")
        got = self.do(("read", {"path": "a", "limit": 2}), ("read", {"path": "a", "offset": 2}))
        self.assertEqual(got, ["1\t1\n2\t2\n[lines 1-2 of 3; 1 more]", "2\t2\n3\t3"])

    def test_past_end(self):
        """tools.read.past-end"""
        self.put("a", "1\n")
        self.put("e")
        got = self.do(
            ("read", {"path": "a", "offset": 2}), ("read", {"path": "e", "offset": 9}), ("write", {"path": "a", "content": ""})
        )
        self.assertEqual(got, ["[file has 1 lines]", "[empty file]", "wrote a (0 bytes)"])

    def test_empty(self):
        """tools.read.empty"""
        self.assertEqual(self.read(""), "[empty file]")
        self.assertEqual(self.read("\n"), "1\t")
        self.assertEqual(self.read("\ufeff"), "[empty file]")

    def test_missing(self):
        """tools.read.missing"""
        self.put("f", "x")
        os.mkdir(os.path.join(self.ws, "d"))
        os.symlink("none", os.path.join(self.ws, "l"))
        got = self.do(
            *(("read", {"path": path}) for path in ("none", "l", "f/b", "d")),
            *(("edit", {"path": path, "old": "a", "new": "b"}) for path in ("none", "d")),
        )
        wanted = [f"error: no such file: {path}" for path in ("none", "l", "f/b")] + ["error: is a directory: d"]
        self.assertEqual(got, [*wanted, "error: no such file: none", "error: is a directory: d"])

    def test_binary(self):
        """tools.read.binary"""
        self.put("b.txt", b"a" * 8191 + b"\0")
        self.put("later", b"a" * 8192 + b"\0")
        got = self.do(
            ("read", {"path": "b.txt"}),
            ("edit", {"path": "b.txt", "old": "a", "new": "b"}),
            ("patch", {"text": patch_text("*** Update File: b.txt", "@@", "-a", "+b")}),
            ("write", {"path": "b.txt", "content": ""}),
            ("read", {"path": "later"}),
        )
        self.assertEqual(got[:3], ["error: binary file: b.txt"] * 3)
        self.assertEqual(got[3], "error: read it first: b.txt")
        self.assertTrue(got[4].startswith("1\taaa"))

    def test_encoding(self):
        """tools.read.encoding"""
        self.assertEqual(
            self.read(b"a\xff\nb\n", limit=1), "1\ta\ufffd\n[not valid UTF-8: bytes replaced]\n[lines 1-1 of 2; 1 more]"
        )
        self.assertEqual(self.read(b"a\n\xff\n", limit=1).split("\n")[1], "[not valid UTF-8: bytes replaced]")
        self.assertEqual(self.read(b"\xef\xbb\xbfa\n"), "1\ta")

    def test_long_line(self):
        """tools.read.long-line"""
        got = self.read("ä" * 2000 + "\n" + "b" * 2001 + "\n")
        self.assertEqual(got, "1\t" + "ä" * 2000 + "\n2\t" + "b" * 2000 + "…")

    def test_large(self):
        """tools.read.large"""
        self.put("big", b"a\n" * 5_242_880 + b"x")
        self.put("fits", b"a\n" * 5_242_880)
        self.put("bin", b"\0" * 10_485_761)
        self.assertTrue(self.do_one("read", path="bin").startswith("error: too large: bin"))
        got = self.do(
            ("read", {"path": "big"}), ("read", {"path": "big", "limit": 1}), ("read", {"path": "fits"})
        )
        self.assertTrue(got[0].startswith("error: too large: big"))
        for word in ("10485761", "offset", "limit"):
            self.assertIn(word, got[0])
        self.assertEqual(got[1], "1\ta\n[lines 1-1 of 5242881; 5242880 more]")
        self.assertTrue(got[2].startswith("1\ta\n2\ta"))

    def test_line_ends(self):
        """tools.read.line-ends"""
        self.assertEqual(self.read("a\r\nb\r\n"), "1\ta\n2\tb")
        odd = "a\rb\x0cc\x0bd\u2028e"
        self.assertEqual(self.read(odd + "\nz\r"), f"1\t{odd}\n2\tz\r")


class Write(Case):
    def test_result(self):
        """tools.write.result"""
        got = self.do(
            ("write", {"path": "a", "content": "ä\r\nb  "}),
            ("write", {"path": "b", "content": "x"}),
            ("write", {"path": "c", "content": ""}),
            ("write", {"path": "b", "content": "x"}),
        )
        self.assertEqual(got, ["wrote a (7 bytes)", "wrote b (1 bytes)", "wrote c (0 bytes)", "wrote b (1 bytes)"])
        self.assertEqual((self.get("a"), self.get("c")), ("ä\r\nb  ".encode(), b""))

    def test_parents(self):
        """tools.write.parents"""
        self.put("f", "x")
        old = os.umask(0o027)
        try:
            got = self.do(("write", {"path": "a/b/c", "content": "x"}), ("write", {"path": "f/g/h", "content": "x"}))
        finally:
            os.umask(old)
        self.assertEqual(got, ["wrote a/b/c (1 bytes)", "error: not a directory: f/g/h"])
        modes = [stat.S_IMODE(os.stat(os.path.join(self.ws, name)).st_mode) for name in ("a", "a/b", "a/b/c")]
        self.assertEqual(modes, [0o750, 0o750, 0o640])

    def test_mode(self):
        """tools.write.mode"""
        for name, mode in (("w", 0o755), ("e", 0o600), ("p", 0o711)):
            self.put(name, "x\n", mode=mode)
        self.do(
            ("read", {"path": "w"}),
            ("write", {"path": "w", "content": "y"}),
            ("read", {"path": "e"}),
            ("edit", {"path": "e", "old": "x", "new": "y"}),
            ("patch", {"text": patch_text("*** Update File: p", "@@", "-x", "+y")}),
        )
        for name, mode in (("w", 0o755), ("e", 0o600), ("p", 0o711)):
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.ws, name)).st_mode), mode)
            self.assertEqual(self.text(name).strip(), "y")
        if os.getuid() != 0:
            self.put("r", "x", mode=0o444)
            got = self.do(("read", {"path": "r"}), ("write", {"path": "r", "content": "y"}))
            self.assertEqual(got[1], "error: cannot write r: Permission denied")
            self.assertEqual(self.text("r"), "x")

    def test_atomic(self):
        """tools.write.atomic"""
        path = self.put("a", "old")
        before = os.stat(path).st_ino
        os.link(path, path + ".twin")
        self.do(("read", {"path": "a"}), ("write", {"path": "a", "content": "new"}), ("write", {"path": "a/b", "content": ""}))
        self.assertNotEqual(os.stat(path).st_ino, before)
        self.assertEqual(self.tree(), {"a": b"new", "a.twin": b"old"})

    def test_directory(self):
        """tools.write.directory"""
        self.put("d/x", "x")
        got = self.do(*(("write", {"path": path, "content": ""}) for path in ("d", "new/", "d/x/")))
        self.assertEqual(got, ["error: is a directory: d", "error: is a directory: new/", "error: not a directory: d/x/"])
        self.assertEqual(self.tree(), {"d": None, "d/x": b"x"})

    def test_link(self):
        """tools.write.link"""
        self.put("target", "x\n")
        for name, target in (("link", "target"), ("new", "fresh")):
            os.symlink(target, os.path.join(self.ws, name))
        self.do(
            ("read", {"path": "link"}),
            ("edit", {"path": "link", "old": "x", "new": "y"}),
            ("write", {"path": "new", "content": "z"}),
        )
        self.assertEqual((self.text("target"), self.text("fresh")), ("y\n", "z"))
        self.assertTrue(os.path.islink(os.path.join(self.ws, "link")) and os.path.islink(os.path.join(self.ws, "new")))
        self.assertEqual(self.do(("patch", {"text": patch_text("*** Delete File: link")})), ["deleted link"])
        self.assertFalse(self.exists("link"))
        self.assertEqual(self.text("target"), "y\n")
        self.put("d/f", "x")
        self.put("secret", "x", self.top)
        for name, target in (("dir", "d"), ("nowhere", "none"), ("out", "../secret")):
            os.symlink(target, os.path.join(self.ws, name))
        got = self.do(*(("patch", {"text": patch_text(f"*** Delete File: {name}")}) for name in ("dir", "nowhere", "out")))
        self.assertEqual(got, ["deleted dir", "deleted nowhere", "error: outside the workspace: out"])
        self.assertEqual((self.exists("dir"), self.exists("d/f"), self.exists("out")), (False, True, True))


class Edit(Case):
    def edit(self, content, *edits):
        """Edit a file that was read before; return the results and the bytes afterwards."""
        self.put("a", content)
        names = ("old", "new", "all")
        got = self.do(("read", {"path": "a"}), *(("edit", {"path": "a", **dict(zip(names, one))}) for one in edits))
        return got[1:], self.get("a")

    def test_once(self):
        """tools.edit.once"""
        got, after = self.edit("one  \ntwo.*", ("two.*", ""))
        self.assertEqual((got, after), (["edited a (replacements: 1)"], b"one  \n"))

    def test_not_found(self):
        """tools.edit.not-found"""
        got, after = self.edit("one\n", ("One", "x"), ("one ", "x"), ("1\tone", "x"))
        self.assertEqual(got, ["error: not found: old does not occur in a"] * 3)
        self.assertEqual(after, b"one\n")

    def test_several(self):
        """tools.edit.several"""
        got, after = self.edit("aaaa b b b", ("aa", "x"), ("b", "x", False))
        self.assertEqual(got, ["error: old occurs 2 times in a", "error: old occurs 3 times in a"])
        self.assertEqual(self.edit("aaa", ("aa", "x"))[1], b"xa")

    def test_all(self):
        """tools.edit.all"""
        got, after = self.edit("a a a", ("a", "aa", True), ("z", "y", True))
        self.assertEqual(got, ["edited a (replacements: 3)", "error: not found: old does not occur in a"])
        self.assertEqual(after, b"aa aa aa")

    def test_same(self):
        """tools.edit.same"""
        got = self.do(
            ("edit", {"path": "../none", "old": "x", "new": "x"}),
            ("edit", {"path": "none", "old": "", "new": "x"}),
            ("edit", {"path": "none", "old": "", "new": ""}),
        )
        self.assertEqual(got, ["error: old and new are the same"] + ['error: parameter "old" is empty'] * 2)
        self.assertFalse(self.exists("none"))

    def test_line_ends(self):
        """tools.edit.line-ends"""
        got, after = self.edit("a\r\nb\r\nc\r\r\n", ("a\nb", "x\ny\r\nz"))
        self.assertEqual(after, b"x\r\ny\r\nz\r\nc\r\r\n")
        got, after = self.edit("a\r\nb\n", ("a\nb", "x"), ("b\n", "x\n"))
        self.assertEqual(got[0], "error: not found: old does not occur in a")
        self.assertEqual(after, b"a\r\nx\n")

    def test_encoding(self):
        """tools.edit.encoding"""
        got, after = self.edit(b"a\xff", ("a", "b"))
        self.assertEqual((got, after), (["error: not valid UTF-8: a"], b"a\xff"))
        got, after = self.edit(b"\xef\xbb\xbfa\n", ("a", "b"), ("\ufeffb", "c"))
        self.assertEqual((got[1], after), ("error: not found: old does not occur in a", b"\xef\xbb\xbfb\n"))
        got = self.do(("patch", {"text": patch_text("*** Update File: a", "@@", "-b", "+c")}))
        self.assertEqual((got, self.get("a")), (["updated a"], b"\xef\xbb\xbfc\n"))
        self.put("a", b"a\xff\n")
        got = self.do(("patch", {"text": patch_text("*** Update File: a", "@@", "-b", "+c")}))
        self.assertEqual(got, ["error: not valid UTF-8: a"])

    def test_sequence(self):
        """tools.edit.sequence"""
        got, after = self.edit("a", ("a", "b"), ("a", "c"), ("b", "d"))
        self.assertEqual([one.split(":")[0] for one in got], ["edited a (replacements", "error", "edited a (replacements"])
        self.assertEqual(after, b"d")


class Patch(Case):
    def patch(self, *lines):
        return self.do(("patch", {"text": patch_text(*lines)}))[0]

    def test_grammar(self):
        """tools.patch.grammar"""
        self.put("src/a.py", "def main():\n context\nold line\nend\n")
        self.put("old.txt", "x")
        text = patch_text(
            "*** Update File: src/a.py", "@@ def main():", "  context", "-old line", "+new line",
            "", "*** Add File:  docs/new.md ", "+first line", "", "", "*** Delete File: old.txt", "",
        )  # fmt: skip
        text = text.replace("*** Begin Patch", "*** Begin Patch  ")
        got = self.do(("patch", {"text": "\n \n" + text.replace("\n", "\r\n") + " \n\n \n"}))
        self.assertEqual(got, ["updated src/a.py\nadded docs/new.md\ndeleted old.txt"])
        self.assertEqual(self.text("src/a.py"), "def main():\n context\nnew line\nend\n")
        self.assertEqual(self.text("docs/new.md"), "first line\n")
        self.assertFalse(self.exists("old.txt"))

    def test_add(self):
        """tools.patch.add"""
        self.put("a", "x")
        os.symlink("none", os.path.join(self.ws, "l"))
        self.assertEqual(self.patch("*** Add File: n/e", "*** Add File: t", "+1", "+", "+2"), "added n/e\nadded t")
        self.assertEqual((self.text("n/e"), self.text("t")), ("", "1\n\n2\n"))
        for path in ("a", "l", "n"):
            self.assertEqual(self.patch(f"*** Add File: {path}", "+x"), f"error: already exists: {path}")
        self.assertRegex(self.patch("*** Add File: z", "x"), "^error: malformed patch, line 3: ")

    def test_update(self):
        """tools.patch.update"""
        self.put("a", "x\n\ny\nx\n\ny\nz \n")
        got = self.patch("*** Update File: a", "@@", " x", "", "-y", "+Y", "@@", "-x", "+X", " ", " y")
        self.assertEqual((got, self.text("a")), ("updated a", "x\n\nY\nX\n\ny\nz \n"))
        self.assertEqual(self.patch("*** Update File: a", "@@", "-z", "+q"), "error: hunk 1 not found in a")
        self.assertEqual(self.patch("*** Update File: no", "@@", "-z", "+q"), "error: no such file: no")
        os.mkdir(os.path.join(self.ws, "d"))
        self.assertEqual(self.patch("*** Update File: d", "@@", "-z", "+q"), "error: is a directory: d")

    def test_anchor(self):
        """tools.patch.anchor"""
        self.put("a", "x\n  f:\nx\ng:\nx\n")
        got = self.patch("*** Update File: a", "@@ f:", "-x", "+1", "@@ g: ", "+new", "@@  ", "+last")
        self.assertEqual((got, self.text("a")), ("updated a", "x\n  f:\n1\ng:\nnew\nx\nlast\n"))
        got = self.patch("*** Update File: a", "@@", "-x", "+y", "@@ none", "+z")
        self.assertEqual(got, "error: hunk 2 not found in a")
        self.assertTrue(self.text("a").startswith("x\n"))

    def test_delete(self):
        """tools.patch.delete"""
        self.put("d/a", "x")
        self.assertEqual(self.patch("*** Delete File: d"), "error: is a directory: d")
        self.assertEqual(self.patch("*** Delete File: d/no"), "error: no such file: d/no")
        self.assertRegex(self.patch("*** Delete File: d/a", "+x"), "^error: malformed patch, line 3: ")
        self.assertEqual(self.patch("*** Delete File: d/a", ""), "deleted d/a")
        self.assertEqual(os.listdir(os.path.join(self.ws, "d")), [])

    def test_text(self):
        """tools.patch.text"""
        self.put("crlf", "a\r\nb\r\n")
        self.put("mixed", "a\r\nb\n")
        self.put("open", "a\nb")
        self.put("gone", "a\n")
        self.patch("*** Update File: crlf", "@@", " a", "+n")
        self.patch("*** Update File: mixed", "@@", "-b", "+n")
        self.patch("*** Update File: open", "@@", "-b", "+n", "+m")
        self.patch("*** Update File: gone", "@@", "-a")
        self.put("empty")
        self.patch("*** Update File: empty", "@@", "+1", "+2")
        got = [self.get(name) for name in ("crlf", "mixed", "open", "gone", "empty")]
        self.assertEqual(got, [b"a\r\nn\r\nb\r\n", b"a\r\nn\n", b"a\nn\nm", b"", b"1\n2\n"])
        self.put("mixed", "a\r\nb\nc\r\n")
        self.assertEqual(self.patch("*** Update File: mixed", "@@", " a", "-b", "+x", " c"), "updated mixed")
        self.assertEqual(self.get("mixed"), b"a\r\nx\nc\r\n")

    def test_whole(self):
        """tools.patch.whole"""
        self.put("a", "x\n")
        before = self.tree()
        add = ("*** Add File: new/n", "+x")
        update = ("*** Update File: a", "@@", "-x", "+y")
        self.assertEqual(self.patch(*add, *update, "*** Delete File: no"), "error: no such file: no")
        self.assertEqual(self.patch(*update, "*** Delete File: ./a"), "error: ./a occurs twice in the patch")
        self.assertEqual(self.patch(*update, *add, "*** Add File: ../n"), "error: outside the workspace: ../n")
        self.assertEqual(self.patch("*** Delete File: no", "*** Move to: x", "*** Add File: .git/n"), "error: protected: .git/n")
        self.assertRegex(self.patch("*** Delete File: no", "*** Move to: x"), "^error: malformed patch, line 3: ")
        self.assertEqual(self.patch("*** Delete File: no", *update, *update), "error: a occurs twice in the patch")
        self.assertEqual(self.tree(), before)
        long_name = "n" * 300
        got = self.patch(*update, f"*** Add File: {long_name}", "+x")
        self.assertEqual(got, f"error: cannot write {long_name}: File name too long")
        self.assertEqual(self.text("a"), "x\n")

    def test_malformed(self):
        """tools.patch.malformed"""
        self.put("a", "x\n")
        cases = [
            ("*** Update File: a\n*** End Patch", 1),
            ("*** Begin Patch\n*** Add File: b\n+x", 3),
            (patch_text(), 2),
            (patch_text("*** Move to: x"), 2),
            (patch_text("*** Add File: "), 2),
            (patch_text("*** Update File: a"), 2),
            (patch_text("*** Update File: a", "@@"), 3),
            (patch_text("*** Update File: a", "@@", " x"), 3),
            (patch_text("*** Update File: a", "+x", "@@", "-x"), 3),
            (patch_text("*** Update File: a", "@@x", "@@", "-x"), 3),
            (patch_text("*** Update File: a", "@@", "-x", "?x"), 5),
            (patch_text("stray"), 2),
        ]
        got = self.do(*(("patch", {"text": text}) for text, _ in cases))
        for (text, number), result in zip(cases, got):
            self.assertRegex(result, f"^error: malformed patch, line {number}: .", text)
        self.assertEqual(self.tree(), {"a": b"x\n"})

    def test_fault_line(self):
        """tools.patch.fault-line"""
        self.put("a", "x\n")
        cases = [
            ("\n \n*** Start\n*** End Patch", 3),
            ("\n*** Begin Patch\n*** Add File: b\n+x\n\n", 4),
            ("\n*** Begin Patch\n\n*** End Patch\n\n", 4),
            ("\n" + patch_text("*** Add File: b", "*** Add File:", "+x"), 4),
            (patch_text("*** Update File: a", "+x"), 2),
            (patch_text("*** Update File: a", "@@", "?x", "*** Move: x"), 3),
            (patch_text("*** Add File: b", "", "+x"), 3),
        ]
        got = self.do(*(("patch", {"text": text}) for text, _ in cases))
        for (text, number), result in zip(cases, got):
            self.assertRegex(result, f"^error: malformed patch, line {number}: .", text)

    def test_result(self):
        """tools.patch.result"""
        self.put("a", "x\n")
        self.put("b", "x\n")
        got = self.patch("*** Delete File: ./b", "*** Update File: ./a", "@@", "-x", "+y", "*** Add File: c//d", "+1")
        self.assertEqual(got, "deleted ./b\nupdated ./a\nadded c//d")


class ListGlobGrep(Case):
    def test_list_format(self):
        """tools.list.format"""
        for name in ("a.txt", "a/b", "B", ".hidden", ".git/x", "ign", ".gitignore"):
            self.put(name, "ign" if name == ".gitignore" else "")
        self.put(".harnessignore", "ign\n")
        os.symlink("a", os.path.join(self.ws, "link"))
        got = self.do(("list", {}), ("list", {"path": "a"}), ("list", {"depth": 2}))
        self.assertEqual(got[0].split("\n"), [".gitignore", ".harnessignore", ".hidden", "B", "a.txt", "a/", "link"])
        self.assertEqual(got[1], "b")
        self.assertEqual(got[2].split("\n")[4:], ["a.txt", "a/", "a/b", "link"])

    def test_list_depth(self):
        """tools.list.depth"""
        self.put("1/2/3/4/5/6", "")
        os.symlink("1", os.path.join(self.ws, "l"))
        got = self.do(*(("list", {"depth": depth}) for depth in (1, 2, 5, 0)))
        if os.getuid() != 0:
            os.mkdir(os.path.join(self.ws, "l2"), 0)
            self.assertEqual(self.do_one("list", depth=2), "1/\n1/2/\nl\nl2/")
        self.assertEqual(got[:2], ["1/\nl", "1/\n1/2/\nl"])
        self.assertEqual(got[2].split("\n")[-2:], ["1/2/3/4/5/", "l"])
        self.assertEqual(got[3], 'error: parameter "depth" must be from 1 to 5: 0')

    def test_list_limit(self):
        """tools.list.limit"""
        for number in range(500):
            self.put(f"d/{number:03}")
        got = self.do(("list", {"path": "d"}), ("list", {"depth": 2}))
        self.assertEqual(len(got[0].split("\n")), 500)
        self.assertEqual(got[1].split("\n")[499:], ["d/498", "[1 more]"])

    def test_list_wrong(self):
        """tools.list.wrong"""
        self.put("f")
        self.put("e/.git", "a file")
        if os.getuid() != 0:
            os.mkdir(os.path.join(self.ws, "closed"), 0)
            for tool, more in (("list", {}), ("glob", {"pattern": "*"}), ("grep", {"pattern": "x"})):
                self.assertEqual(self.do_one(tool, path="closed", **more), "error: cannot read closed: Permission denied")
        got = self.do(
            ("list", {"path": "e"}),
            *((tool, {"path": path, **({} if tool == "list" else {"pattern": "x"})})
              for tool in ("list", "glob", "grep") for path in ("no", "f")),
        )  # fmt: skip
        self.assertEqual(got[0], "[empty directory]")
        self.assertEqual(got[1:5], ["error: no such directory: no", "error: not a directory: f"] * 2)
        self.assertEqual(got[5:], ["error: no such file: no", "[no matches]"])

    def test_glob_pattern(self):
        """tools.glob.pattern"""
        for name in ("x.py", "src/x.py", "src/a/b.txt", "A.c", "b.h", "[z", "{q"):
            self.put(name)
        wanted = {
            "*.py": "x.py", "**/x.py": "src/x.py\nx.py", "src/**": "src/a/b.txt\nsrc/x.py", "?.c": "A.c", "a.c": "[no files]",
            "[ab].h": "b.h", "[a-c].h": "b.h", "[!a].h": "b.h", "[!b].h": "[no files]", "*.{c,h}": "A.c\nb.h", "[z": "[z",
            "{q": "{q", "./*.py": "x.py", "sr**/x.py": "src/x.py", "src/**/b.txt": "src/a/b.txt", "*/x.py": "src/x.py",
        }  # fmt: skip
        got = self.do(*(("glob", {"pattern": pattern}) for pattern in wanted))
        self.assertEqual(dict(zip(wanted, got)), wanted)

    def test_glob_literal(self):
        """tools.glob.literal"""
        names = ["{b}", "a}", "b}", "{b", "{a}", "]", "a", "-", "[z-a]", "^", "\\x", "[x", "{x"]
        for name in names:
            self.put(name)
        wanted = {
            "{a,{b}}": "a}\n{b}", "{a}": "{a}", "[]a]": "]\na", "[a-]": "-\na", "[z-a]": "[z-a]", "[^a]": "^\na", "\\*": "\\x", "[x": "[x", "{x": "{x",
        }  # fmt: skip
        got = self.do(*(("glob", {"pattern": pattern}) for pattern in wanted))
        self.assertEqual(dict(zip(wanted, got)), wanted)

    def test_glob_files(self):
        """tools.glob.files"""
        for name in ("a/f", "a/.h", "a/.git/x", "a/ign", "b"):
            self.put(name)
        self.put(".harnessignore", "ign")
        self.put(".gitignore", "b")
        os.symlink("f", os.path.join(self.ws, "a", "link"))
        os.symlink("a", os.path.join(self.ws, "dir"))
        os.symlink("none", os.path.join(self.ws, "dangling"))
        self.put("z/.git", "a file")
        got = self.do(("glob", {"pattern": "**"}), ("glob", {"pattern": "*", "path": "a"}), ("glob", {"pattern": "a"}),
                      ("glob", {"pattern": "*", "path": "dir"}), ("glob", {"pattern": "*", "path": "a/.git"}))  # fmt: skip
        self.assertEqual(got[0].split("\n"), [".gitignore", ".harnessignore", "a/.h", "a/f", "a/link", "b", "dangling", "z/.git"])
        self.assertEqual(got[1:3], ["a/.h\na/f\na/link", "[no files]"])
        self.assertEqual(got[3:], ["dir/.h\ndir/f\ndir/link", "a/.git/x"])

    def test_glob_limit(self):
        """tools.glob.limit"""
        for number in range(201):
            self.put(f"{number:03}")
        got = self.do(("glob", {"pattern": "*"}), ("glob", {"pattern": "[01]*"}), ("glob", {"pattern": "{0,1}*"}))
        self.assertEqual(got[0].split("\n")[199:], ["199", "[1 more]"])
        self.assertEqual(len(got[1].split("\n")), 200)
        self.assertEqual(got[2], got[1])

    def test_glob_outside(self):
        """tools.glob.outside"""
        self.put(".harnessignore", "ign")
        self.assertEqual(self.do_one("glob", pattern="../*", path="ign"), "error: outside the workspace: ../*")
        patterns = ["/etc/*", "../*", "a/../b"]
        got = self.do(*(("glob", {"pattern": pattern}) for pattern in patterns), ("glob", {"pattern": "*", "path": ".."}))
        self.assertEqual(got, [f"error: outside the workspace: {one}" for one in [*patterns, ".."]])

    def test_grep_format(self):
        """tools.grep.format"""
        self.put("b/x", "one one\r\nTwo\n")
        self.put("a", "\ufeffzero\nx" + "y" * 2000 + "\n")
        got = self.do(
            *(("grep", {"pattern": pattern}) for pattern in ("one$", "(?i)two", "two", "^[zT]", "xy")),
            ("grep", {"pattern": "o", "path": "b/x"}),
        )
        self.assertEqual(got[:4], ["b/x:1:one one", "b/x:2:Two", "[no matches]", "a:1:zero\nb/x:2:Two"])
        self.assertEqual(got[4], "a:2:x" + "y" * 1999 + "…")
        self.assertEqual(got[5], "b/x:1:one one\nb/x:2:Two")

    def test_grep_include(self):
        """tools.grep.include"""
        for name in ("a.py", "d/b.py", "d/c.c"):
            self.put(name, "x\n")
        got = self.do(
            *(("grep", {"pattern": "x", "include": include}) for include in ("*.py", "*.{c,h}", "d/*", "q")),
            ("grep", {"pattern": "x", "path": "d", "include": "d/*"}),
            ("grep", {"pattern": "x", "path": "d/b.py", "include": "*.py"}),
            ("grep", {"pattern": "x", "path": "d/b.py", "include": "d/*.py"}),
        )
        self.assertEqual(got[:4], ["a.py:1:x\nd/b.py:1:x", "d/c.c:1:x", "d/b.py:1:x\nd/c.c:1:x", "[no matches]"])
        self.assertEqual(got[4:], ["[no matches]", "d/b.py:1:x", "[no matches]"])

    def test_grep_limit(self):
        """tools.grep.limit"""
        self.put("a", "x\n" * 101)
        got = self.do(*(("grep", {"pattern": "x", **more}) for more in ({}, {"limit": 101}, {"limit": 2})))
        self.assertEqual(got[0].split("\n")[99:], ["a:100:x", "[1 more]"])
        self.assertEqual(got[1].split("\n")[-1], "a:101:x")
        self.assertEqual(got[2], "a:1:x\na:2:x\n[99 more]")

    def test_grep_invalid(self):
        """tools.grep.invalid"""
        got = self.do(("grep", {"pattern": "a(b"}), ("grep", {"pattern": "a(b", "path": "none"}), ("grep", {"pattern": "a(b", "path": ".."}))
        for result in got[:2]:
            self.assertRegex(result, r'^error: invalid pattern "a\(b": .')
        self.assertEqual(got[2], "error: outside the workspace: ..")

    def test_grep_skipped(self):
        """tools.grep.skipped"""
        self.put("bin", b"x\0")
        self.put("ign", "x")
        self.put(".harnessignore", "ign")
        self.put(".git/f", "x")
        self.put("d/.h", "x\xff".encode("latin-1"))
        self.put("secret", "x", self.top)
        os.symlink("d", os.path.join(self.ws, "link"))
        os.symlink("../secret", os.path.join(self.ws, "out"))
        os.symlink("d/.h", os.path.join(self.ws, "in"))
        got = self.do(*(("grep", {"pattern": "x", **more}) for more in ({}, {"path": "bin"}, {"path": "none"}, {"path": ".git"}, {"path": "link"})))
        self.assertEqual(got[:3], ["d/.h:1:x\ufffd\nin:1:x\ufffd", "error: binary file: bin", "error: no such file: none"])
        self.assertEqual(got[3:], [".git/f:1:x", "link/.h:1:x\ufffd"])


class Bash(Case):
    def test_result(self):
        """tools.bash.result"""
        got = self.do(
            *(("bash", {"command": command}) for command in (
                "echo a; echo b >&2; printf c", "true", "exit 3", r"printf '\033[1m\377\r\n'", "echo $0; [ -t 1 ]"))
        )  # fmt: skip
        self.assertEqual(got[:4], ["a\nb\nc\n[exit 0]", "[exit 0]", "[exit 3]", "\x1b[1m\ufffd\r\n[exit 0]"])
        self.assertEqual(got[4], "/bin/sh\n[exit 1]")

    def test_fresh(self):
        """tools.bash.fresh"""
        got = self.do(
            ("bash", {"command": "mkdir d; cd d; x=1; umask 0; f() { :; }; touch made"}),
            ("bash", {"command": "pwd; echo \"[$x]\"; umask; type f >/dev/null 2>&1 || echo no f; ls d"}),
        )
        self.assertEqual(got[1].split("\n")[:2] + got[1].split("\n")[3:], [self.ws, "[]", "no f", "made", "[exit 0]"])

    def test_stdin(self):
        """tools.bash.stdin"""
        ran = self.interactive(
            "go", "next", args=("--permission-mode", "auto"),
            script=[calls(("bash", {"command": "cat"}), ("bash", {"command": "read x || echo none; : < /dev/tty"}))],
        )  # fmt: skip
        self.assertEqual(ran.results(1)[0], "[exit 0]")
        self.assertTrue(ran.results(1)[1].startswith("none\n"))
        self.assertNotIn("[exit 0]", ran.results(1)[1])
        self.assertEqual(ran.contents(-1, "user"), ["go", "next"])

    def test_timeout(self):
        """tools.bash.timeout"""
        self.settings(bash_timeout_s=1)
        started = time.monotonic()
        got = self.do(
            ("bash", {"command": "trap '' TERM; echo $$; sleep 60 & echo $!; while :; do sleep 1; done"}),
            ("bash", {"command": "sleep 1.2", "timeout_s": 3}),
            ("bash", {"command": "x", "timeout_s": 601}),
            ("bash", {"command": "x", "timeout_s": 0}),
        )
        self.assertLess(time.monotonic() - started, 4.5)
        shell, child, last = got[0].split("\n")
        self.assertEqual(last, "[timed out after 1 s]")
        self.assertFalse(alive(int(shell)) or alive(int(child)))
        self.assertEqual(got[1:3], ["[exit 0]", 'error: parameter "timeout_s" must be from 1 to 600: 601'])

    def test_long(self):
        """tools.bash.long"""
        got = self.do(
            ("bash", {"command": "head -c 30000 /dev/zero | tr '\\0' a"}),
            ("bash", {"command": "printf x; head -c 30005 /dev/zero | tr '\\0' a; printf y; exit 4"}),
        )
        self.assertEqual(got[0], "a" * 30000 + "\n[exit 0]")
        self.assertEqual(got[1], "x" + "a" * 14999 + "\n[7 characters left out]\n" + "a" * 14999 + "y\n[exit 4]")

    def test_holds_pipe(self):
        """tools.bash.holds-pipe"""
        started = time.monotonic()
        got = self.do(
            ("bash", {"command": "sleep 60 & echo $!"}), ("bash", {"command": "(sleep 0.3; touch late) & echo x"}),
            ("bash", {"command": "sleep 0.6; ls"}),
        )  # fmt: skip
        self.assertLess(time.monotonic() - started, 5)
        self.assertEqual(got[1:], ["x\n[exit 0]", "late\n[exit 0]"])
        self.assertTrue(eventually(lambda: not alive(int(got[0].split("\n")[0]))))

    def test_environment(self):
        """tools.bash.environment"""
        self.settings(env={"A": "set", "B": "set"})
        command = "echo $A $B $C [$HARNESS_API_KEY] $HARNESS_MODEL"
        script = [calls(("bash", {"command": command}), ("bash", {"command": command, "background": True}), ("bash", {"command": "sleep 0.2"}),
                        ("job", {"id": "j1", "action": "output"}))]  # fmt: skip
        ran = self.headless("go", "--permission-mode", "auto", script=script, env={"A": "inherited", "C": "inherited"})
        self.assertEqual([ran.results()[0], ran.results()[3]], ["set set inherited [] m-test\n[exit 0]"] * 2)
        self.settings(env={"HARNESS_API_KEY": "own"})
        self.assertEqual(self.do_one("bash", command="echo $HARNESS_API_KEY"), "own\n[exit 0]")

    def test_signal(self):
        """tools.bash.signal"""
        got = self.do(("bash", {"command": "kill -9 $$"}), ("bash", {"command": "kill -15 $$"}))
        self.assertEqual(got, ["[exit 137]", "[exit 143]"])


class JobTool(Case):
    def test_start(self):
        """tools.job.start"""
        started = time.monotonic()
        got = self.do(
            ("bash", {"command": "sleep 60", "background": True}),
            ("bash", {"command": "sleep 60", "background": True}),
            ("bash", {"command": "x", "background": True, "timeout_s": 5}),
            ("bash", {"command": "echo x", "background": False}),
        )
        self.assertLess(time.monotonic() - started, 5)
        self.assertEqual(got[:2], ["[job j1 started]", "[job j2 started]"])
        self.assertEqual(got[2:], ['error: parameter "timeout_s" cannot be combined with background', "x\n[exit 0]"])

    def test_output(self):
        """tools.job.output"""
        got = self.do(
            ("bash", {"command": "echo one; sleep 0.4; echo two; exit 5", "background": True}),
            ("bash", {"command": "sleep 0.2"}),
            ("job", {"id": "j1", "action": "output"}),
            ("bash", {"command": "sleep 0.5"}),
            ("job", {"id": "j1", "action": "output"}),
            ("job", {"id": "j1", "action": "output"}),
        )
        self.assertEqual([got[2], *got[4:]], ["one\n[running]"] + ["one\ntwo\n[exit 5]"] * 2)
        command = r"printf 'a\303'"
        got = self.do(("bash", {"command": command}), ("bash", {"command": command, "background": True}), ("bash", {"command": "sleep 0.3"}),
                      ("job", {"id": "j1", "action": "output"}), ("job", {"id": "j1", "action": "output"}))  # fmt: skip
        self.assertEqual([got[0], *got[3:]], ["a\ufffd\n[exit 0]"] * 3)

    def test_kill(self):
        """tools.job.kill"""
        got = self.do(
            ("bash", {"command": "echo a; exec sleep 60", "background": True}),
            ("bash", {"command": "trap '' TERM; sleep 60 & echo $!; while :; do sleep 1; done", "background": True}),
            ("bash", {"command": "sleep 60 > /dev/null 2>&1 & echo $! > child; exit 3", "background": True}),
            ("bash", {"command": "sleep 0.3"}),
            *(("job", {"id": job, "action": "kill"}) for job in ("j1", "j1", "j2", "j3")),
            ("job", {"id": "j1", "action": "output"}),
            ("bash", {"command": "kill -0 $(cat child) && echo lives"}),
        )
        self.assertEqual(got[4:6] + got[7:9], ["a\n[killed]", "a\n[killed]", "[exit 3]", "a\n[killed]"])
        self.assertEqual(got[9], "lives\n[exit 0]")
        child, last = got[6].split("\n")
        self.assertEqual((last, alive(int(child))), ("[killed]", False))

    def test_unknown(self):
        """tools.job.unknown"""
        got = self.do(
            ("job", {"id": "j1", "action": "output"}),
            ("bash", {"command": "true", "background": True}),
            ("bash", {"command": "true", "background": True}),
            ("job", {"id": "j9", "action": "kill"}),
        )
        self.assertEqual(got[0], 'error: unknown job "j1"; known jobs: none')
        self.assertEqual(got[3], 'error: unknown job "j9"; known jobs: j1, j2')
        ran = self.headless("go", "-c", script=[call("job", id="j1", action="output")])
        self.assertEqual(ran.results()[-1], 'error: unknown job "j1"; known jobs: none')

    def test_end(self):
        """tools.job.end"""
        command = "echo $$ > pid; exec sleep 60"
        started = time.monotonic()
        self.do(("bash", {"command": command, "background": True}), ("bash", {"command": "sleep 0.2"}))
        self.assertLess(time.monotonic() - started, 5)
        self.assertTrue(eventually(lambda: not alive(int(self.text("pid")))))
        ran, responses = self.api(
            {"op": "run", "prompt": "go", "approvals": "allow"},
            {"op": "run", "prompt": "more"},
            script=[call("bash", command="sleep 0.2; echo hi", background=True), say("x"),
                    call("job", id="j1", action="output")],
        )  # fmt: skip
        self.assertIn(responses[1]["result"]["tool_calls"][0]["result"], ("[running]", "hi\n[exit 0]"))


class Todo(Case):
    ITEMS = [{"text": "a", "status": "pending"}, {"text": "b", "status": "in_progress"}, {"text": "c", "status": "done"}]

    def test_replace(self):
        """tools.todo.replace"""
        got = self.do(("todo", {"items": self.ITEMS}), ("todo", {"items": []}), ("todo", {"items": self.ITEMS[:1]}))
        self.assertEqual(got, ["[ ] a\n[>] b\n[x] c", "[no todos]", "[ ] a"])
        self.assertEqual([one["items"] for one in self.records(kind="todo")], [self.ITEMS, [], self.ITEMS[:1]])
        self.assertEqual(self.answer("/todos", "-c"), "[ ] a")
        inner = [call("todo", items=[]), call("todo", items=self.ITEMS), say("sub")]
        ran = self.headless("go", "-c", "--permission-mode", "auto", script=[call("task", prompt="p"), *inner])
        self.assertEqual((ran.results(2), ran.results(3)), (["[no todos]"], ["[no todos]", "[ ] a\n[>] b\n[x] c"]))
        self.assertEqual((len(self.records(kind="todo")), self.answer("/todos", "-c")), (3, "[ ] a"))

    def test_invalid(self):
        """tools.todo.invalid"""
        good = self.ITEMS[:1]
        got = self.do(
            ("todo", {"items": good}),
            ("todo", {"items": [self.ITEMS[1], self.ITEMS[1]]}),
            ("todo", {"items": [{"text": "a"}]}),
            ("todo", {"items": [{"text": "a", "status": "done", "x": 1}]}),
            ("todo", {"items": [{"text": "a", "status": "odd"}]}),
            ("todo", {"items": ["a"]}),
        )
        self.assertEqual(
            got[1:],
            [
                "error: more than one item is in_progress",
                'error: missing parameter "items[0].status"',
                'error: unknown parameter "items[0].x"; known parameters: text, status',
                'error: parameter "items[0].status" must be one of pending, in_progress, done: "odd"',
                'error: parameter "items[0]" is not an object: "a"',
            ],
        )
        self.assertEqual([one["items"] for one in self.records(kind="todo")], [good])


class Task(Case):
    def task(self, *sub, args=(), mode="auto", agent=None, then=()):
        arguments = {"prompt": "do it", **({"agent": agent} if agent else {})}
        script = [call("task", **arguments), *sub, *then]
        return self.headless("main prompt", "--permission-mode", mode, *args, script=script)

    def test_fresh(self):
        """tools.task.fresh"""
        self.put("AGENTS.md", "house rules")
        self.put(".harness/memory.md", "- known\n")
        ran = self.task(call("write", path="a", content="x"), say("sub"))
        self.assertEqual(ran.messages(1), [{"role": "user", "content": "do it"}])
        self.assertEqual(ran.requests[1]["messages"][0], ran.requests[0]["messages"][0])
        self.assertIn("house rules", ran.system(1))
        self.assertIn("- known", ran.system(1))
        self.settings(hooks={"session_start": [{"command": "echo HOOK"}]})
        other = self.task(say("sub"), args=("--append-system-prompt", "APPENDED", "--no-save"))
        self.assertEqual(other.system(1), ran.system(1))
        self.assertEqual(self.answer("/undo", "-c"), "undone 1 files\nremoved a")

    def test_result(self):
        """tools.task.result"""
        self.put("inner.txt", "inner content")
        ran = self.task(call("read", path="inner.txt"), say(" \nfinal\nword\n"))
        self.assertEqual(ran.results(), ["final\nword"])
        self.assertNotIn("inner content", json.dumps(ran.requests[-1]))
        with open(self.session_path()) as file:
            self.assertNotIn("inner content", file.read())

    def test_tools(self):
        """tools.task.tools"""
        ran = self.task(
            calls(("task", {"prompt": "x"}), ("write", {"path": "a", "content": "x"}), ("bash", {"command": "x"})),
            say("sub"), mode="ask", args=("--allow", "task", "--deny", "bash", "--output-format", "json"),
        )  # fmt: skip
        self.assertEqual(ran.tools(1), [name for name in ran.tools(0) if name != "task"])
        known = ", ".join(ran.tools(1))
        self.assertEqual(
            ran.results(2),
            [
                f'error: unknown tool "task"; known tools: {known}',
                "error: denied: needs approval (mode ask)",
                "error: denied: rule bash",
            ],
        )
        self.assertEqual((ran.json["denials"], len(ran.json["tool_calls"])), (2, 1))
        self.put(".harness/agents/own.md", "---\ntools: task, read\n---\n")
        ran = self.task(calls(("write", {"path": "a", "content": "x"})), say("sub"), agent="build", args=("--agent", "own"))
        self.assertEqual((ran.tools(1), ran.results(2)), (["read"], ["error: denied: role own"]))

    def test_limit(self):
        """tools.task.limit"""
        ran = self.task(*(call("bash", command=f"touch {n}") for n in range(1, 21)), args=("--max-turns", "2"))
        self.assertEqual(ran.results(), ["error: sub-agent reached its turn limit of 20"])
        self.assertEqual((ran.code, len(ran.requests)), (0, 22))
        self.assertTrue(self.exists("20"))

    def test_failure(self):
        """tools.task.failure"""
        from support import OVERFLOW, status

        ran = self.task(status(401, "bad key"))
        self.assertEqual(ran.results(), ["error: sub-agent failed: HTTP 401: bad key"])
        self.assertEqual(self.task(say(""), say("")).results(), ["error: sub-agent failed: empty reply"])
        ran = self.task(OVERFLOW)
        self.assertIn("error: sub-agent failed: context length exceeded", ran.results()[0])
        self.assertEqual((ran.code, ran.out), (0, "DONE\n"))

    def test_agent(self):
        """tools.task.agent"""
        self.put(".harness/agents/own.md", "---\ntools: read, bash\nmodel: m-own\npermission_mode: plan\n---\nOwn text.")
        ran = self.task(say("sub"), agent="own")
        self.assertEqual((ran.tools(1), ran.requests[1]["model"]), (["read"], "m-own"))
        self.assertIn("Role: own\n\nOwn text.", ran.system(1))
        self.assertEqual((ran.requests[2]["model"], "Role: build" in ran.system(2)), ("m-test", True))
        ran = self.task(agent="nobody")
        self.assertEqual(
            ran.results(), ['error: unknown agent "nobody"; known agents: architect, build, explore, own']
        )
        self.assertEqual(len(ran.requests), 2)
        ran = self.task(say("sub"), args=("--agent", "own"), mode="auto")
        self.assertEqual(ran.results(), ["error: denied: role own"])


class AskRememberSkill(Case):
    def test_ask_interactive(self):
        """tools.ask.interactive"""
        script = [
            calls(*(("ask", {"question": f"what{n}?", "options": ["red", "blue"]}) for n in range(3)),
                  ("ask", {"question": "free?", "options": []}), ("ask", {"question": "none?"})),
        ]  # fmt: skip
        ran = self.interactive("go", "2", "/help", "3", " green ", "", script=script)
        self.assertEqual(ran.results(), ["blue", "/help", "3", "green", "[no answer]"])
        self.assertIn("what0?\n1. red\n2. blue\n", ran.out)

    def test_ask_headless(self):
        """tools.ask.headless"""
        script = [call("ask", question="what?"), call("write", path="a", content="")]
        ran = self.run_harness("-p", "go", "--output-format", "json", script=script, stdin="yes\n")
        self.assertEqual(ran.results()[0], "error: no one to ask")
        self.assertEqual([one["denied"] for one in ran.json["tool_calls"]], [False, True])
        result = self.api_run("go", script=script, approvals=["allow"])
        self.assertEqual([one["result"] for one in result["tool_calls"]], ["error: no one to ask", "wrote a (0 bytes)"])
        self.assertEqual(self.interactive("go", script=script).results()[0], "error: no one to ask")

    def test_remember_append(self):
        """tools.remember.append"""
        self.put(".harness/memory.md", "old")
        got = self.do(("remember", {"text": "new"}), ("remember", {"text": "mine", "scope": "user"}))
        self.assertEqual(got, ["remembered (project)", "remembered (user)"])
        self.assertEqual(self.text(".harness/memory.md"), "old\n- new\n")
        self.assertEqual(self.text("memory.md", self.home), "- mine\n")
        self.put(".harnessignore", ".harness")
        self.assertEqual(self.do_one("remember", text="more"), "remembered (project)")
        os.unlink(os.path.join(self.ws, ".harness/memory.md"))
        os.symlink("../../outside.md", os.path.join(self.ws, ".harness/memory.md"))
        self.assertEqual(self.do_one("remember", text="x"), "error: outside the workspace: .harness/memory.md")
        self.assertFalse(self.exists("outside.md", self.top))

    def test_remember_line(self):
        """tools.remember.line"""
        self.do(("remember", {"text": "  a\r\n\nb \n"}), ("remember", {"text": "- x"}), ("remember", {"text": "- x"}))
        self.assertEqual(self.text(".harness/memory.md"), "- a b\n- - x\n- - x\n")

    def test_remember_off(self):
        """tools.remember.off"""
        ran = self.headless("go", "--no-memory", "--permission-mode", "auto", script=[call("remember", text="x")])
        self.assertNotIn("remember", ran.tools())
        self.assertRegex(ran.results()[0], '^error: unknown tool "remember"; known tools: read, ')
        self.assertEqual(self.tree(), {})

    def test_skill_body(self):
        """tools.skill.body"""
        head = "---\nname: {0}\ndescription: d\n---\n"
        self.put(".harness/skills/one/SKILL.md", head.format("one") + "\n\n Run `x`.\n\nEnd.\n\n")
        self.put(".harness/skills/two/SKILL.md", head.format("two") + "\n")
        got = self.do(("skill", {"name": "one"}), ("skill", {"name": "two"}), ("skill", {"name": "one"}))
        self.assertEqual(got, [" Run `x`.\n\nEnd.", "[empty skill]", " Run `x`.\n\nEnd."])

    def test_skill_unknown(self):
        """tools.skill.unknown"""
        self.assertEqual(self.do_one("skill", name="x"), 'error: unknown skill "x"; known skills: none')
        for name in ("b", "a"):
            self.put(f".harness/skills/{name}/SKILL.md", f"---\nname: {name}\ndescription: d\n---\nx")
        got = self.do(("skill", {"name": "../b"}), ("skill", {"name": "a/SKILL.md"}), ("skill", {"name": "A"}))
        for name, result in zip(("../b", "a/SKILL.md", "A"), got):
            self.assertEqual(result, f'error: unknown skill "{name}"; known skills: a, b')
        text = "---\nname: new\ndescription: d\n---\nnew body"
        got = self.do(("write", {"path": ".harness/skills/new/SKILL.md", "content": text}), ("skill", {"name": "new"}))
        self.assertEqual(got[1], "new body")
