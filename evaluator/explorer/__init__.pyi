from .source import Source as Source
from .source import Sources as Sources
from .source import open_sources as open_sources
from .static import write_static as write_static
