"""What every run has: its files, and whether what was made of them is still valid."""
