"""How numbers are shown to people: tables, names, colours."""
