"""Step-wise truncation probing: what the model answers after k steps."""
