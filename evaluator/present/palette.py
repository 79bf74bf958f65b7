"""The one palette: of pages in light and dark, and of figures, which are drawn in the light one.

Series are in the order in which they are told apart best, also by the colour-blind (checked by the
tests under simulated protanopia and deuteranopia). Colour is never alone: lines differ in dashes
and points in markers too.
"""

from typing import Final

SERIES: Final = 6
"""Colours for series of a chart; further series begin again with other dashes."""

LIGHT: Final[dict[str, str]] = {
    "paper": "#fafaf7",
    "card": "#ffffff",
    "ink": "#1b2026",
    "muted": "#5d6672",
    "line": "#dfe2e0",
    "soft": "#f0f1ed",
    "accent": "#0b4f8a",
    "accent-soft": "#dcebf8",
    "mark": "#b93a0b",
    "mark-soft": "#fbe9e1",
    "right": "#17754f",
    "wrong": "#b3261e",
    "early_exit": "#0b3c6f",
    "fixed_budget": "#14805f",
    "routing": "#c77700",
    "rise": "#3d8fc9",
    "flat": "#c3c8ce",
    "fall": "#c2410c",
    "series-1": "#0072b2",
    "series-2": "#d55e00",
    "series-3": "#009e73",
    "series-4": "#b0508c",
    "series-5": "#6b1d1d",
    "series-6": "#3f35b0",
}
DARK: Final[dict[str, str]] = {
    "paper": "#12161b",
    "card": "#1a2027",
    "ink": "#e7eaee",
    "muted": "#9aa5b1",
    "line": "#2d353e",
    "soft": "#222a32",
    "accent": "#7db8ec",
    "accent-soft": "#1d3448",
    "mark": "#ff9466",
    "mark-soft": "#3a241b",
    "right": "#5fcf9b",
    "wrong": "#ff8d84",
    "early_exit": "#8cc4f5",
    "fixed_budget": "#4fc99c",
    "routing": "#f0a63c",
    "rise": "#5aa9e0",
    "flat": "#46505b",
    "fall": "#e0703c",
    "series-1": "#56b4e9",
    "series-2": "#ff9466",
    "series-3": "#3ecf9f",
    "series-4": "#e79ac8",
    "series-5": "#e8e04a",
    "series-6": "#5f7ff0",
}


def css_variables(colours: dict[str, str]) -> str:
    """Return the palette as declarations of a style sheet.

    Examples
    --------
    >>> css_variables({"ink": "#000000"})
    '--ink: #000000;'
    """
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())
