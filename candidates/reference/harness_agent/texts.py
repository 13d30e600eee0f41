"""JSON as it stands in texts for people and for the model: one line, no spaces, letters as they are."""

import json


def as_json(value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
