// The workspaces by (device, stream). A thread remembers the one that it used last, so a thread
// that stays on its stream takes no lock; the table's epoch invalidates this memory after removals.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

struct WorkspaceEntry {
    int device;
    uint64_t stream;
    uint64_t ptr;
    size_t nbytes;
    void* block;
};

static std::mutex workspace_mutex;
static std::vector<WorkspaceEntry> workspace_entries;
static std::atomic<uint64_t> workspace_epoch{1};

struct WorkspaceMemo {
    uint64_t epoch;
    WorkspaceEntry entry;
};
static thread_local WorkspaceMemo workspace_memo = {0, {0, 0, 0, 0, nullptr}};

static inline const WorkspaceEntry* workspace_recall(int device, uint64_t stream) {
    const WorkspaceMemo* memo = &workspace_memo;
    if (memo->epoch == workspace_epoch.load(std::memory_order_acquire) &&
        memo->entry.stream == stream && memo->entry.device == device)
        return &memo->entry;
    return nullptr;
}

static inline const WorkspaceEntry* workspace_find(int device, uint64_t stream) {
    std::lock_guard<std::mutex> guard(workspace_mutex);
    for (const WorkspaceEntry& entry : workspace_entries) {
        if (entry.device == device && entry.stream == stream) {
            workspace_memo = {workspace_epoch.load(std::memory_order_relaxed), entry};
            return &workspace_memo.entry;
        }
    }
    return nullptr;
}

// Returns false when another thread has added one for the stream meanwhile.
static inline bool workspace_add(int device, uint64_t stream, uint64_t ptr, size_t nbytes,
                                 void* block) {
    std::lock_guard<std::mutex> guard(workspace_mutex);
    for (const WorkspaceEntry& entry : workspace_entries)
        if (entry.device == device && entry.stream == stream) return false;
    try {
        workspace_entries.push_back({device, stream, ptr, nbytes, block});
    } catch (...) {
        return false;
    }
    return true;
}

// Called in the child of a fork: the workspaces are the parent's, and a change of the table may be
// half done.
static inline void workspace_after_fork() {
    new (&workspace_mutex) std::mutex;
    new (&workspace_entries) std::vector<WorkspaceEntry>;
    workspace_epoch.fetch_add(1, std::memory_order_acq_rel);
}

// Takes one entry of the device (any device when it is -1000) out of the table.
static inline bool workspace_pop(int device, WorkspaceEntry* out) {
    std::lock_guard<std::mutex> guard(workspace_mutex);
    workspace_epoch.fetch_add(1, std::memory_order_acq_rel);
    for (size_t index = 0; index < workspace_entries.size(); ++index) {
        if (device != -1000 && workspace_entries[index].device != device) continue;
        *out = workspace_entries[index];
        workspace_entries[index] = workspace_entries.back();
        workspace_entries.pop_back();
        return true;
    }
    return false;
}
