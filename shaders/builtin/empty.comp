// Does nothing: the baseline for timing a dispatch.
//
// Bindings: none. Push constants: none. Groups: any.
#version 450

layout(local_size_x = 1) in;

void main() {}
