// The entry of a kernel compiled with tensor_cores_on_cpu.h: runs a launch cluster by cluster.
#pragma once

static const Parameters* cpu_parameters;
static void cpu_entry() {
    for (;;) {
        kernel(*cpu_parameters);
        if (cpu_self->product_count || cpu_self->store_count)
            cpu_fault("a thread did not wait for its products or stores");
        cpu_self->is_done = true;
        // Until a block with this thread begins.
        if (_setjmp(cpu_self->turn) == 0) _longjmp(cpu_turns, 1);
    }
}
static void cpu_run_thread(CpuThread& thread, const CpuStacks& stacks) {
    cpu_self = &thread;
    cpu_shared = thread.block->shared;
    const unsigned rank = (unsigned)(thread.block - cpu_cluster);
    threadIdx = {thread.number - rank * blockDim.x, 0, 0};
    thread.generation = nullptr;
    if (_setjmp(cpu_turns)) return;
    if (thread.is_begun) _longjmp(thread.turn, 1);
    thread.is_begun = true;
    ucontext_t fiber, nobody;
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = stacks.at(thread.number);
    fiber.uc_stack.ss_size = CPU_STACK;
    fiber.uc_link = nullptr;
    makecontext(&fiber, cpu_entry, 0);
    swapcontext(&nobody, &fiber);
}
// Copies that arrive at a barrier end at any time; returns whether one did.
static bool cpu_end_copies(CpuThread& thread, bool all) {
    bool ended = false;
    cpu_self = &thread;
    cpu_shared = thread.block->shared;
    while (thread.arrivals && (all || cpu_random(2))) {
        CpuCopy copy;
        do cpu_do(copy = thread.copies[thread.copies_done++ % CPU_COPIES]);
        while (copy.size && !copy.blocks);
        --thread.arrivals;
        ended = true;
    }
    return ended;
}
static unsigned cpu_divisor(unsigned a, unsigned b) { return b ? cpu_divisor(b, a % b) : a; }
static void cpu_run_cluster(unsigned first, const CpuStacks& stacks) {
    static volatile bool is_running, came;      // outlive the jumps
    static volatile unsigned i, step, offset, slow;
    const unsigned here = blockDim.x * CPU_BLOCKS;
    for (CpuBlock& block : cpu_cluster) {
        block.shared = (char*)((size_t)(block.memory + 1023) / 1024 * 1024);
        memset(block.shared, 0xff, min(cpu_asked + CPU_GUARD, CPU_FIXED));
        memset(block.shared + CPU_FIXED, 0xff, CPU_SHARED - CPU_FIXED);
        for (CpuBarrier& barrier : block.named) barrier.came = 0;   // a block may leave arrivals
    }
    for (unsigned t = 0; t < here; ++t) {
        CpuThread& thread = cpu_threads[t];
        thread.is_done = false;
        thread.generation = nullptr;
        thread.number = t;
        thread.block = &cpu_cluster[t / blockDim.x];
        thread.copies_done = thread.copies_all = thread.arrivals = thread.copy_groups = 0;
        thread.product_count = thread.product_groups = thread.store_count = 0;
    }
    cpu_late = cpu_random(2);
    slow = cpu_random(~0u);
    for (is_running = true; is_running;) {
        is_running = came = false;
        do step = cpu_random(here) + 1;
        while (cpu_divisor(step, here) > 1);
        offset = cpu_random(here);
        for (i = 0; i < here; ++i) {
            CpuThread& thread = cpu_threads[(i * step + offset) % here];
            if (!cpu_late || cpu_random(2)) came = cpu_end_copies(thread, false) || came;
            if (thread.is_done) continue;
            is_running = true;
            if (thread.generation && *thread.generation == thread.last) continue;
            if (slow >> thread.number / 32 % 32 & 1) continue;
            came = true;
            const unsigned block = first + thread.number / blockDim.x;
            blockIdx = {block % gridDim.x, block / gridDim.x % gridDim.y,
                        block / gridDim.x / gridDim.y};
            cpu_run_thread(thread, stacks);
        }
        for (unsigned t = 0; t < here && !came; ++t) came = cpu_end_copies(cpu_threads[t], true);
        if (is_running && !came && !slow) cpu_fault("all threads wait");
        slow = came ? slow ? slow : cpu_random(~0u) : 0;
    }
    for (unsigned t = 0; t < here; ++t) cpu_end_copies(cpu_threads[t], true);
    for (const CpuBlock& block : cpu_cluster)
        for (unsigned at = cpu_asked; at < cpu_asked + CPU_GUARD && at < CPU_FIXED; ++at)
            if (block.shared[at] != (char)0xff) cpu_fault("a write behind shared memory");
}
extern "C" size_t parameters_nbytes() { return sizeof(Parameters); }
extern "C" void run(const unsigned* grid, const unsigned* block, const void* parameters) {
    static unsigned long long launches;
    const char* const seed = getenv("FAKE_CUDA_SEED");
    static volatile unsigned first;
    static CpuStacks stacks(1024 * CPU_BLOCKS);
    cpu_state = ((seed ? atoll(seed) : 0) + (++launches << 32)) * 0x9e3779b97f4a7c15ull | 1;
    for (int i = 0; i < 8; ++i) cpu_random(2);
    cpu_parameters = static_cast<const Parameters*>(parameters);
    blockDim = {block[0], 1, 1};
    gridDim = {grid[0], grid[1], grid[2]};
    cpu_asked = block[3];
    if (block[1] != 1 || grid[0] % CPU_BLOCKS)
        cpu_fault("a launch has other blocks or clusters");
    const unsigned most = 1024 * CPU_BLOCKS;
    if (!cpu_threads) {
        cpu_threads = (CpuThread*)calloc(most, sizeof(CpuThread));
        CpuCopy* copies = (CpuCopy*)calloc(most * CPU_COPIES, sizeof(CpuCopy));
        CpuProduct* products = (CpuProduct*)calloc(most * CPU_PRODUCTS, sizeof(CpuProduct));
        for (unsigned t = 0; t < most; ++t) {
            cpu_threads[t].copies = copies + t * CPU_COPIES;
            cpu_threads[t].products = products + t * CPU_PRODUCTS;
        }
    }
    const unsigned count = grid[0] * grid[1] * grid[2];
    for (first = 0; first < count; first += CPU_BLOCKS) cpu_run_cluster(first, stacks);
}
