# Launch lists: the work of one call in binary form, recorded on a phantom GPU and launched on a
# real one.

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from libcpp cimport bool as cpp_bool
from libcpp.pair cimport pair
from libcpp.vector cimport vector

from gputensor._driver.host cimport phantom_recorder
from gputensor._driver.phantom cimport LaunchRecord, PhantomRecorder, PhantomRecords
from gputensor._driver.registry cimport device_generation, driver_get, driver_open, known_facts
from gputensor._driver.table cimport STATUS_OK, Driver, status_t
from gputensor._kernels.launch cimport CallOperand
from gputensor.blas.backends cimport described_is_sound, described_queue
from gputensor.blas.plan cimport CONFIG_COUNT, Product, product_signature

from gputensor._kernels.launch import images
from gputensor.errors import Described, argument_error, raise_for_status

include "launch_list.pxi"
include "door.pxi"
include "steps.pxi"
