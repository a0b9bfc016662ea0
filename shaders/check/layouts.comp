// Copies blocks with the layouts std140 and std430, whose paddings differ.
//
// Binding 0: uniform buffer: 96 bytes: float f; vec3 v; float w[2]; mat2x3 m (std140)
// Binding 1: storage buffer, read: 64 bytes: float f; vec3 v; float w[2]; mat2x3 m (std430)
// Binding 2: storage buffer, written: results, f32[24]: both blocks' twelve numbers, without paddings
// Push constants: none.
// Groups: x = 1
#version 450

layout(local_size_x = 1) in;

layout(std140, set = 0, binding = 0) uniform Wide {
    float f;
    vec3 v;
    float w[2];
    mat2x3 m;
} wide;
layout(std430, set = 0, binding = 1) readonly buffer Narrow {
    float f;
    vec3 v;
    float w[2];
    mat2x3 m;
} narrow;
layout(std430, set = 0, binding = 2) writeonly buffer Results {
    float results[];
};

void main() {
    results[0] = wide.f;
    results[12] = narrow.f;
    for (uint i = 0u; i < 3u; ++i) {
        results[1u + i] = wide.v[i];
        results[13u + i] = narrow.v[i];
        results[6u + i] = wide.m[0][i];
        results[18u + i] = narrow.m[0][i];
        results[9u + i] = wide.m[1][i];
        results[21u + i] = narrow.m[1][i];
    }
    for (uint i = 0u; i < 2u; ++i) {
        results[4u + i] = wide.w[i];
        results[16u + i] = narrow.w[i];
    }
}
