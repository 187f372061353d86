// Aligned host memory that can be denied, from which the allocator makes its block records. Loaded
// before the C library's.
#include <errno.h>
#include <stdlib.h>

static int is_denied;

void deny_memory(int denied) { is_denied = denied; }

int posix_memalign(void** pointer, size_t alignment, size_t nbytes) {
    *pointer = is_denied ? NULL : aligned_alloc(alignment, nbytes);
    return *pointer ? 0 : ENOMEM;
}
