"""Results of tuning and measurements, by device, for planning without Python.

Python keeps the results (blas/tuning). Each of the two tables has a copy for every device, made
when a product of the device is first planned and dropped by `forget_plans`.
"""

cdef extern from "gputensor/blas/plan/choice_table.h" namespace "gputensor" nogil:
    cdef cppclass ChoiceTable[C]:
        bint is_filled(int device)
        void put(int device, const int64_t* numbers, int count, const C& choice)
        void set_filled(int device)
        void forget()
        bint find(int device, const int64_t* numbers, int count, C* choice)
        bint near(int device, const int64_t* numbers, C* choice)
        void after_fork()

cdef enum:
    ALGORITHM_COUNT = 9         # numbers that identify a measured algorithm
    ALGORITHM_ALIGNMENT = 16    # bytes; its leading dimensions and addresses are multiples of this

cdef ChoiceTable[Choice] tuned
cdef ChoiceTable[Choice] measured
cdef bint tuned_are_used = False
cdef bint tuning_is_asked = False


cdef int choice_read(object found, Choice* choice) except -1:
    cdef int index
    choice.pad, choice.backend, config = found
    choice.has_config = config is not None
    for index in range(CONFIG_COUNT):
        choice.config[index] = 0 if config is None else config[index]
    return 0


cdef int fill_table(ChoiceTable[Choice]* table, int device, dict choices) except -1:
    cdef int64_t[SIGNATURE_COUNT] numbers
    cdef Choice choice
    cdef int index
    for key, found in choices.items():
        for index, number in enumerate(key):
            numbers[index] = number
        choice_read(found, &choice)
        table.put(device, numbers, <int>len(key), choice)
    table.set_filled(device)
    return 0


cdef bint known_is_filled(int device) noexcept nogil:
    return measured.is_filled(device) and (not tuned_are_used or tuned.is_filled(device))


cdef bint known_tuned(const Product* product, Choice* choice) noexcept nogil:
    cdef Signature signature
    if not tuned_are_used:
        return False
    signature_of(product, &signature)
    return tuned.find(product.device, signature.numbers, SIGNATURE_COUNT, choice)


cdef bint known_near(const Product* product, Choice* choice) noexcept nogil:
    cdef Signature signature
    if not tuned_are_used:
        return False
    signature_of(product, &signature)
    return tuned.near(product.device, signature.numbers, choice)


cdef bint known_measured(const Product* product, Choice* choice) noexcept nogil:
    cdef int64_t[ALGORITHM_COUNT] numbers
    cdef int64_t lines = product.lda | product.ldb | product.ldc | product.ldd
    cdef int a, b, c, d
    if product.batch != 1 or product.outer_ndim or (
            lines % (ALGORITHM_ALIGNMENT // dtype_itemsize(product.type_a))):
        return False
    product_alignments(product, &a, &b, &c, &d)
    if min(a, b, c, d) < ALGORITHM_ALIGNMENT:
        return False
    numbers[0], numbers[1], numbers[2] = product.op_a, product.op_b, product.type_a
    numbers[3], numbers[4], numbers[5] = product.type_b, product.type_d, product.compute
    numbers[6], numbers[7], numbers[8] = product.m, product.n, product.k
    return measured.find(product.device, numbers, ALGORITHM_COUNT, choice)


cdef bint tuning_asks() noexcept nogil:
    return tuning_is_asked


def set_tuning(bint is_used, bint is_asked):
    """Set whether planning uses tuned results, and whether it calls `tunable.find` for others."""
    global tuned_are_used, tuning_is_asked
    tuned_are_used, tuning_is_asked = is_used, is_asked


def fill_tuned(int device, dict choices):
    """Copy the results of tuning for a device: signature -> (pad, backend, config)."""
    fill_table(&tuned, device, choices)


def fill_measured(int device, dict configurations):
    """Copy the algorithms measured on a device: numbers of a product -> configuration."""
    fill_table(&measured, device, {
        key: (0, BACKEND_LT, config) for key, config in configurations.items()})


def forget_tuned():
    """Forget the copies of results of tuning; the next plan makes them again."""
    tuned.forget()


def measured_algorithm(signature, int device):
    """Return the configuration measured for the product of a signature, or None.

    >>> from gputensor.blas.plan import signature_of_shape
    >>> measured_algorithm(signature_of_shape(3, 5, 7, "bf16"), 0) is None
    True
    """
    cdef Product product
    cdef Choice choice
    cdef int index
    product_of_signature(signature, &product)
    product.device = device
    if not known_measured(&product, &choice):
        return None
    return tuple([choice.config[index] for index in range(CONFIG_COUNT)])


cdef void plan_after_fork() noexcept nogil:
    plan_table_after_fork()
    tuned.after_fork()
    measured.after_fork()


cdef Slot slot
slot.fork = plan_after_fork
register_slot(&slot)
