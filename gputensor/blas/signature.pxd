# The facts of a product that tuning depends on, as a tuple of integers, and the way back.

from gputensor.blas.product cimport Product

cdef tuple product_signature(const Product* product)
# Fills a product without addresses; raises ValueError for a tuple that is no signature.
cdef int product_of_signature(tuple signature, Product* product) except -1
