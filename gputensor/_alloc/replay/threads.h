// Runs stretches of a trace on the threads that recorded them, in the recorded order.
//
// One thread at a time holds the turn, so that the order of events is the recorded one and only
// the thread differs: what a thread caches, and what it frees for another, is as in the program.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

// Runs the events [begin, end); 0 stops the replay.
typedef int (*gt_replay_run)(void* self, int64_t begin, int64_t end);

class ReplayThreads {
public:
    ReplayThreads(const int16_t* threads, int64_t events, gt_replay_run run, void* self)
        : threads(threads), events(events), run(run), self(self) {}

    // Runs the trace on `count` new threads and waits for them. False when a run stopped the
    // replay, or when the threads could not be started (`started` tells which).
    bool all(int thread_count) {
        std::vector<std::thread> running;
        count = thread_count;
        signals = std::make_unique<std::condition_variable[]>(count);
        try {
            for (int number = 0; number < count; number++) {
                running.emplace_back(&ReplayThreads::work, this, number);
            }
        } catch (const std::system_error&) {
            started = false;
        }
        {
            std::lock_guard<std::mutex> guard(lock);
            if (!started) { next = events; }
            is_open = true;
        }
        for (int number = 0; number < count; number++) { signals[number].notify_one(); }
        for (auto& thread : running) { thread.join(); }
        return started && !stopped;
    }

    bool started = true;

private:
    void work(int number) {
        std::unique_lock<std::mutex> guard(lock);
        for (;;) {
            signals[number].wait(guard, [&] {
                return is_open && (next >= events || stopped || threads[next] == number);
            });
            if (next >= events || stopped) { return; }
            int64_t begin = next, end = begin + 1;
            while (end < events && threads[end] == number) { end++; }
            guard.unlock();
            bool goes_on = 0 != run(self, begin, end);
            guard.lock();
            next = end;
            stopped = !goes_on;
            if (next >= events || stopped) {
                for (int other = 0; other < count; other++) {
                    signals[other].notify_one();
                }
                return;
            }
            signals[threads[next]].notify_one();
        }
    }

    const int16_t* threads;
    int64_t events;
    gt_replay_run run;
    void* self;
    int count = 0;
    std::mutex lock;
    std::unique_ptr<std::condition_variable[]> signals;
    int64_t next = 0;
    bool is_open = false, stopped = false;
};
