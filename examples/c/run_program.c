/* Runs a function of a compiled program on a GPU, in a process without Python.
 *
 *   gputensor compile model.onnx -o model.gtp --target=h200
 *   cc run_program.c $(gputensor c_library --cflags --libs) -o run_program
 *   ./run_program model.gtp main 1x784xfloat32=x.bin -- 1x10xfloat32=y.bin
 *
 * Tensors are files of raw bytes, row-major: inputs before `--`, results after it. With only the
 * program file, it prints the inputs and results of the program's functions. RUNS=1000 in the
 * environment times that many runs. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gputensor_program.h"

enum { DEVICE = 0, MOST_TENSORS = 64, MOST_AXES = 16 };

typedef struct {
    gputensor_tensor tensor;
    int64_t shape[MOST_AXES];
    uint64_t nbytes;
    const char* path;
} file_tensor;

static const struct {
    const char* name;
    int code, bits;
} types[] = {{"bool", 6, 8},      {"int8", 0, 8},      {"int16", 0, 16},   {"int32", 0, 32},
             {"int64", 0, 64},    {"uint8", 1, 8},     {"uint16", 1, 16},  {"uint32", 1, 32},
             {"uint64", 1, 64},   {"float16", 2, 16},  {"bfloat16", 4, 16}, {"float32", 2, 32},
             {"float64", 2, 64},  {"complex64", 5, 64}, {"complex128", 5, 128}};

static void stop(const char* what, const char* why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}
static void check(int status) {
    if (status) stop("gputensor", gputensor_program_last_error());
}

/* Reads "2x3xfloat32=FILE", and allocates GPU memory for it. */
static void describe(const char* text, file_tensor* out) {
    const char *equals = strchr(text, '='), *at = text;
    size_t i, count = sizeof(types) / sizeof(types[0]);
    memset(out, 0, sizeof(*out));
    if (!equals) stop(text, "expected SHAPExTYPE=FILE");
    out->path = equals + 1;
    out->nbytes = 1;
    while (*at >= '0' && *at <= '9') {
        char* end;
        if (out->tensor.ndim == MOST_AXES) stop(text, "too many axes");
        out->shape[out->tensor.ndim] = strtoll(at, &end, 10);
        out->nbytes *= (uint64_t)out->shape[out->tensor.ndim++];
        at = *end == 'x' ? end + 1 : end;
    }
    for (i = 0; i < count; i++)
        if (strlen(types[i].name) == (size_t)(equals - at) &&
            !strncmp(at, types[i].name, (size_t)(equals - at)))
            break;
    if (i == count) stop(text, "an unknown type");
    out->nbytes *= (uint64_t)types[i].bits / 8;
    out->tensor.dtype.code = (uint8_t)types[i].code;
    out->tensor.dtype.bits = (uint8_t)types[i].bits;
    out->tensor.dtype.lanes = 1;
    out->tensor.device.type = 2;
    out->tensor.device.id = DEVICE;
    out->tensor.shape = out->shape;
    check(gputensor_memory_new(&out->tensor.data, out->nbytes, DEVICE));
}

/* Copies the bytes of a file to the GPU, or from the GPU to a file. */
static void transfer(file_tensor* one, int is_input) {
    void* bytes = malloc(one->nbytes + 1);
    FILE* file = fopen(one->path, is_input ? "rb" : "wb");
    if (!bytes || !file) stop(one->path, "cannot be opened");
    if (is_input) {
        if (fread(bytes, 1, one->nbytes + 1, file) != one->nbytes)
            stop(one->path, "its size does not match its shape and type");
        check(gputensor_memory_copy(one->tensor.data, bytes, one->nbytes, DEVICE, NULL));
    } else {
        check(gputensor_memory_copy(bytes, one->tensor.data, one->nbytes, DEVICE, NULL));
        if (fwrite(bytes, 1, one->nbytes, file) != one->nbytes) stop(one->path, "cannot be written");
    }
    fclose(file);
    free(bytes);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int count, char** arguments) {
    static file_tensor inputs[MOST_TENSORS], outputs[MOST_TENSORS];
    gputensor_tensor given[MOST_TENSORS], made[MOST_TENSORS];
    int i, input_count = 0, output_count = 0, is_output = 0;
    const char* runs = getenv("RUNS");
    double opened = seconds(), first, start;
    gputensor_program* program;
    gputensor_session* session;

    if (count < 2) stop(arguments[0], "FILE.gtp [FUNCTION INPUT... -- RESULT...]");
    check(gputensor_program_open(&program, arguments[1], NULL, DEVICE));
    if (count < 3) {
        puts(gputensor_program_describe(program));
        check(gputensor_program_close(program));
        return 0;
    }
    for (i = 3; i < count; i++) {
        if (!strcmp(arguments[i], "--")) {
            is_output = 1;
            continue;
        }
        if (input_count == MOST_TENSORS || output_count == MOST_TENSORS) stop(arguments[i], "too many");
        describe(arguments[i], is_output ? &outputs[output_count++] : &inputs[input_count++]);
    }
    for (i = 0; i < input_count; i++) {
        transfer(&inputs[i], 1);
        given[i] = inputs[i].tensor;
    }
    for (i = 0; i < output_count; i++) made[i] = outputs[i].tensor;

    check(gputensor_session_open(&session, program));
    check(gputensor_program_close(program)); /* the session keeps the parts that it needs */
    check(gputensor_session_run(session, arguments[2], input_count, given, output_count, made, NULL));
    for (i = 0; i < output_count; i++) transfer(&outputs[i], 0);
    first = seconds();
    if (runs) {
        int times = atoi(runs);
        start = seconds();
        for (i = 0; i < times; i++)
            check(gputensor_session_run(session, arguments[2], input_count, given, output_count, made,
                                        NULL));
        fprintf(stderr, "first result after %.1f ms, a run is queued in %.2f us", 1e3 * (first - opened),
                1e6 * (seconds() - start) / times);
        if (output_count) transfer(&outputs[0], 0);
        fprintf(stderr, " and done in %.2f us\n", 1e6 * (seconds() - start) / times);
    }
    check(gputensor_session_close(session));
    for (i = 0; i < input_count; i++) check(gputensor_memory_free(inputs[i].tensor.data, DEVICE));
    for (i = 0; i < output_count; i++) check(gputensor_memory_free(outputs[i].tensor.data, DEVICE));
    return 0;
}
