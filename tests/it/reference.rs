//! The reference candidate: its form, its own tests, and a small piece of real work done with it.

use std::process::Command;

use crate::project::{Project, ran, repository};

/// A program with a failing test, and a model that works on it in the order in which one would.
///
/// @NAME@ names a way of driving, @ROUTE@ is what it adds to the launch; the rest is the same for all of them.
const WORK: &str = r##"title    = "a model looks around, runs a failing test, mends the code and sees the test pass (@NAME@)"
purpose  = "All parts together: searching, reading, running, editing after a mistake, and the answer."
clause   = "exit-codes.success.answer"
category = "headless"
scenario = "ordinary"
origin   = { method = "document" }

[fixture]
"README.md" = "# Basket\n\nThe price of a basket. Test: `python3 -m unittest`\n"
"basket.py" = '''
"""The price of a basket of goods."""


def subtotal(items):
    return sum(price for _, price in items)


def total(items, discount=0):
    """The subtotal less `discount` percent."""
    return sum(price for _, price in items) - discount


if __name__ == "__main__":
    print(total([("tea", 400)], 10))
'''
"test_basket.py" = '''
import unittest

from basket import subtotal, total


class Totals(unittest.TestCase):
    goods = [("tea", 400), ("milk", 100)]

    def test_subtotal(self):
        self.assertEqual(subtotal(self.goods), 500)

    def test_discount(self):
        self.assertEqual(total(self.goods, 10), 450)
'''

[[launch]]
route        = "headless"
prompt       = "The test of @basket.py fails. Mend the code, not the test."
time_limit_s = 60
script = [
  { call = "list", id = "look" },
  { calls = [{ call = "grep", with = { pattern = "def total", include = "*.py" }, id = "find" }, { call = "read", with = { path = "test_basket.py" }, id = "test" }] },
  { call = "read", with = { path = "basket.py", offset = 9 }, id = "code" },
  { call = "bash", with = { command = "python3 -m unittest 2>&1" }, id = "red" },
  { call = "edit", with = { path = "basket.py", old = "    return sum(price for _, price in items)", new = "    return subtotal(items) * (100 - discount) // 100" }, id = "twice" },
  { call = "edit", with = { path = "basket.py", old = "    return sum(price for _, price in items) - discount", new = "    return subtotal(items) * (100 - discount) // 100" }, id = "once" },
  { call = "bash", with = { command = "python3 -m unittest 2>&1" }, id = "green" },
  { call = "todo", with = { items = [{ text = "mend total()", status = "done" }] }, id = "done" },
  { say = "total() took the discount as an amount; it is a percentage now. {nonce:answer}" },
]
@ROUTE@

[[expect]]
channel = "exit"
equals  = 0

[[expect]]
channel = "files"
path    = "basket.py"
equals  = '''
"""The price of a basket of goods."""


def subtotal(items):
    return sum(price for _, price in items)


def total(items, discount=0):
    """The subtotal less `discount` percent."""
    return subtotal(items) * (100 - discount) // 100


if __name__ == "__main__":
    print(total([("tea", 400)], 10))
'''

[[expect]]
channel = "files"
path    = "test_basket.py"
has     = "self.assertEqual(total(self.goods, 10), 450)"

[[expect]]
channel = "requests"
count   = 9

[[expect]]
channel = "requests"
request = "first"
at      = "$.messages[-1].content"
matches = '(?s)^The test of @basket\.py fails\. Mend the code, not the test\.\n\n<file path="basket\.py">\n.*</file>$'

[[expect]]
channel = "requests"
request = "last"
at      = "$.messages[?@.tool_call_id == 'look'].content"
equals  = "README.md\nbasket.py\ntest_basket.py"

[[expect]]
channel = "requests"
request = "last"
at      = "$.messages[?@.tool_call_id == 'find'].content"
equals  = "basket.py:8:def total(items, discount=0):"

[[expect]]
channel = "requests"
request = "last"
at      = "$.messages[?@.tool_call_id == 'test'].content"
has     = "13\t        self.assertEqual(total(self.goods, 10), 450)"

[[expect]]
channel = "requests"
request = "last"
at      = "$.messages[?@.tool_call_id == 'code'].content"
matches = '^9\t    """The subtotal less'

[[expect]]
channel = "requests"
request = "last"
at      = "$.messages[?@.tool_call_id == 'red'].content"
matches = '(?s)FAIL: test_discount.*AssertionError: 490 != 450.*\n\[exit 1\]$'

[[expect]]
channel = "requests"
request = "last"
at      = "$.messages[?@.tool_call_id == 'twice'].content"
matches = '^error: .*2'

[[expect]]
channel = "requests"
request = "last"
at      = "$.messages[?@.tool_call_id == 'once'].content"
equals  = "edited basket.py (replacements: 1)"

[[expect]]
channel = "requests"
request = "last"
at      = "$.messages[?@.tool_call_id == 'green'].content"
matches = '(?s)Ran 2 tests.*\nOK\n\[exit 0\]$'

[[expect]]
channel = "requests"
request = "last"
at      = "$.messages[?@.tool_call_id == 'done'].content"
equals  = "[x] mend total()"
"##;

/// The ways of driving: name, what it adds to the launch, what it wants of the output.
const ROUTES: [(&str, &str, &str); 2] = [
    (
        "whole",
        r#"args = ["--permission-mode", "auto"]"#,
        r#"
[[expect]]
channel = "output"
equals  = "total() took the discount as an amount; it is a percentage now. {nonce:answer}\n"

[[expect]]
channel = "requests"
at      = "$[?@ == false]"
count   = 9
"#,
    ),
    (
        "streamed",
        r#"args = ["--stream", "--output-format", "stream-json", "--permission-mode", "ask", "--allow", "edit(*.py)", "--allow", "bash(python3 -m unittest*)"]"#,
        r#"
[[expect]]
channel = "requests"
at      = "$[?@ == true]"
count   = 9

[[expect]]
channel = "output"
lines   = true
at      = "$[?@.type == 'tool_result' && @.denied == false]"
count   = 9

[[expect]]
channel = "output"
lines   = true
at      = "$[-1].text"
equals  = "total() took the discount as an amount; it is a percentage now. {nonce:answer}"
"#,
    ),
];

/// A project with the skeleton and the reference, and nothing else of the suite.
fn project() -> Project {
    let project = Project::new();
    for part in ["skeleton", "candidates/reference"] {
        project.take(part);
    }
    project
}

#[test]
fn the_reference_keeps_the_form() {
    let project = project();
    let checked = project.json(&["check", "reference"]);
    let report = &checked["candidates"][0];
    assert_eq!(report["passed"], true, "{report}");
}

#[test]
fn each_clause_has_one_test_of_the_reference_and_each_test_a_clause() {
    let tests = repository().join("candidates/reference/tests");
    let ran = ran(Command::new("python3")
        .args(["-B", "-m", "unittest", "-v", "test_every_clause"])
        .current_dir(tests));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("skipped"), "{}", ran.stderr);
}

#[test]
fn the_reference_mends_a_program_with_a_failing_test() {
    let project = project();
    for (name, launch, expects) in ROUTES {
        let case = WORK.replace("@NAME@", name).replace("@ROUTE@", launch) + expects;
        project.write(&format!("cases/headless/{name}.toml"), &case);
    }
    let ran = project.run(&["--json", "evaluate", "-c", "reference"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = ran.json();
    let verdicts = ran["verdicts"].as_array().expect("verdicts");
    assert_eq!(verdicts.len(), ROUTES.len());
    for verdict in verdicts {
        assert_eq!(verdict["outcome"]["status"], "passed", "{verdict}");
    }
}
