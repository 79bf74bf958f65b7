"""How models are named on the command line, in a line of help; :mod:`stp.asking.model_names`."""

MODEL_HELP = (
    "'demo', a model folder or hub id, provider/model of an API, file.py:function; MODEL@URL for "
    "an OpenAI-compatible server; further ';KEY=VALUE' (family, engine, revision, batch, options); "
    "or a TOML file with these."
)
