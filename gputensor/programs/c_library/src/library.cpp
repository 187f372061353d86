// libgputensor_program.so: the functions of gputensor_program.h for processes without Python.
#include <cstdio>
#include <new>

#include "gputensor/programs/c_library/session.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

struct gputensor_program {
    std::shared_ptr<gputensor::NativeProgram> program;
};
struct gputensor_session {
    std::unique_ptr<gputensor::NativeSession> session;
};

namespace {

using namespace gputensor;

thread_local char last_error[1024] = "";

int failed(int status, const char* text) {
    snprintf(last_error, sizeof(last_error), "%s", text);
    return status;
}

// Turns every exception into a status with a line of text. `path` is the file that FileFault is about.
template <class Call> int guarded(const char* path, Call call) {
    last_error[0] = 0;
    try {
        call();
        return GPUTENSOR_PROGRAM_OK;
    } catch (const ProgramFault& fault) {
        return failed(fault.status, fault.what());
    } catch (const FileFault& fault) {
        std::string text = path ? std::string(path) + ": " + fault.what() : fault.what();
        return failed(GPUTENSOR_PROGRAM_FAILED, text.c_str());
    } catch (const std::bad_alloc&) {
        return failed(GPUTENSOR_PROGRAM_MEMORY, "the host is out of memory");
    } catch (const std::exception& error) {
        return failed(GPUTENSOR_PROGRAM_FAILED, error.what());
    }
}

int refused_null(const char* what) {
    std::string text = std::string(what) + ": got NULL; expected an address";
    return failed(GPUTENSOR_PROGRAM_INVALID, text.c_str());
}

}  // namespace

EXPORT int gputensor_program_open(gputensor_program** program, const char* path, const char* weights,
                                  int32_t device) {
    if (!program || !path) return refused_null("program or path");
    return guarded(path, [&] {
        *program = new gputensor_program{std::make_shared<NativeProgram>(path, weights, device)};
    });
}
EXPORT int gputensor_program_close(gputensor_program* program) {
    return guarded(nullptr, [&] { delete program; });
}
EXPORT const char* gputensor_program_describe(gputensor_program* program) {
    last_error[0] = 0;
    if (!program) return refused_null("program"), "";
    return program->program->description.c_str();
}
EXPORT int gputensor_session_open(gputensor_session** session, gputensor_program* program) {
    if (!session || !program) return refused_null("session or program");
    return guarded(nullptr, [&] {
        *session = new gputensor_session{std::make_unique<NativeSession>(program->program)};
    });
}
EXPORT int gputensor_session_run(gputensor_session* session, const char* function, int32_t input_count,
                                 const gputensor_tensor* inputs, int32_t output_count,
                                 gputensor_tensor* outputs, void* stream) {
    if (!session || !function || (input_count && !inputs) || (output_count && !outputs))
        return refused_null("session, function or tensors");
    if (input_count < 0 || output_count < 0)
        return failed(GPUTENSOR_PROGRAM_INVALID, "input_count or output_count: got a negative number");
    return guarded(nullptr, [&] {
        session->session->run(function, size_t(input_count), inputs, size_t(output_count), outputs,
                              reinterpret_cast<uint64_t>(stream));
    });
}
EXPORT int gputensor_session_close(gputensor_session* session) {
    if (!session) return GPUTENSOR_PROGRAM_OK;
    int status = guarded(nullptr, [&] { session->session->wait(); });
    delete session;
    return status;
}
EXPORT const char* gputensor_program_last_error(void) { return last_error; }

// ---- memory

EXPORT int gputensor_memory_new(void** data, uint64_t nbytes, int32_t device) {
    if (!data) return refused_null("data");
    return guarded(nullptr, [&] {
        GpuMemory made(Gpu(device), nbytes ? nbytes : 1, "a caller");
        *data = reinterpret_cast<void*>(made.ptr);
        made.ptr = 0;
    });
}
EXPORT int gputensor_memory_free(void* data, int32_t device) {
    if (!data) return GPUTENSOR_PROGRAM_OK;
    return guarded(nullptr, [&] {
        Gpu gpu(device);
        gpu.check(gpu->mem_free(reinterpret_cast<uint64_t>(data)), "freeing memory");
    });
}
EXPORT int gputensor_memory_copy(void* target, const void* source, uint64_t nbytes, int32_t device,
                                 void* stream) {
    if (nbytes && (!target || !source)) return refused_null("target or source");
    return guarded(nullptr, [&] {
        Gpu gpu(device);
        auto queue = reinterpret_cast<uint64_t>(stream);
        gpu.check(gpu->copy_async(reinterpret_cast<uint64_t>(target),
                                  reinterpret_cast<uint64_t>(source), nbytes, queue),
                  "copying memory");
        gpu.check(gpu->stream_synchronize(queue), "copying memory");
    });
}
