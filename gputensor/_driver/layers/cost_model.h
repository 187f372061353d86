// Models what driver calls would have cost on a GPU.
//
// Each successful call is charged the host time measured for it on one H200 (driver 580);
// DESIGN.md has the table. Costs that grow with size are interpolated between the measured sizes.
// A pair measured together (allocate and free) is charged half and half. cuMemSetAccess and
// cuMemUnmap take time for each physical handle, so the layer remembers the sizes of allocations,
// pages and mappings. Waiting is not a cost of the driver: synchronising is free.
#pragma once

#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <type_traits>

#include "gputensor/_driver/entries.h"

namespace gputensor {

struct CostPolicy {
    std::atomic<uint64_t> nanoseconds{0};

    int before(int) { return OK; }

    template <int ID, class... Args> void after(int status, Args... args) {
        if (status) return;
        if constexpr (ID == ENTRY_mem_alloc) {
            allocated(args...);
        } else if constexpr (ID == ENTRY_mem_free) {
            charge(half_pair(forget(allocations, args...)));
        } else if constexpr (ID == ENTRY_page_create) {
            created(args...);
        } else if constexpr (ID == ENTRY_page_destroy) {
            charge(release(forget(pages, args...)));
        } else if constexpr (ID == ENTRY_page_map) {
            mapped(args...);
        } else if constexpr (ID == ENTRY_page_unmap) {
            unmapped(args...);
        } else {
            charge(flat(ID));
        }
    }

    // In the child of a fork (see Stack): drops the sizes, which are of the parent's memory.
    void renew() {
        new (&mutex) std::mutex;
        for (Sizes* sizes : {&allocations, &pages, &mappings}) new (sizes) Sizes;
    }

private:
    struct Point { double nbytes, microseconds; };
    static constexpr double MIB = 1 << 20;

    static double flat(int entry) {
        switch (entry) {
        case ENTRY_event_record: return 0.27;
        case ENTRY_event_query:
        case ENTRY_stream_query: return 0.29;
        case ENTRY_stream_wait_event:
        case ENTRY_wait_for_peer: return 0.08;
        case ENTRY_kernel_launch:
        case ENTRY_host_launch:
        case ENTRY_graph_launch:
        case ENTRY_copy_async:
        case ENTRY_copy_to_peer:
        case ENTRY_fill_async: return 3.4;
        case ENTRY_async_alloc:
        case ENTRY_async_free: return 0.6;
        case ENTRY_va_reserve:
        case ENTRY_va_release: return 5;
        default: return 0;
        }
    }

    template <size_t N> static double line(const Point (&points)[N], double nbytes) {
        if (nbytes <= points[0].nbytes) return points[0].microseconds;
        size_t i = 1;
        while (i < N - 1 && nbytes > points[i].nbytes) i++;
        const Point &from = points[i - 1], &to = points[i];
        return from.microseconds + (to.microseconds - from.microseconds) *
                                       (nbytes - from.nbytes) / (to.nbytes - from.nbytes);
    }

    static double half_pair(double nbytes) {
        static const Point points[] = {{2 * MIB, 125}, {256 * MIB, 220}, {2048 * MIB, 1000}};
        return line(points, nbytes) / 2;
    }
    static double create(double nbytes) {
        static const Point points[] = {{2 * MIB, 14}, {20 * MIB, 9}, {128 * MIB, 35}};
        return line(points, nbytes);
    }
    static double release(double nbytes) {
        static const Point points[] = {
            {2 * MIB, 24}, {20 * MIB, 33}, {128 * MIB, 90}, {1024 * MIB, 680}};
        return line(points, nbytes);
    }

    void charge(double microseconds) {
        nanoseconds.fetch_add(uint64_t(microseconds * 1000 + 0.5), std::memory_order_relaxed);
    }

    using Sizes = std::map<uint64_t, size_t>;

    double forget(Sizes& sizes, uint64_t key) {
        std::lock_guard<std::mutex> guard(mutex);
        auto found = sizes.find(key);
        if (found == sizes.end()) return 0;
        double nbytes = double(found->second);
        sizes.erase(found);
        return nbytes;
    }
    void allocated(uint64_t* ptr, size_t nbytes) {
        std::lock_guard<std::mutex> guard(mutex);
        allocations[*ptr] = nbytes;
        charge(half_pair(double(nbytes)));
    }
    void created(uint64_t* page, size_t nbytes) {
        std::lock_guard<std::mutex> guard(mutex);
        pages[*page] = nbytes;
        charge(create(double(nbytes)));
    }
    void mapped(uint64_t va, size_t nbytes, uint64_t) {
        std::lock_guard<std::mutex> guard(mutex);
        mappings[va] = nbytes;
        charge(1.5 + 30);
    }
    void unmapped(uint64_t va, size_t nbytes) {
        std::lock_guard<std::mutex> guard(mutex);
        auto first = mappings.lower_bound(va), last = mappings.lower_bound(va + nbytes);
        charge(18.5 * double(std::distance(first, last)));
        mappings.erase(first, last);
    }

    std::mutex mutex;
    Sizes allocations, pages, mappings;
};

}  // namespace gputensor
