// probabilities[r, :] = exp(logits[r, :] - max) / sum of the same, for each row; one workgroup a row.
//
// Binding 0: storage buffer, read: logits, f32[rows, columns]
// Binding 1: storage buffer, written: probabilities, f32[rows, columns]
// Push constants (8 bytes):
//     0  uint rows
//     4  uint columns
// Groups: any number in x; a workgroup strides over the rows, so x = min(rows, 65535) is best.
#version 450

layout(local_size_x = 128) in;

layout(std430, set = 0, binding = 0) restrict readonly buffer Logits {
    float logits[];
};

layout(std430, set = 0, binding = 1) restrict writeonly buffer Probabilities {
    float probabilities[];
};

layout(push_constant) uniform Push {
    uint rows;
    uint columns;
} push;

shared float scratch[gl_WorkGroupSize.x];

// Every invocation of the workgroup calls these two and gets the result of all.
float workgroup_max(float value) {
    uint local = gl_LocalInvocationID.x;
    scratch[local] = value;
    barrier();
    for (uint half_size = gl_WorkGroupSize.x / 2u; half_size > 0u; half_size /= 2u) {
        if (local < half_size) {
            scratch[local] = max(scratch[local], scratch[local + half_size]);
        }
        barrier();
    }
    float result = scratch[0];
    barrier();
    return result;
}

float workgroup_sum(float value) {
    uint local = gl_LocalInvocationID.x;
    scratch[local] = value;
    barrier();
    for (uint half_size = gl_WorkGroupSize.x / 2u; half_size > 0u; half_size /= 2u) {
        if (local < half_size) {
            scratch[local] += scratch[local + half_size];
        }
        barrier();
    }
    float result = scratch[0];
    barrier();
    return result;
}

void main() {
    uint local = gl_LocalInvocationID.x;
    for (uint row = gl_WorkGroupID.x; row < push.rows; row += gl_NumWorkGroups.x) {
        uint base = row * push.columns;
        // The row's first element rather than -infinity, which GLSL has no literal for.
        float largest = logits[base];
        for (uint column = local; column < push.columns; column += gl_WorkGroupSize.x) {
            largest = max(largest, logits[base + column]);
        }
        largest = workgroup_max(largest);
        float sum = 0.0;
        for (uint column = local; column < push.columns; column += gl_WorkGroupSize.x) {
            sum += exp(logits[base + column] - largest);
        }
        sum = workgroup_sum(sum);
        for (uint column = local; column < push.columns; column += gl_WorkGroupSize.x) {
            probabilities[base + column] = exp(logits[base + column] - largest) / sum;
        }
    }
}
