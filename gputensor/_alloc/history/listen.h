// Events that allocator trackers have yet to receive: copies of records of the history.
#pragma once

#include <atomic>
#include <mutex>
#include <new>
#include <vector>

#include "gputensor/_alloc/history/ring.h"

namespace gputensor {

struct Tracked {
    int device;
    gt_record record;
};

class Trackers {
public:
    bool is_on() const { return on.load(std::memory_order_relaxed); }
    void turn(bool value) { on = value; }
    void add(int device, const gt_record& record) {
        std::lock_guard<std::mutex> guard(mutex);
        undelivered.push_back({device, record});
    }
    std::vector<Tracked> take() {
        std::lock_guard<std::mutex> guard(mutex);
        std::vector<Tracked> taken;
        taken.swap(undelivered);
        return taken;
    }
    // In the child of a fork: another thread may have held the mutex, in the middle of a change.
    void renew() {
        new (&mutex) std::mutex;
        new (&undelivered) std::vector<Tracked>;
    }

private:
    std::atomic<bool> on{false};
    std::mutex mutex;
    std::vector<Tracked> undelivered;
};

}  // namespace gputensor
