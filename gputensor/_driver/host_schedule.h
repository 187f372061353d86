// When the work of a host device's streams runs.
//
// Immediate (the default): in the calling thread, when the call is made. Deferred: work waits in
// its stream; at each later call that concerns work, a seeded generator chooses how much of it
// runs, of which streams, in any order that streams and events allow. For a while at a time a
// quarter of the streams starve: they run only when somebody waits for them, which is how a missing
// dependency becomes a wrong number.
//
// Locking: every method is called with the device's mutex held through `guard`. It is dropped while
// a host function runs, because a host function may need Python's lock (GIL) or call the driver
// again. A thread that waits for another thread's host function gives up the GIL meanwhile. A
// thread that holds the GIL and does not wait runs no host function: Python code would let other
// threads in between two calls that their caller keeps together with the GIL.
#pragma once

#include <Python.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <random>

#include "gputensor/_driver/host_memory.h"
#include "gputensor/_driver/host_work.h"

namespace gputensor {

using Lock = std::unique_lock<std::mutex>;

class HostSchedule {
public:
    HostSchedule(HostMemory& memory, bool deferred, uint64_t seed)
        : deferred(deferred), memory(memory), random(seed), salt(random() | 1) {
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

    // Takes work for a stream that does not capture, and lets some work run.
    int enqueue(Lock& guard, const std::shared_ptr<Stream>& stream, Work work) {
        if (!deferred) return run(guard, work);
        if (work.kind == Work::COPY && touches_foreign_memory(work)) {
            // Pageable memory: CUDA may synchronise with the stream and copy before it returns.
            int status = finish_stream(guard, stream);
            return status ? status : run(guard, work);
        }
        stream->queue.push_back(std::move(work));
        stream->queued++;
        advance(guard);
        return OK;
    }

    // In the child of a fork: only the default stream is left, and no work. Threads that waited for
    // `changed` are not in this process.
    void renew() {
        streams.clear();
        streams[0] = std::make_shared<Stream>();
        live_streams = 0;
        fault = OK;
        new (&changed) std::condition_variable;
    }

    // Gives the device a chance to run something, as time passing does on a GPU.
    void advance(Lock& guard) {
        if (!deferred || inside_function()) return;
        if (random() % 256 == 0) salt = random() | 1;
        // Half a piece for each call on average: under load the queues grow, as on a busy GPU.
        size_t steps = random() % 2 ? random() % 3 : 0;
        bool functions = !steps || !holds_gil();
        while (steps--) {
            std::vector<std::shared_ptr<Stream>> ready;
            for (auto& entry : streams)
                if (!starves(entry.first) && runnable(*entry.second) &&
                    (functions || !entry.second->queue.front().has_function()))
                    ready.push_back(entry.second);
            if (ready.empty()) return;
            step(guard, ready[random() % ready.size()]);
        }
    }

    int finish_stream(Lock& guard, const std::shared_ptr<Stream>& stream) {
        uint64_t until = stream->queued;
        return finish(guard, {stream}, [&] { return stream->finished >= until; });
    }

    int finish_mark(Lock& guard, const std::shared_ptr<Mark>& mark) {
        auto stream = streams.find(mark->stream);
        if (mark->done || stream == streams.end()) return OK;
        return finish(guard, {stream->second}, [&] { return mark->done.load(); });
    }

    int finish_all(Lock& guard) {
        std::vector<std::shared_ptr<Stream>> roots;
        std::vector<uint64_t> until;
        for (auto& entry : streams) {
            roots.push_back(entry.second);
            until.push_back(entry.second->queued);
        }
        return finish(guard, roots, [&] {
            for (size_t i = 0; i < roots.size(); i++)
                if (roots[i]->finished < until[i]) return false;
            return true;
        });
    }

    // Runs one piece of work now. The mutex is dropped for everything but the books.
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
            outside(guard, !deferred, [&] { fill(work); });
            return OK;
        case Work::FUNCTION:
            if (memory.phantom) return OK;
            outside(guard, true, [&] {
                inside_function() += deferred;
                work.function(work.argument);
                inside_function() -= deferred;
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
        case Work::GRAPH:
            while (work.run->left)
                if (int status = run_node(guard, *work.run, 0)) return status;
            return OK;
        }
        return INVALID_VALUE;
    }

    const bool deferred;
    int fault = OK;  // sticky: what deferred work died of
    size_t live_streams = 0;
    std::map<uint64_t, std::shared_ptr<Stream>> streams;

private:
    // How deep this thread is in deferred host functions. Work does not advance there: such a
    // function is itself a piece of work, and cannot wait for others.
    static int& inside_function() {
        static thread_local int depth = 0;
        return depth;
    }

    static bool holds_gil() { return Py_IsInitialized() && PyGILState_Check(); }

    static void* at(uint64_t ptr) { return reinterpret_cast<void*>(ptr); }

    static double now() {
        return std::chrono::duration<double, std::milli>(
                   std::chrono::steady_clock::now().time_since_epoch())
            .count();
    }

    static void fill(const Work& work) {
        if (work.width == 1) {
            memset(at(work.dst), int(work.value & 0xFF), work.nbytes);
        } else if (work.width == 2) {
            std::fill_n(static_cast<uint16_t*>(at(work.dst)), work.nbytes / 2,
                        uint16_t(work.value));
        } else {
            std::fill_n(static_cast<uint32_t*>(at(work.dst)), work.nbytes / 4, work.value);
        }
    }

    template <class Body> void outside(Lock& guard, bool unlocked, Body body) {
        if (unlocked) guard.unlock();
        body();
        if (unlocked) guard.lock();
    }

    bool forbidden(uint64_t ptr, size_t nbytes) {
        return memory.place(ptr, nbytes) == HostMemory::Place::FORBIDDEN;
    }

    bool touches_foreign_memory(const Work& work) {
        return memory.place(work.dst, work.nbytes) == HostMemory::Place::FOREIGN ||
               memory.place(work.src, work.nbytes) == HostMemory::Place::FOREIGN;
    }

    bool starves(uint64_t handle) const { return ((handle + 1) * salt) >> 62 == 0; }

    static bool runnable(const Stream& stream) {
        if (stream.busy || stream.queue.empty()) return false;
        const Work& first = stream.queue.front();
        return first.kind != Work::WAIT || first.mark->done;
    }

    int run_node(Lock& guard, GraphRun& graph_run, size_t choice) {
        int node = graph_run.take(choice);
        int status = run(guard, graph_run.graph->nodes[size_t(node)]);
        graph_run.finish(node);
        return status;
    }

    // Runs the first piece of a stream's work, or one node of it when it is a graph.
    void step(Lock& guard, const std::shared_ptr<Stream>& stream) {
        Work work = stream->queue.front();
        stream->busy = true;
        bool whole = true;
        int status = OK;
        if (work.kind != Work::GRAPH) {
            status = run(guard, work);
        } else if (work.run->left) {
            status = run_node(guard, *work.run, random() % work.run->ready.size());
            whole = !work.run->left;
        }
        if (status && !fault) fault = status;
        stream->busy = false;
        if (whole) {
            stream->queue.pop_front();
            stream->finished++;
            forget(stream);
        }
        changed.notify_all();
    }

    void forget(const std::shared_ptr<Stream>& stream) {
        if (!stream->live && stream->queue.empty()) streams.erase(stream->handle);
    }

    // The streams whose work `roots` need: themselves, and those they wait for. `peer` becomes what
    // one of them waits for on another device.
    std::vector<std::shared_ptr<Stream>> needed(std::vector<std::shared_ptr<Stream>> roots,
                                                std::function<int()>& peer) {
        std::set<uint64_t> seen;
        std::vector<std::shared_ptr<Stream>> found;
        while (!roots.empty()) {
            auto stream = roots.back();
            roots.pop_back();
            if (!seen.insert(stream->handle).second) continue;
            if (runnable(*stream)) found.push_back(stream);
            if (stream->queue.empty() || stream->queue.front().kind != Work::WAIT) continue;
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
        while (!done()) {
            if (inside_function()) return NOT_PERMITTED;
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
            step(guard, ready[random() % ready.size()]);
            if (random() % 8 == 0) advance(guard);
        }
        return OK;
    }

    // Waits until another thread has finished a piece of work. That piece may need the GIL, so a
    // holder gives it up; it is taken again with the mutex dropped, because other holders of the
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
    uint64_t salt;  // odd; chooses who starves
    std::condition_variable changed;
};

}  // namespace gputensor
