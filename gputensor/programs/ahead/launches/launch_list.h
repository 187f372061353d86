// The work of one call in binary form: records, their parameters, and patches for addresses in these.
//
// A list is made by comparing two recordings of the same call on a phantom GPU, with every span of
// memory at other addresses: a word that moved by the distance of a span is an address in it, and any
// other difference is a fault. A list is immutable: a launch copies the parameters of a record and
// sets the current addresses of the spans in the copy. A list may come from an untrusted file, so
// `check` validates every number before any launch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gputensor/_driver/launch_record.h"
#include "gputensor/_driver/phantom_recorder.h"

namespace gputensor {

// Memory that a call uses, with its address in each recording. A patch refers to it by `span`, with
// an offset that counts from `shift` bytes before its start.
struct PlacedSpan {
    uint64_t first, second, nbytes;
    uint32_t span;
    int64_t shift;
};

enum LaunchFault : int {
    LAUNCH_OK = 0,
    LAUNCH_REFUSED = 1,    // work that no record can represent
    LAUNCH_DIFFERS = 2,    // the two recordings are of different work
    LAUNCH_UNKNOWN = 3,    // a word that differs and is not an address
    LAUNCH_KEPT = 4,       // an address in memory that was kept from an earlier call
    LAUNCH_DAMAGED = 5     // numbers that a list cannot have
};

class LaunchList {
public:
    // Bytes that kernel_launch may read from the parameters of a record, for any kernel.
    static constexpr size_t MOST_PARAMETERS = 32764;
    static constexpr uint32_t MOST_SHARED = 227 << 10;

    std::vector<LaunchRecord> records;
    std::vector<uint64_t> words;
    std::vector<LaunchPatch> patches;
    size_t fault_record = 0, fault_word = 0;  // where `compare` found its fault

    int compare(const PhantomRecords& one, const PhantomRecords& two,
                const std::vector<PlacedSpan>& spans, PhantomRecorder* device) {
        if (one.refused || two.refused) return LAUNCH_REFUSED;
        if (one.records.size() != two.records.size() || one.words.size() != two.words.size())
            return LAUNCH_DIFFERS;
        records = one.records;
        words = one.words;
        patches.clear();
        for (size_t i = 0; i < records.size(); i++) {
            LaunchRecord& record = records[i];
            if (memcmp(&record, &two.records[i], sizeof(record)) ||
                one.functions[i] != two.functions[i])
                return LAUNCH_DIFFERS;
            record.first_patch = uint32_t(patches.size());
            size_t end = record.first_word + word_count(record);
            for (size_t word = record.first_word; word < end; word++) {
                int fault = explain(uint32_t(word), two.words[word], spans, device);
                if (fault) {
                    fault_record = i, fault_word = word - record.first_word;
                    return fault;
                }
            }
            record.patch_count = uint32_t(patches.size()) - record.first_patch;
        }
        return LAUNCH_OK;
    }

    // `reach` has for each span the least and largest offset from its address for a patch.
    int check(size_t kernel_count, size_t product_nbytes,
              const std::vector<std::pair<int64_t, int64_t>>& reach) const {
        uint64_t word = 0, patch = 0;
        for (const LaunchRecord& record : records) {
            if (record.first_word != word || record.first_patch != patch) return LAUNCH_DAMAGED;
            if (!is_sound(record, kernel_count, product_nbytes)) return LAUNCH_DAMAGED;
            word += word_count(record);
            patch += record.patch_count;
            if (word > words.size() || patch > patches.size()) return LAUNCH_DAMAGED;
            for (uint64_t i = record.first_patch; i < patch; i++) {
                const LaunchPatch& one = patches[i];
                if (one.word < record.first_word || one.word >= word) return LAUNCH_DAMAGED;
                if (one.span >= reach.size()) return LAUNCH_DAMAGED;
                auto [below, above] = reach[one.span];
                if (one.offset < below || one.offset > above) return LAUNCH_DAMAGED;
            }
            if (!is_inside(record, reach)) return LAUNCH_DAMAGED;
        }
        return word == words.size() && patch == patches.size() ? LAUNCH_OK : LAUNCH_DAMAGED;
    }

    // Writes the parameters of a record with these addresses to `out`, of MOST_PARAMETERS bytes.
    void fill(const LaunchRecord& record, const uint64_t* addresses, uint64_t* out) const {
        size_t count = word_count(record);
        memcpy(out, words.data() + record.first_word, count * 8);
        for (size_t i = 0; i < record.patch_count; i++) {
            const LaunchPatch& patch = patches[record.first_patch + i];
            out[patch.word - record.first_word] = addresses[patch.span] + uint64_t(patch.offset);
        }
    }

    static size_t word_count(const LaunchRecord& record) { return (size_t(record.nbytes) + 7) / 8; }

private:
    int explain(uint32_t word, uint64_t other, const std::vector<PlacedSpan>& spans,
                PhantomRecorder* device) {
        uint64_t value = words[word];
        if (value == other) return device->gave(value) ? LAUNCH_KEPT : LAUNCH_OK;
        for (const PlacedSpan& span : spans) {
            uint64_t offset = value - span.first;
            if (offset > span.nbytes || other - span.second != offset) continue;
            patches.push_back({word, span.span, int64_t(offset) + span.shift});
            words[word] = 0;
            return LAUNCH_OK;
        }
        return LAUNCH_UNKNOWN;
    }

    static bool is_sound(const LaunchRecord& record, size_t kernel_count, size_t product_nbytes) {
        if (record.reserved[0] || record.reserved[1]) return false;
        switch (record.kind) {
            case LAUNCH_KERNEL: {
                const uint32_t *grid = record.grid, *block = record.block;
                return record.kernel < kernel_count && record.nbytes <= MOST_PARAMETERS &&
                       grid[0] - 1 < 0x7fffffffu && grid[1] - 1 < 65535 && grid[2] - 1 < 65535 &&
                       block[0] - 1 < 1024 && block[1] - 1 < 1024 && block[2] - 1 < 64 &&
                       uint64_t(block[0]) * block[1] * block[2] <= 1024 &&
                       record.shared_nbytes <= MOST_SHARED &&
                       record.most_shared_nbytes <= MOST_SHARED;
            }
            case LAUNCH_COPY: return record.nbytes == sizeof(CopyWork);
            case LAUNCH_FILL: return record.nbytes == sizeof(FillWork);
            case LAUNCH_PRODUCT: return record.nbytes == product_nbytes;
            default: return false;
        }
    }

    // Whether a copy or fill stays inside its spans.
    bool is_inside(const LaunchRecord& record,
                   const std::vector<std::pair<int64_t, int64_t>>& reach) const {
        if (record.kind != LAUNCH_COPY && record.kind != LAUNCH_FILL) return true;
        const uint64_t* given = words.data() + record.first_word;
        uint64_t nbytes = given[2];
        size_t addresses = record.kind == LAUNCH_COPY ? 2 : 1;
        if (record.kind == LAUNCH_FILL) {
            if ((given[2] != 1 && given[2] != 2 && given[2] != 4) || given[3] >> 60) return false;
            nbytes = given[2] * given[3];
        }
        if (record.patch_count != addresses) return false;
        for (size_t i = 0; i < addresses; i++) {
            const LaunchPatch& patch = patches[record.first_patch + i];
            if (patch.word != record.first_word + i) return false;
            if (nbytes > uint64_t(reach[patch.span].second - patch.offset)) return false;
        }
        return true;
    }
};

}  // namespace gputensor
