# Functions that give tests access to the library's internals. A checkout builds this extension; a
# wheel does not contain it.

from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t
from libc.string cimport memset

import contextlib

from gputensor._alloc.allocator cimport (
    allocator_find, pool_begin, pool_end, pool_release, pool_retain, pool_set_kind, pool_thread,
)
from gputensor._alloc.config cimport AllocatorConfig, settings_to_struct
from gputensor._alloc.core cimport (
    block_drop, block_new, check_after, device_lock, device_unlock,
)
from gputensor._alloc.history cimport stacks_choose_walk, stacks_walk_directly
from gputensor._alloc.model cimport (
    POOL_LARGE, Block, DeviceAllocator, ThreadCache, View, chain_pop, chain_push,
)
from gputensor._arrays cimport DT_BFLOAT16, DT_FLOAT16, DT_FLOAT32, Operand
from gputensor._driver.registry cimport Slot, known_facts, register_slot
from gputensor.blas.backends cimport (
    FORM_PLAIN, PACKING_ALWAYS, PACKING_AUTO, PACKING_NEVER, Schedule, SkinnyBlockShape,
    SkinnyDevice, SkinnyForced, SkinnyMmaBlockShape, SkinnyProduct, Work, packed_can,
    HeldShape, PanelProduct, PanelShape, held_choose, held_forced, narrow_forced,
    packed_is_worthwhile, packed_mode, panel_choose, panel_forced,
    pointer_batch_wins, schedule_choose, skinny_choose_shape,
    skinny_forced, skinny_mma_force, skinny_mma_shape, skinny_product_fits, skinny_product_run,
    tiny_tile, unaligned_kernel, unaligned_launch_split, unaligned_split, work_init,
)
from gputensor.blas.convolution cimport (
    Convolution, MappedForm, MappedParameters, ShiftedForm, ShiftedParameters,
    convolution_parameters, mapped_plan, shifted_plan,
)
from gputensor.blas.kernels cimport PAD_A, PAD_B, PAD_D, pad_choose
from gputensor.blas.libraries cimport *
from gputensor.blas.plan cimport (
    COPY_A, COPY_ADDEND, COPY_B, COPY_OUT, Product, check_out, compute_type, precision_for, prepare,
)
from gputensor.blas.product cimport TileShape, tile_force

from gputensor._alloc.allocator import open_allocator
from gputensor.blas.libraries import CUBLAS_SYMBOLS, LT_SYMBOLS
from gputensor.errors import raise_for_status

include "slots.pxi"
include "settings.pxi"
include "views.pxi"
include "pools.pxi"
include "plans.pxi"
include "libraries.pxi"
include "kernels.pxi"
include "skinny.pxi"
include "shifted.pxi"
