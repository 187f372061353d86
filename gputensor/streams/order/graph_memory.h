// The records of graph_memory.pxi: memory of graphs, and its uses in captures that replay them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <new>
#include <unordered_set>
#include <vector>

#include "gputensor/streams/order/captured.h"

namespace gputensor {

// Memory has a name: that of the pool of graphs in which it lies, and those of the captures that
// used it from outside of their own pools.
inline uint64_t name_of_pool(uint64_t pool_id) { return 2 * pool_id; }
inline uint64_t name_of_capture(uint64_t capture_id) { return 2 * capture_id + 1; }
inline uint64_t pool_of_name(uint64_t name) { return name % 2 ? 0 : name / 2; }

using Names = std::vector<uint64_t>;
using LiveCaptures = std::unordered_set<uint64_t>;  // captures, and those of live graphs

inline bool has(const Names& names, uint64_t name) {
    return std::find(names.rbegin(), names.rend(), name) != names.rend();
}
inline void add_once(Names& names, uint64_t name) {
    if (!has(names, name)) names.push_back(name);
}

struct CaptureUse {
    uint64_t capture_id;
    bool wrote;
};

// The captures that used the memory behind one use log. Captures into the pool in which it lies are
// not listed.
struct CaptureUses {
    uint64_t pool_id;              // the pool of graphs in which the memory lies; 0: in none
    std::vector<CaptureUse> uses;  // at most one of each capture
    size_t prune_at = 4;           // at this length, those of released graphs are removed
    // The latest use. Nothing is new if the next one is the same.
    uint64_t capture_id = 0, stream = 0;
    int replays = 0;
    bool wrote = false;  // this use, or one of the same kind before it

    explicit CaptureUses(uint64_t pool_id) : pool_id(pool_id) {}

    void note(uint64_t capture_id, bool wrote, const LiveCaptures& live) {
        for (CaptureUse& use : uses)
            if (use.capture_id == capture_id) {
                use.wrote |= wrote;
                return;
            }
        if (uses.size() >= prune_at) {
            auto is_over = [&](const CaptureUse& use) { return !live.count(use.capture_id); };
            uses.erase(std::remove_if(uses.begin(), uses.end(), is_over), uses.end());
            prune_at = 2 * uses.size() + 4;
        }
        uses.push_back({capture_id, wrote});
    }
};

// The order of the uses of some memory in one capture.
struct MemoryOrder {
    enum : uint64_t { NO_STREAM = ~uint64_t(0) };
    uint64_t replay = NO_STREAM;  // the stream of the latest replay that may use it
    Names users;                  // streams that used it since then, and come after that replay

    // Adds the stream that a use on `stream` has to wait for.
    void use_waits(uint64_t stream, Names& waits) const {
        if (replay != NO_STREAM && replay != stream && !has(users, stream)) add_once(waits, replay);
    }
    // Adds those that a replay has to wait for.
    void replay_waits(uint64_t stream, Names& waits) const {
        use_waits(stream, waits);
        for (uint64_t user : users)
            if (user != stream) add_once(waits, user);
    }
};

// The memory of graphs in one capture. Functions that return false ran out of memory.
struct CaptureMemory {
    uint64_t capture_id, pool_id;
    int replays = 0;
    Names own;  // memory that every replay of the capture's graph uses
    std::map<uint64_t, MemoryOrder> orders;
    MemoryOrder& of_pool;   // that of the capture's own pool
    CaptureUses pool_uses;  // stands for those of all memory in that pool

    CaptureMemory(uint64_t capture_id, uint64_t pool_id)
        : capture_id(capture_id), pool_id(pool_id),
          own{name_of_pool(pool_id), name_of_capture(capture_id)},
          of_pool(orders[name_of_pool(pool_id)]), pool_uses(pool_id) {}
    CaptureMemory(const CaptureMemory&) = delete;

    // The names of all memory besides the own pool that work with a use of this memory may use. Two
    // uses that only read have no order.
    template <class Function>
    void each_name(const CaptureUses& log, bool is_write, Function function) const {
        if (log.pool_id && log.pool_id != pool_id) function(name_of_pool(log.pool_id));
        for (const CaptureUse& use : log.uses)
            if (use.capture_id != capture_id && (use.wrote || is_write))
                function(name_of_capture(use.capture_id));
    }

    bool is_known(const CaptureUses& latest, uint64_t stream, bool is_write) const {
        return latest.capture_id == capture_id && latest.stream == stream &&
               latest.replays == replays && latest.wrote >= is_write;
    }

    // Any work may use scratch memory, which has no log, of the own pool.
    bool use_waits(CaptureUses& log, uint64_t stream, bool is_write, Names& waits,
                   const LiveCaptures& live) noexcept try {
        if (log.pool_id != pool_id) log.note(capture_id, is_write, live);
        of_pool.use_waits(stream, waits);
        each_name(log, is_write, [&](uint64_t name) { orders[name].use_waits(stream, waits); });
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }

    // The use is ordered.
    bool use_ordered(CaptureUses& log, uint64_t stream, bool is_write) noexcept try {
        add_once(of_pool.users, stream);
        each_name(log, is_write, [&](uint64_t name) { add_once(orders[name].users, stream); });
        log.wrote = is_write || is_known(log, stream, true);
        log.capture_id = capture_id;
        log.stream = stream;
        log.replays = replays;
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }

    void names_of(const CaptureUses& log, bool is_write, Names& names) const {
        names.push_back(name_of_pool(pool_id));
        each_name(log, is_write, [&](uint64_t name) { names.push_back(name); });
    }

    // Makes room for replay_queued, too.
    bool replay_waits(const Captured& graph, uint64_t stream, Names& waits) noexcept try {
        for (uint64_t name : graph.own) orders[name].replay_waits(stream, waits);
        for (uint64_t name : graph.shared) {
            MemoryOrder& order = orders[name];
            order.use_waits(stream, waits);
            order.users.reserve(order.users.size() + 1);
        }
        own.reserve(own.size() + graph.own.size());
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }

    void replay_queued(const Captured& graph, uint64_t stream) noexcept {
        for (uint64_t name : graph.shared) add_once(orders[name].users, stream);
        for (uint64_t name : graph.own) {
            orders[name].replay = stream;
            orders[name].users.clear();
            add_once(own, name);
        }
        ++replays;
    }

    // The capture is over: fills in what a replay of its graph uses.
    bool finish(Captured& graph) noexcept try {
        graph.own = own;
        for (auto& [name, order] : orders)
            if (!has(own, name)) graph.shared.push_back(name);
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
};

}  // namespace gputensor
