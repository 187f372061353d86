// The tiles of depthwise convolution with copied boxes (depthwise_boxes.cuh): a model of their time.
//
// The parts of the time are a multiprocessor's instructions, four in a cycle, and more of them the
// fewer warps hide each other's waits; the instructions of one thread, one after the other; the
// bytes of a multiprocessor; and those of a block, which its instructions wait for. The weights are
// fitted to 40 problems of 16 to 256 images, with some 60 tiles each, on an H200: what the model
// chooses takes 2.3 % longer than the best of these tiles in the mean, and 11 % at most.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace gputensor {

enum {
    BOX_VECTOR = 2,             // channels of a thread
    BOX_LANES = 32,             // threads of a block that have different channels, at most
    MOST_BOX_THREADS = 224,     // MOST_THREADS of programs.depthwise_boxes
    BOX_NBYTES = 64 << 10,      // shared memory of a block, so that three share a multiprocessor
    BOX_CHOICES = 64,           // that a thread keeps
};

// What a choice depends on. Extents and kernels are those along the height, then along the width.
struct BoxProblem {
    int64_t channels;           // in vectors
    int64_t images;
    int64_t out[2];
    int64_t kernel[2];
    int64_t halo[2];            // elements of x that a window covers beside one
    int64_t multiprocessors;
};

struct BoxChoice {
    int64_t lanes;              // threads with different channels
    int64_t pixels, rows;       // results of a thread
    int64_t across, down;       // threads of a block along the width and the height
    int64_t blocks;             // of an image
};

inline int64_t parts(int64_t extent, int64_t part) { return (extent + part - 1) / part; }

// The extent of the largest of the fewest parts of at most `most`.
inline int64_t even_part(int64_t extent, int64_t most) {
    return parts(extent, parts(extent, std::max<int64_t>(1, std::min(extent, most))));
}

// Cycles of a multiprocessor; below 0 if a block would have too many threads or bytes.
inline double cycles_of(const BoxChoice& c, const BoxProblem& p) {
    const int64_t height = c.down * c.rows, width = c.across * c.pixels;
    const int64_t threads = c.lanes * c.across * c.down, warps = parts(threads, 32);
    const int64_t shared = 2 * c.lanes * BOX_VECTOR
        * ((height + p.halo[0]) * (width + p.halo[1]) + height * width);
    if (threads > MOST_BOX_THREADS || shared > BOX_NBYTES) return -1;
    const int64_t taps = p.kernel[0] * p.kernel[1];
    const int64_t registers = 14 + c.pixels + p.halo[1]
        + BOX_VECTOR * (taps + std::min(c.rows, p.kernel[0]) * c.pixels);
    const int64_t fit = std::min({(227 << 10) / (shared + 1024), 64 / warps,
                                  (64 << 10) / (32 * warps * registers)});
    const int64_t each = parts(c.blocks * p.images, p.multiprocessors);
    const int64_t resident = std::max<int64_t>(1, std::min(each, fit));
    const double instructions = 210 + 2 * c.pixels * c.rows * (taps + 1)
        + 3 * (c.pixels + p.halo[1]) * (c.rows + p.halo[0]);
    const double vectors = (double)p.channels * p.images;
    const double written = 2 * BOX_VECTOR * vectors * p.out[0] * p.out[1];
    const double read = 2 * BOX_VECTOR * vectors
        * (p.out[0] + (parts(p.out[0], height) - 1) * p.halo[0])
        * (p.out[1] + (parts(p.out[1], width) - 1) * p.halo[1]);
    // Half of the difference to even shares is made up: blocks do not all begin at once.
    const double share = (each + (double)c.blocks * p.images / p.multiprocessors) / 2;
    const double cycles = share * warps * instructions / 4 * (1 + 4. / (resident * warps))
        + instructions * each / resident
        + 70 * (read + written) / 1024 / p.multiprocessors + 50 * shared / 1024.;
    // From memory, columns of half a line of the cache take longer.
    const bool is_large = 2 * written > (40 << 20);
    return is_large && c.lanes < BOX_LANES ? 1.15 * cycles : cycles;
}

inline BoxChoice best_boxes(const BoxProblem& p) {
    static const int64_t tiles[][2] = {{2, 7}, {7, 4}, {2, 4}};
    BoxChoice best = {}, c;
    double least = 0;
    for (const auto& tile : tiles)
        for (int64_t lanes = BOX_LANES; lanes >= BOX_LANES / 2; lanes /= 2) {
            c.pixels = tile[0], c.rows = tile[1];
            while (c.rows >= 2 * p.out[0]) c.rows = (c.rows + 1) / 2;
            c.lanes = parts(even_part(p.channels, lanes), 4) * 4;   // whole 16 bytes of a column
            for (int64_t across = 1; across <= 8; across *= 2)
                for (int64_t down = 1; down <= 4; down *= 2) {
                    c.across = even_part(parts(p.out[1], c.pixels), across);
                    c.down = even_part(parts(p.out[0], c.rows), down);
                    c.blocks = parts(p.channels, c.lanes) * parts(p.out[1], c.across * c.pixels)
                        * parts(p.out[0], c.down * c.rows);
                    const double cycles = cycles_of(c, p);
                    if (cycles < 0 || (best.blocks && cycles >= least)) continue;
                    best = c, least = cycles;
                }
        }
    return best;
}

// The choice for a problem, from those that the thread has made lately if it is among them. Its
// `blocks` are 0 if no tile fits.
inline const BoxChoice& boxes_for(const BoxProblem& p) {
    struct Entry { BoxProblem problem; BoxChoice choice; };
    static thread_local Entry entries[BOX_CHOICES];
    uint64_t mixed = 0;
    for (int64_t one : {p.channels, p.images, p.out[0], p.out[1], p.kernel[0], p.kernel[1]})
        mixed = mixed * 31 + (uint64_t)one;
    Entry& entry = entries[(mixed * 0x9E3779B97F4A7C15ull >> 32) % BOX_CHOICES];
    if (std::memcmp(&entry.problem, &p, sizeof p) != 0) entry = {p, best_boxes(p)};
    return entry.choice;
}

}  // namespace gputensor
