"""Made-up question files in the forms that the public ones have."""

import base64
import csv
import json
import pickle
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def write_jsonl(path: Path, rows: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def write_parquet(path: Path, rows: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def write_csv(path: Path, rows: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def gpqa_rows(count: int = 198) -> list[dict]:
    return [
        {
            "Pre-Revision Question": "x" * 200_000 if number == 0 else "",
            "Question": f'Which of these, "really",\nis number {number}?\n',
            "Correct Answer": f"right {number}\n",
            "Incorrect Answer 1": "None",
            "Incorrect Answer 2": f" wrong, b {number}",
            "Incorrect Answer 3": "NA",
            "Record ID": f"rec{number:05d}",
        }
        for number in range(count)
    ]


def pack(tests: list[dict]) -> str:
    """Pack tests as LiveCodeBench packs its private ones."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode("ascii")


def livecodebench_rows(count: int = 175) -> list[dict]:
    rows = []
    for number in range(count):
        functional = number % 2 == 1
        kind = "functional" if functional else "stdin"
        public = [{"input": f"{number}\n", "output": f"{2 * number}\n", "testtype": kind}]
        private = [{"input": f"{number + 1}", "output": f"{2 * number + 2}", "testtype": kind}]
        rows.append(
            {
                "question_title": "Double",
                "question_content": f"Double the number ({number}).",
                "platform": "leetcode" if functional else "atcoder",
                "question_id": f"q{number}",
                "contest_date": "2025-01-04T00:00:00",
                "starter_code": "class Solution:\n    def double(self, n):\n        "
                if functional
                else "",
                "public_test_cases": json.dumps(public),
                "private_test_cases": pack(private) if number % 3 else json.dumps(private),
                "metadata": json.dumps({"func_name": "double"}) if functional else "{}",
            }
        )
    return rows
