"""Stop texts: whether a sample's text contains one of them yet."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer

from data.errors import MisuseError

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
