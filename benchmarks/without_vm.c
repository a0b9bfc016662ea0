/* The C side of without_vm.py: times calls of a program that `pumice codegen --c` wrote as program.c.
 *
 *     without_vm DEVICE in0.bin in1.bin ...
 *
 * DEVICE is the device's name. The files hold the elements of main's arguments, which go into buffers of the device. It says "ready", and answers
 * lines on stdin with a line of numbers:
 *
 *     new N      N calls that allocate their results: nanoseconds of each, with freeing them
 *     out N      N calls that write into storages of the caller: nanoseconds of each
 *     result I   the elements of result I, of a call of each kind
 *
 * Arguments and results are of f32 and i32, and of known shapes.
 */
#define _POSIX_C_SOURCE 200809L

#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_TENSORS = 8, MAX_BYTES = 1 << 16 };

static program_program *program;
static const program_function *function;
static program_tensor inputs[MAX_TENSORS], storages[MAX_TENSORS];

static void check(int status)
{
    if (status == PROGRAM_OK) return;
    fprintf(stderr, "C: %s: %s\n", program_status_name(status), program_error(program));
    exit(1);
}

static uint64_t size_of(const program_type *type)
{
    uint64_t size = type->bits / 8;
    for (uint32_t axis = 0; axis < type->rank; axis++) size *= (uint64_t)type->shape[axis];
    return size;
}

static void make_buffer(program_tensor *tensor, const program_type *type, const char *path)
{
    static char data[MAX_BYTES];
    const uint64_t size = size_of(type);
    if (path) {
        FILE *file = fopen(path, "rb");
        if (!file || size > sizeof data || fread(data, 1, size, file) != size) {
            fprintf(stderr, "C: cannot read %s\n", path);
            exit(1);
        }
        fclose(file);
    }
    check(program_buffer_create(program, size, &tensor->buffer));
    check(program_buffer_write(program, tensor->buffer, 0, data, size));
}

static void call_new(program_tensor *outputs)
{
    memset(outputs, 0, MAX_TENSORS * sizeof *outputs);
    check(function->call(program, inputs, outputs));
}

static void destroy(program_tensor *outputs)
{
    for (uint32_t index = 0; index < function->output_count; index++) {
        program_buffer_destroy(program, outputs[index].buffer);
    }
}

static long long nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void time_calls(int count, int is_new)
{
    for (int call = 0; call < count; call++) {
        program_tensor outputs[MAX_TENSORS];
        const long long begin = nanoseconds();
        if (is_new) {
            call_new(outputs);
            destroy(outputs);
        } else {
            check(function->call(program, inputs, storages));
        }
        printf("%lld ", nanoseconds() - begin);
    }
    printf("\n");
}

static void print_elements(program_buffer *buffer, const program_type *type)
{
    static char data[MAX_BYTES];
    const uint64_t size = size_of(type);
    check(program_buffer_read(program, buffer, 0, data, size));
    for (uint64_t index = 0; index < size / 4; index++) {
        if (type->dtype[0] == 'f') printf("%.9g ", (double)((float *)(void *)data)[index]);
        else printf("%d ", ((int *)(void *)data)[index]);
    }
}

int main(int count, char **words)
{
    uint32_t functions;
    function = program_functions(&functions);
    if ((uint32_t)count != function->input_count + 2) return 2;
    const program_options options = {.device_name = words[1]};
    check(program_create(&options, &program));
    for (uint32_t index = 0; index < function->input_count; index++) {
        make_buffer(&inputs[index], &function->inputs[index], words[index + 2]);
    }
    for (uint32_t index = 0; index < function->output_count; index++) {
        make_buffer(&storages[index], &function->outputs[index], NULL);
    }
    printf("ready\n");
    char command[16];
    int number;
    while (fflush(stdout) == 0 && scanf("%15s %d", command, &number) == 2) {
        if (strcmp(command, "result") == 0) {
            program_tensor outputs[MAX_TENSORS];
            call_new(outputs);
            check(function->call(program, inputs, storages));
            print_elements(outputs[number].buffer, &function->outputs[number]);
            print_elements(storages[number].buffer, &function->outputs[number]);
            printf("\n");
            destroy(outputs);
        } else {
            time_calls(number, strcmp(command, "new") == 0);
        }
    }
    for (uint32_t index = 0; index < function->input_count; index++) {
        program_buffer_destroy(program, inputs[index].buffer);
    }
    destroy(storages);
    program_destroy(program);
    return 0;
}
