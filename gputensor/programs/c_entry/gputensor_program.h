/* Programs from C.
 *
 *   gputensor_program* program;
 *   gputensor_session* session;
 *   gputensor_program_open(&program, "mlp.gtp", NULL, 0);
 *   gputensor_session_open(&session, program);
 *   gputensor_session_run(session, "mlp", 1, &x, 1, &y, stream);
 *
 * Each function returns 0 or a status below; gputensor_program_last_error() is the text of this
 * thread's last failure. Tensors are DLPack's DLTensor, on the program's GPU, row-major, with the
 * dtypes and shapes of the function (gputensor_program_describe). The data of inputs must be at a
 * multiple of 16 bytes, that of outputs at a multiple of 256. Outputs must not share memory with
 * other tensors.
 *
 * gputensor_session_run queues the work on `stream` (a CUDA stream; NULL is the default stream) and
 * returns. The caller must keep the memory of inputs and outputs until that work is done. A session
 * has state and scratch memory: only one thread may run it at a time, and a run on another stream
 * than before must follow an event of the caller. The first run for new shapes binds them. Sessions
 * are independent of each other.
 *
 * Two libraries have these functions:
 * - libgputensor_program.so needs no Python. It runs files that were compiled for a GPU (gputensor
 *   compile --target), at the compiled sizes: powers of two and both ends of each free extent, or
 *   those of --at. A run is one launch of a CUDA graph, which the first run for its shapes makes.
 *   Without a graph (an older driver, a stream that the caller captures) it launches call by call
 *   and waits for the stream at each condition. `gputensor c_library` shows how to link it.
 * - The extension module gputensor.programs.c_entry is for processes that run Python and have
 *   imported it; its library_path() is the file. It binds any size, and has no gputensor_memory_*.
 *   A run is one launch of a CUDA graph, too, and needs no GIL; the first one for its shapes takes
 *   the GIL to make the graph. Without a graph it takes the GIL for products of cuBLAS. */
#ifndef GPUTENSOR_PROGRAM_H
#define GPUTENSOR_PROGRAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t type; /* 2: CUDA */
    int32_t id;
} gputensor_device;

typedef struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} gputensor_dtype;

/* DLTensor of DLPack 0.8 and 1.x. */
typedef struct {
    void* data;
    gputensor_device device;
    int32_t ndim;
    gputensor_dtype dtype;
    int64_t* shape;
    int64_t* strides; /* NULL: row-major */
    uint64_t byte_offset;
} gputensor_tensor;

typedef struct gputensor_program gputensor_program;
typedef struct gputensor_session gputensor_session;

enum {
    GPUTENSOR_PROGRAM_OK = 0,
    GPUTENSOR_PROGRAM_INVALID = 1, /* an argument does not meet the contract */
    GPUTENSOR_PROGRAM_MEMORY = 2,
    GPUTENSOR_PROGRAM_FAILED = 3 /* the file, the driver or a library */
};

/* `weights` is the file of weights that are not in the program, or NULL. */
int gputensor_program_open(gputensor_program** program, const char* path, const char* weights,
                           int32_t device);
int gputensor_program_close(gputensor_program* program);
/* JSON, valid until the program is closed: {"functions": {NAME: {"inputs": [{"name", "dtype",
 * "shape"}], "outputs": [...]}}}; an extent is a number or the name of a dim. */
const char* gputensor_program_describe(gputensor_program* program);
int gputensor_session_open(gputensor_session** session, gputensor_program* program);
int gputensor_session_run(gputensor_session* session, const char* function, int32_t input_count,
                          const gputensor_tensor* inputs, int32_t output_count,
                          gputensor_tensor* outputs, void* stream);
/* First waits for the work of the session's last run. */
int gputensor_session_close(gputensor_session* session);
const char* gputensor_program_last_error(void);

/* Memory of a GPU, for callers without the CUDA toolkit; any other memory of the device's primary
 * context may be used instead. New memory is at a multiple of 256. A copy works in both directions
 * between host and GPU, follows the work of the stream, and is done when the call returns. */
int gputensor_memory_new(void** data, uint64_t nbytes, int32_t device);
int gputensor_memory_free(void* data, int32_t device);
int gputensor_memory_copy(void* target, const void* source, uint64_t nbytes, int32_t device,
                          void* stream);

#ifdef __cplusplus
}
#endif
#endif
