"""The head of role, skill and command files: lines `KEY: VALUE` between two lines `---`."""


class Broken(Exception):
    """The front matter cannot be understood."""


def split(text: str):
    """Return the fields of the front matter and the body; raise Broken when it is faulty."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[0].rstrip() != "---":
        return {}, text
    fields = {}
    for index, line in enumerate(lines[1:], 1):
        stripped = line.strip()
        if line.rstrip() == "---":
            return fields, "\n".join(lines[index + 1 :])
        if not stripped or stripped.startswith("#"):
            continue
        key, colon, value = stripped.partition(":")
        if not colon:
            raise Broken(f"line {index + 1} has no `:`")
        fields[key.strip()] = unquoted(value.strip())
    raise Broken("the front matter has no end")


def unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def as_list(value: str) -> list[str]:
    """The entries of `a, b` or `[a, b]`."""
    value = value.strip()
    if value.startswith("[") and value.endswith("]"):
        value = value[1:-1]
    return [unquoted(entry.strip()) for entry in value.split(",") if entry.strip()]


def body_text(body: str) -> str:
    """The body without blank lines at both ends."""
    lines = body.split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return "\n".join(lines)
