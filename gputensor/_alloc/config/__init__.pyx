# The options of the allocator as C values: options.py has the table, settings.py the Python face.

from gputensor._driver.registry cimport Slot, device_slot, register_slot
from gputensor._driver.table cimport HOST_DEVICES, MAX_DEVICES

from gputensor._alloc.config import settings as _settings

include "configuration.pxi"
include "fractions.pxi"
