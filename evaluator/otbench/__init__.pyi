from .leaderboard import read_rows as read_rows
from .load import Release as Release
from .load import load_release as load_release
from .release import write_release as write_release
from .session import regenerate as regenerate
from .session import run_methods as run_methods
