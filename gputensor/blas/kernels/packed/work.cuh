// The work of each cluster of a packed product: whole tiles, strips, and its share of divided ones.
//
// Sizes are seldom whole tiles. A remainder of at most 32 rows or columns is cut into *strips*,
// tiles of 256 x 32; for rows, A and B are exchanged. Tiles, or strips, or both may be *divided*:
// all clusters share their steps along K equally (result.cuh adds the sums). The host decides this
// (packed_schedule.pxi). A cluster first does its share of divided tiles and strips, then its whole
// tiles, then whole strips.
#pragma once

// Tiles go down groups of rows of tiles, so that tiles that run together share rows of A and B.
#define GROUP 8

DEVICE void tile_at(const Parameters& p, int index, int* tile_m, int* tile_n) {
    const int inner = p.main_m * p.main_n;
    if (index < inner) {
        const int span = GROUP * p.main_n;
        const int group = index / span;
        const int rest = index - group * span;
        const int rows = min(GROUP, p.main_m - group * GROUP);
        *tile_n = rest / rows;
        *tile_m = group * GROUP + rest - *tile_n * rows;
        return;
    }
    index -= inner;
    *tile_m = index < p.edge_m ? p.main_m : index - p.edge_m;
    *tile_n = index < p.edge_m ? index : p.main_n;
}

// The beginning of a cluster's share of the divided tiles and, after them, strips.
struct Place { int item, step; };
DEVICE Place place_at(const Parameters& p, int cluster, int clusters) {
    i64 units = p.units * cluster / clusters;
    const bool is_strip = units >= p.units_tiles;
    if (is_strip) units -= p.units_tiles;
    const i64 steps = units / (is_strip ? p.weight_strip : p.weight_tile);
    Place place;
    place.item = (int)(steps / p.steps);
    place.step = (int)(steps - (i64)place.item * p.steps);
    if (is_strip) {
        place.item += p.divided;
        place.step -= place.step % STRIP_STEPS;     // an odd last step goes with a tile of zeros
    }
    return place;
}

struct Work {
    bool is_strip;
    int index;          // among the tiles or among the strips
    int first, last;    // steps
};
struct Walk {
    Place here, end;
    int cluster, clusters, tile, strip, strips;
    DEVICE Walk(const Parameters& p, int own, int count) {
        cluster = own;
        clusters = count;
        tile = cluster;
        strips = p.strips_from < 0 ? 0 : p.strips_n + p.strips_m;
        strip = cluster < p.strips_from ? strips : cluster - p.strips_from;
        here.item = here.step = 0;
        end = here;
        if (p.units) {
            here = place_at(p, cluster, clusters);
            end = place_at(p, cluster + 1, clusters);
        }
    }
    DEVICE bool next(const Parameters& p, Work& work) {
        while (here.item < end.item || (here.item == end.item && here.step < end.step)) {
            work.is_strip = here.item >= p.divided;
            work.index = work.is_strip ? here.item - p.divided : p.whole + here.item;
            work.first = here.step;
            work.last = here.item == end.item ? end.step : p.steps;
            ++here.item;
            here.step = 0;
            if (work.first < work.last) return true;
        }
        work.first = 0;
        work.last = p.steps;
        work.is_strip = tile >= p.whole;
        if (!work.is_strip) {
            work.index = tile;
            tile += clusters;
            return true;
        }
        work.index = strip;
        strip += clusters - p.strips_from;
        return work.index < strips;
    }
};

// A strip: 128 rows of A (or of B) for each block, times 32 rows of B (or of A).
struct Strip {
    bool is_across;     // rows left over
    i64 wide, narrow;   // first rows
    i64 limit;          // rows of the wide side
    DEVICE Strip(const Parameters& p, int index, u32 rank) {
        is_across = index >= p.strips_n;
        wide = ((i64)(is_across ? index - p.strips_n : index) * 2 + rank) * 128;
        narrow = is_across ? (i64)p.main_m * 256 : (i64)p.main_n * BN;
        limit = is_across ? (p.strips_n ? (i64)p.main_n * BN : p.n) : p.m;
    }
};
