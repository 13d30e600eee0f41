"""Contract 2, the headless entry: `./harness -p PROMPT` ends here."""

from .errors import HarnessError, Interrupted, TimeLimit
from .output import HeadlessFront
from .types import Options, Result


def run_headless(prompt: str, options: Options) -> Result:
    """Answer one prompt without asking anybody; never raise, report in the result."""
    from .conversation import Conversation, internal

    front = options.front or HeadlessFront()
    conversation, result = None, Result()
    try:
        conversation = Conversation(options, front)
        conversation.prepare()
        front.format = options.flags.get("output-format") or conversation.settings["output_format"]
        conversation.choose_session()
        front.event(init_event(conversation))
        front.event({"type": "user", "text": prompt})
        result = conversation.run(prompt)
    except HarnessError as error:
        result.exit_code, result.error = error.exit_code, str(error)
    except (TimeLimit, Interrupted) as error:
        result = conversation.outcome if conversation else result
        result.exit_code, result.error = error.exit_code, str(error)
    except Exception as error:
        result.exit_code, result.error = 1, internal(error)
    return result


def init_event(conversation) -> dict:
    return {
        "type": "init",
        "session_id": conversation.session.id,
        "cwd": conversation.workspace,
        "model": conversation.model_name() or None,
        "permission_mode": conversation.effective_mode(),
        "tools": conversation.offered_tools(),
    }
