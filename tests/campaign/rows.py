"""All rows of a campaign, to compare two of them."""

from pathlib import Path
from typing import Any, get_args

from stp.campaign.store import Store
from stp.campaign.units import TableName


def rows_of(url: str | Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every whole shard by its name."""
    store = Store(url)
    return {
        name: store.read_shard(table, name).to_pylist()
        for table in get_args(TableName)
        for name in store.files(table)
        if name.endswith(".parquet")
    }


def table_rows(url: str | Path, table: TableName) -> list[dict[str, Any]]:
    """Return all rows of a table, shard after shard."""
    return [row for name, rows in rows_of(url).items() if name.startswith(table) for row in rows]
