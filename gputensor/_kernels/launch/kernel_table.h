// Kernels by an integer key, found without a lock.
//
// An open-addressed table that only grows. Writers hold the GIL; readers hold no lock. A place is
// published by its value, and a larger table as a whole. Smaller tables stay, since readers may
// still use them: together they take as much memory as the last one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gputensor {

class KernelTable {
public:
    void* find(uint64_t key) const {
        const Places* places = current.load(std::memory_order_acquire);
        if (!places) return nullptr;
        for (size_t i = mix(key) & places->mask;; i = (i + 1) & places->mask) {
            void* value = places->all[i].value.load(std::memory_order_acquire);
            if (!value || places->all[i].key == key) return value;
        }
    }

    // For a key that is not in the table.
    void insert(uint64_t key, void* value) {
        Places* places = current.load(std::memory_order_relaxed);
        if (!places || 2 * (count + 1) > places->mask) {
            Places* larger = new Places(places ? 2 * (places->mask + 1) : 16);
            for (size_t i = 0; places && i <= places->mask; i++)
                if (void* old = places->all[i].value.load(std::memory_order_relaxed))
                    larger->put(places->all[i].key, old);
            current.store(places = larger, std::memory_order_release);
        }
        places->put(key, value);
        count++;
    }

private:
    struct Place {
        uint64_t key = 0;
        std::atomic<void*> value{nullptr};
    };

    struct Places {
        explicit Places(size_t size) : mask(size - 1), all(new Place[size]) {}

        void put(uint64_t key, void* value) {
            size_t i = mix(key) & mask;
            while (all[i].value.load(std::memory_order_relaxed)) i = (i + 1) & mask;
            all[i].key = key;
            all[i].value.store(value, std::memory_order_release);
        }

        const size_t mask;
        Place* const all;
    };

    static size_t mix(uint64_t key) {
        key *= 0x9E3779B97F4A7C15u;
        return key ^ key >> 32;
    }

    std::atomic<Places*> current{nullptr};
    size_t count = 0;
};

}  // namespace gputensor
