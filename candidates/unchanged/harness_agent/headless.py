"""Contract 2, the headless entry: `./harness -p PROMPT` ends here."""

from .types import Options, Result


def run_headless(prompt: str, options: Options) -> Result:
    """Answer one prompt without asking anybody; never raise, report in the result."""
    raise NotImplementedError
