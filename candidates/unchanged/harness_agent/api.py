"""Contract 3, the evaluation API: `./harness api` calls `serve`."""


def evaluate(request: dict) -> dict:
    """Answer one request; an error is a response with `ok: false`, not an exception."""
    raise NotImplementedError


def serve(stdin, stdout) -> int:
    """Read one JSON request a line, write one JSON response a line, until end of input."""
    raise NotImplementedError
