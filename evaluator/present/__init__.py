"""How results are shown to people: tables, pages, charts, figures, names and colours, each once.

A number becomes text in ``numbers``. A :class:`~evaluator.present.table.Table` holds numbers, and
is written as CSV, Markdown, LaTeX (``table``), on a terminal (``terminal``), and on a page.

How a page is made: a function of its room collects the values; the room's ``page.html``, a jinja2
template, extends ``present/templates/base.html`` and takes tables and sections from
``present/templates/parts.html``; :func:`evaluator.present.page.render` puts the two together, and
:func:`~evaluator.present.page.write_page` writes the file::

    text = page.render("myroom/page.html", name=name, table=table, views=[Lines(...)])
    page.write_page(folder / "page.html", text)

    {% extends "present/templates/base.html" %}
    {% import "present/templates/parts.html" as parts %}
    {% block title %}{{ name }}{% endblock %}
    {% block main %}
    {% call parts.section("rows", "Rows") %}{{ parts.table(table) }}{% endcall %}
    {{ parts.view(views[0]) }}
    {% endblock %}

Untrusted texts go in as they are: every text is escaped, and its hidden characters are made
visible. No template says ``safe``, and no ``Markup`` is made of an untrusted text. A page's policy
allows its own style sheet and, if it has one, its own script. ``sections``, pairs of (id, heading),
make the navigation.

The style sheet (``templates/style.css``) is that of all pages, and its colours, in light and dark,
are those of ``palette``, which figures for print (``figure_style``) share. What is to be seen is a
value of ``views``: lines, points or bars. ``drawing`` draws it for print, and the scripts of the
explorer (``explorer/app``) draw it in a page.
"""
