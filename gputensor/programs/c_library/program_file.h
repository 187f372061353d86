// A mapped safetensors file: its metadata and entries, after a check of both.
//
// The header is untrusted: entries must be inside the file, contiguous, and of the size that their
// types and shapes require.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>

#include "gputensor/programs/c_library/json.h"

namespace gputensor {

struct FileEntry {
    std::string type;
    const char* data;
    uint64_t nbytes;
    std::vector<int64_t> shape;
};

class MappedFile {
public:
    explicit MappedFile(const std::string& path) {
        // Without O_NONBLOCK, opening a pipe would wait for a writer.
        int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (file < 0) throw FileFault(std::string("cannot be opened: ") + strerror(errno));
        struct stat facts;
        if (fstat(file, &facts) || !S_ISREG(facts.st_mode) || facts.st_size < 10) {
            close(file);
            throw FileFault("is not a regular file with a header");
        }
        size = size_t(facts.st_size);
        void* found = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
        close(file);
        if (found == MAP_FAILED) throw FileFault(std::string("cannot be mapped: ") + strerror(errno));
        data = static_cast<const char*>(found);
        try {
            read_header();
        } catch (...) {
            munmap(const_cast<char*>(data), size);
            throw;
        }
    }
    ~MappedFile() { munmap(const_cast<char*>(data), size); }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    const FileEntry& entry(const std::string& name) const {
        auto found = entries.find(name);
        if (found == entries.end()) throw FileFault("has no entry " + shown(name));
        return found->second;
    }

    static std::string shown(const std::string& text) {
        std::string found;
        for (char c : text.substr(0, 60)) found += c >= ' ' && c <= '~' ? c : '?';
        return "'" + found + "'";
    }

    std::map<std::string, std::string> metadata;
    std::map<std::string, FileEntry> entries;

private:
    static constexpr uint64_t MOST_HEADER = 64 << 20;
    static constexpr size_t MOST_ENTRIES = 100000;
    static constexpr int64_t MOST = int64_t(1) << 62;

    static int64_t itemsize(const std::string& type) {
        static const std::map<std::string, int> sizes = {
            {"BOOL", 1}, {"I8", 1},  {"U8", 1},   {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I16", 2},
            {"U16", 2},  {"F16", 2}, {"BF16", 2}, {"I32", 4},     {"U32", 4},     {"F32", 4},
            {"I64", 8},  {"U64", 8}, {"F64", 8},  {"C64", 8}};
        auto found = sizes.find(type);
        return found == sizes.end() ? 0 : found->second;
    }

    void read_header() {
        uint64_t length;
        memcpy(&length, data, 8);
        if (length < 2 || length > MOST_HEADER || length > size - 8)
            throw FileFault("header: got " + std::to_string(length) + " bytes; expected 2 to " +
                            std::to_string(std::min<uint64_t>(MOST_HEADER, size - 8)));
        Json header(data + 8, length, 32 * MOST_ENTRIES, 8);
        if (!header.root().is('{')) throw FileFault("the header is not a JSON object");
        for (auto& [name, value] : header.root().table())
            if (name == "__metadata__") {
                value.each([&](const std::string& key, Json::Value text) {
                    metadata[key] = text.text();
                });
            } else {
                add(name, value, 8 + length);
            }
        check_places(8 + length);
    }

    void add(const std::string& name, Json::Value fields, uint64_t start) {
        FileEntry made;
        made.type = fields["dtype"].text();
        int64_t count = 1;
        fields["shape"].items([&](Json::Value extent) {
            int64_t found = extent.integer("shape", 0, MOST);
            if (found && count > MOST / found) throw FileFault(shown(name) + " is too large");
            count *= found;
            made.shape.push_back(found);
        });
        std::vector<Json::Value> ends = fields["data_offsets"].items();
        if (ends.size() != 2) throw FileFault(shown(name) + " does not have two data_offsets");
        int64_t first = ends[0].integer("data_offsets", 0, MOST);
        int64_t last = ends[1].integer("data_offsets", first, MOST);
        int64_t wanted = itemsize(made.type);
        if (uint64_t(last) > size - start || (wanted && (count > MOST / 8 || last - first != count * wanted)))
            throw FileFault(shown(name) + " has another size than it declares");
        made.data = data + start + first;
        made.nbytes = uint64_t(last - first);
        entries.emplace(name, made);
    }

    void check_places(uint64_t start) {
        if (entries.size() > MOST_ENTRIES) throw FileFault("has too many entries");
        std::vector<const FileEntry*> sorted;
        for (auto& one : entries) sorted.push_back(&one.second);
        std::sort(sorted.begin(), sorted.end(), [](const FileEntry* a, const FileEntry* b) {
            return a->data != b->data ? a->data < b->data : a->nbytes < b->nbytes;
        });
        const char* place = data + start;
        for (const FileEntry* one : sorted) {
            if (one->data != place) throw FileFault("has entries that overlap or leave a gap");
            place += one->nbytes;
        }
        if (place != data + size) throw FileFault("has bytes that belong to no entry");
    }

    const char* data;
    size_t size;
};

// The path of a file inside the folder of another file, with links resolved.
inline std::string path_beside(const std::string& path, const std::string& name) {
    auto resolved = [](const std::string& text) {
        std::unique_ptr<char, decltype(&free)> found(realpath(text.c_str(), nullptr), free);
        return found ? std::string(found.get()) : "";
    };
    size_t slash = path.rfind('/');
    std::string folder = resolved(slash == std::string::npos ? "." : path.substr(0, slash + 1));
    std::string found = resolved(folder + "/" + name);
    std::string inside = folder == "/" ? folder : folder + "/";
    if (name.empty() || name[0] == '/' || name.find('\0') != std::string::npos)
        throw FileFault("names weights outside its folder");
    if (found.empty()) throw FileFault("needs its weights, " + MappedFile::shown(name) + ", which cannot be found");
    if (found.compare(0, inside.size(), inside)) throw FileFault("names weights outside its folder");
    return found;
}

}  // namespace gputensor
