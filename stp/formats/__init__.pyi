from .family import ModelFamily as ModelFamily
from .family import family_names as family_names
from .family import get_family as get_family
from .finding import Found as Found
from .finding import family_for_model as family_for_model
from .finding import find_family as find_family
from .thinking import SplitOutput as SplitOutput
from .thinking import ThinkingFormat as ThinkingFormat
