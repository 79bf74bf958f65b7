"""Ends that a sample's text has: stop texts, and the end of its first box."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer

from data.errors import MisuseError
from evaluator.answers.boxes import first_box_end

# Tokens decoded besides those that a stop text can span: decoders treat the first of a text
# specially (a leading space), and a window must not begin with a stop text's own token.
_MARGIN_TOKENS: Final = 4


class StopTextWatcher:
    """Looks for stop texts at the end of growing token sequences.

    Parameters
    ----------
    model_path
        Folder with a ``tokenizer.json``.

    Raises
    ------
    data.errors.MisuseError
        If there is none.
    """

    def __init__(self, model_path: Path) -> None:
        path = model_path / "tokenizer.json"
        if not path.is_file():
            raise MisuseError(f"stop texts need a tokenizer, but {path} does not exist")
        self._tokenizer = Tokenizer.from_file(str(path))

    def met(self, token_ids: Sequence[int], stop_texts: Sequence[str]) -> bool:
        """Return whether the newest token completes a stop text.

        Only the last tokens are decoded: a stop text of n bytes spans at most n of them, since
        every token that a stop text needs brings at least one byte.
        """
        if not stop_texts:
            return False
        span = max(len(text.encode()) for text in stop_texts) + _MARGIN_TOKENS
        tail = self._tokenizer.decode(list(token_ids[-span:]), skip_special_tokens=False)
        return any(text in tail for text in stop_texts)

    def until_box(self, token_ids: Sequence[int], before: str) -> tuple[int, ...] | None:
        """Return the tokens up to the one that closes the first box; None if none is closed.

        ``before`` is the text that they continue from.
        """
        for count, token in enumerate(token_ids, start=1):
            if self._closes(token) and self._boxed(token_ids[:count], before):
                return tuple(token_ids[:count])
        return None

    def closes_box(self, token_ids: Sequence[int], before: str) -> bool:
        """Return whether the newest token closes the first box."""
        return self._closes(token_ids[-1]) and self._boxed(token_ids, before)

    def _closes(self, token: int) -> bool:
        # All of a long answer is decoded at its braces only.
        return "}" in self._tokenizer.decode([token], skip_special_tokens=False)

    def _boxed(self, token_ids: Sequence[int], before: str) -> bool:
        text = self._tokenizer.decode(list(token_ids), skip_special_tokens=False)
        return first_box_end(before + text) >= 0
