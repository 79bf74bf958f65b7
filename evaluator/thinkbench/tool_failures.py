"""Why responses with tools are wrong (paper 000, appendix T): its three kinds, and two more.

Rules on what the model wrote: its calls, and what the tools answered. A response may show several
kinds; the first of the list is taken.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, Literal, get_args

from evaluator.thinkbench.grading import Graded
from stp.asking import Response

ToolFailure = Literal["no call", "syntax error", "wrong tool", "incorrect logic", "other"]
TOOL_FAILURES: Final[tuple[ToolFailure, ...]] = get_args(ToolFailure)
"""``no call``: tools were there and none was called. ``syntax error``: the last call was not an
expression or program (``45 * 67 *``). ``wrong tool``: it asked a tool for something that the tool
cannot do, or for a tool that does not exist. ``incorrect logic``: the last call worked, and the
answer is wrong. ``other``: the rest, such as a program that ran out of time."""

_SYNTAX: Final = re.compile(
    r"not? (?:an )?arithmetic expression|SyntaxError|IndentationError|invalid syntax|unterminated"
)
_WRONG_TOOL: Final = re.compile(
    r"Error: no tool |Error: no function |only numbers can be calculated with|"
    r"only numbers, \+|Error: this operator is not known"
)
_ERROR: Final = re.compile(r"^Error:|Traceback|\bError: ", re.MULTILINE)
_RESULT: Final = re.compile(r"(?:Observation:|^(?:calculator|python): )", re.MULTILINE)


def tool_failure(row: Graded, response: Response) -> ToolFailure | None:
    """Return why a response of a run with tools is wrong; None for a right one.

    Examples
    --------
    >>> TOOL_FAILURES[:2]
    ('no call', 'syntax error')
    """
    if row.right:
        return None
    if not response.tool_calls:
        return "no call"
    written = response.tool_text or ""
    # Only the last call counts: an error that was corrected is not a failure.
    last = _RESULT.split(written)[-1] if _RESULT.search(written) else written
    if _WRONG_TOOL.search(last):
        return "wrong tool"
    if _SYNTAX.search(last):
        return "syntax error"
    return "other" if _ERROR.search(last) else "incorrect logic"


def tool_failures(
    rows: Iterable[Graded], responses: Mapping[str, Response]
) -> Counter[ToolFailure]:
    """Return how often each kind is why a response is wrong."""
    return Counter(
        kind
        for row in rows
        if row.id in responses and (kind := tool_failure(row, responses[row.id])) is not None
    )
