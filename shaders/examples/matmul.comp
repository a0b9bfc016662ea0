// c = a b for row-major f32 matrices, through tiles in shared memory.
//
// A workgroup of 8 x 8 invocations makes a tile of 32 x 32 elements of c; each invocation keeps 4 x 4 of
// them in registers, so an element read from shared memory serves four multiplications.
//
// Binding 0: storage buffer, read: a, f32[m, k]
// Binding 1: storage buffer, read: b, f32[k, n]
// Binding 2: storage buffer, written: c, f32[m, n]
// Push constants (12 bytes):
//     0  uint m
//     4  uint n
//     8  uint k
// Groups: x = ceil(n / 32), y = ceil(m / 32)
#version 450

layout(local_size_x = 8, local_size_y = 8) in;

const uint TILE = 32u;
const uint DEPTH = 16u;
const uint PER_INVOCATION = 4u;
const uint INVOCATIONS = 64u;

layout(std430, set = 0, binding = 0) restrict readonly buffer A {
    float a[];
};

layout(std430, set = 0, binding = 1) restrict readonly buffer B {
    float b[];
};

layout(std430, set = 0, binding = 2) restrict writeonly buffer C {
    float c[];
};

layout(push_constant) uniform Push {
    uint m;
    uint n;
    uint k;
} push;

// One column more than the tile has, so that a column's elements lie in different banks.
shared float tile_a[DEPTH][TILE + 1u];
shared float tile_b[DEPTH][TILE];

void main() {
    uint local = gl_LocalInvocationIndex;
    uint row_base = gl_WorkGroupID.y * TILE;
    uint column_base = gl_WorkGroupID.x * TILE;
    float sums[PER_INVOCATION][PER_INVOCATION];
    for (uint i = 0u; i < PER_INVOCATION; ++i) {
        for (uint j = 0u; j < PER_INVOCATION; ++j) {
            sums[i][j] = 0.0;
        }
    }
    for (uint depth_base = 0u; depth_base < push.k; depth_base += DEPTH) {
        for (uint e = local; e < TILE * DEPTH; e += INVOCATIONS) {
            uint row = row_base + e / DEPTH;
            uint depth = depth_base + e % DEPTH;
            tile_a[e % DEPTH][e / DEPTH] = row < push.m && depth < push.k ? a[row * push.k + depth] : 0.0;
        }
        for (uint e = local; e < TILE * DEPTH; e += INVOCATIONS) {
            uint depth = depth_base + e / TILE;
            uint column = column_base + e % TILE;
            tile_b[e / TILE][e % TILE] = depth < push.k && column < push.n ? b[depth * push.n + column] : 0.0;
        }
        barrier();
        for (uint d = 0u; d < DEPTH; ++d) {
            float from_a[PER_INVOCATION];
            float from_b[PER_INVOCATION];
            for (uint i = 0u; i < PER_INVOCATION; ++i) {
                from_a[i] = tile_a[d][gl_LocalInvocationID.y + 8u * i];
                from_b[i] = tile_b[d][gl_LocalInvocationID.x + 8u * i];
            }
            for (uint i = 0u; i < PER_INVOCATION; ++i) {
                for (uint j = 0u; j < PER_INVOCATION; ++j) {
                    sums[i][j] += from_a[i] * from_b[j];
                }
            }
        }
        barrier();
    }
    for (uint i = 0u; i < PER_INVOCATION; ++i) {
        uint row = row_base + gl_LocalInvocationID.y + 8u * i;
        for (uint j = 0u; j < PER_INVOCATION; ++j) {
            uint column = column_base + gl_LocalInvocationID.x + 8u * j;
            if (row < push.m && column < push.n) {
                c[row * push.n + column] = sums[i][j];
            }
        }
    }
}
