from .opening import open_sources as open_sources
from .source import Source as Source
from .source import Sources as Sources
from .static import write_static as write_static
