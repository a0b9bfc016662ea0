// partial[g] = the sum of the elements that workgroup g meets, by a tree in shared memory.
//
// Run it again with one group over the partial sums to get the sum of all.
//
// Binding 0: storage buffer, read: values, f32[count or more]
// Binding 1: storage buffer, written: partial, f32[groups]
// Push constants (4 bytes):
//     0  uint count  elements to add
// Specialization constants:
//     0  uint  local size in x, a power of two (default 128)
// Groups: any number in x; each invocation strides over the whole grid, so a few groups for each
//     processor of the device suffice.
#version 450

layout(local_size_x = 128, local_size_x_id = 0) in;

layout(std430, set = 0, binding = 0) restrict readonly buffer Values {
    float values[];
};

layout(std430, set = 0, binding = 1) restrict writeonly buffer Partial {
    float partial[];
};

layout(push_constant) uniform Push {
    uint count;
} push;

shared float sums[gl_WorkGroupSize.x];

void main() {
    uint local = gl_LocalInvocationID.x;
    uint count = min(push.count, uint(values.length()));
    uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    float sum = 0.0;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += stride) {
        sum += values[i];
    }
    sums[local] = sum;
    barrier();
    for (uint half_size = gl_WorkGroupSize.x / 2u; half_size > 0u; half_size /= 2u) {
        if (local < half_size) {
            sums[local] += sums[local + half_size];
        }
        barrier();
    }
    if (local == 0u && gl_WorkGroupID.x < uint(partial.length())) {
        partial[gl_WorkGroupID.x] = sums[0];
    }
}
