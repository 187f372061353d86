// The table of plans: open addressing over atomic pointers. Readers take no lock: they load the
// table, then slots up to an empty one. Writers hold a mutex, write a slot once, and publish a
// larger table when the current one is half full. Old tables stay allocated, since a reader may be
// in one; together they are smaller than the current table. Entries are never removed one by one.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>

namespace gt_plan {

enum { KEY_NBYTES = 14 * 8, FIRST_SIZE = 256, MAX_PLANS = 65536 };

// Plan begins with its key and hash (__init__.pxd); the table reads no other field.
struct Head {
    unsigned char key[KEY_NBYTES];
    uint64_t hash;
};

struct Table {
    size_t mask;
    size_t count;
    std::atomic<Head*>* slots;
};

static std::atomic<Table*> current{nullptr};
static std::mutex mutex;

static inline Table* table_new(size_t size) {
    Table* table = new (std::nothrow) Table;
    if (!table) return nullptr;
    table->slots = new (std::nothrow) std::atomic<Head*>[size];
    if (!table->slots) {
        delete table;
        return nullptr;
    }
    for (size_t index = 0; index < size; ++index)
        table->slots[index].store(nullptr, std::memory_order_relaxed);
    table->mask = size - 1;
    table->count = 0;
    return table;
}

static inline void place(Table* table, Head* head) {
    size_t index = head->hash & table->mask;
    for (;;) {
        Head* present = table->slots[index].load(std::memory_order_relaxed);
        // A plan with an equal key is replaced. The old one may be in use and stays allocated.
        if (!present || (present->hash == head->hash &&
                         std::memcmp(present->key, head->key, KEY_NBYTES) == 0)) {
            if (!present) ++table->count;
            table->slots[index].store(head, std::memory_order_release);
            return;
        }
        index = (index + 1) & table->mask;
    }
}

}  // namespace gt_plan

static inline uint64_t plan_table_hash(const void* key) {
    uint64_t words[gt_plan::KEY_NBYTES / 8];
    std::memcpy(words, key, gt_plan::KEY_NBYTES);
    uint64_t hash = 0x9e3779b97f4a7c15ull;
    for (uint64_t word : words) {
        hash = (hash ^ word) * 0xff51afd7ed558ccdull;
        hash ^= hash >> 32;
    }
    return hash;
}

static inline void* plan_table_find(const void* key, uint64_t hash) {
    using namespace gt_plan;
    Table* table = current.load(std::memory_order_acquire);
    if (!table) return nullptr;
    for (size_t index = hash & table->mask;; index = (index + 1) & table->mask) {
        Head* head = table->slots[index].load(std::memory_order_acquire);
        if (!head) return nullptr;
        if (head->hash == hash && std::memcmp(head->key, key, KEY_NBYTES) == 0)
            return head;
    }
}

static inline bool plan_table_insert(void* plan) {
    using namespace gt_plan;
    std::lock_guard<std::mutex> guard(mutex);
    Table* table = current.load(std::memory_order_relaxed);
    if (table && table->count >= MAX_PLANS) return false;
    if (!table || 2 * (table->count + 1) > table->mask) {
        Table* larger = table_new(table ? 2 * (table->mask + 1) : FIRST_SIZE);
        if (!larger) return false;
        for (size_t index = 0; table && index <= table->mask; ++index) {
            Head* head = table->slots[index].load(std::memory_order_relaxed);
            if (head) place(larger, head);
        }
        current.store(larger, std::memory_order_release);
        table = larger;
    }
    place(table, static_cast<Head*>(plan));
    return true;
}

// The number of plans for which `counts(plan, argument)` is true.
static inline size_t plan_table_count(int (*counts)(const void*, int), int argument) {
    using namespace gt_plan;
    std::lock_guard<std::mutex> guard(mutex);
    Table* table = current.load(std::memory_order_relaxed);
    size_t found = 0;
    for (size_t index = 0; table && index <= table->mask; ++index) {
        Head* head = table->slots[index].load(std::memory_order_relaxed);
        found += head && counts(head, argument);
    }
    return found;
}

// Called in the child of a fork, where a thread that was adding a plan does not exist.
static inline void plan_table_after_fork() { new (&gt_plan::mutex) std::mutex; }

static inline void plan_table_forget() {
    std::lock_guard<std::mutex> guard(gt_plan::mutex);
    gt_plan::current.store(nullptr, std::memory_order_release);
}
