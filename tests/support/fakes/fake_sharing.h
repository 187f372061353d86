// The part of the fake driver that shares pages, prints graphs, and records and waits for events
// with flags. It is included by fake_libcuda.cpp and uses its helpers.
#pragma once

EXPORT int cuMemExportToShareableHandle(void* descriptor, uint64_t page, int kind,
                                        unsigned long long flags) {
    if (kind != 1 || flags || !exported.count(page)) return INVALID_VALUE;
    return unsafe_call([=] {
        *static_cast<int*>(descriptor) = exported[page];
        exported.erase(page);
        return 0;
    });
}
EXPORT int cuMemImportFromShareableHandle(uint64_t* page, void* descriptor, int kind) {
    struct stat facts;
    int file = int(number(descriptor));
    if (kind != 1 || fstat(file, &facts)) return INVALID_VALUE;
    return unsafe_call([=] { return device().page_import(page, size_t(facts.st_size), file); });
}
EXPORT int cuEventRecordWithFlags(void* event, void* stream, unsigned flags) {
    if (flags != 1 || !captures_on(stream)) return INVALID_VALUE;
    return safe_call([=] {
        return device().event_record_external(number(event), number(stream));
    });
}
EXPORT int cuGraphDebugDotPrint(void* graph, const char* path, unsigned flags) {
    if (flags != 1) return INVALID_VALUE;
    return unsafe_call([=] { return device().graph_dump(number(graph), path); });
}
EXPORT int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
    if (flags > 1) return INVALID_VALUE;
    return safe_call([=] {
        if (flags && captures_on(stream))
            return device().stream_wait_external(number(stream), number(event));
        return flags ? INVALID_VALUE
                     : device().stream_wait_event(number(stream), number(event));
    });
}
