// Steps of the Collatz sequence from each a[i], and a sum by a switch, a nested loop and early ends of both.
//
// Binding 0: storage buffer, read: a, u32[n], positive
// Binding 1: storage buffer, written: results, u32[2][n]
// Push constants: none.
// Groups: x = ceil(n / 64)
#version 450

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) readonly buffer A {
    uint a[];
};
layout(std430, set = 0, binding = 1) writeonly buffer Results {
    uint results[];
};

uint steps_of(uint x) {
    uint steps = 0u;
    while (x != 1u) {
        x = (x & 1u) == 0u ? x / 2u : 3u * x + 1u;
        ++steps;
    }
    return steps;
}

void main() {
    uint n = uint(a.length());
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) {
        return;
    }
    uint x = a[i];
    results[i] = steps_of(x);
    uint sum = 0u;
    for (uint j = 0u; j < 20u; ++j) {
        switch ((x + j) % 4u) {
            case 0u:
                sum += 3u;
                break;
            case 1u:
                sum += j;  // and what the next case does
            case 2u:
                sum += 7u;
                break;
            default:
                for (uint k = 0u; k < x; ++k) {
                    if (k == 5u) {
                        break;
                    }
                    if (k % 2u == 1u) {
                        continue;
                    }
                    sum += k;
                }
        }
        if (sum > 100u) {
            break;
        }
    }
    results[n + i] = sum;
}
