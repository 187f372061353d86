# Planning on a miss of the plan table: with the GIL, where tuning has its say.

from libc.stdint cimport uint64_t

from gputensor.blas.plan cimport Plan, PlanKey
from gputensor.blas.product cimport Product

# Builds the plan of a product by what tuning knows of it, else by model and heuristic, and puts it
# into the table. `stream` is where the product will run.
cdef Plan* plan_now(const Product* product, const PlanKey* key, uint64_t hash_value,
                    int preference, uint64_t stream) except NULL
# A product in words, for messages.
cdef str product_facts(const Product* product)
