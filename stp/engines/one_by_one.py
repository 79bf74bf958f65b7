"""An engine that gets its trees one after the other."""

from collections.abc import Callable, Sequence

from data.errors import EngineError
from stp.engines.base import Engine, PromptTree, RequestError, TreeCompletions, Usage
from stp.engines.signals import SignalTree, TreeSignals


class OneByOne(Engine):
    """Hands trees singly to another engine, so that it is known which of them fails.

    Parameters
    ----------
    engine
        Runs them. Whoever opened it closes it.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def usage(self) -> Usage:  # type: ignore[override]
        """Tokens that the engine has worked on."""
        return self._engine.usage

    @property
    def context_limit(self) -> int:
        """Most token ids, prompt and generation together, that a sample may have."""
        return self._engine.context_limit

    def generate(
        self,
        trees: Sequence[PromptTree],
        *,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[TreeCompletions]:
        """Sample every branch of every tree; see :meth:`stp.engines.base.Engine.generate`."""
        made: list[TreeCompletions] = []
        for index, tree in enumerate(trees):
            try:
                made += self._engine.generate([tree], on_progress=on_progress)
            except RequestError as error:
                raise RequestError(str(error), tree=index, branch=error.branch) from error
            except (EngineError, RuntimeError, OSError) as error:
                raise RequestError(str(error), tree=index) from error
        return made

    @property
    def layers(self) -> int:
        """Number of the last layer whose hidden states can be had."""
        return self._engine.layers

    def signals(
        self,
        trees: Sequence[SignalTree],
        *,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[TreeSignals]:
        """Read trees; see :meth:`stp.engines.base.Engine.signals`."""
        return self._engine.signals(trees, on_progress=on_progress)

    def describe(self) -> dict[str, str | int | float | None]:
        """Return what a manifest should know."""
        return self._engine.describe()
