"""How good an answer, a model or a method is, and how sure we are."""
