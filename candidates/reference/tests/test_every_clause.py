"""Every clause of the development document has a check here that carries its id."""

import os
import re
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
DOCUMENT = os.path.join(HERE, "../../../data/document")


def clauses():
    found = []
    for name in sorted(name for name in os.listdir(DOCUMENT) if name.endswith(".md")):
        with open(os.path.join(DOCUMENT, name), encoding="utf-8") as file:
            found += re.findall(r"^### ([a-z0-9.-]+) · ", file.read(), re.MULTILINE)
    return found


def checks():
    found = []
    for name in sorted(os.listdir(HERE)):
        if re.fullmatch(r"test_\d\d_.*\.py", name):
            with open(os.path.join(HERE, name), encoding="utf-8") as file:
                found += re.findall(r'^        """([a-z-]+\.[a-z0-9-]+\.[a-z0-9-]+)"""$', file.read(), re.MULTILINE)
    return found


class EveryClause(unittest.TestCase):
    @unittest.skipUnless(os.path.isdir(DOCUMENT), "the development document is not beside this candidate")
    def test_has_one_check(self):
        self.assertEqual(sorted(clauses()), sorted(checks()))


if __name__ == "__main__":
    unittest.main()
