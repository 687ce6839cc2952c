"""Approvals of an agent's tools in OpenAI's format: the client answers an `mcp_approval_request`. Which answer counts:
`engine.transactions.approvals`."""

from holdfast.core.errors import AlreadyDecidedError, NotFoundError
from holdfast.core.ids import ApprovalId, RunId
from holdfast.core.run import Run
from holdfast.server.context import ApiContext
from holdfast.server.openai import ids
from holdfast.server.openai import schemas as s
from holdfast.server.openai.errors import ParameterError
from holdfast.server.openai.submit import conversation_session


def find_responses(body: s.ResponseRequest) -> list[tuple[int, s.McpApprovalResponseItem]]:
    """The answers in the input, with their indexes; empty unless the input has nothing else to answer."""
    items = [] if isinstance(body.input, str) else list(enumerate(body.input))
    if not items or not isinstance(items[-1][1], s.McpApprovalResponseItem):
        return []
    return [(n, item) for n, item in items if isinstance(item, s.McpApprovalResponseItem)]


async def decide(
    api: ApiContext, body: s.ResponseRequest, answers: list[tuple[int, s.McpApprovalResponseItem]]
) -> tuple[Run, ApprovalId]:
    """Decide for the run that waits. Returns it and the approval that was answered last; a repeat changes nothing."""
    run_id = await _waiting_run(api, body)
    for n, item in answers:
        try:
            aid = ids.approval_id(item.approval_request_id)
            await api.engine.runs.decide(run_id, aid, "once" if item.approve else "deny")
        except NotFoundError:
            param = f"input[{n}].approval_request_id"
            message = f"The response has no approval request '{item.approval_request_id[:100]}'."
            raise ParameterError(param, message, "approval_request_not_found") from None
        except AlreadyDecidedError as error:
            if (error.decision == "deny") is item.approve:
                raise
    return await api.engine.runs.get(run_id), ids.approval_id(answers[-1][1].approval_request_id)


async def _waiting_run(api: ApiContext, body: s.ResponseRequest) -> RunId:
    if body.previous_response_id is not None:
        return ids.run_id(body.previous_response_id)
    if body.conversation is not None:
        named = body.conversation if isinstance(body.conversation, str) else body.conversation.id
        active = (await api.engine.sessions.get((await conversation_session(api, named)).id)).active_run
        if active is not None:
            return active.id
    message = "Send the 'previous_response_id' of the response that asks for approval."
    raise ParameterError("previous_response_id", message, "missing_required_parameter")
