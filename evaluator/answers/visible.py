"""The part of a response that is meant as its answer: the text after the thinking.

Sees text only. Where a model's tokens are at hand, thinking and answer are separated by token ids
(``stp.formats``) and nothing is left to do here; this is for responses that come as text.
"""

import re

_MARKERS = (("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]"))
_CHANNEL = "<|channel|>"
_FINAL_CHANNEL = re.compile(
    r"<\|channel\|>\s?final\s?(?:<\|[a-z]{1,12}\|>[^<\n]{0,40})?<\|message\|>"
)
_STRIPPED_FINAL = "assistantfinal"
_END_OF_MESSAGE = re.compile(
    r"<\|(?:return|end|im_end|im_start|eot_id|endoftext|end_of_text|call|start|user|start_header_id)\|>"
    r"|</s>|<end_of_turn>"
)
_OWN_START = re.compile(r"\s{0,4}<\|im_start\|>\s{0,2}assistant\s{0,2}")


def visible_text(response: str) -> str | None:
    """Drop the thinking from a response.

    Everything up to the last end marker is thinking, whether or not a start marker is there (the
    prompt may have held it). After that, an open start marker without an end means that the model
    was still thinking when it stopped.

    Parameters
    ----------
    response
        The text of a model's whole output.

    Returns
    -------
    str or None
        The text after the thinking; None if all of the output is thinking.

    Examples
    --------
    >>> visible_text("<think>4 + 4 = 9?</think>It is 8.")
    'It is 8.'
    >>> visible_text("<think>4 + 4 = 8, let me double") is None
    True
    """
    if "<" not in response and "[" not in response and not response.startswith("analysis"):
        return response
    if _CHANNEL in response:
        final = None
        for final in _FINAL_CHANNEL.finditer(response):  # noqa: B007 (the last match is wanted)
            pass
        if final is None:
            return None
        response = response[final.end() :]
    elif response.startswith("analysis"):
        # GPT-OSS decoded without its special tokens: channel names run into the text.
        cut = response.rfind(_STRIPPED_FINAL)
        if cut >= 0:
            response = response[cut + len(_STRIPPED_FINAL) :]
    if "<" not in response and "THINK]" not in response:
        return response
    for start, end in _MARKERS:
        cut = response.rfind(end)
        if cut >= 0:
            response = response[cut + len(end) :]
        if start in response:
            return None
    own_start = _OWN_START.match(response)
    if own_start is not None:
        response = response[own_start.end() :]
    end_of_message = _END_OF_MESSAGE.search(response)
    return response[: end_of_message.start()] if end_of_message else response
