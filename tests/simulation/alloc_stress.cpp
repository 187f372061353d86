// Native threads that allocate and free through the C symbols, without Python.
//
// Each thread allocates and frees, passes blocks to other threads through a board of slots, frees
// the blocks it finds there, records streams and frees on other streams. With `touch` (memory that
// the host can write) every block carries its owner's tag at both ends, which is checked before the
// free: a block that two threads hold at once loses its tag. Returns the number of lost tags.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

using Malloc = void* (*)(size_t, int, void*);
using Free = void (*)(void*, size_t, int, void*);
using Record = int (*)(void*, void*);

struct Board {
    static constexpr int SLOTS = 64;
    std::atomic<uint64_t*> slots[SLOTS] = {};
};

struct Plan {
    Malloc malloc_;
    Free free_;
    Record record;
    int device;
    const uint64_t* streams;
    int stream_count;
    size_t largest;
    bool touch;
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> lost{0}, refused{0}, pairs{0};
    Board board;
};

// A block and the tag written into it. Whoever holds the record owns the memory.
struct Loan {
    void* ptr;
    size_t nbytes;
    uint64_t tag;
};

static void write_tag(const Plan& plan, const Loan& loan) {
    if (!plan.touch || loan.nbytes < 16) return;
    memcpy(loan.ptr, &loan.tag, 8);
    memcpy(static_cast<char*>(loan.ptr) + loan.nbytes - 8, &loan.tag, 8);
}

static void check_tag(Plan& plan, const Loan& loan) {
    if (!plan.touch || loan.nbytes < 16) return;
    uint64_t head, tail;
    memcpy(&head, loan.ptr, 8);
    memcpy(&tail, static_cast<char*>(loan.ptr) + loan.nbytes - 8, 8);
    if (head != loan.tag || tail != loan.tag) plan.lost++;
}

class Worker {
public:
    Worker(Plan& plan, uint64_t seed) : plan(plan), random(seed), name(seed) {}

    void run() {
        while (!plan.stop.load(std::memory_order_relaxed)) step();
        for (Loan* loan : held) give_back(loan);
    }

private:
    void* stream() { return (void*)plan.streams[random() % plan.stream_count]; }

    size_t size() {
        switch (random() % 8) {
        case 0: return 1 + random() % plan.largest;
        case 1: return 1 + random() % (1 << 20);
        case 2: return 1 + random() % 4096;
        default: return size_t(512) << (random() % 5);
        }
    }

    void take() {
        auto loan = new Loan{nullptr, size(), (name << 32) | ++count};
        loan->ptr = plan.malloc_(loan->nbytes, plan.device, stream());
        if (!loan->ptr) {
            plan.refused++;
            delete loan;
            return;
        }
        write_tag(plan, *loan);
        held.push_back(loan);
    }

    void give_back(Loan* loan) {
        check_tag(plan, *loan);
        if (random() % 4 == 0) plan.record(loan->ptr, stream());
        plan.free_(loan->ptr, loan->nbytes, plan.device,
                   random() % 8 ? (void*)plan.streams[0] : stream());
        delete loan;
        plan.pairs++;
    }

    Loan* any_held() {
        size_t i = random() % held.size();
        Loan* loan = held[i];
        held[i] = held.back();
        held.pop_back();
        return loan;
    }

    void step() {
        if (held.size() < 24 && random() % 2) {
            take();
        } else if (!held.empty()) {
            Loan* loan = any_held();
            if (random() % 4) {
                give_back(loan);
                return;
            }
            auto& slot = plan.board.slots[random() % Board::SLOTS];
            auto other = reinterpret_cast<Loan*>(
                slot.exchange(reinterpret_cast<uint64_t*>(loan), std::memory_order_acq_rel));
            if (other) give_back(other);
        }
    }

    Plan& plan;
    std::mt19937_64 random;
    uint64_t name;
    uint64_t count = 0;
    std::vector<Loan*> held;
};

extern "C" __attribute__((visibility("default"))) uint64_t
alloc_stress(void* malloc_, void* free_, void* record, int device, const uint64_t* streams,
             int stream_count, size_t largest, int touch, int threads, int milliseconds,
             uint64_t seed, uint64_t* pairs, uint64_t* refused) {
    Plan plan;
    plan.malloc_ = (Malloc)malloc_;
    plan.free_ = (Free)free_;
    plan.record = (Record)record;
    plan.device = device;
    plan.streams = streams;
    plan.stream_count = stream_count;
    plan.largest = largest;
    plan.touch = touch != 0;
    std::vector<std::thread> running;
    for (int i = 0; i < threads; i++)
        running.emplace_back([&plan, seed, i] { Worker(plan, seed * 64 + uint64_t(i)).run(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    plan.stop = true;
    for (auto& thread : running) thread.join();
    for (auto& slot : plan.board.slots)
        if (auto loan = reinterpret_cast<Loan*>(slot.load())) {
            check_tag(plan, *loan);
            plan.free_(loan->ptr, loan->nbytes, device, (void*)streams[0]);
            delete loan;
        }
    *pairs = plan.pairs;
    *refused = plan.refused;
    return plan.lost;
}
