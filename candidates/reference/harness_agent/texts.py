"""JSON as it stands in texts for people and for the model: one line, no spaces, letters as they are."""

import json


def as_json(value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def utf8(text: str) -> str:
    """The text with `?` for each half of a character that UTF-8 cannot hold; other bytes of paths stay."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def arguments_text(arguments) -> str:
    """The arguments of a call as text, whatever the model sent in their place."""
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else as_json(arguments)


def from_json(text):
    """Decode JSON text; raise ValueError for all that is none, `NaN` included."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _no_constant(name):
    raise ValueError(f"{name} is no JSON value")
