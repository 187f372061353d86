# The host filler of the driver table: an embedded device in host memory (device.h and the headers
# it includes).

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

from gputensor._driver.phantom cimport PhantomRecorder
from gputensor._driver.table cimport Driver, status_t

include "host.pxi"
