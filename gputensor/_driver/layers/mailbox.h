// Messages that any thread adds and one takes, all at once and in their order.
#pragma once

#include <mutex>
#include <new>
#include <vector>

namespace gputensor {

template <class T> class Mailbox {
public:
    void add(const T& message) {
        std::lock_guard<std::mutex> guard(mutex);
        messages.push_back(message);
    }
    std::vector<T> take() {
        std::lock_guard<std::mutex> guard(mutex);
        std::vector<T> taken;
        taken.swap(messages);
        return taken;
    }
    // In the child of a fork: another thread may have held the mutex, in the middle of a change.
    void renew() { new (this) Mailbox; }

private:
    std::mutex mutex;
    std::vector<T> messages;
};

}  // namespace gputensor
