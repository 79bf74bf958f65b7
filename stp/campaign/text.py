"""Ids to text with the tokenizer that a campaign keeps, so that no model is needed."""

from collections.abc import Sequence

from tokenizers import Tokenizer

from data.errors import StoreError
from stp.campaign.models import stored_tokenizer
from stp.campaign.store import Store
from stp.formats import ModelFamily


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
        If its files are missing, or are not those that the campaign began with.
    """

    def __init__(self, store: Store, model: str) -> None:
        self.model = model
        record = store.read_manifest().model_record(model)
        self._family = ModelFamily.model_validate(record.family)
        content = stored_tokenizer(store, record)
        try:
            self.fast = Tokenizer.from_buffer(content)
        # tokenizers raises bare Exception for a file that it cannot read.
        except Exception as error:
            raise StoreError(f"{store.url}: the tokenizer of {model}: {error}") from error

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens."""
        return str(self.fast.decode(list(ids), skip_special_tokens=True))

    def answer_text(self, ids: Sequence[int]) -> str:
        """Return an answer's text, without special tokens and the tags that its family names."""
        return self._family.answer_text(self.decode(ids))

    def show(self, ids: Sequence[int]) -> str:
        """Return the text of ids as the model sees it, special tokens written out."""
        return str(self.fast.decode(list(ids), skip_special_tokens=False))
