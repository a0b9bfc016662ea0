// Writes who each invocation is: its global, local and workgroup numbers, for groups of three dimensions.
//
// Binding 0: storage buffer, written: rows, u32[invocations][8]: global x, y, z; local index; workgroup x, y, z; mark
// Push constants: none.
// Groups: any.
#version 450

layout(local_size_x = 4, local_size_y = 2, local_size_z = 3) in;

layout(std430, set = 0, binding = 0) writeonly buffer Rows {
    uint rows[];
};

void main() {
    uvec3 size = gl_NumWorkGroups * gl_WorkGroupSize;
    uvec3 id = gl_GlobalInvocationID;
    uint at = 8u * ((id.z * size.y + id.y) * size.x + id.x);
    rows[at] = id.x;
    rows[at + 1u] = id.y;
    rows[at + 2u] = id.z;
    rows[at + 3u] = gl_LocalInvocationIndex;
    rows[at + 4u] = gl_WorkGroupID.x;
    rows[at + 5u] = gl_WorkGroupID.y;
    rows[at + 6u] = gl_WorkGroupID.z;
    rows[at + 7u] = 0xC0FFEEu;
}
