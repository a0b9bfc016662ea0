// Reads and rewrites every element of a buffer, so that caches hold nothing else afterwards.
//
// Binding 0: storage buffer of uvec4, read and written. Push constants: none.
// Groups: x of 1 to 65535 (y = z = 1); each invocation strides over the whole grid.
// Needs: Shader capability only.
#version 450

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) restrict buffer Memory {
    uvec4 words[];
} memory;

void main() {
    uint count = uint(memory.words.length());
    uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += stride) {
        memory.words[i] = memory.words[i] + uvec4(1u);
    }
}
