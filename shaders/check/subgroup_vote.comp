// Votes of each subgroup on a[i].
//
// Binding 0: storage buffer, read: a, u32[n], n a multiple of 64
// Binding 1: storage buffer, written: places, u32[n][2]: the subgroup's number among all, and the invocation's in it
// Binding 2: storage buffer, written: results, u32[4][n]
// Push constants: none.
// Groups: x = n / 64
// Needs: subgroup operations of vote.
#version 450
#extension GL_KHR_shader_subgroup_vote : require

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) readonly buffer A {
    uint a[];
};
layout(std430, set = 0, binding = 1) writeonly buffer Places {
    uvec2 places[];
};
layout(std430, set = 0, binding = 2) writeonly buffer Results {
    uint results[];
};

void main() {
    uint n = uint(a.length());
    uint i = gl_GlobalInvocationID.x;
    uint x = a[i];
    places[i] = uvec2(gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID, gl_SubgroupInvocationID);
    results[i] = uint(subgroupAll(x > 0u));
    results[n + i] = uint(subgroupAny(x > 99u));
    results[2u * n + i] = uint(subgroupAllEqual(x));
    results[3u * n + i] = uint(subgroupAllEqual(gl_SubgroupID));
}
