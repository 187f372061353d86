// The records of graph_streams.pxi and marks.pxi.
#pragma once

#include <cstdint>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gputensor {

// An event after some work of a stream, shared by everything that may have to wait for that work.
struct Mark {
    int holders;      // changed atomically
    uint64_t event;
    uint64_t stream;
    uint64_t moment;  // of a replay: later ones on the stream have later moments; 0: no replay
};

// A stream of a graph, or one that used memory of a graph, or a private stream.
struct GraphStream {
    uint64_t stream = 0;
    uint64_t visit = 0;       // the latest search that found it
    Mark* after = nullptr;    // of a private stream: the replay that its work would come after
    int graphs = 0;           // graphs and captures that it takes part in
    bool is_private = false;  // only captures queue work on it
    bool is_given = false;    // the driver's queue of the stream contains the waits for its marks
    std::vector<Mark*> more;  // marks besides `after`, from the end of a capture to the next replay
    std::vector<GraphStream*> users;  // streams that used memory after this one
};

// Appends to a vector; false without memory.
template <class T>
bool appended(std::vector<T>& to, T value) noexcept {
    try {
        to.push_back(value);
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

// Searches from the end: a stream that uses memory of many graphs was often the latest to do so.
inline bool has_user(const GraphStream* of, const GraphStream* user) {
    for (size_t i = of->users.size(); i > 0; --i)
        if (of->users[i - 1] == user) return true;
    return false;
}

inline void mark_hold(Mark* mark, int times = 1) {
    __atomic_fetch_add(&mark->holders, times, __ATOMIC_RELAXED);
}
inline bool mark_is_shared(const Mark* mark) {
    return __atomic_load_n(&mark->holders, __ATOMIC_ACQUIRE) > 1;
}
// Whether these were the last holders.
inline bool mark_let_go(Mark* mark, int times = 1) {
    return __atomic_sub_fetch(&mark->holders, times, __ATOMIC_ACQ_REL) == 0;
}

// Whether a wait for `mark` includes one for `held`, which was made before it.
inline bool mark_covers(const Mark* mark, const Mark* held) {
    return mark->stream == held->stream && !mark->moment == !held->moment &&
           mark->moment >= held->moment;
}

// Adds a mark, held, if `waiter` has to wait for it; of the replays on one stream only the latest
// stays. False without memory.
inline bool waits_add_one(std::vector<Mark*>& waits, Mark* mark, uint64_t waiter) noexcept {
    if (mark->stream == waiter) return true;
    for (size_t i = waits.size(); i > 0; --i) {
        Mark*& other = waits[i - 1];
        if (other == mark) return true;
        if (other->stream != mark->stream || !other->moment || !mark->moment) continue;
        if (other->moment < mark->moment) {
            mark_hold(mark);
            mark_let_go(other);  // never its last holder: the record that it came from holds it
            other = mark;
        }
        return true;
    }
    if (!appended(waits, mark)) return false;
    mark_hold(mark);
    return true;
}

// The same for all marks of a private stream.
inline bool waits_add(std::vector<Mark*>& waits, const GraphStream* of, uint64_t waiter) noexcept {
    if (of->after && !waits_add_one(waits, of->after, waiter)) return false;
    for (Mark* mark : of->more)
        if (!waits_add_one(waits, mark, waiter)) return false;
    return true;
}

// The records of one device, by the handle of the stream. They live until the device closes.
class StreamTable {
    std::unordered_map<uint64_t, GraphStream> of;

  public:
    GraphStream* find(uint64_t stream) {
        auto found = of.find(stream);
        return found == of.end() ? nullptr : &found->second;
    }
    // Null without memory.
    GraphStream* make(uint64_t stream) noexcept {
        try {
            GraphStream* made = &of[stream];
            made->stream = stream;
            return made;
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
    }
    int member_count() const {
        int count = 0;
        for (auto& [stream, record] : of) count += record.graphs > 0;
        return count;
    }
    int private_count() const {
        int count = 0;
        for (auto& [stream, record] : of) count += record.is_private;
        return count;
    }
    // Removes one mark from the records; null if they hold none.
    Mark* take_mark() {
        for (auto& [stream, record] : of) {
            if (!record.after && !record.more.empty()) {
                record.after = record.more.back();
                record.more.pop_back();
            }
            if (record.after) return std::exchange(record.after, nullptr);
        }
        return nullptr;
    }
};

}  // namespace gputensor
