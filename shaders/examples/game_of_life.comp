// One generation of Conway's game of life on a torus: a cell lives (1) next if it has three living
// neighbours of eight, or lives and has two.
//
// Binding 0: storage buffer, read: cells, u32[height, width], each 0 or 1
// Binding 1: storage buffer, written: next, u32[height, width]
// Push constants (8 bytes):
//     0  uint width
//     4  uint height
// Groups: x = ceil(width / 8), y = ceil(height / 8)
#version 450

layout(local_size_x = 8, local_size_y = 8) in;

layout(std430, set = 0, binding = 0) restrict readonly buffer Cells {
    uint cells[];
};

layout(std430, set = 0, binding = 1) restrict writeonly buffer Next {
    uint next[];
};

layout(push_constant) uniform Push {
    uint width;
    uint height;
} push;

void main() {
    uint x = gl_GlobalInvocationID.x;
    uint y = gl_GlobalInvocationID.y;
    if (x >= push.width || y >= push.height) {
        return;
    }
    uint columns[3] = uint[](x == 0u ? push.width - 1u : x - 1u, x, x + 1u == push.width ? 0u : x + 1u);
    uint rows[3] = uint[](y == 0u ? push.height - 1u : y - 1u, y, y + 1u == push.height ? 0u : y + 1u);
    uint alive = 0u;
    for (uint i = 0u; i < 3u; ++i) {
        for (uint j = 0u; j < 3u; ++j) {
            alive += cells[rows[i] * push.width + columns[j]];
        }
    }
    uint cell = cells[y * push.width + x];
    uint neighbours = alive - cell;
    next[y * push.width + x] = uint(neighbours == 3u || (neighbours == 2u && cell == 1u));
}
