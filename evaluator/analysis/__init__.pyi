from .pipeline import Asked as Asked
from .pipeline import analyse as analyse
from .pipeline import analyse_campaigns as analyse_campaigns
