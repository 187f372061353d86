# The options of the allocator as C values: options.py has the table, settings.py the Python face.

from gputensor._alloc.config import settings as _settings

include "configuration.pxi"
