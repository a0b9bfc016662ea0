// sums[i] = values[0] + ... + values[i] modulo 2^32 (an inclusive scan), in three passes.
//
// Pass 0 scans each block of 512 elements and writes its total; pass 1, one workgroup, scans the totals in
// place; pass 2 adds to each block the total of all before it. A memory barrier (shader write to shader
// read) goes between the passes. No pass waits for another workgroup, so none relies on how workgroups are
// scheduled, as a scan in one pass would.
//
// Binding 0: storage buffer, read: values, u32[count or more]
// Binding 1: storage buffer, read and written: sums, u32[count or more]
// Binding 2: storage buffer, read and written: totals, u32[ceil(count / 512) or more]
// Push constants (8 bytes):
//     0  uint count  elements
//     4  uint pass   0, 1 or 2
// Groups: pass 0 and 2: x = ceil(count / 512), at most 65535; pass 1: x = 1
#version 450

layout(local_size_x = 128) in;

const uint LOCAL = 128u;
const uint PER_INVOCATION = 4u;
const uint BLOCK = LOCAL * PER_INVOCATION;

layout(std430, set = 0, binding = 0) restrict readonly buffer Values {
    uint values[];
};

layout(std430, set = 0, binding = 1) restrict buffer Sums {
    uint sums[];
};

layout(std430, set = 0, binding = 2) restrict buffer Totals {
    uint totals[];
};

layout(push_constant) uniform Push {
    uint count;
    uint pass;
} push;

shared uint scratch[LOCAL];

// The sum of `value` over the invocations up to and including this one. Every invocation calls it.
uint workgroup_scan(uint value) {
    uint local = gl_LocalInvocationID.x;
    scratch[local] = value;
    barrier();
    for (uint reach = 1u; reach < LOCAL; reach *= 2u) {
        uint before = local >= reach ? scratch[local - reach] : 0u;
        barrier();
        scratch[local] += before;
        barrier();
    }
    return scratch[local];
}

void scan_block(uint count) {
    uint first = gl_WorkGroupID.x * BLOCK + gl_LocalInvocationID.x * PER_INVOCATION;
    uint running[PER_INVOCATION];
    uint sum = 0u;
    for (uint i = 0u; i < PER_INVOCATION; ++i) {
        sum += first + i < count ? values[first + i] : 0u;
        running[i] = sum;
    }
    uint inclusive = workgroup_scan(sum);
    for (uint i = 0u; i < PER_INVOCATION; ++i) {
        if (first + i < count) {
            sums[first + i] = inclusive - sum + running[i];
        }
    }
    if (gl_LocalInvocationID.x == LOCAL - 1u) {
        totals[gl_WorkGroupID.x] = inclusive;
    }
}

void scan_totals(uint blocks) {
    uint carry = 0u;
    for (uint base = 0u; base < blocks; base += LOCAL) {
        uint i = base + gl_LocalInvocationID.x;
        uint inclusive = workgroup_scan(i < blocks ? totals[i] : 0u);
        if (i < blocks) {
            totals[i] = carry + inclusive;
        }
        carry += scratch[LOCAL - 1u];
        barrier();
    }
}

void add_totals(uint count) {
    if (gl_WorkGroupID.x == 0u) {
        return;
    }
    uint before = totals[gl_WorkGroupID.x - 1u];
    for (uint i = gl_LocalInvocationID.x; i < BLOCK; i += LOCAL) {
        uint index = gl_WorkGroupID.x * BLOCK + i;
        if (index < count) {
            sums[index] += before;
        }
    }
}

void main() {
    uint count = min(push.count, min(uint(values.length()), uint(sums.length())));
    if (push.pass == 0u) {
        scan_block(count);
    } else if (push.pass == 1u) {
        scan_totals((count + BLOCK - 1u) / BLOCK);
    } else {
        add_totals(count);
    }
}
