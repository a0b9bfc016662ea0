// bins[v] += how often the byte v occurs, with a histogram in shared memory for each workgroup.
//
// Binding 0: storage buffer, read: bytes, u8[count] as u32[ceil(count / 4) or more], lowest byte first
// Binding 1: storage buffer, read and written: bins, u32[256]; set to 0 before
// Push constants (4 bytes):
//     0  uint count  bytes
// Groups: any number in x; each invocation strides over the whole grid.
#version 450

layout(local_size_x = 128) in;

const uint BINS = 256u;

layout(std430, set = 0, binding = 0) restrict readonly buffer Bytes {
    uint words[];
};

layout(std430, set = 0, binding = 1) restrict buffer Bins {
    uint bins[BINS];
};

layout(push_constant) uniform Push {
    uint count;
} push;

shared uint local_bins[BINS];

void main() {
    for (uint bin = gl_LocalInvocationID.x; bin < BINS; bin += gl_WorkGroupSize.x) {
        local_bins[bin] = 0u;
    }
    barrier();
    uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    uint end = min((push.count >> 2) + uint((push.count & 3u) != 0u), uint(words.length()));
    for (uint i = gl_GlobalInvocationID.x; i < end; i += stride) {
        uint word = words[i];
        uint used = min(push.count - 4u * i, 4u);
        for (uint byte = 0u; byte < used; ++byte) {
            atomicAdd(local_bins[bitfieldExtract(word, int(8u * byte), 8)], 1u);
        }
    }
    barrier();
    for (uint bin = gl_LocalInvocationID.x; bin < BINS; bin += gl_WorkGroupSize.x) {
        if (local_bins[bin] != 0u) {
            atomicAdd(bins[bin], local_bins[bin]);
        }
    }
}
