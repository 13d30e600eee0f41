"""task: a sub-agent with a conversation of its own."""

from ..errors import ModelError, ToolError, TurnLimit

ROUNDS = 20


def task(context, prompt, agent=None):
    roles = context.find_roles()
    if agent is not None and agent not in roles:
        names = ", ".join(sorted(roles, key=str.encode))
        raise ToolError(f'unknown agent "{agent}"; known agents: {names}')
    try:
        return context.sub_agent(roles[agent] if agent is not None else None, prompt, ROUNDS).strip()
    except TurnLimit:
        raise ToolError(f"sub-agent reached its turn limit of {ROUNDS}") from None
    except ModelError as error:
        raise ToolError(f"sub-agent failed: {str(error).removeprefix('model: ')}") from None
