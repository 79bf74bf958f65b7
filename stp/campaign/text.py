"""Ids to text with the tokenizer that a campaign keeps, so that no model is needed."""

from collections.abc import Sequence

from tokenizers import Tokenizer

from data.errors import StoreError
from stp.campaign.models import tokenizer_folder
from stp.campaign.store import Store


class StoredTokenizer:
    """A model's tokenizer as the campaign has it.

    Parameters
    ----------
    store
        The campaign.
    model
        The model's name in it.

    Attributes
    ----------
    model
        The model's name.
    fast
        The tokenizer itself, a ``tokenizers.Tokenizer``.

    Raises
    ------
    data.errors.StoreError
        If its file is missing or damaged.
    """

    def __init__(self, store: Store, model: str) -> None:
        self.model = model
        name = f"{tokenizer_folder(model)}/tokenizer.json"
        content = store.read_bytes(name)
        try:
            self.fast = Tokenizer.from_buffer(content)
        # tokenizers raises bare Exception for a file that it cannot read.
        except Exception as error:
            raise StoreError(f"{store.url}/{name}: not a whole tokenizer: {error}") from error

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens."""
        return str(self.fast.decode(list(ids), skip_special_tokens=True))

    def show(self, ids: Sequence[int]) -> str:
        """Return the text of ids as the model sees it, special tokens written out."""
        return str(self.fast.decode(list(ids), skip_special_tokens=False))
