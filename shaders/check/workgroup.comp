// Reverses each workgroup's part of a through shared memory, and counts its odd numbers with shared atomics.
//
// Specialization constants 0 and 1: invocations of a workgroup, and the length of its shared memory, which is as many
// Binding 0: storage buffer, read: a, u32[n], n a multiple of the invocations
// Binding 1: storage buffer, written: reversed, u32[n]
// Binding 2: storage buffer, written: counts, u32[workgroups][2]: odd numbers, and the greatest number
// Push constants: none.
// Groups: x = n / invocations
#version 450

layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 1) const uint SIZE = 64u;

layout(std430, set = 0, binding = 0) readonly buffer A {
    uint a[];
};
layout(std430, set = 0, binding = 1) writeonly buffer Reversed {
    uint reversed[];
};
layout(std430, set = 0, binding = 2) writeonly buffer Counts {
    uint counts[];
};

shared uint part[SIZE];
shared uint odd;
shared uint greatest;

void main() {
    uint local = gl_LocalInvocationID.x;
    if (local == 0u) {
        odd = 0u;
        greatest = 0u;
    }
    part[local] = a[gl_GlobalInvocationID.x];
    barrier();
    reversed[gl_GlobalInvocationID.x] = part[gl_WorkGroupSize.x - 1u - local];
    atomicAdd(odd, part[local] & 1u);
    atomicMax(greatest, part[local]);
    barrier();
    if (local == 0u) {
        counts[2u * gl_WorkGroupID.x] = odd;
        counts[2u * gl_WorkGroupID.x + 1u] = greatest;
    }
}
