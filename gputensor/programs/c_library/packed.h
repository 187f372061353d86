// Entries of a file that are zlib streams (ahead/packed.py), decompressed by the machine's zlib.
//
// zlib is loaded when the first stream is read. The library links neither to it nor to the driver.
#pragma once

#include <dlfcn.h>

#include <string_view>

#include "gputensor/programs/c_library/program_file.h"

namespace gputensor {

// The bytes of an entry, decompressed if it is a stream.
struct PlainEntry {
    static constexpr int64_t MOST_NBYTES = 1 << 28;

    PlainEntry() = default;
    PlainEntry(const std::string& name, const FileEntry& entry, Json::Value size)
        : PlainEntry(name, entry, size ? size.integer("packed", 1, MOST_NBYTES) : 0) {}
    // `size` is the decompressed size that the file declares, which limits the memory; 0: no stream.
    PlainEntry(const std::string& name, const FileEntry& entry, int64_t size)
        : bytes(entry.data, entry.nbytes) {
        if (!size) return;
        // A zlib stream expands each byte to at most 1,032.
        unsigned long wanted = (unsigned long)size, nbytes = wanted;
        if (nbytes / 1032 > entry.nbytes) throw FileFault(name + ": got too few bytes for its size");
        made = std::make_unique<char[]>(nbytes);
        int status = uncompress()(reinterpret_cast<unsigned char*>(made.get()), &nbytes,
                                  reinterpret_cast<const unsigned char*>(entry.data),
                                  (unsigned long)entry.nbytes);
        if (status || nbytes != wanted)
            throw FileFault(name + ": got other bytes; expected a zlib stream of " +
                            std::to_string(wanted));
        bytes = std::string_view(made.get(), nbytes);
    }

    std::string_view bytes;

private:
    using Uncompress = int (*)(unsigned char*, unsigned long*, const unsigned char*, unsigned long);

    static Uncompress uncompress() {
        static const Uncompress found = [] {
            void* library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
            return library ? reinterpret_cast<Uncompress>(dlsym(library, "uncompress")) : nullptr;
        }();
        if (!found)
            throw FileFault("is compressed, and libz.so.1 cannot be loaded; save it with "
                            "compress=False");
        return found;
    }

    std::unique_ptr<char[]> made;
};

}  // namespace gputensor
