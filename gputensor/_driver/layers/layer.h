// Layers: tables that forward to another table and add one small step.
//
// A layer is one policy: `before` may refuse a call (a status other than 0), `after` sees the
// status and the arguments. Layer writes the forwarding functions for it. Stack holds the
// layers of one device in their order, outermost first: trace, counting, fault, cost, device. So a
// call that the fault layer refuses is traced and counted, but costs nothing and goes no further.
// The trace layer is always there; the others join it, at any time, when the device is observed.
#pragma once

#include <atomic>
#include <vector>

#include "gputensor/_driver/layers/cost_model.h"
#include "gputensor/_driver/layers/mailbox.h"
#include "gputensor/_driver/entries.h"

namespace gputensor {

// How often each entry was called.
struct CountingPolicy {
    std::atomic<uint64_t> counts[DRIVER_ENTRY_COUNT] = {};

    int before(int entry) {
        counts[entry].fetch_add(1, std::memory_order_relaxed);
        return OK;
    }
    template <int ID, class... Args> void after(int, Args...) {}
};

// Refuses one call: the k-th from now, of one entry or of any.
struct FaultPolicy {
    std::atomic<int64_t> countdown{0};  // 0: no call fails
    std::atomic<int> only{-1};          // the entry that counts; -1: every entry
    std::atomic<int> status{OUT_OF_MEMORY};

    int before(int entry) {
        if (countdown.load(std::memory_order_relaxed) <= 0) return OK;
        int chosen = only.load(std::memory_order_relaxed);
        if (chosen >= 0 && chosen != entry) return OK;
        return countdown.fetch_sub(1) == 1 ? status.load() : OK;
    }
    template <int ID, class... Args> void after(int, Args...) {}

    void arm(int64_t k, int with, int entry) {
        countdown = 0;
        only = entry;
        status = with;
        countdown = k;
    }
};

// Records calls while it is on.
struct TracePolicy {
    struct Call {
        int entry;
        int status;
        int argument_count;
        uint64_t arguments[4];  // the first four; an output is given as the value written to it
    };
    std::atomic<bool> on{false};
    std::atomic<void (*)()> heard{nullptr};  // called after each call; null without listeners
    Mailbox<Call> calls;
    Mailbox<Call> unheard;

    int before(int) { return OK; }
    template <int ID, class... Args> void after(int status, Args... args) {
        auto notify = heard.load(std::memory_order_relaxed);
        if (!on.load(std::memory_order_relaxed) && !notify) return;
        Call call{ID, status, int(sizeof...(Args) < 4 ? sizeof...(Args) : 4), {}};
        int i = 0;
        ((i < 4 ? void(call.arguments[i++] = number(status, args)) : void()), ...);
        if (on) calls.add(call);
        if (!notify) return;
        unheard.add(call);
        notify();
    }

private:
    template <class T> static uint64_t number(int status, T value) {
        using Target = std::remove_pointer_t<T>;
        if constexpr (!std::is_pointer_v<T>) {
            return uint64_t(value);
        } else if constexpr (std::is_integral_v<Target> && !std::is_const_v<Target>) {
            return status || !value ? 0 : uint64_t(*value);
        } else {
            return reinterpret_cast<uint64_t>(value);
        }
    }
};

template <class Table, class Policy> struct Layer {
    Table table;
    std::atomic<Table*> inner;
    Policy policy;

    explicit Layer(Table* forwarded_to) : table(*forwarded_to), inner(forwarded_to) {
        table.self = this;
#define X(name) table.name = &Forward<ENTRY_##name, &Table::name>::call;
        GPUTENSOR_DRIVER_ENTRIES(X)
#undef X
        static_assert(sizeof(Table) == (4 + DRIVER_ENTRY_COUNT) * sizeof(void*),
                      "entries.h and struct Driver name different entries");
    }

private:
    template <int ID, auto Member> struct Forward;
    template <int ID, class... Args, int (*Table::*Member)(void*, Args...)>
    struct Forward<ID, Member> {
        static int call(void* self, Args... args) {
            auto* layer = static_cast<Layer*>(self);
            int status = layer->policy.before(ID);
            Table* inner = layer->inner.load(std::memory_order_acquire);
            if (!status) status = (inner->*Member)(inner->self, args...);
            layer->policy.template after<ID>(status, args...);
            return status;
        }
    };
};

template <class Table> struct Stack {
    Layer<Table, CostPolicy> cost;
    Layer<Table, FaultPolicy> fault;
    Layer<Table, CountingPolicy> counting;
    Layer<Table, TracePolicy> trace;

    explicit Stack(Table* device)
        : cost(device), fault(&cost.table), counting(&fault.table), trace(device) {}
    Stack(const Stack&) = delete;

    void observe() { trace.inner.store(&counting.table, std::memory_order_release); }
    bool is_observed() { return trace.inner == &counting.table; }

    Table* outermost() { return &trace.table; }
    Table* device() { return cost.inner; }
    uint64_t count(int entry) { return counting.policy.counts[entry]; }
    void reset_counts() {
        for (auto& count : counting.policy.counts) count = 0;
        cost.policy.nanoseconds = 0;
    }
    void fail(int64_t k, int status, int entry) { fault.policy.arm(k, status, entry); }
    uint64_t modelled_nanoseconds() { return cost.policy.nanoseconds; }
    void start_trace() {
        take_trace();
        trace.policy.on = true;
    }
    // In the child of a fork: another thread may have held these locks in the middle of a change.
    void renew() {
        trace.policy.calls.renew();
        trace.policy.unheard.renew();
        cost.policy.renew();
    }
    // `notify` is called after each call of the device, in its thread, which may hold any lock.
    void listen(void (*notify)()) { trace.policy.heard = notify; }
    std::vector<TracePolicy::Call> take_unheard() { return trace.policy.unheard.take(); }
    std::vector<TracePolicy::Call> take_trace() {
        trace.policy.on = false;
        return trace.policy.calls.take();
    }
};

}  // namespace gputensor
