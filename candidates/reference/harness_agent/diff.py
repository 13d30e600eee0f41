"""Unified diffs of whole files."""

import difflib


def unified(path: str, before, after) -> str:
    """The diff of one file; `before` and `after` are bytes, None for a missing file. Equal: empty."""
    if before == after:
        return ""
    old, new = lines(before), lines(after)
    out = ["--- /dev/null\n" if before is None else f"--- a/{path}\n"]
    out.append("+++ /dev/null\n" if after is None else f"+++ b/{path}\n")
    for line in list(difflib.unified_diff(old, new))[2:]:
        out.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return "".join(out)


def lines(data) -> list[str]:
    texts = (data or b"").decode("utf-8", "replace").split("\n")
    return [text + "\n" for text in texts[:-1]] + ([texts[-1]] if texts[-1] else [])
