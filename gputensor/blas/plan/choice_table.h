// Choices by device and a few integers, copied from Python and read while planning.
//
// A device is filled as a whole, under the GIL; lookups need no GIL and hold a lock while they run.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <utility>

namespace gputensor {

template <class Choice> class ChoiceTable {
public:
    enum { BATCH = 3, LEADING = 4, OTHERS = 12, COUNT = 26 };   // places in FIELDS (signature.pxi)

    bool is_filled(int device) {
        std::lock_guard<std::mutex> guard(mutex);
        return filled.count(device) != 0;
    }

    void put(int device, const int64_t* numbers, int count, const Choice& choice) {
        std::lock_guard<std::mutex> guard(mutex);
        all[key_of(device, numbers, count)] = choice;
    }

    void set_filled(int device) {
        std::lock_guard<std::mutex> guard(mutex);
        filled.insert(device);
    }

    void forget() {
        std::lock_guard<std::mutex> guard(mutex);
        all.clear();
        filled.clear();
    }

    bool find(int device, const int64_t* numbers, int count, Choice* choice) {
        std::lock_guard<std::mutex> guard(mutex);
        auto found = all.find(key_of(device, numbers, count));
        if (found == all.end()) return false;
        *choice = found->second;
        return true;
    }

    // The choice of the nearest signature of the device, if one is near.
    bool near(int device, const int64_t* numbers, Choice* choice) {
        std::lock_guard<std::mutex> guard(mutex);
        double best = std::numeric_limits<double>::infinity();
        for (const auto& row : all) {
            if (row.first.first != device) continue;
            const double there = distance(numbers, row.first.second.data());
            if (there < best) {
                best = there;
                *choice = row.second;
            }
        }
        return best < std::numeric_limits<double>::infinity();
    }

    // Called in the child of a fork, where the thread that held the lock does not exist.
    void after_fork() { new (&mutex) std::mutex; }

private:
    using Key = std::pair<int, std::array<int64_t, COUNT>>;

    static Key key_of(int device, const int64_t* numbers, int count) {
        Key key(device, {});
        std::copy(numbers, numbers + count, key.second.begin());
        return key;
    }

    // The number of tiles that a size fills, and the size of the tiles.
    static std::pair<int64_t, int64_t> tiles(int64_t size) {
        const int64_t tile = size > 64 ? 64 : 16;
        return {(size + tile - 1) / tile, tile};
    }

    // The distance of two signatures; infinite when they are not near or differ in other facts.
    // Sizes may differ by a quarter. Leading dimensions and strides may differ too, if both or
    // neither are multiples of 8 elements. With a tenth more rows, borrowed algorithms were 0.55 to
    // 1.46 times as fast as the library's first choice.
    static double distance(const int64_t* one, const int64_t* other) {
        const double apart = std::numeric_limits<double>::infinity();
        double total = 0;
        for (int i = 0; i <= BATCH; ++i) {
            const double ratio = (double)std::max(one[i], other[i]) / std::min(one[i], other[i]);
            if (ratio > 1.25 || (i < 2 && tiles(one[i]) != tiles(other[i]))) return apart;
            total += std::log(ratio);
        }
        for (int i = LEADING; i < OTHERS; ++i)
            if ((one[i] % 8 == 0) != (other[i] % 8 == 0)) return apart;
        return std::equal(one + OTHERS, one + COUNT, other + OTHERS) ? total : apart;
    }

    std::mutex mutex;
    std::map<Key, Choice> all;
    std::set<int> filled;
};

}  // namespace gputensor
