// Decides when the work of a host device's streams runs.
//
// A stream is a queue that any thread may fill: its work runs in the order in which it was queued,
// one piece at a time. Immediate (the default): each thread runs the pieces that it queues, in the
// same call or, unless they are short fills, at the end of the section (section.h) that the call is
// in, when the stream reaches them. Deferred: work waits in its stream; at each later call that
// concerns work, a seeded generator chooses how much of it runs, and from which streams, in any
// order that streams and events allow. At any time a quarter of the streams starve: they run only when a caller waits for
// them, so a missing dependency becomes a wrong number.
//
// Any thread runs pieces that their caller does not wait for (records, waits, frees). A thread that
// waits continues to run its own pieces, and never waits inside a host function; a piece depends
// only on earlier pieces. So the oldest unfinished piece can always run.
//
// Locking: every method is called with the device's mutex held through `guard`. It is dropped while
// a host function runs, because a host function may need Python's lock (GIL) or call the driver
// again. A thread that waits for another thread's host function releases the GIL meanwhile. A
// thread that holds the GIL and does not wait runs no host function: Python code would let other
// threads run between two calls that the caller relies on the GIL to keep together.
#pragma once

#include <Python.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <random>

#include "gputensor/_driver/host/filling.h"
#include "gputensor/_driver/host/memory.h"
#include "gputensor/_driver/host/work.h"
#include "gputensor/_driver/section.h"

namespace gputensor {

using Lock = std::unique_lock<std::mutex>;

class HostSchedule {
public:
    HostSchedule(HostMemory& memory, bool deferred, uint64_t seed)
        : deferred(deferred), blocking(is_set("CUDA_LAUNCH_BLOCKING")), memory(memory), random(seed), salt(random() | 1) {
        streams[0] = std::make_shared<Stream>();
    }

    // A live stream, or null.
    std::shared_ptr<Stream> find(uint64_t handle) {
        auto stream = streams.find(handle);
        return stream == streams.end() || !stream->second->live ? nullptr : stream->second;
    }

    void create(uint64_t handle) {
        auto stream = std::make_shared<Stream>();
        stream->handle = handle;
        streams[handle] = stream;
        live_streams++;
    }

    void destroy(const std::shared_ptr<Stream>& stream) {
        stream->live = false;
        live_streams--;
        forget(stream);
    }

    // Queues work on a stream that does not capture, and lets some work run.
    int enqueue(Lock& guard, const std::shared_ptr<Stream>& stream, Work work) {
        return enqueue(guard, stream, &work, 1);
    }

    // Several pieces, with no other work between them.
    int enqueue(Lock& guard, const std::shared_ptr<Stream>& stream, Work* pieces, size_t count) {
        if (!deferred && runs_here(*stream)) return run_within(guard, stream, pieces, count);
        bool awaited = false, held = Section::entered(), inside = Section::functions();
        for (size_t i = 0; i < count; i++) awaited |= is_awaited(pieces[i]);
        bool now = deferred ? awaited && !held : !awaited || !held || is_short(pieces[0]);
        if (now && count == 1 && is_idle(*stream) && can_start(pieces[0]))
            return run_alone(guard, stream, pieces[0]);
        for (size_t i = 0; i < count; i++) {
            // The piece names memory of the caller, which is valid only until this call returns.
            if (inside && is_pageable(pieces[i])) return NOT_PERMITTED;
        }
        for (size_t i = 0; i < count; i++) {
            if (!inside && is_awaited(pieces[i])) pieces[i].owner = std::this_thread::get_id();
            push(*stream, std::move(pieces[i]));
        }
        if (!held) return bring(guard, stream, stream->queued, awaited);
        owed().push_back({this, guard.mutex(), stream, stream->queued, awaited});
        return OK;
    }

    // At the end of a section: runs what this thread queued in it.
    static int pay() {
        int failure = OK;
        for (auto& one : owed()) {
            Lock guard(*one.mutex);
            int status = one.schedule->bring(guard, one.stream, one.ticket, one.awaited);
            if (!failure) failure = status;
        }
        owed().clear();
        return failure;
    }

    static void forget_owed() { owed().clear(); }

    // Whether a stream's work is done, except for the piece that this thread is running.
    bool is_done(const Stream& stream) const { return stream.finished >= until(stream); }

    // In the child of a fork: only the default stream remains, without work. Threads that waited
    // for `changed` do not exist in this process.
    void renew() {
        streams.clear();
        streams[0] = std::make_shared<Stream>();
        live_streams = 0;
        waiting = 0;
        fault = OK;
        new (&changed) std::condition_variable;
    }

    // Lets the device run some work, as the passing of time does on a GPU.
    void advance(Lock& guard) {
        if (!deferred) settle(guard);
        if (!deferred || Section::functions()) return;
        if (random() % 256 == 0) salt = random() | 1;
        // Half a piece for each call on average: under load the queues grow, as on a busy GPU.
        size_t steps = random() % 2 ? random() % 3 : 0;
        bool functions = !steps || !holds_gil();
        while (steps--) {
            std::vector<std::shared_ptr<Stream>> ready;
            for (auto& entry : streams)
                if (!starves(entry.first) && can_run(*entry.second) &&
                    (functions || !entry.second->queue.front().has_function()))
                    ready.push_back(entry.second);
            if (ready.empty()) return;
            step(guard, ready[random() % ready.size()]);
        }
    }

    int finish_stream(Lock& guard, const std::shared_ptr<Stream>& stream) {
        uint64_t ticket = until(*stream);
        return finish(guard, {stream}, [&] { return stream->finished >= ticket; });
    }

    int finish_mark(Lock& guard, const std::shared_ptr<Mark>& mark) {
        auto stream = streams.find(mark->stream);
        if (mark->done || stream == streams.end()) return OK;
        return finish(guard, {stream->second}, [&] { return mark->done.load(); });
    }

    int finish_all(Lock& guard) {
        std::vector<std::shared_ptr<Stream>> roots;
        std::vector<uint64_t> tickets;
        for (auto& entry : streams) {
            roots.push_back(entry.second);
            tickets.push_back(until(*entry.second));
        }
        return finish(guard, roots, [&] {
            for (size_t i = 0; i < roots.size(); i++)
                if (roots[i]->finished < tickets[i]) return false;
            return true;
        });
    }

    // Runs one piece of work now. Host functions run without the mutex, and so do copies and fills
    // on an immediate device.
    int run(Lock& guard, const Work& work) {
        switch (work.kind) {
        case Work::COPY:
            if (memory.phantom) return OK;
            if (forbidden(work.dst, work.nbytes) || forbidden(work.src, work.nbytes))
                return ILLEGAL_ADDRESS;
            outside(guard, !deferred, [&] { memmove(at(work.dst), at(work.src), work.nbytes); });
            return OK;
        case Work::FILL:
            if (memory.phantom) return OK;
            if (forbidden(work.dst, work.nbytes)) return ILLEGAL_ADDRESS;
            outside(guard, !deferred, [&] { fill_memory(work); });
            return OK;
        case Work::FUNCTION:
            if (memory.phantom) return OK;
            outside(guard, true, [&] {
                Section::functions()++;
                work.function(work.argument);
                Section::functions()--;
            });
            return OK;
        case Work::FREE:
            work.freeing->erase(work.dst);
            return memory.mem_free(work.dst, false);
        case Work::RECORD:
            if (work.mark->timed) work.mark->milliseconds = now();
            work.mark->done = true;
            return OK;
        case Work::PEER_COPY: {
            if (memory.phantom) return OK;
            if (forbidden(work.src, work.nbytes)) return ILLEGAL_ADDRESS;
            int status = OK;
            outside(guard, true, [&] { status = work.peer(); });
            return status;
        }
        case Work::WAIT: return OK;
        case Work::GRAPH: return run_whole(guard, *work.run);
        case Work::IF:
        case Work::WHILE:
            if (memory.phantom) return OK;
            while (*work.condition) {
                GraphRun turn(work.body);
                if (int status = run_whole(guard, turn)) return status;
                if (work.kind == Work::IF) break;
            }
            return OK;
        }
        return INVALID_VALUE;
    }

    const bool deferred;
    const bool blocking;  // each call waits for its work (CUDA_LAUNCH_BLOCKING)
    int fault = OK;  // sticky: the first failure of deferred work
    size_t live_streams = 0;
    std::map<uint64_t, std::shared_ptr<Stream>> streams;

private:
    // Pieces that a thread queued in a section and runs at its end.
    struct Owed {
        HostSchedule* schedule;
        std::mutex* mutex;
        std::shared_ptr<Stream> stream;
        uint64_t ticket;  // the number of the stream's pieces, these included
        bool awaited;
    };

    static std::vector<Owed>& owed() {
        static thread_local std::vector<Owed> list;
        return list;
    }

    static bool is_set(const char* name) {
        const char* value = getenv(name);
        return value && *value && strcmp(value, "0");
    }

    static bool holds_gil() { return Py_IsInitialized() && PyGILState_Check(); }

    static void* at(uint64_t ptr) { return reinterpret_cast<void*>(ptr); }

    static double now() {
        return std::chrono::duration<double, std::milli>(
                   std::chrono::steady_clock::now().time_since_epoch())
            .count();
    }

    template <class Body> void outside(Lock& guard, bool unlocked, Body body) {
        if (unlocked) guard.unlock();
        body();
        if (unlocked) guard.lock();
    }

    bool forbidden(uint64_t ptr, size_t nbytes) {
        return memory.place(ptr, nbytes) == HostMemory::Place::FORBIDDEN;
    }

    // A copy for which CUDA may synchronise with the stream and copy before it returns.
    bool is_pageable(const Work& work) {
        return work.kind == Work::COPY &&
               (memory.place(work.dst, work.nbytes) == HostMemory::Place::FOREIGN ||
                memory.place(work.src, work.nbytes) == HostMemory::Place::FOREIGN);
    }

    bool starves(uint64_t handle) const { return ((handle + 1) * salt) >> 62 == 0; }

    static bool is_idle(const Stream& stream) { return stream.finished == stream.queued; }

    // Whether this thread is in the middle of a piece of the stream's work.
    static bool runs_here(const Stream& stream) {
        return stream.busy && stream.runner == std::this_thread::get_id();
    }

    // The piece up to which a wait by this thread waits. A host function of an immediate device
    // does not wait for itself; on a deferred device a host function may not wait at all.
    uint64_t until(const Stream& stream) const {
        return stream.queued - uint64_t(!deferred && runs_here(stream));
    }

    // Whether the call that queues the piece returns only when the piece is done.
    bool is_awaited(const Work& work) {
        if (deferred) return blocking || is_pageable(work);
        return work.kind != Work::RECORD && work.kind != Work::WAIT && work.kind != Work::FREE;
    }

    // A piece that a section may contain: putting it off until the end costs more than the piece.
    static bool is_short(const Work& work) {
        return work.kind == Work::FILL && work.nbytes <= size_t(1) << 16;
    }

    static bool can_start(const Work& work) { return work.kind != Work::WAIT || work.mark->done; }

    static bool is_mine(const Work& work) {
        return work.owner == std::thread::id() || work.owner == std::this_thread::get_id();
    }

    // Whether this thread may run the first piece of the stream's work.
    static bool can_run(const Stream& stream) {
        return !stream.busy && !stream.queue.empty() && can_start(stream.queue.front()) &&
               is_mine(stream.queue.front());
    }

    void push(Stream& stream, Work work) {
        stream.queue.push_back(std::move(work));
        stream.queued++;
        waiting++;
    }

    // Runs work that a host function queues on the stream that it itself runs on.
    int run_within(Lock& guard, const std::shared_ptr<Stream>& stream, Work* pieces,
                   size_t count) {
        int status = OK;
        for (size_t i = 0; i < count; i++) {
            if (!can_start(pieces[i])) {
                push(*stream, pieces[i]);
                continue;
            }
            int result = run(guard, pieces[i]);
            if (!status) status = result;
        }
        return status;
    }

    // Runs a piece on an otherwise empty stream, without putting it into the queue.
    int run_alone(Lock& guard, const std::shared_ptr<Stream>& stream, const Work& work) {
        stream->queued++;
        stream->busy = true;
        stream->runner = std::this_thread::get_id();
        int status = run(guard, work);
        stream->busy = false;
        stream->finished++;
        forget(stream);
        changed.notify_all();
        if (!deferred) settle(guard);
        return status;
    }

    // Lets work run after some was queued, up to the piece `ticket` of the stream.
    int bring(Lock& guard, const std::shared_ptr<Stream>& stream, uint64_t ticket, bool awaited) {
        int status = OK;
        auto done = [&] { return stream->finished >= ticket; };
        while (!deferred && !status && !done() && can_run(*stream)) status = step(guard, stream);
        if (awaited && !done() && !Section::functions()) {
            int result = finish(guard, {stream}, done);
            if (!status) status = result;
            if (!done()) withdraw(guard, stream, ticket);
        }
        if (!awaited || !deferred) advance(guard);
        return status;
    }

    // After a wait that failed: replaces the piece, which names memory of a call that has ended.
    void withdraw(Lock& guard, const std::shared_ptr<Stream>& stream, uint64_t ticket) {
        while (stream->busy && stream->finished + 1 == ticket) wait(guard);
        if (stream->finished >= ticket) return;
        Work nothing{Work::WAIT};
        nothing.mark = std::make_shared<Mark>();
        nothing.mark->done = true;
        stream->queue[ticket - 1 - stream->finished] = nothing;
    }

    // On an immediate device: runs the pieces that no thread waits for and that can start now.
    void settle(Lock& guard) {
        if (Section::functions()) return;
        for (bool found = true; found && waiting;) {
            found = false;
            for (auto& entry : streams) {
                auto stream = entry.second;
                if (!can_run(*stream) || stream->queue.front().owner != std::thread::id()) continue;
                step(guard, stream);
                found = true;
                break;
            }
        }
    }

    int run_whole(Lock& guard, GraphRun& graph_run) {
        while (graph_run.left)
            if (int status = run_node(guard, graph_run,
                                      deferred ? random() % graph_run.ready.size() : 0))
                return status;
        return OK;
    }

    int run_node(Lock& guard, GraphRun& graph_run, size_t choice) {
        int node = graph_run.take(choice);
        int status = run(guard, graph_run.graph->nodes[size_t(node)]);
        graph_run.finish(node);
        return status;
    }

    // Runs the first piece of a stream's work, or one node of it when it is a graph and the device
    // is deferred. A failure of the thread's own piece is the result; other failures set `fault`.
    int step(Lock& guard, const std::shared_ptr<Stream>& stream) {
        Work& first = stream->queue.front();
        Work work = first.kind == Work::GRAPH ? first : std::move(first);
        bool is_own = work.owner != std::thread::id();
        stream->busy = true;
        stream->runner = std::this_thread::get_id();
        bool whole = true;
        int status = OK;
        if (work.kind != Work::GRAPH || !deferred) {
            status = run(guard, work);
        } else if (work.run->left) {
            status = run_node(guard, *work.run, random() % work.run->ready.size());
            whole = !work.run->left;
        }
        if (status && !is_own && !fault) fault = status;
        stream->busy = false;
        if (whole) {
            stream->queue.pop_front();
            stream->finished++;
            waiting--;
            forget(stream);
        }
        changed.notify_all();
        return is_own ? status : OK;
    }

    void forget(const std::shared_ptr<Stream>& stream) {
        if (!stream->live && is_idle(*stream)) streams.erase(stream->handle);
    }

    // The streams whose work `roots` need: themselves, and those that they wait for. `peer` is set
    // to a function that finishes the mark of another device for which one of them waits.
    std::vector<std::shared_ptr<Stream>> needed(std::vector<std::shared_ptr<Stream>> roots,
                                                std::function<int()>& peer) {
        std::set<uint64_t> seen;
        std::vector<std::shared_ptr<Stream>> found;
        while (!roots.empty()) {
            auto stream = roots.back();
            roots.pop_back();
            if (!seen.insert(stream->handle).second) continue;
            if (can_run(*stream)) found.push_back(stream);
            if (stream->busy || stream->queue.empty()) continue;
            if (stream->queue.front().kind != Work::WAIT) continue;
            if (stream->queue.front().peer) {
                if (!stream->queue.front().mark->done) peer = stream->queue.front().peer;
                continue;
            }
            auto source = streams.find(stream->queue.front().mark->stream);
            if (source != streams.end()) roots.push_back(source->second);
        }
        return found;
    }

    template <class Done>
    int finish(Lock& guard, const std::vector<std::shared_ptr<Stream>>& roots, Done done) {
        int failure = OK;
        while (!done()) {
            if (Section::functions()) return NOT_PERMITTED;
            std::function<int()> peer;
            auto ready = needed(roots, peer);
            if (ready.empty() && peer) {
                int status = OK;
                outside(guard, true, [&] { status = peer(); });
                if (status) return status;
                continue;
            }
            if (ready.empty()) {
                wait(guard);
                continue;
            }
            int status = step(guard, ready[random() % ready.size()]);
            if (!failure) failure = status;
            if (random() % 8 == 0) advance(guard);
        }
        return failure;
    }

    // Waits until another thread has finished a piece of work. That piece may need the GIL, so a
    // holder releases it. It is acquired again with the mutex dropped, because other holders of the
    // GIL may be waiting for the mutex.
    void wait(Lock& guard) {
        PyThreadState* state = holds_gil() ? PyEval_SaveThread() : nullptr;
        changed.wait(guard);
        if (!state) return;
        guard.unlock();
        PyEval_RestoreThread(state);
        guard.lock();
    }

    HostMemory& memory;
    std::mt19937_64 random;
    uint64_t salt;       // odd; chooses the streams that starve
    size_t waiting = 0;  // pieces in the streams' queues
    std::condition_variable changed;
};

}  // namespace gputensor
