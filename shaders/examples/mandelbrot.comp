// counts[y, x] = how many steps z -> z^2 + c takes from z = 0 until |z|^2 > 4, at most max_iterations,
// for c = (left + x * step_x, top + y * step_y).
//
// Every operation is rounded by itself (`precise`), so float32 arithmetic elsewhere gives the same counts.
//
// Binding 0: storage buffer, written: counts, u32[height, width]
// Push constants (28 bytes):
//     0   uint  width
//     4   uint  height
//     8   uint  max_iterations
//     12  float left
//     16  float top
//     20  float step_x
//     24  float step_y
// Groups: x = ceil(width / 8), y = ceil(height / 8)
#version 450

layout(local_size_x = 8, local_size_y = 8) in;

layout(std430, set = 0, binding = 0) restrict writeonly buffer Counts {
    uint counts[];
};

layout(push_constant) uniform Push {
    uint width;
    uint height;
    uint max_iterations;
    float left;
    float top;
    float step_x;
    float step_y;
} push;

void main() {
    uint x = gl_GlobalInvocationID.x;
    uint y = gl_GlobalInvocationID.y;
    if (x >= push.width || y >= push.height) {
        return;
    }
    precise float c_re = push.left + float(x) * push.step_x;
    precise float c_im = push.top + float(y) * push.step_y;
    precise float re = 0.0;
    precise float im = 0.0;
    uint count = 0u;
    while (count < push.max_iterations) {
        precise float re_squared = re * re;
        precise float im_squared = im * im;
        precise float magnitude = re_squared + im_squared;
        if (magnitude > 4.0) {
            break;
        }
        precise float cross_term = re * im;
        im = (cross_term + cross_term) + c_im;
        re = (re_squared - im_squared) + c_re;
        ++count;
    }
    counts[y * push.width + x] = count;
}
