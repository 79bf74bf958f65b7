"""The command line: parses, calls, prints. Everything heavy is imported inside the commands."""
