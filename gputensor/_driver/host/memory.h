// The memory of one host device: allocations, reserved addresses, pages and pinned memory.
//
// Pages are ranges of one memfd (one descriptor for the device, however many pages): mapping a page
// is mmap(MAP_FIXED) of its range, unmapping restores PROT_NONE, so that an access to an unmapped
// page faults as it does on a GPU. File offsets are never reused: destroying a page punches a
// hole, which frees its memory. A phantom device does the same accounting with PROT_NONE address
// space and no memory behind it. A deferred phantom device never reuses an address, so that a
// recorder of its calls can identify memory by its address.
//
// The child of a fork shares that file with its parent. It starts with empty records and keeps the
// mapped memory as a private copy, so that its writes do not reach the parent (renew).
//
// No locks here: HostDevice calls every method with its mutex held. A method that fails leaves the
// state unchanged.
#pragma once

#include <cstring>
#include <map>
#include <unordered_map>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gputensor/_driver/entries.h"

namespace gputensor {

class HostMemory {
public:
    static constexpr size_t GRANULARITY = size_t(2) << 20;
    static constexpr int POISON = 0xCB;

    // The kind of memory at an address. FOREIGN: ordinary memory of the process, not the device's.
    enum class Place { FOREIGN, ACCESSIBLE, FORBIDDEN };

    HostMemory(size_t capacity, bool phantom, bool poison)
        : capacity(capacity), phantom(phantom), poison(poison) {}

    HostMemory(const HostMemory&) = delete;

    ~HostMemory() {
        for (auto& range : ranges)
            if (!in_space(range.first)) munmap(address(range.first), range.second.nbytes);
        if (space) munmap(address(space), SPACE);
        for (auto& page : pages)
            if (page.second.file >= 0) close(page.second.file);
        if (file >= 0) close(file);
    }

    int mem_alloc(uint64_t* ptr, size_t nbytes, bool pinned) {
        if (!nbytes) return INVALID_VALUE;
        size_t whole = round_up(nbytes, PAGE);
        if (whole < nbytes) return OUT_OF_MEMORY;
        if (!pinned && whole > capacity - used) return OUT_OF_MEMORY;
        bool backed = pinned || !phantom;
        void* base = poison && !backed ? take_from_space(whole) : MAP_FAILED;
        if (base == MAP_FAILED)
            base = mmap(nullptr, whole, backed ? PROT_READ | PROT_WRITE : PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED) return OUT_OF_MEMORY;
        if (poison && backed) memset(base, POISON, whole);
        *ptr = reinterpret_cast<uint64_t>(base);
        ranges[*ptr] = Range{whole, pinned ? PINNED : ALLOCATION};
        pinned ? pinned_count++ : allocation_count++;
        if (!pinned) used += whole;
        return OK;
    }

    int mem_free(uint64_t ptr, bool pinned) {
        auto range = ranges.find(ptr);
        if (range == ranges.end() || range->second.kind != (pinned ? PINNED : ALLOCATION))
            return INVALID_VALUE;
        pinned ? pinned_count-- : allocation_count--;
        if (!pinned) used -= range->second.nbytes;
        drop(range);
        return OK;
    }

    bool is_allocation(uint64_t ptr) const {
        auto range = ranges.find(ptr);
        return range != ranges.end() && range->second.kind == ALLOCATION;
    }

    int pinned_register(uint64_t ptr, size_t nbytes) {
        if (!ptr || !nbytes) return INVALID_VALUE;
        auto next = registered.lower_bound(ptr);
        if (next != registered.end() && next->first < ptr + nbytes) return ALREADY_REGISTERED;
        if (next != registered.begin() && std::prev(next)->first + std::prev(next)->second > ptr)
            return ALREADY_REGISTERED;
        registered[ptr] = nbytes;
        return OK;
    }

    int pinned_unregister(uint64_t ptr) { return registered.erase(ptr) ? OK : NOT_REGISTERED; }

    int va_reserve(uint64_t* va, size_t nbytes, size_t alignment) {
        if (!nbytes || nbytes % GRANULARITY || (alignment & (alignment - 1))) return INVALID_VALUE;
        size_t unit = alignment > GRANULARITY ? alignment : GRANULARITY;
        size_t whole = nbytes + unit;
        if (whole < nbytes) return OUT_OF_MEMORY;
        void* raw = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                         -1, 0);
        if (raw == MAP_FAILED) return OUT_OF_MEMORY;
        uint64_t start = reinterpret_cast<uint64_t>(raw);
        uint64_t aligned = round_up(start, unit);
        if (aligned > start) munmap(raw, aligned - start);
        size_t tail = start + whole - (aligned + nbytes);
        if (tail) munmap(address(aligned + nbytes), tail);
        ranges[aligned] = Range{nbytes, RESERVATION};
        reservation_count++;
        *va = aligned;
        return OK;
    }

    int va_release(uint64_t va, size_t nbytes) {
        auto range = ranges.find(va);
        if (range == ranges.end() || range->second.kind != RESERVATION ||
            range->second.nbytes != nbytes)
            return INVALID_VALUE;
        auto mapping = mappings.lower_bound(va);
        if (mapping != mappings.end() && mapping->first < va + nbytes) return INVALID_VALUE;
        reservation_count--;
        drop(range);
        return OK;
    }

    int page_create(uint64_t* page, size_t nbytes) {
        if (!nbytes || nbytes % GRANULARITY) return INVALID_VALUE;
        if (nbytes > capacity - used) return OUT_OF_MEMORY;
        if (!phantom && !grow_file(nbytes)) return OUT_OF_MEMORY;
        uint64_t offset = file_end - (phantom ? 0 : nbytes);
        if (poison && !phantom && !poison_range(file, offset, nbytes)) return OUT_OF_MEMORY;
        *page = add_page(Page{nbytes, offset, 0, false, -1}, nbytes);
        return OK;
    }

    // A page in a file of its own, which other processes can map.
    int page_create_shared(uint64_t* page, size_t nbytes, int* descriptor) {
        if (!nbytes || nbytes % GRANULARITY) return INVALID_VALUE;
        if (phantom) return NOT_SUPPORTED;
        if (nbytes > capacity - used) return OUT_OF_MEMORY;
        int own = memfd_create("gputensor-shared-page", MFD_CLOEXEC);
        int given = own < 0 ? -1 : fcntl(own, F_DUPFD_CLOEXEC, 0);
        if (given < 0 || ftruncate(own, off_t(nbytes)) ||
            (poison && !poison_range(own, 0, nbytes))) {
            if (given >= 0) close(given);
            if (own >= 0) close(own);
            return OUT_OF_MEMORY;
        }
        *page = add_page(Page{nbytes, 0, 0, false, own}, nbytes);
        *descriptor = given;
        return OK;
    }

    // The memory counts as used where it was created.
    int page_import(uint64_t* page, size_t nbytes, int descriptor) {
        struct stat facts;
        if (phantom) return NOT_SUPPORTED;
        if (!nbytes || nbytes % GRANULARITY || fstat(descriptor, &facts) ||
            size_t(facts.st_size) != nbytes)
            return INVALID_VALUE;
        int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
        if (own < 0) return OUT_OF_MEMORY;
        *page = add_page(Page{nbytes, 0, 0, false, own, true}, 0);
        return OK;
    }

    // The memory is freed when the last mapping is gone, as with cuMemRelease.
    int page_destroy(uint64_t handle) {
        auto page = pages.find(handle);
        if (page == pages.end() || page->second.destroyed) return INVALID_VALUE;
        page->second.destroyed = true;
        page_count--;
        reclaim(page);
        return OK;
    }

    int page_map(uint64_t va, size_t nbytes, uint64_t handle) {
        auto page = pages.find(handle);
        if (page == pages.end() || page->second.destroyed || page->second.nbytes != nbytes ||
            va % GRANULARITY)
            return INVALID_VALUE;
        auto range = containing(va);
        if (range == ranges.end() || range->second.kind != RESERVATION ||
            nbytes > range->first + range->second.nbytes - va)
            return INVALID_VALUE;
        auto next = mappings.lower_bound(va);
        if (next != mappings.end() && next->first < va + nbytes) return INVALID_VALUE;
        if (next != mappings.begin() && std::prev(next)->second.end > va) return INVALID_VALUE;
        if (!phantom && mmap(address(va), nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                             page->second.file < 0 ? file : page->second.file,
                             off_t(page->second.offset)) == MAP_FAILED)
            return OUT_OF_MEMORY;
        page->second.mapped++;
        mappings[va] = Mapping{va + nbytes, handle};
        return OK;
    }

    int page_unmap(uint64_t va, size_t nbytes) {
        auto first = mappings.find(va);
        uint64_t reached = va;
        auto last = first;
        while (last != mappings.end() && last->first == reached && reached < va + nbytes) {
            reached = last->second.end;
            ++last;
        }
        if (!nbytes || reached != va + nbytes) return INVALID_VALUE;
        if (!phantom && mmap(address(va), nbytes, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                             0) == MAP_FAILED)
            return OUT_OF_MEMORY;
        for (auto mapping = first; mapping != last; ++mapping) {
            auto page = pages.find(mapping->second.page);
            page->second.mapped--;
            reclaim(page);
        }
        mappings.erase(first, last);
        return OK;
    }

    // Whether work may access [ptr, ptr + nbytes), as far as the device can tell.
    Place place(uint64_t ptr, size_t nbytes) {
        auto range = containing(ptr);
        if (range == ranges.end()) {
            auto next = ranges.lower_bound(ptr);
            if (next != ranges.end() && next->first < ptr + nbytes) return Place::FORBIDDEN;
            auto entry = registered.upper_bound(ptr);
            if (entry == registered.begin()) return Place::FOREIGN;
            --entry;
            return ptr + nbytes <= entry->first + entry->second ? Place::ACCESSIBLE
                                                                : Place::FOREIGN;
        }
        if (nbytes > range->first + range->second.nbytes - ptr) return Place::FORBIDDEN;
        if (range->second.kind == DEAD) return Place::FORBIDDEN;
        if (range->second.kind != RESERVATION) return Place::ACCESSIBLE;
        auto mapping = mappings.upper_bound(ptr);
        if (mapping == mappings.begin()) return Place::FORBIDDEN;
        --mapping;
        uint64_t reached = ptr;
        while (mapping != mappings.end() && mapping->first <= reached) {
            reached = mapping->second.end > reached ? mapping->second.end : reached;
            if (reached >= ptr + nbytes) return Place::ACCESSIBLE;
            if (++mapping != mappings.end() && mapping->first != reached) break;
        }
        return Place::FORBIDDEN;
    }

    // In the child of a fork: clears all records. The addresses stay reserved, and mapped memory
    // stays readable, since arrays of other libraries may show it; the child's writes are private.
    // Page numbers continue, so that the parent's handles are recognised as stale.
    void renew() {
        for (auto& mapping : mappings) {
            if (phantom) break;
            size_t nbytes = size_t(mapping.second.end - mapping.first);
            const Page& page = pages.at(mapping.second.page);
            if (mmap(address(mapping.first), nbytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_FIXED, page.file < 0 ? file : page.file,
                     off_t(page.offset)) == MAP_FAILED)
                mmap(address(mapping.first), nbytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        }
        for (auto& page : pages)
            if (page.second.file >= 0) close(page.second.file);
        if (file >= 0) close(file);
        file = -1;
        file_end = 0;
        ranges.clear();
        registered.clear();
        mappings.clear();
        pages.clear();
        used = allocation_count = pinned_count = reservation_count = page_count = 0;
    }

    const size_t capacity;
    const bool phantom;
    const bool poison;
    size_t used = 0;  // bytes of allocations and of pages whose memory is not freed yet
    size_t allocation_count = 0, pinned_count = 0, reservation_count = 0, page_count = 0;
    size_t mapping_count() const { return mappings.size(); }
    size_t registered_count() const { return registered.size(); }

private:
    static constexpr size_t PAGE = 4096;
    // DEAD: freed on a deferred device. The addresses stay reserved and inaccessible, so that late
    // work on them is recognised instead of changing memory that reuses them.
    enum Kind { ALLOCATION, PINNED, RESERVATION, DEAD };
    struct Range { size_t nbytes; Kind kind; };
    struct Page {
        size_t nbytes;
        uint64_t offset;
        uint32_t mapped;
        bool destroyed;
        int file;               // its own; -1: a range of the device's
        bool imported = false;  // another device's memory
    };
    struct Mapping { uint64_t end; uint64_t page; };
    using Ranges = std::map<uint64_t, Range>;
    using Pages = std::unordered_map<uint64_t, Page>;

    static constexpr size_t SPACE = size_t(1) << 44;

    bool in_space(uint64_t ptr) const { return space && ptr - space < SPACE; }

    // The next addresses of one large reservation; they are never released.
    void* take_from_space(size_t nbytes) {
        if (!space) {
            void* base = mmap(nullptr, SPACE, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (base == MAP_FAILED) return MAP_FAILED;
            space = reinterpret_cast<uint64_t>(base);
        }
        if (nbytes > SPACE - space_used) return MAP_FAILED;
        space_used += nbytes;
        return address(space + space_used - nbytes);
    }

    static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }
    static void* address(uint64_t ptr) { return reinterpret_cast<void*>(ptr); }

    Ranges::iterator containing(uint64_t ptr) {
        auto range = ranges.upper_bound(ptr);
        if (range == ranges.begin()) return ranges.end();
        --range;
        return ptr - range->first < range->second.nbytes ? range : ranges.end();
    }

    void drop(Ranges::iterator range) {
        void* base = address(range->first);
        size_t nbytes = range->second.nbytes;
        if (in_space(range->first)) {
            ranges.erase(range);
            return;
        }
        if (poison && range->second.kind != PINNED &&
            mmap(base, nbytes, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED) {
            range->second.kind = DEAD;
            return;
        }
        munmap(base, nbytes);
        ranges.erase(range);
    }

    void reclaim(Pages::iterator page) {
        if (!page->second.destroyed || page->second.mapped) return;
        if (!page->second.imported) used -= page->second.nbytes;
        if (page->second.file >= 0)
            close(page->second.file);
        else if (!phantom)
            fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      off_t(page->second.offset), off_t(page->second.nbytes));
        pages.erase(page);
    }

    bool grow_file(size_t nbytes) {
        if (file < 0) file = memfd_create("gputensor-host-device", MFD_CLOEXEC);
        if (file < 0 || ftruncate(file, off_t(file_end + nbytes)) != 0) return false;
        file_end += nbytes;
        return true;
    }

    uint64_t add_page(const Page& page, size_t nbytes) {
        pages[++last_page] = page;
        page_count++;
        used += nbytes;
        return last_page;
    }

    static bool poison_range(int file, uint64_t offset, size_t nbytes) {
        void* view = mmap(nullptr, nbytes, PROT_WRITE, MAP_SHARED, file, off_t(offset));
        if (view == MAP_FAILED) return false;
        memset(view, POISON, nbytes);
        munmap(view, nbytes);
        return true;
    }

    Ranges ranges;
    std::map<uint64_t, size_t> registered;
    std::map<uint64_t, Mapping> mappings;
    Pages pages;
    uint64_t last_page = 0;
    uint64_t file_end = 0;
    uint64_t space = 0;  // of take_from_space; 0: nothing is reserved
    size_t space_used = 0;
    int file = -1;
};

}  // namespace gputensor
