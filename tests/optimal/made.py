"""Graded rows made from a seed, for scores and analyses."""

import numpy as np
import pandas as pd

SUBSETS = (("ovt-math", "ovt"), ("ovt-general", "ovt"), ("ut-reasoning", "ut"), ("ut-math", "ut"))


def graded(
    seed=0,
    *,
    models=("a", "b"),
    methods=("thinking", "no-thinking"),
    subsets=SUBSETS,
    questions=6,
    seeds=4,
    ragged=False,
):
    """Rows as a graded run has them."""
    generator = np.random.default_rng(seed)
    records = []
    for m, model in enumerate(models):
        for method in methods:
            for subset, side in subsets:
                for q in range(questions):
                    count = int(generator.integers(1, seeds + 1)) if ragged else seeds
                    thinks = method == "thinking"
                    for sample in range(count):
                        records.append(
                            {
                                "model": model,
                                "method": method,
                                "subset": subset,
                                "side": side,
                                "benchmark": f"{subset}-b",
                                "question": f"{subset}/{q}",
                                "sample": sample,
                                "right": bool(generator.random() < 0.4 + 0.2 * thinks),
                                "thinking_tokens": int(generator.integers(1, 1600)) * thinks,
                                "output_tokens": int(generator.integers(10, 3000)),
                                "credit": generator.random() if subset == "ut-reasoning" else None,
                                "answer": "x",
                                "reason": "",
                                "by_judge": False,
                                "finish": "stop",
                                "domain": f"d{q % 4}" if subset == "ovt-general" else "",
                                "discipline": f"D{q % 4}" if subset == "ovt-general" else "",
                                "answer_type": ("numeric", "choice")[q % 2]
                                if subset == "ovt-general"
                                else "",
                                "options": 4 + 2 * (q % 3)
                                if subset == "ovt-general" and q % 2
                                else 0,
                                "size": float(1 + 7 * m),
                            }
                        )
    return typed(pd.DataFrame(records))


def typed(frame):
    return frame.astype(
        {
            "right": "boolean",
            "thinking_tokens": "Int64",
            "output_tokens": "Int64",
            "credit": "Float64",
            "size": "Float64",
            "answer": "string",
        }
    )
