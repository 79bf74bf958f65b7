"""Table 6 of paper 004: 33 models, as printed (percent, tokens)."""

from typing import NamedTuple


class Row(NamedTuple):
    model: str
    mode: str
    f1: float
    ovt_accuracy: float
    ovt_tokens: int
    auc: float
    ut_accuracy: float
    ut_tokens: int


_TEXT = """
Mistral-Small-3.2-24B-2506 plain 16.6 94.3 0 94.3 9.1 4307
Llama-3.1-8B plain 6.6 85.1 0 85.1 3.5 3811
Llama-3.3-70B plain 16.1 92.8 0 92.8 8.8 1812
Llama-4-Scout plain 19.1 95.0 0 95.0 10.6 904
Llama-4-Maverick plain 27.9 95.7 0 95.7 16.3 993
Qwen2.5-7B plain 9.6 93.6 0 93.6 5.1 1370
Qwen2.5-Math-7B plain 8.4 80.7 0 80.7 4.4 1273
Qwen2.5-72B plain 19.0 96.3 0 96.3 10.5 1174
Qwen2.5-Math-72B plain 15.1 91.8 0 91.8 8.2 1010
Qwen3-1.7B plain 12.9 89.0 0 88.8 6.9 1943
Qwen3-8B plain 24.5 95.9 0 95.8 14.0 2223
Qwen3-14B plain 24.5 96.7 0 96.6 14.0 1585
Qwen3-32B plain 25.8 96.3 0 96.2 14.9 1423
Qwen3-235B-A22B plain 31.7 96.9 0 96.7 18.9 1501
Sonnet-4 plain 48.3 97.4 0 97.4 32.1 2229
GPT-4o plain 17.8 95.3 0 95.3 9.8 694
GPT-4.1 plain 35.4 97.1 0 97.1 21.7 1846
Magistral-Small-2506 thinking 11.2 95.7 3303 6.4 42.9 16788
R1-Distill-1.5B thinking 13.3 80.5 1466 15.2 11.8 13025
DeepScaleR-1.5B-Preview thinking 18.8 82.7 1022 23.3 15.8 8617
R1-Distill-7B thinking 24.5 91.5 1172 25.4 23.6 11763
R1-Distill-Llama-8B thinking 20.7 93.2 1307 21.7 19.8 11113
Qwen3-1.7B thinking 24.2 93.8 1519 20.6 29.2 13072
Qwen3-8B thinking 24.3 98.1 1588 16.3 47.7 13858
R1-0528-Qwen3-8B thinking 28.8 96.6 1926 24.2 35.7 15610
Qwen3-14B thinking 30.3 98.3 1373 21.3 52.4 12691
Qwen3-32B thinking 25.4 97.9 1415 16.9 51.0 12652
Qwen3-235B-A22B thinking 23.2 98.3 1632 14.6 55.5 12057
Hunyuan-A13B thinking 47.1 96.7 615 52.2 42.9 12103
GPT-OSS-20B thinking 57.3 97.1 467 72.7 47.3 8937
GPT-OSS-120B thinking 68.3 97.1 154 83.3 57.9 4968
Sonnet-4 thinking 64.2 99.3 706 71.3 58.3 14035
O3 thinking 71.1 97.5 235 78.6 65.0 6273
"""


def _row(line: str) -> Row:
    model, mode, f1, accuracy, tokens, auc, ut_accuracy, ut_tokens = line.split()
    return Row(
        model,
        mode,
        float(f1),
        float(accuracy),
        int(tokens),
        float(auc),
        float(ut_accuracy),
        int(ut_tokens),
    )


ROWS = tuple(_row(line) for line in _TEXT.strip().splitlines())
