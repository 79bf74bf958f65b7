"""What the documents promise: files that they link to, keys, and campaign files that are read."""

import re
from pathlib import Path

import pytest

from stp.campaign.config import CampaignConfig, parse_config

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
CAMPAIGN_BLOCK = re.compile(r"```toml\n((?:(?!```).)*?\[\[models\]\].*?)```", re.DOTALL)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(path):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_campaign_files_in_documents_are_read(path):
    for text in CAMPAIGN_BLOCK.findall(path.read_text(encoding="utf-8")):
        parse_config(text, source=str(path))


def test_every_key_of_a_campaign_file_is_documented_with_its_default():
    rows: dict[str, list[dict[str, str]]] = {"": []}
    section = ""
    text = (ROOT / "docs" / "campaigns.md").read_text(encoding="utf-8")
    for key, default in re.findall(r"^\| `([^`]+)` \|([^|]*)\|", text, re.MULTILINE):
        header = re.fullmatch(r"\[+(\w+)\]+", key)
        if header:
            section = header[1]
        rows.setdefault(section, []).append({key: default.strip(" `")})
    found = {
        name: {k: v for row in entries for k, v in row.items()} for name, entries in rows.items()
    }
    for name, field in CampaignConfig.model_fields.items():
        annotation = field.annotation
        if name in ("models", "benchmarks"):
            annotation = annotation.__args__[0]
        if not hasattr(annotation, "model_fields"):
            assert name in found[""], name
            continue
        assert name in found, name
        if name == "sampling":  # In one row.
            assert all(f"`{key}`" in text for key in annotation.model_fields)
            continue
        for key, setting in annotation.model_fields.items():
            assert key in found[name], f"[{name}] {key}"
            if isinstance(setting.default, int) and not isinstance(setting.default, bool):
                assert found[name][key] == str(setting.default), f"[{name}] {key}"
