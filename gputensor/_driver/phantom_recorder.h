// The records of a phantom GPU (host/phantom_gpu.h): its work, and the memory that it allocated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "gputensor/_driver/entries.h"
#include "gputensor/_driver/launch_record.h"

namespace gputensor {

// Memory that was allocated while records were kept.
struct PhantomScratch {
    uint64_t ptr, nbytes;
};

struct PhantomRecords {
    std::vector<LaunchRecord> records;  // `kernel` is not set
    std::vector<uint64_t> functions;    // of each record; 0: no kernel
    std::vector<uint64_t> words;
    std::vector<PhantomScratch> scratch;
    int refused = 0;  // calls that no record can hold
};

// Work between `keep` and `take` is recorded; other work is refused, so that no caller takes it for
// done. The mutex is innermost: no function is called with it held.
class PhantomRecorder {
public:
    void keep() {
        Guard guard(mutex);
        kept = {};
        is_keeping = true;
    }
    PhantomRecords take() {
        Guard guard(mutex);
        is_keeping = false;
        PhantomRecords found;
        std::swap(found, kept);
        for (size_t i = 0; i < found.records.size(); i++) {
            auto most = most_shared.find(found.functions[i]);
            if (most != most_shared.end()) found.records[i].most_shared_nbytes = most->second;
        }
        return found;
    }

    // Whether an address is in memory that the device has allocated at any time.
    bool gave(uint64_t address) {
        Guard guard(mutex);
        for (const PhantomScratch& one : given)
            if (address - one.ptr < one.nbytes) return true;
        return false;
    }
    void give(uint64_t ptr, size_t nbytes) {
        Guard guard(mutex);
        given.push_back({ptr, nbytes});
        if (is_keeping) kept.scratch.push_back({ptr, nbytes});
    }

    int add(LaunchRecord record, uint64_t function, const void* parameters, size_t nbytes) {
        Guard guard(mutex);
        if (!is_keeping) return NOT_SUPPORTED;
        record.first_word = uint32_t(kept.words.size());
        record.nbytes = uint32_t(nbytes);
        kept.words.resize(kept.words.size() + (nbytes + 7) / 8);
        memcpy(kept.words.data() + record.first_word, parameters, nbytes);
        kept.records.push_back(record);
        kept.functions.push_back(function);
        return OK;
    }
    // A product that a library would queue.
    int product(const void* described, size_t nbytes) {
        return add({LAUNCH_PRODUCT}, 0, described, nbytes);
    }
    int refuse() {
        Guard guard(mutex);
        kept.refused++;
        return NOT_SUPPORTED;
    }

    uint64_t new_handle() {
        Guard guard(mutex);
        return ++last_handle;
    }
    void allow_shared(uint64_t function, uint32_t nbytes) {
        Guard guard(mutex);
        uint32_t& most = most_shared[function];
        most = std::max(most, nbytes);
    }

private:
    using Guard = std::lock_guard<std::mutex>;

    std::mutex mutex;
    bool is_keeping = false;
    PhantomRecords kept;
    std::vector<PhantomScratch> given;
    std::map<uint64_t, uint32_t> most_shared;  // by function
    uint64_t last_handle = 0;
};

}  // namespace gputensor
