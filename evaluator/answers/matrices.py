r"""Matrices, vectors and determinants: environments of LaTeX, lists of lists, unit vectors."""

import itertools
import re
from fractions import Fraction

from evaluator.answers.brackets import inside
from evaluator.answers.forms import Form, Listing, Matrix, Opaque, Read, Value
from evaluator.answers.trees import Name, Number, Operation, Tree, balanced, nodes, variables

MAX_ROWS = 200
_MAX_DETERMINANT = 4
_MATRIX = re.compile(
    r"\\begin ?\{([a-zA-Z]{0,8}matrix|array)\*?\}(?: ?\{[clr| ]{1,20}\})?(.*)\\end ?\{\1\*?\}",
    re.DOTALL,
)
_CASES = re.compile(
    r"\\begin ?\{(cases|aligned|align|gathered|array)\*?\}(?: ?\{[clr| ]{1,20}\})?(.*)"
    r"\\end ?\{\1\*?\}",
    re.DOTALL,
)
_FACTOR = re.compile(
    r"([-+]?(?:\d|\\frac|\\sqrt)[^&=,;]{0,60}?) ?\*? ?(?=\\begin ?\{[a-zA-Z]?(?:matrix|array))"
)
_TRANSPOSED = re.compile(r" ?\^ ?\{? ?(?:\\(?:top|intercal|mathsf ?\{T\})|T|t) ?\}?$")
_UNIT_VECTORS = ("i", "j", "k")


def read_matrix(text: str, read: Read) -> Form | None:
    r"""Read a matrix or a determinant; None if the text is neither.

    ``\begin{vmatrix}`` and bars around an array are a determinant: its value, not a matrix.
    """
    transposed = _TRANSPOSED.search(text)
    if transposed is not None and text[: transposed.start()].rstrip().endswith(
        (")", "]", "}", ">")
    ):
        form = read(text[: transposed.start()].strip())
        rows = _rows_of(form)
        return None if rows is None else Matrix(tuple(zip(*rows, strict=True)), text)
    bare = _without_brackets(text)
    matrix = _MATRIX.fullmatch(bare.strip("|").strip())
    if matrix is None or r"\begin" in matrix.group(2):
        factor = _FACTOR.match(text)
        return None if factor is None else _scaled(text, factor, read)
    form = _entries(matrix.group(2), text, read)
    bars = bare.startswith("|") and bare.endswith("|")
    if (bars or matrix.group(1) == "vmatrix") and isinstance(form, Matrix):
        return _determinant(form)
    return None if matrix.group(1) == "Vmatrix" else form


def read_cases(text: str, read: Read) -> Form | None:
    r"""Read a system (``\begin{cases} x=1 \\ y=2``) as a list, a piecewise function row by row."""
    cases = _CASES.fullmatch(re.sub(r"^\\\{ ?(?=\\begin)", "", text))
    if cases is None:
        return None
    body = cases.group(2)
    rows = [row.strip().rstrip(",;.").strip() for row in body.split(r"\cr") if row.strip()]
    if cases.group(1) == "cases" and "&" in body:
        return _entries(re.sub(r"\\text\{ ?(?:if|for|when)?,? ?\}|,(?= ?&)", "", body), text, read)
    forms = [read(row.replace("&", "")) for row in rows[:MAX_ROWS]]
    return forms[0] if len(forms) == 1 else Listing(tuple(forms))


def as_matrix(listing: Listing) -> Form:
    """Turn a list of lists of one length into a matrix."""
    rows = [item.items for item in listing.items if isinstance(item, Listing)]
    same_length = len(rows) == len(listing.items) and len({len(row) for row in rows}) == 1
    if same_length and all(
        isinstance(item, Listing) and item.brackets == "[]" for item in listing.items
    ):
        return Matrix(tuple(rows))
    return listing


def as_vector(form: Form) -> tuple[Form, ...] | None:
    """Entries of a vector: one column or row of a matrix, a tuple, a list, or unit vectors."""
    if isinstance(form, Matrix):
        if len(form.rows) == 1:
            return form.rows[0]
        if all(len(row) == 1 for row in form.rows):
            return tuple(row[0] for row in form.rows)
        return None
    if isinstance(form, Listing):
        return form.items if form.brackets in ("()", "<>", "", "[]") else None
    if isinstance(form, Value) and form.tree is not None:
        return _of_unit_vectors(form.tree)
    return None


def _of_unit_vectors(tree: Tree) -> tuple[Form, ...] | None:
    """Components of ``-3i + 10j``; None if the tree is not a sum of multiples of i, j and k."""
    if not variables(tree) <= {"j", "k"} or "j" not in variables(tree):
        return None
    parts: dict[str, list[Tree]] = {name: [] for name in _UNIT_VECTORS}
    waiting: list[tuple[Tree, bool]] = [(tree, False)]
    while waiting:
        node, negative = waiting.pop()
        if isinstance(node, Operation) and node.operator == "+":
            waiting.extend((argument, negative) for argument in node.arguments)
        elif isinstance(node, Operation) and node.operator == "neg":
            waiting.append((node.arguments[0], not negative))
        else:
            component = _component(node)
            if component is None:
                return None
            name, size = component
            parts[name].append(Operation("neg", (size,)) if negative else size)
    names = _UNIT_VECTORS if "k" in variables(tree) else _UNIT_VECTORS[:2]
    trees = [balanced("+", parts[name]) if parts[name] else Number(Fraction(0)) for name in names]
    return tuple(Value("", component) for component in trees)


def _component(tree: Tree) -> tuple[str, Tree] | None:
    """Split a term into the unit vector in it and its size."""
    found = [node.name for node in nodes(tree) if isinstance(node, Name) and node.name in "ijk"]
    if len(found) != 1:
        return None
    name = found[0]
    if isinstance(tree, Name):
        return name, Number(Fraction(1))
    if isinstance(tree, Operation) and tree.operator == "*":
        factors = [part for part in tree.arguments if not _is(part, name)]
        if len(factors) == 1:
            return name, factors[0]
    return None


def _is(tree: Tree, name: str) -> bool:
    return isinstance(tree, Name) and tree.name == name


def _without_brackets(text: str) -> str:
    r"""Drop one pair of brackets around an environment: ``[\begin{array}...]``."""
    parts = inside(text)
    if parts is not None and parts[1] in ("()", "[]") and parts[0].startswith(r"\begin"):
        return parts[0]
    return text


def _rows_of(form: Form) -> tuple[tuple[Form, ...], ...] | None:
    if isinstance(form, Matrix) and len({len(row) for row in form.rows}) == 1:
        return form.rows
    if isinstance(form, Listing) and form.brackets in ("()", "[]", "<>"):
        return (form.items,)
    return None


def _entries(body: str, text: str, read: Read) -> Form:
    rows = [row for row in body.split(r"\cr") if row.strip()]
    if len(rows) > MAX_ROWS:
        return Opaque(text)
    return Matrix(tuple(tuple(read(entry) for entry in row.split("&")) for row in rows), text)


def _scaled(text: str, factor: re.Match[str], read: Read) -> Form | None:
    number, matrix = read(factor.group(1).strip()), read(text[factor.end() :])
    if not isinstance(matrix, Matrix) or not isinstance(number, Value) or number.tree is None:
        return None
    rows = []
    for row in matrix.rows:
        entries = [entry for entry in row if isinstance(entry, Value) and entry.tree is not None]
        if len(entries) != len(row):
            return None
        rows.append(
            tuple(Value("", Operation("*", (number.tree, e.tree))) for e in entries if e.tree)
        )
    return Matrix(tuple(rows), text)


def _determinant(matrix: Matrix) -> Form:
    size = len(matrix.rows)
    entries = [
        [entry.tree for entry in row if isinstance(entry, Value) and entry.tree is not None]
        for row in matrix.rows
    ]
    if size > _MAX_DETERMINANT or any(len(row) != size for row in entries):
        return Opaque(matrix.text)
    return Value(matrix.text, _expanded(entries))


def _expanded(rows: list[list[Tree]]) -> Tree:
    """Expand a determinant along its first row."""
    if len(rows) == 1:
        return rows[0][0]
    terms: list[Tree] = []
    for column, entry in enumerate(rows[0]):
        minor = [row[:column] + row[column + 1 :] for row in rows[1:]]
        term: Tree = Operation("*", (entry, _expanded(minor)))
        terms.append(Operation("neg", (term,)) if column % 2 else term)
    return balanced("+", terms)


def entries(matrix: Matrix) -> list[Form]:
    """All entries of a matrix, row by row."""
    return list(itertools.chain(*matrix.rows))
