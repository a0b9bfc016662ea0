// transposed[x, y] = matrix[y, x] for any 32-bit element type, through a tile in shared memory, so that
// both the reads and the writes of neighbouring invocations are neighbours in memory.
//
// Binding 0: storage buffer, read: matrix, u32[rows, columns]
// Binding 1: storage buffer, written: transposed, u32[columns, rows]
// Push constants (8 bytes):
//     0  uint rows
//     4  uint columns
// Groups: x = ceil(columns / 32), y = ceil(rows / 32)
#version 450

layout(local_size_x = 32, local_size_y = 4) in;

const uint TILE = 32u;

layout(std430, set = 0, binding = 0) restrict readonly buffer Matrix {
    uint matrix[];
};

layout(std430, set = 0, binding = 1) restrict writeonly buffer Transposed {
    uint transposed[];
};

layout(push_constant) uniform Push {
    uint rows;
    uint columns;
} push;

// One column more than the tile has, so that a column's elements lie in different banks.
shared uint tile[TILE][TILE + 1u];

void main() {
    uvec2 corner = gl_WorkGroupID.xy * TILE;
    uvec2 local = gl_LocalInvocationID.xy;
    for (uint y = local.y; y < TILE; y += gl_WorkGroupSize.y) {
        uvec2 from = corner + uvec2(local.x, y);
        if (from.x < push.columns && from.y < push.rows) {
            tile[y][local.x] = matrix[from.y * push.columns + from.x];
        }
    }
    barrier();
    for (uint y = local.y; y < TILE; y += gl_WorkGroupSize.y) {
        uvec2 to = corner.yx + uvec2(local.x, y);
        if (to.x < push.rows && to.y < push.columns) {
            transposed[to.y * push.rows + to.x] = tile[local.x][y];
        }
    }
}
