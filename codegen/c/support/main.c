/* Runs NAME on .npy files: see usage(). */
#define _POSIX_C_SOURCE 200809L

#include "NAME.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_HEADER = 1 << 16 };

static const char *program_path;

static void usage(FILE *stream)
{
    uint32_t count;
    const NAME_function *functions = NAME_functions(&count);
    fprintf(stream,
            "Usage: %s [OPTIONS] IN.npy...\n\n"
            "Run a compiled program on NumPy's files.\n\n"
            "Options:\n"
            "  -o, --output OUT.npy   the file for the result; of several OUT0.npy, OUT1.npy and so on\n"
            "  -f, --function FUNC    the function to call; %s by default\n"
            "  -d, --device TEXT      part of the name of the device\n"
DATA_USAGE
            "      --repeat N         time N more calls on device memory, and print microseconds a call\n"
            "  -h, --help             show this\n\n"
            "Functions:\n",
            program_path, functions[0].name);
    for (uint32_t index = 0; index < count; index++) {
        const NAME_function *each = &functions[index];
        fprintf(stream, "  %s(", each->name);
        for (uint32_t input = 0; input < each->input_count; input++) {
            fprintf(stream, "%s%s: %s", input ? ", " : "", each->inputs[input].name, each->inputs[input].text);
        }
        fprintf(stream, ") -> (");
        for (uint32_t output = 0; output < each->output_count; output++) {
            fprintf(stream, "%s%s: %s", output ? ", " : "", each->outputs[output].name, each->outputs[output].text);
        }
        fprintf(stream, ")\n");
    }
}

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
static bool complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_path);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    return false;
}

/* The text behind a key of the header of an .npy file. */
static const char *header_value(const char *header, const char *key)
{
    const char *found = strstr(header, key);
    if (!found) return NULL;
    found += strlen(key);
    while (*found == ' ' || *found == ':') found++;
    return found;
}

/* Reads the shape of a header, "(3, 4)". */
static bool read_shape(const char *text, NAME_tensor *tensor)
{
    if (!text || *text++ != '(') return false;
    tensor->rank = 0;
    for (;;) {
        while (*text == ' ' || *text == ',') text++;
        if (*text == ')') return true;
        char *end;
        errno = 0;
        const long long length = strtoll(text, &end, 10);
        if (end == text || errno || length < 0 || tensor->rank == NAME_MAX_RANK) return false;
        tensor->shape[tensor->rank++] = length;
        text = *end == 'L' ? end + 1 : end;
    }
}

/* Whether the elements of a file are those of a type; signed and unsigned integers hold the same bits. */
static bool is_dtype(const char *text, const char *dtype)
{
    const size_t length = strlen(dtype);
    if (!text || *text++ != '\'') return false;
    if (*text == '<' || *text == '|' || *text == '=') text++;
    const bool is_integer = (*text == 'i' || *text == 'u') && (*dtype == 'i' || *dtype == 'u');
    return (is_integer || *text == *dtype) && !strncmp(text + 1, dtype + 1, length - 1) && text[length] == '\'';
}

static bool read_body(FILE *file, const char *path, const NAME_type *type, NAME_tensor *tensor)
{
    unsigned char start[12];
    char header[MAX_HEADER];
    if (fread(start, 1, 10, file) != 10 || memcmp(start, "\x93NUMPY", 6) != 0 || start[6] < 1 || start[6] > 3) {
        return complain("%s: expected a NumPy file (.npy)", path);
    }
    size_t length = start[8] | (size_t)start[9] << 8;
    if (start[6] > 1) {
        if (fread(start + 10, 1, 2, file) != 2) return complain("%s: the file is cut short", path);
        length |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
    }
    if (length >= sizeof header) return complain("%s: the header has %zu bytes", path, length);
    if (fread(header, 1, length, file) != length) return complain("%s: the file is cut short", path);
    header[length] = 0;
    const char *order = header_value(header, "'fortran_order'");
    const char *descr = header_value(header, "'descr'");
    if (!order || !descr || !read_shape(header_value(header, "'shape'"), tensor)) {
        return complain("%s: expected a header of NumPy with a shape of at most %d axes", path, NAME_MAX_RANK);
    }
    if (strncmp(order, "False", 5) != 0) return complain("%s: expected row-major order; save it with order='C'", path);
    if (!is_dtype(descr, type->dtype)) {
        const int shown = (int)strcspn(descr, ",}");
        return complain("%s: expected elements of the dtype '%s' for %s (%s), got %.*s", path, type->dtype, type->name,
                        type->text, shown < 40 ? shown : 40, descr);
    }
    bool fits = tensor->rank == type->rank;
    uint64_t size = type->bits / 8;
    for (uint32_t axis = 0; axis < type->rank && fits; axis++) {
        const uint64_t each = (uint64_t)tensor->shape[axis];
        fits = type->shape[axis] < 0 || type->shape[axis] == tensor->shape[axis];
        if (each && size > (uint64_t)INT64_MAX / each) return complain("%s: its shape is larger than memory", path);
        size *= each;
    }
    if (!fits) {
        const char *shape = header_value(header, "'shape'");
        return complain("%s: expected the shape of %s (%s), got %.*s", path, type->name, type->text,
                        (int)strcspn(shape, ")") + 1, shape);
    }
    if (size > SIZE_MAX) return complain("%s: its shape is larger than memory", path);
    tensor->size = size;
    tensor->data = malloc(size ? (size_t)size : 1);
    if (!tensor->data) return complain("%s: no memory for %" PRIu64 " bytes", path, size);
    if (fread(tensor->data, 1, (size_t)size, file) != size) {
        return complain("%s: expected %" PRIu64 " bytes of elements, the file is cut short", path, size);
    }
    if (fgetc(file) != EOF) return complain("%s: expected %" PRIu64 " bytes of elements, got more", path, size);
    return true;
}

static bool read_file(const char *path, const NAME_type *type, NAME_tensor *tensor)
{
    FILE *file = fopen(path, "rb");
    if (!file) return complain("%s: %s", path, strerror(errno));
    const bool is_read = read_body(file, path, type, tensor);
    fclose(file);
    return is_read;
}

/* Whether a path is a device, a pipe or a link, such as /dev/stdout: a file would take its place. */
static bool is_special(const char *path)
{
    struct stat found;
    return lstat(path, &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

/* Makes a new file beside a path, and its name; what others have put there, such as a link, is neither opened nor
 * replaced. */
static FILE *draft_open(const char *path, char *draft, size_t room)
{
    int descriptor = -1;
    for (int number = 0; number < 1000 && descriptor < 0; number++) {
        snprintf(draft, room, "%s.%d.part", path, number);
        descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (descriptor < 0 && errno != EEXIST) return NULL;
    }
    return descriptor < 0 ? NULL : fdopen(descriptor, "wb");
}

/* Writes an .npy file: whole, or not at all; what is special is written directly. */
static bool write_file(const char *path, const NAME_type *type, const NAME_tensor *tensor, const void *data,
                       uint64_t size)
{
    char header[256], shape[160] = "";
    size_t used = 0;
    for (uint32_t axis = 0; axis < tensor->rank && used < sizeof shape; axis++) {
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%" PRId64 "%s", axis ? ", " : "",
                                 tensor->shape[axis], tensor->rank == 1 ? "," : "");
    }
    const int length = snprintf(header, sizeof header, "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s), }",
                                strchr(type->dtype, '1') && type->bits == 8 ? '|' : '<', type->dtype, shape);
    const size_t padded = ((size_t)length + 10 + 64) / 64 * 64 - 10;
    const unsigned char start[] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(padded & 0xFF), (unsigned char)(padded >> 8),
    };
    const bool direct = is_special(path);
    const size_t room = strlen(path) + 16;
    char *draft = malloc(room);
    if (!draft) return complain("out of memory");
    FILE *file = direct ? fopen(path, "wb") : draft_open(path, draft, room);
    bool is_written = file != NULL;
    if (file) {
        is_written = fwrite(start, 1, sizeof start, file) == sizeof start
            && fprintf(file, "%-*s\n", (int)padded - 1, header) == (int)padded
            && fwrite(data, 1, (size_t)size, file) == size;
        if (fclose(file) != 0) is_written = false;
        if (is_written && !direct) is_written = rename(draft, path) == 0;
    }
    if (!is_written) {
        complain("%s: %s", path, strerror(errno));
        if (file && !direct) remove(draft);
    }
    free(draft);
    return is_written;
}

/* The file of a result: "out.npy", or "out2.npy" of several. */
static char *result_path(const char *path, uint32_t index, uint32_t count)
{
    const size_t length = strlen(path), room = length + 16;
    char *made = malloc(room);
    if (!made) return NULL;
    const size_t stem = length > 4 && !strcmp(path + length - 4, ".npy") ? length - 4 : length;
    if (count == 1) {
        snprintf(made, room, "%s", path);
    } else {
        snprintf(made, room, "%.*s%" PRIu32 "%s", (int)stem, path, index, path + stem);
    }
    return made;
}

static int by_size(const void *one, const void *other)
{
    const double left = *(const double *)one, right = *(const double *)other;
    return (left > right) - (left < right);
}

/* Calls again and again on device memory, and prints the median time. */
static bool measure(NAME_program *program, const NAME_function *function, NAME_tensor *inputs, NAME_tensor *outputs,
                    long repeat)
{
    bool is_done = false;
    NAME_tensor *moved = calloc(function->input_count + 1, sizeof *moved);
    double *times = calloc((size_t)repeat, sizeof *times);
    if (!moved || !times) {
        complain("out of memory");
        goto done;
    }
    for (uint32_t index = 0; index < function->input_count; index++) {
        moved[index] = inputs[index];
        if (NAME_buffer_create(program, inputs[index].size, &moved[index].buffer) != NAME_OK
            || NAME_buffer_write(program, moved[index].buffer, 0, inputs[index].data, inputs[index].size) != NAME_OK) {
            complain("%s", NAME_error(program));
            goto done;
        }
    }
    for (long call = -3; call < repeat; call++) {
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        if (function->call(program, moved, outputs) != NAME_OK) {
            complain("%s", NAME_error(program));
            goto done;
        }
        clock_gettime(CLOCK_MONOTONIC, &after);
        if (call >= 0) {
            times[call] = (double)(after.tv_sec - before.tv_sec) * 1e6 + (double)(after.tv_nsec - before.tv_nsec) / 1e3;
        }
    }
    qsort(times, (size_t)repeat, sizeof *times, by_size);
    printf("%s: %.2f us a call (median of %ld; least %.2f)\n", function->name, times[repeat / 2], repeat, times[0]);
    is_done = true;
done:
    for (uint32_t index = 0; moved && index < function->input_count; index++) {
        if (moved[index].buffer) NAME_buffer_destroy(program, moved[index].buffer);
    }
    free(moved);
    free(times);
    return is_done;
}

static bool run(const NAME_function *function, const NAME_options *options, char **paths, const char *output,
                long repeat)
{
    bool is_done = false;
    NAME_program *program = NULL;
    NAME_tensor *inputs = calloc(function->input_count + 1, sizeof *inputs);
    NAME_tensor *outputs = calloc(function->output_count + 1, sizeof *outputs);
    if (!inputs || !outputs) {
        complain("out of memory");
        goto done;
    }
    for (uint32_t index = 0; index < function->input_count; index++) {
        if (!read_file(paths[index], &function->inputs[index], &inputs[index])) goto done;
    }
    if (NAME_create(options, &program) != NAME_OK || function->call(program, inputs, outputs) != NAME_OK) {
        complain("%s", NAME_error(program));
        goto done;
    }
    if (repeat && !measure(program, function, inputs, outputs, repeat)) goto done;
    for (uint32_t index = 0; output && index < function->output_count; index++) {
        const NAME_type *type = &function->outputs[index];
        uint64_t size = type->bits / 8;
        for (uint32_t axis = 0; axis < outputs[index].rank; axis++) size *= (uint64_t)outputs[index].shape[axis];
        void *data = size <= SIZE_MAX / 2 ? malloc(size ? (size_t)size : 1) : NULL;
        char *path = result_path(output, index, function->output_count);
        bool is_written = data && path;
        if (!is_written) complain("out of memory");
        if (is_written && NAME_buffer_read(program, outputs[index].buffer, 0, data, size) != NAME_OK) {
            is_written = complain("%s", NAME_error(program));
        }
        is_written = is_written && write_file(path, type, &outputs[index], data, size);
        free(path);
        free(data);
        if (!is_written) goto done;
    }
    is_done = true;
done:
    for (uint32_t index = 0; inputs && index < function->input_count; index++) free(inputs[index].data);
    for (uint32_t index = 0; outputs && index < function->output_count; index++) {
        if (outputs[index].buffer) NAME_buffer_destroy(program, outputs[index].buffer);
    }
    NAME_destroy(program);
    free(inputs);
    free(outputs);
    return is_done;
}

int main(int argc, char **argv)
{
    NAME_options options = {0};
    const char *output = NULL, *wanted = NULL;
    long repeat = 0;
    uint32_t count, given = 0;
    const NAME_function *functions = NAME_functions(&count), *function = &functions[0];
    program_path = argc > 0 ? argv[0] : "NAME";
DATA_DEFAULT
    for (int index = 1; index < argc; index++) {
        const char *each = argv[index];
        if (!strcmp(each, "-h") || !strcmp(each, "--help")) {
            usage(stdout);
            return 0;
        }
        if (each[0] != '-' || !each[1]) {
            argv[1 + given++] = argv[index];
            continue;
        }
        char *equals = each[1] == '-' ? strchr(argv[index], '=') : NULL;
        const char *value = equals ? equals + 1 : argv[index + 1];
        if (equals) *equals = 0;
        if (!strcmp(each, "-o") || !strcmp(each, "--output")) {
            output = value;
        } else if (!strcmp(each, "-f") || !strcmp(each, "--function")) {
            wanted = value;
        } else if (!strcmp(each, "-d") || !strcmp(each, "--device")) {
            options.device_name = value;
DATA_ARGUMENT
        } else if (!strcmp(each, "--repeat")) {
            char *end = NULL;
            repeat = value ? strtol(value, &end, 10) : 0;
            if (value && (*end || repeat < 1 || repeat > 100000000)) {
                complain("--repeat: expected a number of calls, got %s", value);
                return 2;
            }
        } else {
            complain("%s: there is no such option; -h shows those there are", each);
            return 2;
        }
        if (!value) {
            complain("%s: expected a value behind it; -h shows the options", each);
            return 2;
        }
        if (!equals) index++;
    }
    if (wanted) {
        function = NULL;
        for (uint32_t index = 0; index < count; index++) {
            if (!strcmp(functions[index].name, wanted)) function = &functions[index];
        }
        if (!function) {
            complain("there is no function %s; -h shows those there are", wanted);
            return 2;
        }
    }
    if (given != function->input_count) {
        complain("%s takes %" PRIu32 " files, got %" PRIu32 "; -h shows its arguments", function->name,
                 function->input_count, given);
        return 2;
    }
    if (!output && !repeat && function->output_count) {
        complain("expected -o OUT.npy for what %s computes, or --repeat N; -h shows the options", function->name);
        return 2;
    }
    return run(function, &options, argv + 1, output, repeat) ? 0 : 1;
}
