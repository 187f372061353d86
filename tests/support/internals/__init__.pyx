# What only tests do with the library's rooms, as one extension that a checkout builds beside them.
# No wheel has it.

from libc.stdint cimport uint64_t

from gputensor._driver.registry cimport Slot, register_slot

include "slots.pxi"
