// The sums over all parts of K: from the warps of a cluster to the block that owns the features.
//
// A warp sends its sums to the owner's shared memory, each to a separate place. Those of many tokens
// would leave less room for x and the stages, so their block first adds those of its own warps, in
// the place of the stages. All additions have a fixed order.
#pragma once

// Floats from token to token, which keeps the stores of a warp's tokens apart.
#define SUM_PITCH (OWN_ROWS + 8)
#define PART_PITCH (BLOCK_ROWS + 8)
#define IS_ADDED_FIRST (SPLITS > 1 && TOKENS > 8)

// The place of a sum for feature `own` of those that a block owns.
__device__ __forceinline__ uint32 sum_place(const Parameters& p, uint32 shared, int part, int token,
                                            int own) {
    return shared + p.sums_offset + ((part * p.m + token) * SUM_PITCH + own) * 4;
}

// Stores a sum where the block that owns the feature adds up.
__device__ __forceinline__ void send_sum(const Parameters& p, uint32 shared, int part, int token,
                                         int feature, float sum) {
    const uint32 to = sum_place(p, shared, part, token, feature % OWN_ROWS);
#if SPLITS > 1
    const int owner = feature / OWN_ROWS;
    uint32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(to), "r"(owner));
    asm volatile("st.shared::cluster.f32 [%0], %1;" :: "r"(there), "f"(sum) : "memory");
#else
    store_4(to, sum);
#endif
}

// The place of a warp's sum, if the block adds up its own first.
__device__ __forceinline__ uint32 part_place(const Parameters& p, uint32 shared, int k_warp,
                                             int token, int feature) {
    return shared + ((k_warp * p.m + token) * PART_PITCH + feature) * 4;
}

// Adds the sums of the block's warps, and sends them.
__device__ __forceinline__ void send_sums(const Parameters& p, uint32 shared, int split) {
    __syncthreads();
    for (int i = threadIdx.x; i < p.m * BLOCK_ROWS; i += THREADS) {
        const int token = i / BLOCK_ROWS, feature = i % BLOCK_ROWS;
        float sum = 0;
#pragma unroll
        for (int k_warp = 0; k_warp < K_WARPS; ++k_warp)
            sum += __uint_as_float(shared_4(part_place(p, shared, k_warp, token, feature)));
        send_sum(p, shared, split, token, feature, sum);
    }
}

// Returns the sum over all parts of K for feature `own` of those that the block owns.
__device__ __forceinline__ float whole_sum(const Parameters& p, uint32 shared, int token, int own) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < (IS_ADDED_FIRST ? SPLITS : PARTS); ++i)
        sum += __uint_as_float(shared_4(sum_place(p, shared, i, token, own)));
    return sum;
}
