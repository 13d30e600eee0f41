"""JSON as it stands in texts for people and for the model: one line, no spaces, letters as they are."""

import json


def as_json(value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def from_json(text):
    """Decode JSON text; raise ValueError for all that is none, `NaN` included."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _no_constant(name):
    raise ValueError(f"{name} is no JSON value")
