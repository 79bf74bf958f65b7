"""Step-wise truncation probing: what the model answers after k steps."""

from stp.machine import prepare

prepare()
